import { createWriteStream, existsSync, mkdtempSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { BOTH_CORES, GATEWAY_CORES, startProgram } from '../programs.ts';
import { type Ask, post, type Running, type Target, type Upstreams } from './target.ts';

/** The package under test: its `dist/`, built before. */
export const PACKAGE = process.env['BENCH_TOLLGATE'] ?? findPackage(path.dirname(fileURLToPath(import.meta.url)));

function findPackage(folder: string): string {
  return existsSync(path.join(folder, 'package.json')) ? folder : findPackage(path.dirname(folder));
}

export interface TollgateOptions {
  readonly store?: string;
  readonly workers?: number;
  /** Plugins with a hook at every step, a chunk hook among them. */
  readonly plugins?: number;
  /** Providers beside the ones that are asked. */
  readonly moreProviders?: number;
  /** Without limits, metering, metrics and access log: what is left is key, validation and the pipeline. */
  readonly bareBones?: boolean;
  readonly node?: string;
  /** Called with the folder before the start, to fill the store. */
  prepare?(folder: string, configFile: string): Promise<void>;
}

/** Tollgate as it ships: key, validation, limits, ledger, metrics and access log are on. */
export function tollgate(name: string, label: string, options: TollgateOptions = {}): Target {
  return { name, label, start: (upstreams) => startTollgate(name, options, upstreams) };
}

/** For the profiler, which Node does not take from `NODE_OPTIONS`. */
function nodeArguments(): readonly string[] {
  return process.env['BENCH_NODE_ARGUMENTS']?.split(' ') ?? [];
}

async function startTollgate(name: string, options: TollgateOptions, upstreams: Upstreams): Promise<Running> {
  const folder = mkdtempSync(path.join(upstreams.folder, `${name}-`));
  const configFile = path.join(folder, 'tollgate.config.json');
  writeFileSync(path.join(folder, 'parsed.mjs'), PARSED_PROVIDER);
  for (let at = 0; at < (options.plugins ?? 0); at += 1) {
    writeFileSync(path.join(folder, `noop${at}.mjs`), NOOP_PLUGIN.replace('NAME', `noop${at}`));
  }
  writeFileSync(configFile, JSON.stringify(configOf(options, upstreams)));
  await options.prepare?.(folder, configFile);
  const began = performance.now();
  let said = '';
  let listens = false;
  const program = await startProgram(
    options.node ?? process.execPath,
    [...nodeArguments(), path.join(PACKAGE, 'dist', 'core', 'cli', 'main.js'), 'start', '--config', configFile],
    {
      cores: (options.workers ?? 1) > 1 ? BOTH_CORES : GATEWAY_CORES,
      cwd: folder,
      env: { ...process.env, NO_COLOR: '1', TERM: 'dumb' },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
    async (child) => {
      if (!listens) {
        listens = true;
        // The access log goes to a file, as it would.
        child.stdout?.pipe(createWriteStream(path.join(folder, 'access.log')));
        child.stderr?.on('data', (text: Buffer) => (said += text.toString()));
      }
      const port = /listens on http:\/\/127\.0\.0\.1:(\d+)/.exec(said)?.[1];
      const key = /\b(tg_\w{62})\b/.exec(said)?.[1];
      return port && key ? { port: Number(port), key, bootMs: performance.now() - began } : undefined;
    },
  );
  const { port, key, bootMs } = program.ready;
  const request = ({ kind, wire, body }: Ask): string => {
    const provider = wire === 'openai' ? kind : wire;
    return post(`/api/core/${provider}/chat/completions`, { authorization: `Bearer ${key}` }, body);
  };
  return { port, pid: program.pid, bootMs, request, stop: () => program.stop() };
}

function configOf(options: TollgateOptions, { json, stream }: Upstreams): object {
  const { store = 'sqlite:./data', workers = 1, plugins = 0, moreProviders = 0, bareBones = false } = options;
  const prices = { '*': { input: 1, output: 4 } };
  const common = { apiKey: 'upstream-key', models: ['*'], prices };
  const more = Object.fromEntries(
    Array.from({ length: moreProviders }, (_, at) => [
      `more${at}`,
      { plugin: 'openai-compatible', ...common, baseUrl: `http://127.0.0.1:${10_000 + at}/v1` },
    ]),
  );
  return {
    server: { host: '127.0.0.1', port: 0, workers, maxConnections: 20_000, drainTimeout: '1s' },
    store,
    logging: { format: 'json' },
    providers: {
      json: { plugin: 'openai-compatible', ...common, baseUrl: `${json}/v1` },
      stream: { plugin: 'openai-compatible', ...common, baseUrl: `${stream}/v1` },
      parsed: { plugin: './parsed.mjs', ...common, baseUrl: `${stream}/v1` },
      gemini: { ...common, baseUrl: `${stream}/v1beta` },
      anthropic: { ...common, baseUrl: stream },
      ...more,
    },
    auth: { 'api-key': { bootstrap: true } },
    ...(bareBones
      ? { billing: 'off', policies: { 'access-log': false, metrics: false } }
      : { plans: { bench: { rpm: 1_000_000_000, tpm: 1_000_000_000_000 } }, defaultPlan: 'bench' }),
    plugins: Array.from({ length: plugins }, (_, at) => `./noop${at}.mjs`),
  };
}

const entry = (file: string): string => JSON.stringify(pathToFileURL(path.join(PACKAGE, 'dist', file)).href);

/** OpenAI's wire, with a difference that makes every event be parsed and written anew. */
const PARSED_PROVIDER = `import { openaiCompatible } from ${entry('plugins/providers/openai-compatible.js')};
export default openaiCompatible({ name: 'parsed', baseUrl: '', anyModel: true, repeatsReasoning: true });
`;

/** A plugin that looks at every step and changes nothing. */
const NOOP_PLUGIN = `const nothing = () => undefined;
export default {
  name: 'NAME', kind: 'policy', apiVersion: 1,
  setup(api) {
    for (const hook of ['admit', 'prepare', 'route', 'send', 'receive', 'chunk', 'error', 'finish']) api.hook(hook, nothing);
  },
};
`;
