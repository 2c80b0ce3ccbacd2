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

/** Task for the transport. */
export interface EspeakTask {
  readonly text: string;
  readonly voice: string;
  readonly wordsPerMinute: number;
  /** Without it, the program's own WAV stays unchanged. */
  readonly encode?: Encoding;
}

export type Encoding = Exclude<SpeechFormat, 'wav' | 'pcm'>;

const NORMAL_SPEED = 175;

/** Range of the library, which reports no error for other values. */
const WORDS_PER_MINUTE = Object.freeze({ min: 80, max: 450 });

/** Same range as a caller's `speed`. */
export const SPEED = Object.freeze({
  min: Math.ceil((WORDS_PER_MINUTE.min / NORMAL_SPEED) * 100) / 100,
  max: Math.floor((WORDS_PER_MINUTE.max / NORMAL_SPEED) * 100) / 100,
});

/** A sound shorter than this many bytes (about 24 s) is sent with its true size in the header. */
const HELD_BYTES = 1024 * 1024;

/** Control characters: the program stops at a NUL and would not speak the rest of the text. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is removed
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f]/g;

/** `voices` returns the voices reported by the program, which are loaded before any request. */
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

/** Failure for a status of the transport. */
export function readEspeakError(status: number, _body: unknown, headers: ResponseHeaders): UpstreamFailure {
  return status === 422
    ? {
        class: 'invalid_request',
        message: 'text contains nothing that this voice can speak. Use another voice or text.',
        param: 'text',
      }
    : failureOfStatus(status, 'The speech program failed.', headers);
}
