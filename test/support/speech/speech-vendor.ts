/** Speech vendor for tests: its codec passes bytes through, its responses are scripted. */
import type { CodecCall, Plugin, ResponseHeaders, WholeApi } from '../../../contract/index.ts';
import { decodeSound, type SpeechProvider } from '../../../plugins/tts/kit/index.ts';

/** Call as codecs see it. */
export const CODEC_CALL: CodecCall = Object.freeze({ model: 'tts-a', stream: true, created: 1, id: 'call' });

export function speechVendor(changes: Partial<SpeechProvider> = {}): SpeechProvider {
  return {
    specVersion: 1,
    vendor: 'test',
    baseUrl: 'http://127.0.0.1:9',
    models: [
      { id: 'tts-a', kind: 'speech' },
      { id: 'tts-b', kind: 'speech', maxCharacters: 50 },
    ],
    formats: ['mp3', 'wav', 'opus', 'pcm'],
    defaultVoice: 'ann',
    voices: [
      { id: 'ann', name: 'Ann' },
      { id: 'Bert', name: 'Bert' },
      { id: 'carla', name: 'Carla' },
    ],
    maxCharacters: 20,
    speed: { min: 0.5, max: 2 },
    codec: {
      request: ({ text, voice, format }, { model }) => ({ path: '/speak', body: { text, voice, format, model } }),
      decode: (_input, headers) => decodeSound(headers),
    },
    error: (status, body) => ({
      class: status === 429 ? 'rate_limit' : 'upstream_error',
      message: JSON.stringify(body),
    }),
    ...changes,
  };
}

export interface SoundResponse {
  readonly headers: ResponseHeaders;
  readonly body: AsyncIterable<Uint8Array>;
}

/** Valid response in the given pieces; an error among them breaks the stream at that point. */
export function soundResponse(...pieces: readonly (Buffer | Error)[]): SoundResponse {
  return { headers: { 'content-type': 'audio/x-test' }, body: bodyOf(pieces) };
}

async function* bodyOf(pieces: readonly (Buffer | Error)[]): AsyncGenerator<Uint8Array> {
  for (const piece of pieces) {
    if (piece instanceof Error) throw piece;
    yield piece;
  }
}

/** Speech provider of a plugin without a core; `http` is the result of its `api.http()`. */
export async function loadSpeech(
  plugin: object,
  config: Readonly<Record<string, unknown>> = {},
  http?: unknown,
): Promise<SpeechProvider> {
  const { name, setup } = plugin as Plugin;
  const heard: SpeechProvider[] = [];
  const api = {
    instance: name,
    offer: (operation: string, offer: SpeechProvider) => operation === 'speech' && heard.push(offer),
    http: async () => http,
  };
  await setup(api as unknown as WholeApi, Object.freeze(config));
  const [first] = heard;
  if (!first || heard.length > 1) throw new Error('a speech plugin offers one vendor');
  return Object.freeze(first);
}
