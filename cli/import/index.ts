import { type Dirent, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { stringify } from 'yaml';
import { loadConfig } from '../../config/load-config.ts';
import { ConfigError, SourceError } from '../../config/problems.ts';
import { parseYaml } from '../../config/sources.ts';
import { isObject } from '../../contract/json.ts';
import type { CommandContext } from '../io.ts';
import { CliError, createIo, EXIT } from '../io.ts';
import type { Fields, Finding, FindingKind, Imported } from './draft.ts';

/** Gateway whose configuration can be imported. */
interface Gateway {
  readonly title: string;
  /** Its default port, so that callers change nothing. */
  readonly port: number;
  /** Base names of its files within a folder; default: every YAML and JSON file. */
  readonly file?: readonly string[];
  load(): Promise<(files: ReadonlyMap<string, Fields>) => Imported>;
}

const GATEWAYS: Readonly<Record<string, Gateway>> = Object.freeze({
  litellm: {
    title: 'LiteLLM',
    port: 4000,
    file: ['config.yaml', 'litellm_config.yaml', 'litellm-config.yaml', 'proxy_config.yaml'],
    load: async () => {
      const { importLitellm } = await import('./litellm.ts');
      return (files) => importLitellm(only(files));
    },
  },
  portkey: { title: 'Portkey', port: 8787, load: async () => (await import('./portkey.ts')).importPortkey },
  bifrost: {
    title: 'Bifrost',
    port: 8080,
    file: ['config.json'],
    load: async () => {
      const { importBifrost } = await import('./bifrost.ts');
      return (files) => importBifrost(only(files));
    },
  },
});

const CONFIG = 'tollgate.config.yaml';
const MAX_BYTES = 10 * 1024 * 1024;
const MAX_FILES = 1000;

/**
 * `tollgate store import` and `tollgate config import`: imports a file of `tollgate store export`, or the configuration
 * of another gateway.
 */
export async function runImport(context: CommandContext): Promise<void> {
  const [what = '', source] = context.args;
  const gateway = Object.hasOwn(GATEWAYS, what) ? GATEWAYS[what] : undefined;
  if (!gateway) {
    if (source !== undefined)
      throw new CliError(
        `import from "${what}" is not supported`,
        EXIT.usage,
        `Use one of ${Object.keys(GATEWAYS).join(', ')}, or only a file of "export".`,
      );
    for (const option of ['out', 'force'])
      if (context.options[option] !== undefined)
        throw new CliError(
          `--${option} is only for imports of another gateway’s configuration`,
          EXIT.usage,
          'Remove it.',
        );
    return (await import('../move-store.ts')).runImport(context);
  }
  if (source === undefined)
    throw new CliError(
      `the file of ${gateway.title} is missing`,
      EXIT.usage,
      `Run: tollgate config import ${what} <file or folder>`,
    );
  const read = await gateway.load();
  const imported = read(readSource(source, gateway));
  if (Object.keys(imported.config['providers'] ?? {}).length === 0)
    throw new CliError(
      `${source} has no vendor that Tollgate supports; nothing was written`,
      EXIT.config,
      imported.findings.map(lineOf).join('\n') || `Check that it is a configuration of ${gateway.title}.`,
    );
  await writeImport(context, gateway, imported);
}

function only(files: ReadonlyMap<string, Fields>): Fields {
  return [...files.values()][0] ?? {};
}

/** Reads the files of another gateway, by their names without extension. */
function readSource(source: string, { title, file: names }: Gateway): ReadonlyMap<string, Fields> {
  const stats = statSync(source, { throwIfNoEntry: false });
  if (!stats) throw new CliError(`${source} does not exist`, EXIT.usage, 'Use the file or its folder.');
  if (!stats.isDirectory()) return new Map([[aliasName(source), readFields(source)]]);
  const found = readdirSync(source, { withFileTypes: true })
    .filter(
      (entry: Dirent) => entry.isFile() && (names ? names.includes(entry.name) : /\.(json|ya?ml)$/.test(entry.name)),
    )
    .map(({ name }) => path.join(source, name));
  if (found.length === 0)
    throw new CliError(
      `${source} has no configuration of ${title}`,
      EXIT.usage,
      names
        ? `Expected ${names.join(', ')}. Otherwise set the file.`
        : 'Expected .json and .yaml files. Otherwise set the file.',
    );
  if (found.length > (names ? 1 : MAX_FILES))
    throw new CliError(`${source} has ${found.length} possible files`, EXIT.usage, 'Name one of them.');
  return new Map(found.map((file) => [aliasName(file), readFields(file)]));
}

function aliasName(file: string): string {
  return path
    .basename(file)
    .replace(/\.(json|ya?ml)$/, '')
    .replace(/[^\w.-]+/g, '-');
}

function readFields(file: string): Fields {
  if (statSync(file).size > MAX_BYTES)
    throw new CliError(`${file} is larger than 10 MiB`, EXIT.usage, 'Select the configuration file.');
  try {
    const { value } = parseYaml(readFileSync(file, 'utf8'));
    if (isObject(value)) return value;
  } catch (error) {
    if (!(error instanceof SourceError)) throw error;
    const [problem] = error.problems;
    throw new CliError(
      `${file}${problem ? `:${problem.line}:${problem.column} ${problem.message}` : ' cannot be read'}`,
      EXIT.config,
      'Use a file that the other gateway can read.',
    );
  }
  throw new CliError(
    `${file} does not contain a map of settings`,
    EXIT.config,
    'Check that it is the configuration of that gateway.',
  );
}

async function writeImport(context: CommandContext, gateway: Gateway, imported: Imported): Promise<void> {
  const { terminal, globals, options } = context;
  const folder = typeof options['out'] === 'string' ? options['out'] : '.';
  const files = composeFiles(gateway, imported);
  const taken = [...files.keys()].filter((name) => existsSync(path.join(folder, name)));
  if (taken.length > 0 && options['force'] !== true)
    throw new CliError(
      `${taken.join(' and ')} already exist in ${folder}`,
      EXIT.usage,
      'Set another folder with --out, or replace them with --force.',
    );
  mkdirSync(folder, { recursive: true });
  for (const [name, { text, mode }] of files) writeFileSync(path.join(folder, name), text, { mode });
  const io = createIo(terminal, globals.json === true);
  const written = [...files.keys()].map((name) => path.join(folder, name));
  const { findings } = imported;
  const rows = findings.map(({ kind, at, note }) => [kind, at, note]);
  io.result(
    { written, findings, counts: countKinds(findings) },
    `${rows.length === 0 ? '' : `${io.table(['WHAT', 'FIELD', 'NOTE'], rows)}\n`}wrote ${written.join(', ')}`,
  );
  io.note(describe(findings));
  await reportProblems(path.resolve(folder), (text) => io.note(text));
}

interface Written {
  readonly text: string;
  readonly mode: number;
}

function composeFiles({ title, port }: Gateway, { config, secrets }: Imported): ReadonlyMap<string, Written> {
  const { server, ...rest } = config;
  const whole = {
    server: { port, ...(isObject(server) && server) },
    ...rest,
    auth: { 'api-key': { bootstrap: true } },
  };
  const head = [
    '# yaml-language-server: $schema=./node_modules/tollgate/config/tollgate.schema.json',
    `# Imported from ${title}. docs/config.md explains all keys; \`tollgate check\` finds errors.`,
    `# The port is the one of ${title}, so callers keep their address. \`bootstrap\` shows a first key at start.`,
  ];
  const files = new Map<string, Written>([
    [CONFIG, { text: `${head.join('\n')}\n${stringify(whole, { aliasDuplicateObjects: false })}`, mode: 0o644 }],
  ]);
  if (secrets.size > 0) {
    const lines = [...secrets].map(([name, value]) => `${name}=${JSON.stringify(value)}\n`);
    files.set('.env', {
      text: `# Keep it out of git. It contains the secrets of the file of ${title}.\n${lines.join('')}`,
      mode: 0o600,
    });
  }
  return files;
}

const KINDS: readonly FindingKind[] = ['kept', 'emulated', 'impossible'];

function countKinds(findings: readonly Finding[]): Readonly<Record<string, number>> {
  return Object.fromEntries(KINDS.map((kind) => [kind, findings.filter((each) => each.kind === kind).length]));
}

function describe(findings: readonly Finding[]): string {
  const counts = countKinds(findings);
  return `${counts['kept']} settings kept, ${counts['emulated']} emulated or need your action, ${counts['impossible']} skipped.`;
}

function lineOf({ kind, at, note }: Finding): string {
  return `${kind} ${at}: ${note}`;
}

/** Notes the problems that `tollgate check` would report for the new file, such as a variable that is not set. */
async function reportProblems(cwd: string, note: (text: string) => void): Promise<void> {
  try {
    await loadConfig({ cwd, env: process.env, configPath: path.join(cwd, CONFIG) });
    note(`Next: set its variables, then tollgate start --config ${path.join(cwd, CONFIG)}`);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    note(`Before the start:\n${error.message}`);
  }
}
