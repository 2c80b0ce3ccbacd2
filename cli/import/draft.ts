import { isDeepStrictEqual } from 'node:util';
import { INSTANCE_NAME } from '../../config/core-schema.ts';
import { isObject, type Json } from '../../contract/json.ts';

/** A map of a configuration. */
export type Options = { readonly [key: string]: Json };

/**
 * Outcome for a field of another gateway's configuration: same effect, same effect by other means, or no counterpart.
 */
export type FindingKind = 'kept' | 'emulated' | 'impossible';

export interface Finding {
  /** Position in the file that was read, such as `model_list[0].litellm_params.rpm`. */
  readonly at: string;
  readonly kind: FindingKind;
  /** Explanation of the outcome; never contains a value of the file. */
  readonly note: string;
}

/** Result of an import. */
export interface Imported {
  /** Content of the new `tollgate.config.yaml`. */
  readonly config: Options;
  readonly findings: readonly Finding[];
  /** Plain-text secrets of the file, by the variables that replace them. */
  readonly secrets: ReadonlyMap<string, string>;
}

/** Target of an alias before it is written. */
export interface DraftTarget {
  /** `instance/model`. */
  readonly to: string;
  readonly weight?: number;
  readonly order?: number;
}

/** Alias before it is written. */
export interface DraftAlias {
  readonly targets: readonly DraftTarget[];
  readonly strategy?: 'fallback' | 'weighted' | 'least-latency';
  readonly onOverflow?: string;
  readonly timeouts?: Options;
}

/** Plugin and options that call a vendor. */
export interface DraftProvider {
  readonly plugin: string;
  readonly options: Options;
}

/** Configuration under construction while another gateway's file is read. */
export interface Draft {
  note(kind: FindingKind, at: string, note: string): void;
  /**
   * Replaces a secret by a reference to the variable that the file names, or to `variable`, which must be set later.
   */
  secret(value: unknown, at: string, variable: string): string | undefined;
  /** Text of the file, with its variable as a reference. */
  text(value: unknown): string | undefined;
  /**
   * Returns the instance with this plugin and these options. Creates it once, under the name that its callers know, if
   * any.
   */
  provider(wanted: DraftProvider, known?: string): string;
  /** Returns the instance that owns models of this name. */
  ownerOf(name: string): string | undefined;
  /** Adds a model to an instance. */
  model(instance: string, model: string): void;
  alias(name: string, alias: DraftAlias): void;
  /** Sets options of another section, by section and name: `policies`, `pii`. */
  section(section: string, name: string, options: Json): void;
  result(): Imported;
}

/** Maximum targets of an alias. */
const MAX_TARGETS = 16;

/** Starts a draft; `variableOf` returns the environment variable that a text of the file refers to, if any. */
export function createDraft(variableOf: (text: string) => string | undefined): Draft {
  const findings: Finding[] = [];
  const secrets = new Map<string, string>();
  const providers = new Map<string, DraftProvider>();
  const models = new Map<string, Set<string>>();
  const aliases = new Map<string, DraftAlias>();
  const sections = new Map<string, Record<string, Json>>();

  const note: Draft['note'] = (kind, at, text) => {
    const finding = { at, kind, note: text };
    if (!findings.some((each) => isDeepStrictEqual(each, finding))) findings.push(finding);
  };
  const text: Draft['text'] = (value) => {
    if (typeof value !== 'string' || value === '') return undefined;
    const variable = variableOf(value);
    return variable === undefined ? value.replaceAll('${', () => '$${') : `\${${variable}}`;
  };

  return {
    note,
    text,
    secret(value, at, variable) {
      if (typeof value !== 'string' || value === '') return undefined;
      const named = variableOf(value);
      if (named !== undefined) return `\${${named}}`;
      const name = freeName(variable, '_', (each) => secrets.has(each) && secrets.get(each) !== value);
      secrets.set(name, value);
      note('emulated', at, `the secret is in .env as ${name}; the configuration refers to that variable`);
      return `\${${name}}`;
    },
    provider(wanted, known = '') {
      for (const [name, each] of providers) if (isDeepStrictEqual(each, wanted)) return name;
      const name = freeName(INSTANCE_NAME.test(known) ? known : wanted.plugin, '-', (each) => providers.has(each));
      providers.set(name, wanted);
      return name;
    },
    ownerOf: (name) => [...providers.keys()].find((instance) => name.startsWith(`${instance}/`)),
    model(instance, model) {
      models.set(instance, (models.get(instance) ?? new Set()).add(model));
    },
    alias: (name, alias) => void aliases.set(name, alias),
    section(section, name, options) {
      sections.set(section, { ...sections.get(section), [name]: options });
    },
    result: () => ({
      config: {
        providers: Object.fromEntries(
          [...providers].map(([name, given]) => [name, writeProvider(name, given, models.get(name) ?? new Set())]),
        ),
        ...(aliases.size > 0 && {
          models: Object.fromEntries([...aliases].map(([name, alias]) => [name, writeAlias(alias)])),
        }),
        ...Object.fromEntries(sections),
      },
      findings,
      secrets,
    }),
  };
}

