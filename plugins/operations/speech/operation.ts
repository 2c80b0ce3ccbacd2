import { type Attempt, isObject, isStreamFailure, type OperationDefinition } from '../../../core/index.ts';
import { countCharacters, type SpeechResponse } from '../../tts/kit/index.ts';
import { type SpeechCache, speechCacheKey } from './cache.ts';
import { type CheckedSpeech, resolveSpeech } from './check.ts';
import { collectSound } from './collect-sound.ts';
import { estimateRequest, meterSpeech, speechPrice } from './price.ts';
import { runSpeech, type SpeechRun, type SpeechUsage } from './run-speech.ts';
import { SPEECH_BODY } from './schemas.ts';

/** Speech as an operation of the gateway: checked against the vendor, spoken piece by piece, metered in characters. */
export function defineSpeech(cache: SpeechCache | undefined): OperationDefinition<'speech'> {
  return {
    name: 'speech',
    request: SPEECH_BODY,
    estimate: (request, { offer, target }) => estimateRequest(offer, target.model, request),
    attempt: (attempt) => attemptSpeech(attempt, cache),
    isResponse: (value): value is SpeechResponse =>
      isObject(value) &&
      typeof value['contentType'] === 'string' &&
      typeof value['format'] === 'string' &&
      isIterable(value['audio']),
  };
}

function isIterable(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
}

async function attemptSpeech(attempt: Attempt<'speech'>, cache: SpeechCache | undefined): Promise<SpeechResponse> {
  const { offer, target, call, request, whileStreaming } = attempt;
  const speech = await resolveSpeech(offer, { ...request, model: target.model });
  const price = speechPrice(offer, speech.model, speech.info);
  const meter = (usage: SpeechUsage): void => attempt.meter(meterSpeech(usage, price));
  const run = await startSpeech(attempt, speech, meter);
  const { usage, ...spoken } = cache
    ? cache.keep(speechCacheKey(call.principal.account, target.provider, speech), run)
    : run;
  const meterAll = (): void => meter(usage());
  if (request.stream !== false) return { ...spoken, audio: whileStreaming(spoken.audio, meterAll) };
  try {
    return { ...spoken, audio: once(await collectSound(spoken)) };
  } finally {
    meterAll();
  }
}

/** Resolves with the first sound. What was sent and gave none is owed by the characters of its first piece; a refusal owes nothing. */
async function startSpeech(
  { offer, send, abortSignal, codecCall }: Attempt<'speech'>,
  speech: CheckedSpeech,
  meter: (usage: SpeechUsage) => void,
): Promise<SpeechRun> {
  try {
    return await runSpeech(offer, speech, { send, abortSignal, codecCall });
  } catch (error) {
    if (!isStreamFailure(error)) meter({ characters: countCharacters(speech.pieces[0] ?? '') });
    throw error;
  }
}

async function* once(sound: Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
  yield sound;
}
