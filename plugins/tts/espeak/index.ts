import { execFile } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { promisify } from 'node:util';
import { definePlugin, GatewayError, parseDuration } from '../../../core/index.ts';
import type { SpeechFormat } from '../kit/index.ts';
import { createEspeakCodec, readEspeakError, SPEED } from './codec.ts';
import { createGate } from './gate.ts';
import { findProgram, programEnvironment } from './program.ts';
import { createEspeakTransport } from './transport.ts';
import {
  type EspeakVoices,
  isEspeakVoice,
  languageVoice,
  listedVoices,
  readLanguages,
  readVariants,
} from './voices.ts';

const configSchema = {
  type: 'object',
  additionalProperties: false,
  properties: {
    voice: { type: 'string', default: 'en-us', description: 'The voice of requests that name none.' },
    concurrency: {
      type: 'integer',
      minimum: 1,
      maximum: 64,
      description: 'How many texts are spoken at once; as many as the machine has processors, unless set.',
    },
    timeout: { type: 'string', format: 'duration', default: '30s', description: 'How long one text may take.' },
    program: { type: 'string', default: 'espeak-ng', description: 'The program’s name on PATH, or its absolute path.' },
    ffmpeg: { type: 'string', default: 'ffmpeg', description: 'The program that makes mp3, opus, aac and flac.' },
  },
} as const;

const NATIVE: readonly SpeechFormat[] = Object.freeze(['wav', 'pcm']);
const ENCODED: readonly SpeechFormat[] = Object.freeze(['mp3', 'opus', 'aac', 'flac']);
const NO_VOICES: EspeakVoices = Object.freeze({ languages: [], variants: [] });
const LIST_TIMEOUT_MS = 10_000;
const LONGEST_LIST_BYTES = 1024 * 1024;

/**
 * Real speech without a network, by the program espeak-ng (https://github.com/espeak-ng/espeak-ng): free of charge, in
 * over a hundred languages. The program is looked for at each call, so it may be installed while the gateway runs.
 */
export default definePlugin({
  name: 'espeak',
  kind: 'tts',
  apiVersion: 1,
  configSchema,
  setup(api, config) {
    const { program = 'espeak-ng', ffmpeg = 'ffmpeg', voice = 'en-us', timeout = '30s' } = config;
    const places = config.concurrency ?? availableParallelism();
    const voices = createVoiceTable(program);
    api.offer('speech', {
      specVersion: 1,
      vendor: 'espeak',
      baseUrl: 'http://espeak.invalid',
      models: [{ id: 'espeak-ng', kind: 'speech', price: { input: 0, output: 0, characters: 0 } }],
      get formats() {
        return findProgram(ffmpeg) === undefined ? NATIVE : [...NATIVE, ...ENCODED];
      },
      defaultVoice: voice,
      acceptsVoice: (id) => isEspeakVoice(id, voices.known()),
      voiceFor: (language) => languageVoice(language, voices.known()),
      voices: async () => listedVoices(await voices.load()),
      maxCharacters: 4096,
      speed: SPEED,
      codec: createEspeakCodec(voices.known),
      transport: createEspeakTransport(
        { espeak: program, ffmpeg, timeoutMs: parseDuration(timeout) },
        createGate(places, places * 8),
      ),
      error: readEspeakError,
    });
  },
});

/** What the program says it can speak with: asked once, as long as it is there. */
function createVoiceTable(program: string) {
  let table: EspeakVoices | undefined;
  let listing: Promise<EspeakVoices> | undefined;
  return {
    known: (): EspeakVoices => table ?? NO_VOICES,
    async load(): Promise<EspeakVoices> {
      const found = findProgram(program);
      if (found === undefined) throw missingProgram();
      if (table) return table;
      listing ??= listVoicesOf(found).finally(() => {
        listing = undefined;
      });
      table = await listing;
      return table;
    },
  };
}

function missingProgram(): GatewayError {
  return new GatewayError(
    'feature_disabled',
    'Speech without a network needs the program espeak-ng on the gateway’s machine, which is not there. Install it: apt-get install espeak-ng',
  );
}

const run = promisify(execFile);

async function listVoicesOf(program: string): Promise<EspeakVoices> {
  const options = { env: programEnvironment(), timeout: LIST_TIMEOUT_MS, maxBuffer: LONGEST_LIST_BYTES };
  try {
    const [languages, variants] = await Promise.all([
      run(program, ['--voices'], options),
      run(program, ['--voices=variant'], options),
    ]);
    return { languages: readLanguages(languages.stdout), variants: readVariants(variants.stdout) };
  } catch (error) {
    throw new GatewayError('provider_unavailable', 'The speech program does not list its voices.', { cause: error });
  }
}