/** Returns the name, or the first free one of `name2`, `name3`, … */
function freeName(name: string, separator: string, isTaken: (name: string) => boolean): string {
  for (let count = 1; ; count += 1) {
    const free = count === 1 ? name : `${name}${separator}${count}`;
    if (!isTaken(free)) return free;
  }
}

function writeProvider(name: string, { plugin, options }: DraftProvider, models: ReadonlySet<string>): Options {
  const any = models.has('*') || plugin === 'openai-compatible';
  // A name in the built-in list is the same model; `+` also allows older and more specific names.
  const list = any ? ['*'] : [...models].map((model) => `+${model}`);
  const open = OPEN_PLUGINS.has(plugin) || list.length === 0;
  return { ...(name !== plugin && { plugin }), ...options, ...(!open && { models: list }) };
}

/** Plugins that accept any model name by default. */
const OPEN_PLUGINS: ReadonlySet<string> = new Set(['azure', 'ollama', 'openrouter']);

function writeAlias({ targets, strategy, onOverflow, timeouts }: DraftAlias): Json {
  const kept = targets.slice(0, MAX_TARGETS);
  const isPlain = kept.every(({ weight, order }) => weight === undefined && (order ?? 1) === 1);
  const list = kept.map(({ to, weight, order }) =>
    weight === undefined && (order ?? 1) === 1
      ? to
      : { to, ...(weight !== undefined && { weight }), ...(order !== undefined && order > 1 && { order }) },
  );
  const rules = {
    ...(strategy !== undefined && strategy !== 'fallback' && list.length > 1 && { strategy }),
    ...(onOverflow !== undefined && { onOverflow }),
    ...(timeouts && Object.keys(timeouts).length > 0 && { timeouts }),
  };
  if (!isPlain || Object.keys(rules).length > 0) return { ...rules, targets: list };
  return list.length === 1 ? (list[0] ?? '') : list;
}

/** Fixed outcome of a field. */
export type FieldRule = readonly [kind: FindingKind, note: string];

/**
 * Records the outcome of each field that a table has a rule for, and reports other fields as unknown. `read` lists
 * fields that the import reads and reports itself.
 */
export function recordFields(
  draft: Draft,
  value: unknown,
  at: string,
  { rules, read = [] }: { readonly rules: Readonly<Record<string, FieldRule>>; readonly read?: readonly string[] },
): void {
  if (!isObject(value)) return;
  for (const field of Object.keys(value)) {
    if (read.includes(field)) continue;
    const place = at === '' ? field : `${at}.${field}`;
    const rule =
      (Object.hasOwn(rules, field) ? rules[field] : undefined) ?? (holdsSecret(field, value[field]) ? SECRET : UNKNOWN);
    draft.note(rule[0], place, rule[1]);
  }
}

const UNKNOWN: FieldRule = ['impossible', 'unknown field, skipped'];
const SECRET: FieldRule = ['impossible', 'unknown kind of secret, skipped; it is not in any written file'];

/** True if the name of a field, or of one within it, suggests a secret. */
function holdsSecret(field: string, value: unknown): boolean {
  if (isObject(value)) return Object.entries(value).some(([name, each]) => holdsSecret(name, each));
  return typeof value === 'string' && SECRET_NAME.test(field);
}

const SECRET_NAME =
  /(^|[_-])(key|token|secret|passwords?|pwd|credentials?|signature)$|(api|access|private|secret)[_-]?key|password|_token/i;

/** Unchecked map of another gateway's configuration. */
export type Fields = Readonly<Record<string, unknown>>;

/** Returns the value if it is a map, else an empty map. */
export function objectOf(value: unknown): Fields {
  return isObject(value) ? value : {};
}

/** Returns the value if it is a list, else an empty list. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Variable for a plain-text secret. It avoids the usual name, which the file may use for another secret. */
export function importedVariable(...words: readonly string[]): string {
  return `IMPORTED_${words
    .join('_')
    .toUpperCase()
    .replace(/[^A-Z0-9]+/g, '_')}`;
}
