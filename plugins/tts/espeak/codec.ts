import type { ResponseHeaders, UpstreamFailure } from '../../../contract/index.ts';
import { failureOfStatus } from '../../formats/kit/index.ts';
import {
  decodeSound,
  mendWavHeader,
  pickSpeechOptions,
  type ResolvedSpeech,
  type SpeechCodec,
  type SpeechFormat,
  unwrapWav,
} from '../kit/index.ts';
import { type EspeakVoices, voiceArgument } from './voices.ts';

/** What the transport is asked to run. */
export interface EspeakTask {
  readonly text: string;
  readonly voice: string;
  readonly wordsPerMinute: number;
  /** Absent leaves the program's own WAV as it is. */
  readonly encode?: Encoding;
}

export type Encoding = Exclude<SpeechFormat, 'wav' | 'pcm'>;

const NORMAL_SPEED = 175;

/** What the library does; outside it goes on without a word. */
const WORDS_PER_MINUTE = Object.freeze({ min: 80, max: 450 });

/** Speeds as the callers write them. */
export const SPEED = Object.freeze({
  min: Math.ceil((WORDS_PER_MINUTE.min / NORMAL_SPEED) * 100) / 100,
  max: Math.floor((WORDS_PER_MINUTE.max / NORMAL_SPEED) * 100) / 100,
});

/** A sound that ends within this many bytes (about 24 s) is sent with a header that tells its true size. */
const HELD_BYTES = 1024 * 1024;

/** Control characters: the program stops at a NUL and would leave the rest of the text unspoken. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is removed
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f]/g;

/** `voices` gives what the program said it has; it is asked before a request gets here. */
export function createEspeakCodec(voices: () => EspeakVoices): SpeechCodec {
  return {
    request(input) {
      pickSpeechOptions(input.options, []);
      return { path: '/speak', body: createTask(input, voices()) };
    },
    decode({ format }, headers) {
      const sound = decodeSound(headers);
      if (format === 'pcm') return unwrapWav(sound);
      return format === 'wav' ? mendWavHeader(sound, HELD_BYTES) : sound;
    },
  };
}

function createTask({ text, voice, language, speed, format }: ResolvedSpeech, known: EspeakVoices): EspeakTask {
  const { min, max } = WORDS_PER_MINUTE;
  return {
    text: text.replace(CONTROLS, ' '),
    voice: voiceArgument(voice, language, known),
    wordsPerMinute: Math.min(max, Math.max(min, Math.round(NORMAL_SPEED * speed))),
    ...(format !== 'wav' && format !== 'pcm' && { encode: format }),
  };
}

/** What the transport's statuses mean. */
export function readEspeakError(status: number, _body: unknown, headers: ResponseHeaders): UpstreamFailure {
  return status === 422
    ? { class: 'invalid_request', message: 'text has nothing that this voice can say.', param: 'text' }
    : failureOfStatus(status, 'The speech program failed.', headers);
}
