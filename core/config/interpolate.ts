/** References in configuration texts: `${VAR}`, `${VAR:-default}`, `${VAR:?message}`, `${file:/path}`; `$${` is a plain `${`. */

export interface Lookup {
  env(name: string): string | undefined;
  /** The trimmed text of a file; throws an Error that says why it cannot be read. */
  file(path: string): string;
}

export interface Interpolated {
  /** Undefined when a plain `${VAR}` is not set. */
  readonly text: string | undefined;
  /** The variables that are not set. */
  readonly unset: readonly string[];
  /** What is wrong whatever the place: malformed references, `:?` messages, unreadable files. */
  readonly errors: readonly { readonly message: string; readonly hint?: string }[];
  /** Whether the whole text was one reference. */
  readonly whole: boolean;
  /** Where the text came from, such as `env PORT` or `file /run/secrets/key`. */
  readonly sources: readonly string[];
}

type Part =
  | string
  | { readonly kind: 'env'; readonly name: string; readonly operator: Operator; readonly parts: readonly Part[] }
  | FilePart;
type FilePart = { readonly kind: 'file'; readonly parts: readonly Part[] };
type Operator = '' | ':-' | ':?';

// biome-ignore lint/suspicious/noTemplateCurlyInString: shows what to write.
const FORMS = 'Write ${NAME}, ${NAME:-default}, ${NAME:?message} or ${file:/path}; a plain "${" is written "$${".';
/** How deep defaults may hold references that have defaults. */
const MAX_DEPTH = 10;

const START = /\$\$\{|\$\{|\}/g;
const REFERENCE = /(file:)|([A-Za-z_]\w*)(:-|:\?|(?=\}))/y;

/** Whether a text has anything to replace. */
export function hasReference(text: string): boolean {
  return text.includes('${');
}

/** Replaces the references of one text. Pure but for the lookup. */
export function interpolate(text: string, lookup: Lookup): Interpolated {
  const result = { unset: [] as string[], errors: [] as { message: string; hint?: string }[], sources: [] as string[] };
  const parsed = parse(text);
  if (parsed === undefined) {
    result.errors.push({ message: 'has a "${" that begins no reference', hint: FORMS });
    return { ...result, text: undefined, whole: false };
  }
  const whole = parsed.length === 1 && typeof parsed[0] === 'object';
  return { ...result, text: evaluate(parsed, lookup, result), whole };
}

function parse(text: string): readonly Part[] | undefined {
  const { parts, end } = parseUntil(text, 0, 0) ?? {};
  return end === text.length ? parts : undefined;
}

/** Reads parts up to the end of the text, or (inside a reference: depth > 0) up to its closing brace. */
function parseUntil(text: string, from: number, depth: number): { parts: readonly Part[]; end: number } | undefined {
  const parts: Part[] = [];
  let plain = '';
  let offset = from;
  const flush = (): void => {
    if (plain !== '') parts.push(plain);
    plain = '';
  };
  for (;;) {
    START.lastIndex = offset;
    const mark = START.exec(text);
    plain += text.slice(offset, mark?.index ?? text.length);
    if (mark === null) {
      flush();
      return depth > 0 ? undefined : { parts, end: text.length };
    }
    offset = mark.index + mark[0].length;
    if (mark[0] === '$${') plain += '${';
    else if (mark[0] === '${') {
      const reference = parseReference(text, offset, depth + 1);
      if (reference === undefined) return undefined;
      flush();
      parts.push(reference.part);
      offset = reference.end;
    } else if (depth > 0) {
      flush();
      return { parts, end: offset };
    } else plain += '}';
  }
}

function parseReference(text: string, from: number, depth: number): { part: Part; end: number } | undefined {
  REFERENCE.lastIndex = from;
  const match = REFERENCE.exec(text);
  const rest = match && depth <= MAX_DEPTH ? parseUntil(text, from + match[0].length, depth) : undefined;
  if (!match || !rest) return undefined;
  const { parts, end } = rest;
  if (match[1] !== undefined) return parts.length > 0 ? { part: { kind: 'file', parts }, end } : undefined;
  return { part: { kind: 'env', name: match[2] ?? '', operator: (match[3] ?? '') as Operator, parts }, end };
}

type Findings = { unset: string[]; errors: { message: string; hint?: string }[]; sources: string[] };

function evaluate(parts: readonly Part[], lookup: Lookup, findings: Findings): string | undefined {
  let text = '';
  let complete = true;
  for (const part of parts) {
    const piece = typeof part === 'string' ? part : resolvePart(part, lookup, findings);
    if (piece === undefined) complete = false;
    else text += piece;
  }
  return complete ? text : undefined;
}

function resolvePart(part: Exclude<Part, string>, lookup: Lookup, findings: Findings): string | undefined {
  if (part.kind === 'file') return readFilePart(part, lookup, findings);
  const value = lookup.env(part.name);
  // As in a shell: with `:-` and `:?` an empty variable counts as none.
  if (value !== undefined && (value !== '' || part.operator === '')) {
    findings.sources.push(`env ${part.name}`);
    return value;
  }
  if (part.operator === ':-') return evaluate(part.parts, lookup, findings);
  if (part.operator === '') {
    findings.unset.push(part.name);
    return undefined;
  }
  const message = evaluate(part.parts, lookup, findings) || 'it is required';
  findings.errors.push({
    message: `needs the environment variable ${part.name}, which is not set: ${message}`,
    hint: `Set ${part.name} in the environment or in .env.`,
  });
  return undefined;
}

function readFilePart(part: FilePart, lookup: Lookup, findings: Findings): string | undefined {
  const path = evaluate(part.parts, lookup, findings);
  if (path === undefined) return undefined;
  try {
    const text = lookup.file(path);
    findings.sources.push(`file ${path}`);
    return text;
  } catch (error) {
    findings.errors.push({
      message: `needs the file ${path}, which ${error instanceof Error ? error.message : 'cannot be read'}`,
      hint: 'Create it, or correct the path; a relative one is relative to the configuration file.',
    });
    return undefined;
  }
}
