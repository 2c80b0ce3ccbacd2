import { readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { isObject, type Json, type Schema } from '../contract/json.ts';
import type { Problem } from '../contract/plugin.ts';
import { type ProblemAt, pointerKeys } from '../contract/pointers.ts';
import { isSecret, mapLeaves } from './schema-at.ts';
import type { Environment } from './sources.ts';

/**
 * References in configuration texts: `${VAR}`, `${VAR:-default}`, `${VAR:?message}`, `${file:/path}`,
 * `${manager:secret}`; `$${` is a literal `${`.
 */

export interface Lookup {
  env(name: string): string | undefined;
  /** Returns the trimmed text of a file; throws an Error with the reason if it is unreadable. */
  file(path: string): string;
  /** Returns a secret manager's value; throws an Error with the reason if it is missing. */
  secret(manager: string, name: string): string;
}

export interface Interpolated {
  /** Undefined if a plain `${VAR}` is not set. */
  readonly text: string | undefined;
  /** Variables that are not set. */
  readonly unset: readonly string[];
  /** Problems at any position: malformed references, `:?` messages, unreadable files. */
  readonly errors: readonly Problem[];
  /** Sources of the text, such as `env PORT` or `file /run/secrets/key`. */
  readonly sources: readonly string[];
}

/** Interpolated text, and the offset at which reading ended; undefined for a malformed reference. */
type Read = (Interpolated & { readonly end: number }) | undefined;

const MARK = /\$\$\{|\$\{|\}/g;
const REFERENCE = /(file:|[a-z][a-z0-9-]*:(?![-?]))|([A-Za-z_]\w*)(:-|:\?|(?=\}))/y;
/** Maximum nesting of defaults with references. */
const MAX_DEPTH = 10;
const MAX_FILE_BYTES = 1024 * 1024;
const NOTHING = Object.freeze({ text: undefined, unset: [], errors: [], sources: [] });
const MALFORMED: Problem = Object.freeze({
  message: 'has a "${" without a valid reference',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: shows what to write.
  hint: 'Use ${NAME}, ${NAME:-default}, ${NAME:?message}, ${file:/path} or ${manager:secret}. For a literal "${", write "$${".',
});

export interface LookupInput {
  readonly env: Environment;
  /** Base of relative file paths. Absolute. */
  readonly baseDir: string;
  /** File contents by absolute path. Each file is read once, so that all checks see the same content. */
  readonly texts: Map<string, string>;
  readonly secrets: SecretTexts;
}

/** Secret values by reference, such as `vault:secret/data/openai#key`. */
export type SecretTexts = Map<string, SecretText>;

/** Text, or the reason why it is missing. */
export interface SecretText {
  readonly text?: string;
  readonly problem?: string;
  readonly againMs?: number;
}

/** Looks references up in an environment and in files relative to a folder. */
export function createLookup({ env, baseDir, texts, secrets }: LookupInput): Lookup {
  return {
    env: (name) => (Object.hasOwn(env, name) ? env[name] : undefined),
    file(name) {
      const file = path.resolve(baseDir, name);
      const known = texts.get(file);
      if (known !== undefined) return known;
      const found = statSync(file, { throwIfNoEntry: false });
      if (found === undefined) throw new Error('does not exist');
      if (found.isDirectory()) throw new Error('is a folder');
      if (found.size > MAX_FILE_BYTES) throw new Error('is larger than 1 MiB');
      try {
        const text = readFileSync(file, 'utf8').trim();
        texts.set(file, text);
        return text;
      } catch (error) {
        throw new Error(`cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown'})`);
      }
    },
    secret(manager, name) {
      const { text, problem } = secrets.get(`${manager}:${name}`) ?? {};
      if (text !== undefined) return text;
      throw new Error(problem ?? `needs the secret manager "${manager}", which is not under "secrets"`);
    },
  };
}

const VARIABLE = /(?<!\$)\$\{([A-Za-z_]\w*)(?=:[-?]|\})/g;

/** Lists the environment variables in a part of a configuration before interpolation, whether set or not. */
export function listVariables(value: Json, pointer: string): readonly string[] {
  let part: unknown = value;
  for (const key of pointerKeys(pointer)) part = isObject(part) ? part[key] : undefined;
  const names = JSON.stringify(part ?? null).matchAll(VARIABLE);
  return [...new Set([...names].flatMap(([, name]) => name ?? []))];
}

/** Replaces the references of one text. `whole` is true if the text is exactly one reference. */
export function interpolate(text: string, lookup: Lookup): Interpolated & { readonly whole: boolean } {
  const first = text.startsWith('${') ? readReference(text, 2, 1, lookup) : undefined;
  const whole = first?.end === text.length;
  const read = (whole ? first : readText(text, 0, 0, lookup)) ?? { ...NOTHING, errors: [MALFORMED] };
  return { text: read.text, unset: read.unset, errors: read.errors, sources: read.sources, whole };
}

/** Reads to the end of the text or, inside a reference (depth > 0), to its closing brace. */
function readText(text: string, from: number, depth: number, lookup: Lookup): Read {
  const pieces: Interpolated[] = [];
  const add = (plain: string): void => void pieces.push({ ...NOTHING, text: plain });
  for (let offset = from; ; ) {
    MARK.lastIndex = offset;
    const mark = MARK.exec(text);
    add(text.slice(offset, mark?.index));
    if (mark === null) return depth > 0 ? undefined : { ...join(pieces), end: text.length };
    offset = mark.index + mark[0].length;
    if (mark[0] === '$${') add('${');
    else if (mark[0] === '${') {
      const reference = readReference(text, offset, depth + 1, lookup);
      if (reference === undefined) return undefined;
      pieces.push(reference);
      offset = reference.end;
    } else if (depth > 0) return { ...join(pieces), end: offset };
    else add('}');
  }
}

function join(pieces: readonly Interpolated[]): Interpolated {
  const texts = pieces.map(({ text }) => text);
  return {
    text: texts.includes(undefined) ? undefined : texts.join(''),
    unset: pieces.flatMap(({ unset }) => unset),
    errors: pieces.flatMap(({ errors }) => errors),
    sources: pieces.flatMap(({ sources }) => sources),
  };
}

/** Reads the reference after `${`. */
function readReference(text: string, from: number, depth: number, lookup: Lookup): Read {
  REFERENCE.lastIndex = from;
  const match = depth <= MAX_DEPTH ? REFERENCE.exec(text) : null;
  const rest = match && readText(text, from + match[0].length, depth, lookup);
  if (!match || !rest) return undefined;
  const { end } = rest;
  const [start, prefix, name = '', operator] = match;
  if (prefix) {
    const readPart =
      prefix === 'file:' ? readFilePart(rest, lookup) : readSecretPart(prefix.slice(0, -1), rest, lookup);
    return end > from + start.length + 1 ? { ...readPart, end } : undefined;
  }
  const value = lookup.env(name);
  // As in a shell, `:-` and `:?` treat an empty variable as unset.
  if (value !== undefined && (value !== '' || !operator))
    return { ...NOTHING, text: value, sources: [`env ${name}`], end };
  if (operator === ':-') return rest;
  if (!operator) return { ...NOTHING, unset: [name], end };
  const message = `needs the environment variable ${name}, which is not set: ${rest.text || 'it is required'}`;
  const hint = `Set ${name} in the environment or in .env.`;
  return { ...rest, text: undefined, errors: [...rest.errors, { message, hint }] };
}

function readFilePart(name: Interpolated, lookup: Lookup): Interpolated {
  if (name.text === undefined) return name;
  try {
    return { ...name, text: lookup.file(name.text), sources: [...name.sources, `file ${name.text}`] };
  } catch (error) {
    const reason = error instanceof Error ? error.message : 'cannot be read';
    const message = `needs the file ${name.text}, which ${reason}`;
    const hint = 'Create it, or correct the path. Relative paths start at the configuration file.';
    return { ...name, text: undefined, errors: [...name.errors, { message, hint }] };
  }
}

function readSecretPart(manager: string, name: Interpolated, lookup: Lookup): Interpolated {
  if (name.text === undefined) return name;
  try {
    const text = lookup.secret(manager, name.text);
    return { ...name, text, sources: [...name.sources, `secret ${manager}:${name.text}`] };
  } catch (error) {
    const message = error instanceof Error ? error.message : 'cannot be read';
    return { ...name, text: undefined, errors: [...name.errors, { message }] };
  }
}

export interface InterpolatedTree {
  /** Interpolated copy; keys whose secret is not set are omitted. */
  readonly value: Json | undefined;
  readonly problems: readonly ProblemAt[];
  /** Omitted secrets by pointer, with the unset variable. */
  readonly unset: ReadonlyMap<string, string>;
  /** Sources of values by pointer, such as `env PORT`. */
  readonly sources: ReadonlyMap<string, string>;
}

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/**
 * Replaces the references in every text below `value`, whose position is `pointer` and whose schema is `schema`. If the
 * schema sets `secret: true`, an unset or empty variable removes the key; elsewhere it is a problem. A text that is
 * exactly one reference becomes a number or boolean if the schema requires one.
 */
export function interpolateTree(value: Json, schema: Schema, pointer: string, lookup: Lookup): InterpolatedTree {
  const problems: ProblemAt[] = [];
  const unset = new Map<string, string>();
  const sources = new Map<string, string>();
  const replaced = mapLeaves(value, schema, pointer, (leaf, at) => {
    if (typeof leaf !== 'string' || !leaf.includes('${')) return leaf;
    const found = interpolate(leaf, lookup);
    const secret = isSecret(at.nodes);
    problems.push(...found.errors.map((error) => ({ pointer: at.pointer, ...error })));
    if (found.sources.length > 0) sources.set(at.pointer, found.sources.join(', '));
    if (!secret) problems.push(...found.unset.map((name) => notSet(name, at.pointer)));
    if (found.text === undefined || (secret && found.text === '')) {
      unset.set(at.pointer, found.unset[0] ?? found.sources[0]?.replace(/^env /, '') ?? '');
      return undefined;
    }
    return found.whole ? coerce(found.text, at.nodes) : found.text;
  });
  return { value: replaced as Json | undefined, problems, unset, sources };
}

function notSet(name: string, pointer: string): ProblemAt {
  const message = `needs the environment variable ${name}, which is not set (looked in the environment, .env.local and .env)`;
  return { pointer, message, hint: `Set ${name}, or use \${${name}:-default}.` };
}

function coerce(text: string, nodes: readonly Schema[]): string | number | boolean {
  const types = nodes.flatMap(({ type }) => type);
  if ((types.includes('number') || types.includes('integer')) && NUMBER.test(text)) return Number(text);
  return types.includes('boolean') && /^(true|false)$/.test(text) ? text === 'true' : text;
}
