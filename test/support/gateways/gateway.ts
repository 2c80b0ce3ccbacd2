/** Complete gateway on a free loopback port, with its own configuration in its own folder. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import OpenAI from 'openai';
import { openGeneration } from '../../../cli/load.ts';
import { type LoadedConfig, loadConfig } from '../../../config/load-config.ts';
import { createGateway, type Gateway } from '../../../core/app.ts';
import { createLogger } from '../../../core/logger.ts';
import { connect } from '../../../egress/http-client.ts';
import { withCopies } from '../plugins/plugin-copies.ts';
import { keepIn, resultOf, resultOn } from '../processes/plugin-command.ts';
import { shareMemory } from '../stores/shared-memory.ts';

export interface TestGateway extends Gateway {
  readonly folder: string;
  /** First API key, of the user `local`. */
  readonly key: string;
  /** All log lines so far, parsed. */
  readonly logs: readonly Record<string, unknown>[];
  /** All log output as text. */
  logText(): string;
  openai(key?: string): OpenAI;
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Response>;
  get(path: string, headers?: Record<string, string>): Promise<Response>;
  /** Runs a plugin's command on this gateway's store; returns its JSON result. */
  command<T = unknown>(...words: readonly string[]): Promise<T>;
  /** Exit code set by the last command. */
  exitCode(): number | undefined;
  /** Closes the gateway and removes its folder. */
  stop(): Promise<void>;
}

export interface TestGatewayOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Additional files in its folder, such as plugins. */
  readonly files?: Readonly<Record<string, string>>;
  readonly level?: 'debug' | 'info' | 'silent';
}

/** Commands that read a list of the store alone. */
const LISTS: ReadonlySet<string> = new Set(['audit', 'calls', 'usage']);

/**
 * Starts a gateway. The defaults, which `config` overrides, are a store in memory, the echo provider, and API keys with a
 * first key.
 */
export async function startGateway(
  config: Record<string, unknown> = {},
  options: TestGatewayOptions = {},
): Promise<TestGateway> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'tollgate-app-'));
  const file = path.join(folder, 'tollgate.config.json');
  const base = {
    server: { port: 0, drainTimeout: '2s' },
    store: 'memory:',
    providers: { echo: {} },
    auth: { 'api-key': { bootstrap: true } },
  };
  // A busy test machine must not cause refusals: a test enables load shedding itself. Tests of metrics set their own
  // authentication.
  const policies = { overload: false, metrics: { auth: 'none' }, ...(config['policies'] as object | undefined) };
  // All tests of a file share one address, and only tests about wrong keys limit their number. No load balancer needs a
  // drain delay.
  const server = {
    failedCredentials: 0,
    drainDelay: '0s',
    ...((config['server'] as object | undefined) ?? base.server),
  };
  await writeFile(file, JSON.stringify(withCopies({ ...base, ...config, server, policies })));
  for (const [name, text] of Object.entries(options.files ?? {})) {
    await mkdir(path.dirname(path.join(folder, name)), { recursive: true });
    await writeFile(path.join(folder, name), text);
  }
  const lines: string[] = [];
  let exitCode: number | undefined;
  const log = createLogger({
    level: options.level ?? 'info',
    destination: keepIn(lines),
  });
  const env = { PATH: process.env['PATH'], HOME: folder, ...options.env };
  const memory = config['store'] === undefined ? shareMemory() : undefined;
  const loadFor = async (use: 'forGateway' | 'forCommand'): Promise<LoadedConfig> => {
    const loaded = await loadConfig({ cwd: folder, env, configPath: file, connect });
    return memory?.[use](loaded) ?? loaded;
  };
  let gateway: Gateway;
  try {
    gateway = await createGateway({ cwd: folder, env, loaded: await loadFor('forGateway'), log });
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
  /** Generation that creates keys and reads lists: tests do so often, and each command for itself would set up all plugins. */
  let keeper: ReturnType<typeof openGeneration> | undefined;
  const key = gateway.announcements.find(({ use }) => use === 'key')?.value ?? '';
  const url = gateway.url;
  const own: Omit<TestGateway, keyof Gateway> = {
    folder,
    key,
    get logs() {
      return lines
        .join('')
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line) as Record<string, unknown>);
    },
    logText: () => lines.join(''),
    openai: (apiKey = key) => new OpenAI({ apiKey, baseURL: `${url}/v1`, maxRetries: 0 }),
    post: (where, body, headers = {}) =>
      fetch(url + where, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
        body: typeof body === 'string' || body instanceof Uint8Array ? (body as string) : JSON.stringify(body),
      }),
    get: (where, headers = {}) => fetch(url + where, { headers: { authorization: `Bearer ${key}`, ...headers } }),
    async command<T>(...words: readonly string[]) {
      exitCode = undefined;
      const exitWith = (code: number): void => {
        exitCode = code;
      };
      const isKey = words[0] === 'keys' && words[1] === 'create';
      const isCredit = words[0] === 'accounts' && words[1] === 'credit';
      // Plans and teams may have changed since the generation read them.
      const isOwn =
        isCredit || isKey ? !words.includes('--plan') && !words.includes('--team') : LISTS.has(words[0] ?? '');
      if (memory && isOwn) {
        keeper ??= loadFor('forCommand').then((loaded) => openGeneration(loaded, createLogger({ level: 'silent' })));
        return (await resultOn((await keeper).generation, words, file, exitWith)) as T;
      }
      const loaded = await loadFor('forCommand');
      return (await resultOf(words, file, { cwd: folder, env, loaded }, exitWith)) as T;
    },
    exitCode: () => exitCode,
    async stop() {
      await (await keeper)?.close();
      await gateway.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
  // Properties of the gateway stay getters: the OpenAPI document is built only when a test reads it.
  return Object.setPrototypeOf(own, gateway) as TestGateway;
}
