import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { ServerConfig } from '../config/core-schema.ts';
import { PACKAGE_ROOT } from '../config/package-root.ts';
import { nearest } from '../contract/nearest.ts';
import type { CommandContext } from './io.ts';
import { CliError, createIo, EXIT } from './io.ts';

/**
 * `tollgate init`: writes the built-in configuration to a file, with the variables that it reads and a `.gitignore`.
 */
export async function run(context: CommandContext): Promise<void> {
  const { terminal, globals, options } = context;
  if (typeof options['client'] === 'string') return printClientSetup(context, options['client']);
  const config = readFileSync(path.join(PACKAGE_ROOT, 'config', 'default.yaml'), 'utf8').replace(
    '$schema=./tollgate.schema.json',
    '$schema=./node_modules/tollgate/config/tollgate.schema.json',
  );
  const variables = [...new Set([...config.matchAll(/\$\{([A-Z][A-Z0-9_]*)(?=[:}])/g)].map(([, name]) => name))];
  const files: Record<string, string> = {
    'tollgate.config.yaml': config,
    '.env.example': `# Copy to .env and fill in your keys. A provider without a key returns 503.\n${variables.map((name) => `${name}=`).join('\n')}\n`,
  };
  const ignored = ignoredBefore();
  const missing = IGNORED.filter((line) => !ignored.lines.has(bare(line)));
  const taken = Object.keys(files).filter((name) => existsSync(name));
  if (taken.length > 0 && options['force'] !== true)
    throw new CliError(
      `${taken.join(' and ')} already exist`,
      EXIT.usage,
      'Replace them with --force, or use another folder.',
    );
  if (missing.length > 0) files['.gitignore'] = `${ignored.text}${missing.join('\n')}\n`;
  for (const [name, text] of Object.entries(files)) writeFileSync(name, text);
  const names = Object.keys(files);
  createIo(terminal, globals.json === true).result(
    { written: names },
    `wrote ${names.join(', ')}\nNext: cp .env.example .env, fill in a key, then: tollgate check && tollgate start`,
  );
}

/** Files that git must never store: keys, and the store with its pepper. */
const IGNORED: readonly string[] = Object.freeze(['.env', '.env.local', 'data/', 'node_modules/']);

/** Reads an existing `.gitignore`, ready for more lines. */
function ignoredBefore(): { readonly text: string; readonly lines: ReadonlySet<string> } {
  const text = existsSync('.gitignore') ? readFileSync('.gitignore', 'utf8') : '';
  return { text: text === '' || text.endsWith('\n') ? text : `${text}\n`, lines: new Set(text.split('\n').map(bare)) };
}

/** Removes the outer slashes of a `.gitignore` line: `/data`, `data/` and `data` all ignore this folder. */
function bare(line: string): string {
  return line.trim().replace(/^\/|\/$/g, '');
}

/** Set-up of a client for a gateway: a row of `config/clients.json`. */
export interface ClientSetup {
  readonly title: string;
  /** Note for the user, shown after the lines. */
  readonly note?: string;
  /** Prefix of the model names that the client knows. */
  readonly models?: string;
  /** OpenAPI path of the called route, for libraries. */
  readonly route?: string;
  readonly steps: readonly {
    readonly language: string;
    /** File that gets the lines; without one the lines are commands. */
    readonly file?: string;
    readonly lines: readonly string[];
  }[];
}

const KEY = 'tg_your_key';
const MODEL = 'provider/model';

/** `tollgate init --client`: prints the lines that set a client up for the gateway of this configuration. */
export async function printClientSetup(context: CommandContext, name: string): Promise<void> {
  const setup = findSetup(name);
  const { loadFor } = await import('./load.ts');
  const { server, models } = (await loadFor(context)).config;
  const base = baseUrl(server);
  const model = modelFor(setup, Object.keys(models));
  const values = { base, key: KEY, model };
  const steps = setup.steps.map((step) => ({ ...step, lines: step.lines.map((line) => fillLine(line, values)) }));
  const text = steps.map(({ file, lines }) => [...(file === undefined ? [] : [`# ${file}`]), ...lines].join('\n'));
  const io = createIo(context.terminal, context.globals.json === true);
  if (!io.json) {
    if (setup.note !== undefined) io.note(setup.note);
    io.note(`Replace ${KEY} with a key; \`tollgate keys create --user <name>\` creates one.`);
    if (model === MODEL) io.note(`Replace ${MODEL} with a model; \`tollgate models\` lists them.`);
  }
  io.result({ client: name, base, model, steps }, text.join('\n\n'));
}

/** Reads all client set-ups, by the names of `--client`. */
export function readSetups(): Readonly<Record<string, ClientSetup>> {
  return JSON.parse(readFileSync(path.join(PACKAGE_ROOT, 'config', 'clients.json'), 'utf8')) as Readonly<
    Record<string, ClientSetup>
  >;
}

function findSetup(name: string): ClientSetup {
  const setups = readSetups();
  const setup = Object.hasOwn(setups, name) ? setups[name] : undefined;
  if (setup) return setup;
  const names = Object.keys(setups);
  const near = nearest(name, names)[0];
  const hint =
    near === undefined ? `Use one of ${names.join(', ')}.` : `Did you mean ${near}? All: ${names.join(', ')}.`;
  throw new CliError(`the client "${name}" is unknown`, EXIT.usage, hint);
}

/** Base URL of the gateway for clients on this machine. Wildcard addresses become 127.0.0.1. */
function baseUrl({ host, port, tls }: Pick<ServerConfig, 'host' | 'port' | 'tls'>): string {
  const own = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  return `${tls ? 'https' : 'http'}://${own.includes(':') ? `[${own}]` : own}:${port}`;
}

/** Returns an alias that the client knows by its name, or the first alias. */
function modelFor({ models: start }: ClientSetup, aliases: readonly string[]): string {
  return aliases.find((alias) => start !== undefined && alias.startsWith(start)) ?? aliases[0] ?? MODEL;
}

/** Fills the address, key and model into a line. */
export function fillLine(line: string, values: Readonly<Record<string, string>>): string {
  return line.replace(/\{(base|key|model)\}/g, (_, name: string) => values[name] ?? '');
}
