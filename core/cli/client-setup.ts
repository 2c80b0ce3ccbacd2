import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { ServerConfig } from '../config/core-schema.ts';
import { nearest } from '../config/nearest.ts';
import { PACKAGE_ROOT } from '../config/package-root.ts';
import type { CommandContext } from './commands.ts';
import { CliError, createIo, EXIT } from './io.ts';

/** How a client is pointed at a gateway: a row of `config/clients.json`. */
export interface ClientSetup {
  readonly title: string;
  /** What its user has to know beside the lines. */
  readonly note?: string;
  /** What names of models begin with that it knows. */
  readonly models?: string;
  readonly steps: readonly {
    readonly language: string;
    /** What the lines are written to; else they are run. */
    readonly file?: string;
    readonly lines: readonly string[];
  }[];
}

const KEY = 'tg_your_key';
const MODEL = 'provider/model';

/** `tollgate init --client`: the lines that point a client at the gateway of this configuration. */
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
    io.note(`Put a key in place of ${KEY}; \`tollgate keys create --user <name>\` makes one.`);
    if (model === MODEL) io.note(`Put a model in place of ${MODEL}; \`tollgate models\` lists them.`);
  }
  io.result({ client: name, base, model, steps }, text.join('\n\n'));
}

/** All clients, by the names that `--client` takes. */
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
    near === undefined ? `Clients are ${names.join(', ')}.` : `Did you mean ${near}? All: ${names.join(', ')}.`;
  throw new CliError(`there is no client "${name}"`, EXIT.usage, hint);
}

/** Where a client on this machine finds the gateway: an address that means all of them is none to connect to. */
function baseUrl({ host, port, tls }: Pick<ServerConfig, 'host' | 'port' | 'tls'>): string {
  const own = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  return `${tls ? 'https' : 'http'}://${own.includes(':') ? `[${own}]` : own}:${port}`;
}

/** An alias that the client knows by its name, or the first alias. */
function modelFor({ models: start }: ClientSetup, aliases: readonly string[]): string {
  return aliases.find((alias) => start !== undefined && alias.startsWith(start)) ?? aliases[0] ?? MODEL;
}

/** A line with the address, the key and the model in it. */
export function fillLine(line: string, values: Readonly<Record<string, string>>): string {
  return line.replace(/\{(base|key|model)\}/g, (_, name: string) => values[name] ?? '');
}
