import { createWriteStream, existsSync, mkdtempSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { GATEWAY_CORES, startProgram } from '../programs.ts';
import { type BenchRequest, post, type Running, type Target, type Upstreams } from './target.ts';

/** Package under test: its `dist/`, built before. */
export const PACKAGE = process.env['BENCH_TOLLGATE'] ?? findPackage(path.dirname(fileURLToPath(import.meta.url)));

function findPackage(folder: string): string {
  return existsSync(path.join(folder, 'package.json')) ? folder : findPackage(path.dirname(folder));
}

export interface TollgateOptions {
  readonly store?: string;
  /** Number of plugins that hook every step. */
  readonly plugins?: number;
  /** Without limits, metering, metrics and access log; key, validation and the call itself remain. */
  readonly bareBones?: boolean;
  /** Files of a certificate and its key, for HTTPS. */
  readonly tls?: { readonly cert: string; readonly key: string };
  /** Node options. */
  readonly nodeFlags?: readonly string[];
}

/** Tollgate with its defaults: key, validation, limits, ledger, metrics and access log are enabled. */
export function tollgate(name: string, label: string, options: TollgateOptions = {}): Target {
  return { name, label, start: (upstreams) => startTollgate(name, options, upstreams) };
}

async function startTollgate(name: string, options: TollgateOptions, upstreams: Upstreams): Promise<Running> {
  const folder = mkdtempSync(path.join(upstreams.folder, `${name}-`));
  const configFile = path.join(folder, 'tollgate.config.json');
  for (let at = 0; at < (options.plugins ?? 0); at += 1) {
    writeFileSync(path.join(folder, `noop${at}.mjs`), NOOP_PLUGIN.replace('NAME', `noop${at}`));
  }
  writeFileSync(configFile, JSON.stringify(configOf(options, upstreams)));
  const began = performance.now();
  let said = '';
  let listens = false;
  const program = await startProgram(
    process.execPath,
    // Same flags as `npm start` and workers.
    [
      '--no-memory-reducer',
      ...(options.nodeFlags ?? []),
      path.join(PACKAGE, 'dist', 'cli', 'main.js'),
      'start',
      '--config',
      configFile,
    ],
    {
      cores: GATEWAY_CORES,
      cwd: folder,
      env: { ...process.env, NO_COLOR: '1', TERM: 'dumb' },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
    async (child) => {
      if (!listens) {
        listens = true;
        // The access log goes to a file, as in production.
        child.stdout?.pipe(createWriteStream(path.join(folder, 'access.log')));
        child.stderr?.on('data', (text: Buffer) => (said += text.toString()));
      }
      const port = /listens on https?:\/\/127\.0\.0\.1:(\d+)/.exec(said)?.[1];
      const key = /\b(tg_\w{62})\b/.exec(said)?.[1];
      return port && key ? { port: Number(port), key, bootMs: performance.now() - began } : undefined;
    },
  );
  const { port, key, bootMs } = program.ready;
  const request = ({ kind, wire, body, path: own }: BenchRequest): string => {
    const provider = wire === 'openai' ? kind : wire;
    return post(own ?? `/api/core/${provider}/chat/completions`, { authorization: `Bearer ${key}` }, body);
  };
  return { port, pid: program.pid, bootMs, request, stop: () => program.stop() };
}

function configOf(options: TollgateOptions, { json, stream }: Upstreams): object {
  const { store = 'sqlite:./data', plugins = 0, bareBones = false, tls } = options;
  const common = { apiKey: 'upstream-key', models: ['*'], prices: { '*': { input: 1, output: 4 } } };
  return {
    server: {
      host: '127.0.0.1',
      port: 0,
      maxConnections: 20_000,
      drainTimeout: '1s',
      drainDelay: '0s',
      ...(tls && { tls }),
    },
    store,
    logging: { format: 'json' },
    providers: {
      json: { plugin: 'openai-compatible', ...common, baseUrl: `${json}/v1` },
      stream: { plugin: 'openai-compatible', ...common, baseUrl: `${stream}/v1` },
      gemini: { ...common, baseUrl: `${stream}/v1beta` },
      anthropic: { ...common, baseUrl: stream },
    },
    auth: { 'api-key': { bootstrap: true } },
    ...(bareBones
      ? { billing: 'off', policies: { 'access-log': false, metrics: false } }
      : { plans: { bench: { rpm: 1_000_000_000, tpm: 1_000_000_000_000 } }, defaultPlan: 'bench' }),
    plugins: Array.from({ length: plugins }, (_, at) => `./noop${at}.mjs`),
  };
}

/** Plugin that hooks every step and changes nothing. */
const NOOP_PLUGIN = `const nothing = () => undefined;
export default {
  name: 'NAME', kind: 'policy', apiVersion: 1,
  setup(api) {
    for (const hook of ['admit', 'prepare', 'route', 'reserve', 'send', 'receive', 'error', 'finish']) api.hook(hook, nothing);
    api.hook('stream', () => ({ push: (chunk) => [chunk] }));
  },
};
`;
