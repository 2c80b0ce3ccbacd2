import { GatewayError, type ModelInfo, nearest } from '../../../contract/index.ts';
import {
  AUDIO_FORMATS,
  countCharacters,
  type ResolvedSpeech,
  type SpeechFormat,
  type SpeechProvider,
  type SpeechRequest,
  splitText,
  type Voice,
} from '../../tts/kit/index.ts';

/** Maximum length of a split text as a multiple of the vendor's limit; it may become a few pieces more. */
const MOST_PIECES = 40;

/** Validated request with defaults for all missing fields. */
export interface CheckedSpeech {
  readonly input: ResolvedSpeech;
  /** Model name at the vendor. */
  readonly model: string;
  readonly info: ModelInfo;
  /** Text to send: one piece, or several if it was split. */
  readonly pieces: readonly string[];
  readonly characters: number;
}

function refuse(param: string, message: string): GatewayError {
  return new GatewayError('invalid_request', message, { param });
}

/**
 * Validates a request with the voices that are known without a call to the vendor. Throws the errors of {@link
 * checkSpeech}, and `feature_disabled` if the vendor is a program that is not installed.
 */
export async function resolveSpeech(vendor: SpeechProvider, request: SpeechRequest): Promise<CheckedSpeech> {
  return checkSpeech(vendor, request, await localVoices(vendor));
}

/** Voices that are known without a call to the vendor. */
export async function localVoices({ voices }: SpeechProvider): Promise<readonly Voice[] | undefined> {
  return typeof voices === 'function' ? await voices() : voices;
}

/**
 * Validates a request against the vendor's capabilities. `voices` are the known ones; undefined if unknown. Throws
 * `invalid_request` naming the field, `request_too_large` naming the limit, `unsupported_model` naming similar ones.
 */
export function checkSpeech(
  vendor: SpeechProvider,
  request: SpeechRequest,
  voices: readonly Voice[] | undefined = typeof vendor.voices === 'function' ? undefined : vendor.voices,
): CheckedSpeech {
  const { name: model, info } = findSpeechModel(vendor, request.model);
  const format = checkFormat(vendor, request.format);
  const speed = checkSpeed(vendor, request.speed);
  const voice = checkVoice(vendor, request, voices);
  const pieces = checkText(request, info.maxCharacters ?? vendor.maxCharacters, format);
  return {
    input: { ...request, voice, format, speed },
    model,
    info,
    pieces,
    characters: countCharacters(request.text),
  };
}

/** Model of a request: the vendor's first if it names none, otherwise the longest matching prefix. */
export function findSpeechModel(
  vendor: SpeechProvider,
  requested: string | undefined,
): { readonly name: string; readonly info: ModelInfo } {
  const [first] = vendor.models;
  if (requested === undefined) {
    if (first) return { name: first.id, info: first };
    throw refuse('model', 'model is missing, and this provider has no default. Set a model.');
  }
  const name = requested;
  const info = findModelInfo(vendor, name);
  if (info) return { name, info };
  const ids = modelsOf(vendor).map(({ id }) => id);
  const near = nearest(name, ids);
  throw new GatewayError(
    'unsupported_model',
    `${quote(name)} is not a model of this speech provider. It has ${list(near.length > 0 ? near : ids.slice(0, 5))}.`,
    { param: 'model' },
  );
}

/** Model row with the longest matching prefix. Undefined for a model that the vendor lacks. */
export function findModelInfo(vendor: SpeechProvider, name: string): ModelInfo | undefined {
  const info = modelsOf(vendor)
    .filter(({ id }) => name.startsWith(id))
    .reduce<ModelInfo | undefined>((best, each) => (best && best.id.length >= each.id.length ? best : each), undefined);
  return info ?? (vendor.anyModel && name !== '' ? { id: name, kind: 'speech' } : undefined);
}

function modelsOf({ models, addModels = [] }: SpeechProvider): readonly ModelInfo[] {
  return [...models, ...addModels];
}

function checkFormat(vendor: SpeechProvider, requested: SpeechFormat | undefined): SpeechFormat {
  const [first] = vendor.formats;
  const format = requested ?? first;
  if (format !== undefined && vendor.formats.includes(format)) return format;
  throw refuse(
    'format',
    `format ${quote(requested ?? '')} is not supported by this provider. Use ${list(vendor.formats)}.`,
  );
}

function checkSpeed(vendor: SpeechProvider, requested: number | undefined): number {
  const { min, max } = vendor.speed;
  const speed = requested ?? 1;
  if (speed >= min && speed <= max) return speed;
  if (min === max)
    throw refuse('speed', `speed ${speed} is not supported, since this provider has one speed. Remove speed.`);
  throw refuse('speed', `speed ${speed} is out of range. Use ${min} to ${max}.`);
}

function checkVoice(
  vendor: SpeechProvider,
  { voice: requested, language }: SpeechRequest,
  voices: readonly Voice[] | undefined,
): string {
  if (requested === undefined) return (language && vendor.voiceFor?.(language)) || vendor.defaultVoice;
  if (requested.trim() === '') throw refuse('voice', 'voice is empty. Set a voice or remove the field.');
  if (!voices || vendor.acceptsVoice?.(requested)) return requested;
  const ids = voices.map(({ id }) => id);
  const same = ids.find((id) => id === requested) ?? ids.find((id) => id.toLowerCase() === requested.toLowerCase());
  if (same !== undefined) return same;
  const near = nearest(requested, ids);
  throw refuse(
    'voice',
    `voice ${quote(requested)} is unknown. ${near.length > 0 ? 'Similar voices' : 'Some voices'}: ${list(
      near.length > 0 ? near : ids.slice(0, 8),
    )}.`,
  );
}

/** Speakable text has a letter, a digit or a sign, not only spaces, controls and invisible marks. */
const SAYABLE = /[\p{L}\p{N}\p{S}\p{P}]/u;

/** Document in the Speech Synthesis Markup Language. Single tags, which some vendors read, are plain text. */
const SSML = /^\s*(?:<\?xml[^>]*>\s*)?<speak[\s>]/;

function checkText(request: SpeechRequest, limit: number, format: SpeechFormat): readonly string[] {
  const { text, split } = request;
  if (!SAYABLE.test(text)) throw refuse('text', 'text is empty or blank. Send text to speak.');
  if (SSML.test(text))
    throw refuse('text', 'text is SSML, which is not supported: its tags would be read aloud. Send plain text.');
  const length = countCharacters(text);
  if (length <= limit) return [text];
  if (!split) {
    throw tooLong(
      `text has ${length} characters; the limit of this model is ${limit}. Shorten it or send "split": true.`,
    );
  }
  if (!AUDIO_FORMATS[format].joinable) {
    throw refuse('split', `Text of more than ${limit} characters is not supported in ${format}. Use mp3, wav or pcm.`);
  }
  if (length > limit * MOST_PIECES) {
    throw tooLong(
      `text has ${length} characters; the limit of this model with "split" is ${limit * MOST_PIECES}. Shorten it.`,
    );
  }
  return splitText(text, limit);
}

function tooLong(message: string): GatewayError {
  return new GatewayError('request_too_large', message, { param: 'text' });
}

function list(names: readonly string[]): string {
  return names.join(', ');
}

/** Quotes a caller's text for a message, with limited length. */
function quote(word: string): string {
  return JSON.stringify(word.length > 64 ? `${word.slice(0, 64)}…` : word);
}
