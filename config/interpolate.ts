import { readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { isObject, type Json, type Schema } from '../contract/json.ts';
import type { Problem } from '../contract/plugin.ts';
import { type ProblemAt, pointerKeys } from '../contract/pointers.ts';
import { isSecret, mapLeaves } from './schema-at.ts';
import type { Environment } from './sources.ts';

/** References in configuration texts: `${VAR}`, `${VAR:-default}`, `${VAR:?message}`, `${file:/path}`, `${manager:secret}`; `$${` is a plain `${`. */

export interface Lookup {
  env(name: string): string | undefined;
  /** The trimmed text of a file; throws an Error that says why it cannot be read. */
  file(path: string): string;
  /** What a manager of secrets gave; throws an Error that says why there is nothing. */
  secret(manager: string, name: string): string;
}

export interface Interpolated {
  /** Undefined when a plain `${VAR}` is not set. */
  readonly text: string | undefined;
  /** The variables that are not set. */
  readonly unset: readonly string[];
  /** What is wrong whatever the place: malformed references, `:?` messages, unreadable files. */
  readonly errors: readonly Problem[];
  /** Where the text came from, such as `env PORT` or `file /run/secrets/key`. */
  readonly sources: readonly string[];
}

/** What was read of a text, and where reading ended; undefined stands for a malformed reference. */
type Read = (Interpolated & { readonly end: number }) | undefined;

const MARK = /\$\$\{|\$\{|\}/g;
const REFERENCE = /(file:|[a-z][a-z0-9-]*:(?![-?]))|([A-Za-z_]\w*)(:-|:\?|(?=\}))/y;
/** How deep defaults may hold references that have defaults. */
const MAX_DEPTH = 10;
const MAX_FILE_BYTES = 1024 * 1024;
const NOTHING = Object.freeze({ text: undefined, unset: [], errors: [], sources: [] });
const MALFORMED: Problem = Object.freeze({
  message: 'has a "${" that begins no reference',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: shows what to write.
  hint: 'Write ${NAME}, ${NAME:-default}, ${NAME:?message}, ${file:/path} or ${manager:secret}; a plain "${" is written "$${".',
});

export interface LookupInput {
  readonly env: Environment;
  /** What paths of files are relative to. Absolute. */
  readonly baseDir: string;
  /** What was read of files, by absolute path: each is read once, so that everybody who checks sees the same. */
  readonly texts: Map<string, string>;
  readonly secrets: SecretTexts;
}

/** What managers gave for references, by their text, such as `vault:secret/data/openai#key`. */
export type SecretTexts = Map<string, SecretText>;

/** A text, or why it is missing. */
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

/** The environment variables that a part of a configuration names, as it was read, whether or not they are set. */
export function listVariables(value: Json, pointer: string): readonly string[] {
  let part: unknown = value;
  for (const key of pointerKeys(pointer)) part = isObject(part) ? part[key] : undefined;
  const names = JSON.stringify(part ?? null).matchAll(VARIABLE);
  return [...new Set([...names].flatMap(([, name]) => name ?? []))];
}

/** Replaces the references of one text. `whole` tells whether the text is one reference and nothing else. */
export function interpolate(text: string, lookup: Lookup): Interpolated & { readonly whole: boolean } {
  const first = text.startsWith('${') ? readReference(text, 2, 1, lookup) : undefined;
  const whole = first?.end === text.length;
  const read = (whole ? first : readText(text, 0, 0, lookup)) ?? { ...NOTHING, errors: [MALFORMED] };
  return { text: read.text, unset: read.unset, errors: read.errors, sources: read.sources, whole };
}

/** Reads up to the end of the text or, inside a reference (depth > 0), up to its closing brace. */
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

/** Reads what follows on `${`. */
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
  // As in a shell: with `:-` and `:?` an empty variable counts as none.
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
    const hint = 'Create it, or correct the path; a relative one is relative to the configuration file.';
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
  /** A new value; keys whose secret is not set are left out. */
  readonly value: Json | undefined;
  readonly problems: readonly ProblemAt[];
  /** Secrets that were left out, by pointer: the variable that is not set. */
  readonly unset: ReadonlyMap<string, string>;
  /** Where values came from, by pointer, such as `env PORT`. */
  readonly sources: ReadonlyMap<string, string>;
}

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/**
 * Replaces the references in every text below `value`, which stands at `pointer` and should match `schema`. Where the
 * schema says `secret: true` a variable that is not set (or empty) removes the key; elsewhere it is a problem. A text that
 * is one reference becomes a number or boolean where the schema wants one.
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
  return { pointer, message, hint: `Set ${name}, or write \${${name}:-default}.` };
}

function coerce(text: string, nodes: readonly Schema[]): string | number | boolean {
  const types = nodes.flatMap(({ type }) => type);
  if ((types.includes('number') || types.includes('integer')) && NUMBER.test(text)) return Number(text);
  return types.includes('boolean') && /^(true|false)$/.test(text) ? text === 'true' : text;
}
