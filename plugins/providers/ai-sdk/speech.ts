import { type JsonObject, type Provider, readObject, readString } from '../../../contract/index.ts';
import {
  decodeJsonSound,
  pickSpeechOptions,
  primaryLanguage,
  type SpeechCodec,
  type SpeechProvider,
  unwrapWav,
} from '../../tts/kit/index.ts';
import { base64Of, InvalidResult, type Job, readTokens, respondWith, runModel } from './job.ts';
import { MARK, plainSettings } from './losses.ts';
import { namesOf } from './read-result.ts';
import { NotTaken } from './write-options.ts';

/** Name of the voice that the package chooses. */
const DEFAULT_VOICE = 'default';

const codec: SpeechCodec = {
  request({ text, voice, format, speed, language, options }, { model }) {
    const { instructions } = pickSpeechOptions(options, ['instructions']);
    return {
      path: '/speech',
      body: {
        ...{ model, text, instructions },
        voice: voice === DEFAULT_VOICE ? undefined : voice,
        // Packages do not say the rate of raw samples; the header of a WAV has it.
        outputFormat: format === 'pcm' ? 'wav' : format,
        speed: speed === 1 ? undefined : speed,
        language: language === undefined ? undefined : primaryLanguage(language),
      },
    };
  },
  decode({ format }) {
    const sound = decodeJsonSound(readSound);
    return format === 'pcm' ? unwrapWav(sound) : sound;
  },
};

function readSound(body: unknown): { readonly base64: string; readonly tokens?: { input: number; output: number } } {
  const { audio, usage } = readObject(body);
  const tokens = readTokens(usage);
  return { base64: readString(audio) ?? '', ...(tokens && { tokens }) };
}

/** Speech by a package, for the models that the operator lists. The AI SDK has no lists of voices and no limits. */
export function speechOffer({ chat: _, native: __, models, ...endpoint }: Provider): SpeechProvider | undefined {
  if (!models && !endpoint.addModels && !endpoint.anyModel) return undefined;
  return {
    ...endpoint,
    models: models ?? [],
    formats: ['mp3', 'wav', 'opus', 'aac', 'flac', 'pcm'],
    defaultVoice: DEFAULT_VOICE,
    maxCharacters: 4096,
    speed: { min: 0.25, max: 4 },
    codec,
  };
}

/** Speaks a text. Source: https://github.com/vercel/ai/tree/main/packages/provider/src/speech-model */
export const speak: Job = async (
  own,
  { model: id, ...given },
  { signal: abortSignal, providerOptions, findLosses },
) => {
  const name = readString(id) ?? '';
  const model = own.model('speech', name);
  const options: JsonObject = { ...given, abortSignal, providerOptions };
  const settings = plainSettings(options, SETTINGS);
  const run = (all: JsonObject): PromiseLike<unknown> => runModel(model, 'doGenerate', all);
  const examined = { of: `speech ${name}`, options, run, sample: { text: MARK }, settings };
  const { fields: lost = [] } = (await findLosses?.(examined)) ?? {};
  assertFormat(lost, options);
  const result = readObject(await run(options));
  const { warnings, usage } = result;
  assertFormat(namesOf(warnings), options);
  const audio = base64Of(result['audio']);
  if (audio === undefined) throw new InvalidResult('returned no audio');
  return respondWith({ audio, usage }, lost, warnings);
};

/** Settings of a speech model and their names. */
const SETTINGS = Object.freeze({
  voice: 'voice',
  outputFormat: 'format',
  speed: 'speed',
  instructions: 'instructions',
  language: 'language',
});

function assertFormat(dropped: readonly string[], { outputFormat }: JsonObject): void {
  if (dropped.includes('format'))
    throw new NotTaken(`This model of the package has no format "${outputFormat}". Use another format.`);
}
