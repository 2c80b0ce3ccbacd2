/** The speech plugin on a real port: real router, real calls, real egress, and vendors set by a test. */
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import type { LoadedConfig } from '../../../config/load-config.ts';
import { type Call, definePlugin, type Outcome, type Plugin, type Principal } from '../../../contract/index.ts';
import { createGeneration } from '../../../core/calls/generation.ts';
import { createKoa, createRouter } from '../../../core/http/koa.ts';
import { Lifecycle } from '../../../core/http/lifecycle.ts';
import { openFoundation } from '../../../core/plugins/foundation.ts';
import { createRequestSchemas } from '../../../core/plugins/registry.ts';
import speech from '../../../plugins/operations/speech/index.ts';
import memory from '../../../plugins/stores/memory/index.ts';
import espeak from '../../../plugins/tts/espeak/index.ts';
import type { SpeechProvider } from '../../../plugins/tts/kit/index.ts';
import openai from '../../../plugins/tts/openai.ts';
import { createSilentLog } from '../log.ts';
import { type ScriptedUpstream, startScriptedUpstream } from '../vendors/scripted-upstream.ts';
import { loadSpeech, speechVendor } from './speech-vendor.ts';

export interface SpeechGateway {
  readonly url: string;
  /** Outcomes of calls, in the order of their ends. */
  readonly outcomes: readonly Outcome[];
  /** Sends JSON with a valid key. */
  post(path: string, body: unknown, headers?: Readonly<Record<string, string>>): Promise<Response>;
  close(): Promise<void>;
}

const PRINCIPAL: Principal = Object.freeze({ credential: 'key', userId: 'u', account: 'u' });
export const KEY = 'tg_test';

/** Options other than the vendors. */
export interface SpeechGatewayOptions {
  readonly models?: Readonly<Record<string, readonly string[]>>;
  /** `speechCache` of the configuration. */
  readonly speechCache?: object;
  readonly plugins?: readonly Plugin[];
}

export async function startSpeechGateway(
  vendors: Readonly<Record<string, SpeechProvider>>,
  { models = {}, speechCache, plugins = [] }: SpeechGatewayOptions = {},
): Promise<SpeechGateway> {
  const log = createSilentLog();
  const outcomes: Outcome[] = [];
  const offers = Object.entries(vendors).map(([name, vendor]) => offering(name, vendor));
  const others = [speech, noting(outcomes), ...offers, ...plugins] as readonly Plugin[];
  const instances = others.map((plugin) => ({
    group: 'plugins',
    name: plugin.name,
    config: plugin === (speech as Plugin) ? (speechCache ?? null) : {},
  }));
  const config = {
    store: { group: 'store', name: 'memory', config: {} },
    models,
    routes: {},
    plans: {},
    billing: 'track',
    instances,
  };
  const loaded = {
    config: { ...config, baseDir: '/nowhere', isDefault: false, plain: () => ({}), printable: () => ({}) },
    raw: { isDefault: false, files: [] },
    plugins: [memory, ...others],
    builtins: [],
    settings: { plans: {}, endUsers: { header: undefined, report: false } },
  } as unknown as LoadedConfig;
  const foundation = await openFoundation(loaded, log);
  const generation = await createGeneration(foundation, loaded);
  const lifecycle = new Lifecycle();
  const router = createRouter({
    routes: [...generation.registry.routes.values()],
    requests: createRequestSchemas([]),
    authenticate: async ({ credential }) => (credential === KEY ? PRINCIPAL : undefined),
    lifecycle,
    maxBodyBytes: 1024 * 1024,
  });
  const server = http.createServer(createKoa([router], { lifecycle, log }).callback());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    outcomes,
    post: (path, body, headers = {}) =>
      fetch(`${url}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-api-key': KEY, ...headers },
        body: JSON.stringify(body),
      }),
    async close() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
      await generation.close();
      await foundation.close();
    },
  };
}

function offering(name: string, vendor: SpeechProvider): Plugin {
  return definePlugin<object, 'tts'>({
    name,
    kind: 'tts',
    apiVersion: 1,
    setup: (api) => api.offer('speech', vendor),
  }) as Plugin;
}

function noting(outcomes: Outcome[]): Plugin {
  return definePlugin<object, 'policy'>({
    name: 'noting',
    kind: 'policy',
    apiVersion: 1,
    setup: (api) => api.hook('finish', (_call: Call, outcome: Outcome) => void outcomes.push(outcome)),
  }) as Plugin;
}

/** Gateway with three vendors: `openai` and `bare` are the same scripted one, `espeak` is the program. */
export async function startScriptedSpeech(): Promise<{
  readonly upstream: ScriptedUpstream;
  readonly gateway: SpeechGateway;
}> {
  const upstream = await startScriptedUpstream();
  const gateway = await startSpeechGateway({
    openai: await loadSpeech(openai, { baseUrl: upstream.url, apiKey: 'sk-operator', models: ['tts-1'] }),
    espeak: await loadSpeech(espeak),
    bare: speechVendor({ baseUrl: upstream.url, formats: ['wav', 'pcm'], maxCharacters: 100 }),
  });
  return { upstream, gateway };
}

/** Reads all bytes of a response until its body ends in any way. `whole` is false if it was interrupted. */
export async function readAll(response: Response): Promise<{ readonly bytes: Buffer; readonly whole: boolean }> {
  const pieces: Uint8Array[] = [];
  try {
    for await (const bytes of response.body ?? []) pieces.push(bytes as Uint8Array);
    return { bytes: Buffer.concat(pieces), whole: true };
  } catch {
    return { bytes: Buffer.concat(pieces), whole: false };
  }
}
