import { readFileSync } from 'node:fs';
import path from 'node:path';
import { cosmiconfig, type Loader } from 'cosmiconfig';
import type { Json } from '../contract/json.ts';
import { type Environment, loadEnv } from './env.ts';
import { ConfigError, displayPath, type FaultAt } from './faults.ts';
import { findConfig } from './find.ts';
import { loadScript } from './load-script.ts';
import { PACKAGE_ROOT } from './package-root.ts';
import { toPlain } from './plain.ts';
import { type Positions, type Source, SourceError } from './positions.ts';
import { parseJson } from './source-json.ts';

const DEFAULT_FILE = 'config/default.yaml';

type JsonMap = { readonly [key: string]: Json };

export interface ConfigInput {
  /** Where to search, and what a relative `configPath` is relative to. Absolute. */
  readonly cwd: string;
  readonly env: Environment;
  /** `--config`; wins over `TOLLGATE_CONFIG` and over any search. */
  readonly configPath?: string | undefined;
}

/** A configuration as it stands in its file: parsed, neither interpolated nor checked. */
export interface RawConfig {
  /** The file's name for people: relative to the working directory when it lies in there. */
  readonly file: string;
  /** Whether no file was found and the built-in one runs. */
  readonly isDefault: boolean;
  /** What relative paths are relative to: the file's folder, or the working directory for the built-in one. Absolute. */
  readonly baseDir: string;
  readonly cwd: string;
  readonly value: JsonMap;
  readonly positions: Positions;
  /** The environment with `.env` and `.env.local` in it. */
  readonly env: Environment;
  /** What in the file is no data and was left out. */
  readonly faults: readonly FaultAt[];
}

/** Finds and parses the configuration; throws a {@link ConfigError} when there is nothing to check: no file, bad syntax. */
export async function readRawConfig(input: ConfigInput): Promise<RawConfig> {
  const { cwd } = input;
  const here = await loadEnv(input.env, [cwd], cwd);
  const found = await findConfig(cwd, here, input.configPath);
  const isDefault = found === undefined;
  const file = found ?? path.join(PACKAGE_ROOT, DEFAULT_FILE);
  const baseDir = isDefault ? cwd : path.dirname(file);
  const env = baseDir === cwd ? here : await loadEnv(input.env, [baseDir, cwd], cwd);
  const name = isDefault ? DEFAULT_FILE : displayPath(file, cwd);
  const { value: parsed, positions } = await parseFile(file, name, cwd, env);
  const plain = toPlain(parsed);
  if (!isMap(plain.value)) {
    const message = plain.value === null ? 'is empty' : 'is not a map of sections such as "providers"';
    throw new ConfigError([
      { file: name, path: '', message, hint: 'Write at least "providers:", or remove the file to run the defaults.' },
    ]);
  }
  const value = isDefault ? plain.value : await inherit(plain.value);
  return Object.freeze({ file: name, isDefault, baseDir, cwd, value, positions, env, faults: plain.faults });
}

/**
 * A file that says nothing about the store or about authentication gets those of `config/default.yaml`: there the store
 * is named, and which schemes are on (their options are the plugins' own defaults). An empty section counts as absent.
 */
async function inherit(value: JsonMap): Promise<JsonMap> {
  const own = Object.fromEntries(Object.entries(value).filter(([, section]) => section !== null));
  if ('store' in own && 'auth' in own) return own;
  const defaults = await readDefaults();
  const schemes = isMap(defaults['auth']) ? Object.keys(defaults['auth']).map((name) => [name, {}]) : [];
  return {
    ...(!('store' in own) && { store: defaults['store'] ?? null }),
    ...(!('auth' in own) && { auth: Object.fromEntries(schemes) }),
    ...own,
  };
}

async function readDefaults(): Promise<JsonMap> {
  const { value } = toPlain((await parseYaml(readFileSync(path.join(PACKAGE_ROOT, DEFAULT_FILE), 'utf8'))).value);
  return isMap(value) ? value : {};
}

/** The parser is seventy files: a configuration in JSON that names its store and its authentication needs none of them. */
async function parseYaml(text: string): Promise<Source> {
  return (await import('./source-yaml.ts')).parseYaml(text);
}

function isMap(value: Json | undefined): value is JsonMap {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

async function parseFile(file: string, name: string, cwd: string, env: Environment): Promise<Source> {
  const sources = new Map<string, Source>();
  const keep = (filepath: string, source: Source): unknown => {
    sources.set(filepath, source);
    return source.value;
  };
  const yaml: Loader = async (filepath, content) => keep(filepath, await parseYaml(content));
  const json: Loader = async (filepath, content) => keep(filepath, parseJson(content));
  const script: Loader = async (filepath) =>
    keep(filepath, { value: await loadScript(filepath, env), positions: new Map() });
  const loaders = {
    ...Object.fromEntries(['.yaml', '.yml'].map((ending) => [ending, yaml])),
    ...Object.fromEntries(['.js', '.mjs', '.cjs', '.ts', '.mts', '.cts'].map((ending) => [ending, script])),
    '.json': json,
  };
  try {
    const result = await cosmiconfig('tollgate', { loaders, cache: false }).load(file);
    const own = sources.get(file)?.positions ?? new Map();
    const imported = [...sources]
      .filter(([other]) => other !== file)
      .flatMap(([other, source]) => {
        return [...inFile(source.positions, displayPath(other, cwd))];
      });
    const positions = path.basename(file) === 'package.json' ? under('/tollgate', own) : own;
    return { value: result?.config ?? null, positions: new Map([...imported, ...positions]) };
  } catch (error) {
    const culprit = (error as { readonly filepath?: string }).filepath;
    throw new ConfigError(
      faultsOf(error, culprit === undefined || culprit === file ? name : displayPath(culprit, cwd)),
    );
  }
}

function faultsOf(error: unknown, file: string): ConfigError['faults'] {
  if (error instanceof ConfigError) return error.faults;
  if (error instanceof SourceError) return error.faults.map((fault) => ({ file, path: '', ...fault }));
  const message = error instanceof Error ? error.message.split('\n')[0] : String(error);
  return [{ file, path: '', message: `cannot be loaded: ${message?.replace(/\.$/, '')}`, hint: 'Correct the file.' }];
}

/** The positions of a file that the configuration imports (cosmiconfig's `$import`). */
function inFile(positions: Positions, file: string): Positions {
  return new Map(
    [...positions].map(([pointer, { key, value }]) => [
      pointer,
      { ...(key && { key: { ...key, file } }), value: { ...value, file } },
    ]),
  );
}

/** The positions below a pointer, as if it were the root. */
function under(prefix: string, positions: Positions): Positions {
  const own = [...positions].filter(([pointer]) => pointer === prefix || pointer.startsWith(`${prefix}/`));
  return new Map(own.map(([pointer, place]) => [pointer.slice(prefix.length), place]));
}
