/** The routes of speech on a real port: real router, real way out, and in place of the pipeline the run alone. */
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { failureToError } from '../../core/calls/failures.ts';
import { createKoa } from '../../core/http/koa.ts';
import { Lifecycle } from '../../core/http/lifecycle.ts';
import { createRouter } from '../../core/http/router.ts';
import { type Principal, type Route, type SpeechProvider, StreamFailure } from '../../core/index.ts';
import { type SpeechRoutesNeed, speechRoutes } from '../../core/speech/routes.ts';
import { resolveSpeech, runSpeech } from '../../core/speech/run-speech.ts';
import { createVoiceList } from '../../core/speech/voice-list.ts';
import { createUpstream, UpstreamError } from '../../core/upstream/upstream.ts';
import { createSilentLog } from './silent-log.ts';

export interface SpeechGateway {
  readonly url: string;
  /** Sends JSON with a key that is taken. */
  post(path: string, body: unknown, headers?: Readonly<Record<string, string>>): Promise<Response>;
  close(): Promise<void>;
}

const PRINCIPAL: Principal = Object.freeze({ credential: 'key', userId: 'u', account: 'u' });
export const KEY = 'tg_test';

export async function startSpeechGateway(
  providers: Readonly<Record<string, SpeechProvider>>,
  changes: Partial<SpeechRoutesNeed> = {},
): Promise<SpeechGateway> {
  const vendors = new Map(Object.entries(providers));
  const log = createSilentLog();
  const upstream = createUpstream({ log });
  const lifecycle = new Lifecycle();
  const providerOf = (name: string): SpeechProvider => vendors.get(name) as SpeechProvider;
  const need: SpeechRoutesNeed = {
    vendors,
    async speak(vendor, request, { signal = new AbortController().signal, requestId }) {
      const provider = providerOf(vendor);
      try {
        const speech = await resolveSpeech(provider, request);
        const answer = await runSpeech(provider, speech, {
          send: (each, until) => upstream.send(provider, each, { signal: until }),
          signal,
          id: requestId,
          created: 1,
        });
        return { ...answer, audio: told(vendor, answer.audio) };
      } catch (error) {
        throw named(vendor, error);
      }
    },
    voices: createVoiceList(vendors, (provider, request, signal) => upstream.send(provider, request, { signal })),
    ...changes,
  };
  const router = createRouter({
    routes: speechRoutes(need).map((value) => ({ owner: 'core', value: value as Route })),
    schemas: [],
    authenticate: ({ credential }) => (credential === KEY ? PRINCIPAL : undefined),
    lifecycle,
    maxBodyBytes: 1024 * 1024,
  });
  const server = http.createServer(createKoa([router], { lifecycle, log }).callback());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    post: (path, body, headers = {}) =>
      fetch(`${url}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-api-key': KEY, ...headers },
        body: JSON.stringify(body),
      }),
    async close() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
      await upstream.close();
    },
  };
}

async function* told(vendor: string, audio: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* audio;
  } catch (error) {
    throw named(vendor, error);
  }
}

function named(vendor: string, error: unknown): unknown {
  if (error instanceof StreamFailure) return failureToError(error.failure, vendor, error);
  if (error instanceof UpstreamError)
    return failureToError({ class: error.failure, message: error.message }, vendor, error);
  return error;
}
