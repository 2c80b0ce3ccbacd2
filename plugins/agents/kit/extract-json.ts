import { jsonrepair } from 'jsonrepair';

/** A text that is longer, or JSON that is deeper, is not read: no schema of a caller needs it. */
export const JSON_LIMITS = Object.freeze({ characters: 262_144, depth: 64 });

export interface ExtractedJson {
  readonly value: unknown;
  /** Whether the text had to be repaired to be JSON at all. */
  readonly repaired: boolean;
}

/**
 * The JSON in a model's text: the whole of it, a fenced block, or the first balanced object or list; as a last resort,
 * and only when `mayRepair`, what `jsonrepair` makes of it. Undefined when there is none. A truncated response must not
 * be repaired: it would become a valid and wrong value.
 */
export function extractJson(text: string, mayRepair: boolean): ExtractedJson | undefined {
  const bare = text
    .replace(/^\uFEFF/, '')
    .replace(/^\s*<think>[\s\S]*?<\/think>/, '')
    .trim();
  if (bare === '' || bare.length > JSON_LIMITS.characters) return undefined;
  const fenced = fencedBlock(bare);
  for (const span of [bare, fenced, balanced(bare)]) {
    if (!span) continue;
    const parsed = parse(span);
    if (parsed) return { value: unquoted(parsed.value), repaired: false };
  }
  if (!mayRepair) return undefined;
  for (const span of [fenced, bare.slice(Math.max(bare.search(/[{[]/), 0))]) {
    if (span === undefined || !/^[{[]/.test(span)) continue;
    const parsed = repair(span);
    if (parsed) return { value: parsed.value, repaired: true };
  }
  return undefined;
}

function parse(text: string): { readonly value: unknown } | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isDeeper(value, JSON_LIMITS.depth) ? undefined : { value };
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

/** Some models write a JSON string that holds the JSON. */
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
