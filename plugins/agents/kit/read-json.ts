import { jsonrepair } from 'jsonrepair';

/** An answer longer or deeper than this is not read: nothing a caller can ask for needs it. */
export const ANSWER_LIMITS = Object.freeze({ characters: 262_144, depth: 64 });

export interface ReadJson {
  readonly value: unknown;
  /** Whether the text had to be mended to be JSON at all. */
  readonly repaired: boolean;
}

/**
 * The JSON in a model's text: the whole of it, a fenced block, or the first balanced object or list; as a last resort,
 * and only when `mend` allows it, what `jsonrepair` makes of it. Undefined when there is none. A truncated answer must
 * not be mended: it would become a valid and wrong value.
 */
export function readJson(text: string, mend: boolean): ReadJson | undefined {
  const bare = text
    .replace(/^\uFEFF/, '')
    .replace(/^\s*<think>[\s\S]*?<\/think>/, '')
    .trim();
  if (bare === '' || bare.length > ANSWER_LIMITS.characters) return undefined;
  const fenced = fencedBlock(bare);
  for (const span of [bare, fenced, balanced(bare)]) {
    if (!span) continue;
    const parsed = parse(span);
    if (parsed) return { value: unquoted(parsed.value), repaired: false };
  }
  if (!mend) return undefined;
  for (const span of [fenced, bare.slice(Math.max(bare.search(/[{[]/), 0))]) {
    if (span === undefined || !/^[{[]/.test(span)) continue;
    const mended = repair(span);
    if (mended) return { value: mended.value, repaired: true };
  }
  return undefined;
}

function parse(text: string): { readonly value: unknown } | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isDeeper(value, ANSWER_LIMITS.depth) ? undefined : { value };
  } catch {
    return undefined;
  }
}

function repair(text: string): { readonly value: unknown } | undefined {
  try {
    return parse(jsonrepair(text));
  } catch {
    return undefined;
  }
}

/** Some models answer with a JSON string that holds the JSON. */
function unquoted(value: unknown): unknown {
  if (typeof value !== 'string' || !/^\s*[{[]/.test(value)) return value;
  return parse(value)?.value ?? value;
}

/** The text from the first `{` or `[` to the bracket that closes it. */
function balanced(text: string): string | undefined {
  const start = text.search(/[{[]/);
  if (start < 0) return undefined;
  let depth = 0;
  let quoted = false;
  for (let at = start; at < text.length; at += 1) {
    const sign = text[at];
    if (quoted) {
      if (sign === '\\') at += 1;
      else if (sign === '"') quoted = false;
    } else if (sign === '"') quoted = true;
    else if (sign === '{' || sign === '[') depth += 1;
    else if (sign === '}' || sign === ']') {
      depth -= 1;
      if (depth === 0) return text.slice(start, at + 1);
    }
  }
  return undefined;
}

/** What stands between the first two fences, without the fence's language. */
function fencedBlock(text: string): string | undefined {
  const open = text.indexOf('```');
  const start = open < 0 ? -1 : text.indexOf('\n', open);
  const end = start < 0 ? -1 : text.indexOf('```', start);
  return end < 0 ? undefined : text.slice(start, end).trim();
}

function isDeeper(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return depth === 0 || Object.values(value).some((inner) => isDeeper(inner, depth - 1));
}
