import {
  type Attempt,
  type AttemptResponse,
  type CodecCall,
  type CostPart,
  type HttpRequest,
  isObject,
  isStreamFailure,
  type Metered,
  type ModelInfo,
  type OperationDefinition,
  type Price,
  picoRate,
  priceAt,
  roundCost,
} from '../../../contract/index.ts';
import {
  AUDIO_FORMATS,
  countCharacters,
  createSoundCheck,
  createSoundJoin,
  type ResolvedSpeech,
  type SpeechProvider,
  type SpeechRequest,
  type SpeechResponse,
  type SpeechTokens,
} from '../../tts/kit/index.ts';
import { type SpeechCache, speechCacheKey } from './cache.ts';
import { type CheckedSpeech, findModelInfo, resolveSpeech } from './check.ts';
import { collectSound } from './collect-sound.ts';
import { SPEECH_BODY } from './schemas.ts';

/**
 * Defines speech as an operation of the gateway: validated for the vendor, generated piece by piece, metered in
 * characters.
 */
export function defineSpeech(cache: SpeechCache | undefined): OperationDefinition<'speech'> {
  return {
    name: 'speech',
    request: SPEECH_BODY,
    texts: { response: [] },
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

/**
 * Resolves with the first sound. A request without any sound is charged by the characters of its first piece; a
 * rejected one costs nothing.
 */
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

/**
 * Cost of speech. A price is per character, per second of sound, per token, or a sum of these, in US dollars per
 * million.
 */
interface SpeechCost {
  /** Whole nano-dollars, rounded up once. */
  readonly amount: number;
  readonly parts: readonly CostPart[];
  /** True if seconds or tokens were estimated from the characters. */
  readonly estimated: boolean;
}

/** Slow speech, so that a reservation tends to be too high: people and vendors speak 13 to 18 characters a second. */
const CHARACTERS_PER_SECOND = 12;
const CHARACTERS_PER_TOKEN = 3;
/** Gemini bills 25 tokens for a second of sound, others fewer. */
const TOKENS_PER_SECOND = 25;

/** Price of a model: the operator's by longest prefix or `*`, otherwise the model's own. Undefined without any. */
export function speechPrice(vendor: SpeechProvider, model: string, info: ModelInfo): Partial<Price> | undefined {
  const prices = vendor.prices ?? {};
  const [prefix] = Object.keys(prices)
    .filter((key) => key !== '*' && model.startsWith(key))
    .sort((a, b) => b.length - a.length);
  const own = prices[prefix ?? '*'];
  const price = own && 'length' in own ? priceAt(own) : own;
  return price || info.price ? { ...priceAt(info.price), ...price } : undefined;
}

/** Cost of a usage; undefined without a price. Units that the vendor did not report are estimated. */
export function costOfSpeech(usage: SpeechUsage, price: Partial<Price> | undefined): SpeechCost | undefined {
  if (!price) return undefined;
  const { characters } = usage;
  const seconds = usage.seconds ?? characters / CHARACTERS_PER_SECOND;
  const tokens = usage.tokens ?? {
    input: Math.ceil(characters / CHARACTERS_PER_TOKEN),
    output: Math.ceil(seconds * TOKENS_PER_SECOND),
  };
  const bySecond = Math.round(picoRate(price.seconds ?? 0) * seconds);
  const byInput = picoRate(price.input ?? 0) * tokens.input;
  const byOutput = picoRate(price.output ?? 0) * tokens.output;
  const byCharacter = picoRate(price.characters ?? 0) * characters;
  const byToken = byInput + byOutput;
  const parts = [
    { unit: 'characters', quantity: characters, pico: byCharacter },
    { unit: 'seconds', quantity: seconds, pico: bySecond },
    { unit: 'input_tokens', quantity: tokens.input, pico: byInput },
    { unit: 'output_tokens', quantity: tokens.output, pico: byOutput },
  ];
  return {
    amount: roundCost(byCharacter + bySecond + byToken),
    parts: parts.flatMap(({ pico, ...part }) => (pico > 0 ? [{ ...part, usd: pico / 1e12 }] : [])),
    estimated: (bySecond > 0 && usage.seconds === undefined) || (byToken > 0 && usage.tokens === undefined),
  };
}

/** Approximate maximum cost of a text, for its reservation. `speed` below 1 makes the sound longer. */
export function estimateSpeech(
  characters: number,
  speed: number,
  price: Partial<Price> | undefined,
): number | undefined {
  const seconds = characters / CHARACTERS_PER_SECOND / Math.min(1, speed);
  return costOfSpeech({ characters, seconds }, price)?.amount;
}

/** Maximum cost of a request for a model, before it is sent. */
function estimateRequest(vendor: SpeechProvider, model: string, { text, speed = 1 }: SpeechRequest): Metered {
  const characters = countCharacters(text);
  const info = findModelInfo(vendor, model);
  return {
    units: { characters },
    cost: info && estimateSpeech(characters, speed, speechPrice(vendor, model, info)),
  };
}

/** Usage in core's form: characters, and tokens if the vendor reported them. */
function meterSpeech(usage: SpeechUsage, price: Partial<Price> | undefined): Metered {
  const { characters, tokens } = usage;
  const cost = costOfSpeech(usage, price);
  return {
    units: { characters, ...(tokens && { prompt_tokens: tokens.input, completion_tokens: tokens.output }) },
    cost: cost?.amount,
    ...(cost && { parts: cost.parts }),
    estimated: cost?.estimated ?? false,
  };
}

/** Input and output of a speech run; an attempt of core provides it, with deadlines, credentials and hooks. */
interface SpeechIo {
  /** Throws for every error response. */
  send(request: HttpRequest): Promise<Pick<AttemptResponse, 'headers' | 'body' | 'reportProgress'>>;
  readonly abortSignal: AbortSignal;
  readonly codecCall: CodecCall;
}

/** Usage so far; complete once the audio has ended. */
interface SpeechUsage {
  /** Characters sent to the vendor. */
  readonly characters: number;
  /** Seconds of sound, if the format contains them. */
  readonly seconds?: number;
  /** Tokens reported by the vendor, if any. */
  readonly tokens?: SpeechTokens;
}

interface SpeechRun extends SpeechResponse {
  usage(): SpeechUsage;
}

/**
 * Generates the sound. Resolves with its first bytes, so that another attempt or a JSON error is possible until then.
 * Throws `StreamFailure` for vendor failures, before the first byte or, from `audio`, after it. An empty, truncated
 * or unexpected sound never ends normally. Leaving `audio` early ends the vendor's work; an unread response must be
 * ended by its signal.
 */
export async function runSpeech(vendor: SpeechProvider, speech: CheckedSpeech, io: SpeechIo): Promise<SpeechRun> {
  const { input, model } = speech;
  const used: { characters: number; seconds?: number; tokens?: SpeechTokens } = { characters: 0 };
  const call: CodecCall = { ...io.codecCall, model, stream: input.stream !== false };
  const audio = speak();
  const first = await audio.next();
  return {
    contentType: AUDIO_FORMATS[input.format].contentType,
    format: input.format,
    model,
    voice: input.voice,
    characters: speech.characters,
    audio: resume(first, audio),
    usage: () => ({ ...used }),
  };

  async function* speak(): AsyncGenerator<Uint8Array, undefined> {
    const join = createSoundJoin(input.format, speech.pieces.length);
    for (const text of speech.pieces) {
      io.abortSignal.throwIfAborted();
      const check = createSoundCheck(input.format);
      join.begin();
      used.characters += countCharacters(text);
      for await (const bytes of receive(vendor, { ...input, text }, call, io, addTokens)) {
        check.push(bytes);
        yield* join.push(bytes);
      }
      const seconds = check.end();
      if (seconds !== undefined) used.seconds = (used.seconds ?? 0) + seconds;
    }
    return undefined;
  }

  function addTokens({ input: read, output }: SpeechTokens): void {
    used.tokens = { input: (used.tokens?.input ?? 0) + read, output: (used.tokens?.output ?? 0) + output };
  }
}

/** Yields one piece of text as plain sound. */
async function* receive(
  vendor: SpeechProvider,
  input: ResolvedSpeech,
  call: CodecCall,
  io: SpeechIo,
  addTokens: (tokens: SpeechTokens) => void,
): AsyncGenerator<Uint8Array> {
  const upstream = await io.send(vendor.codec.request(input, call));
  let decoder: ReturnType<SpeechProvider['codec']['decode']> | undefined;
  for await (const bytes of upstream.body) {
    // Inside the loop, so that an error of the codec also ends the vendor's response.
    decoder ??= vendor.codec.decode(input, upstream.headers, call);
    const sound = decoder.push(bytes);
    const progress = decoder.progress?.();
    // Sound after the first end shows that it was not the end.
    if (progress === 'ending' && sound.length > 0) upstream.reportProgress?.('open');
    if (progress) upstream.reportProgress?.(progress);
    yield* sound;
    if (progress === 'complete') break;
  }
  decoder ??= vendor.codec.decode(input, upstream.headers, call);
  yield* decoder.end();
  const tokens = decoder.usage?.();
  if (tokens) addTokens(tokens);
}

/** Continues an iteration whose first step was already taken. Leaving it early also ends the rest, started or not. */
function resume(first: IteratorResult<Uint8Array, undefined>, rest: AsyncGenerator<Uint8Array, undefined>) {
  let ahead: typeof first | undefined = first;
  const iterator: AsyncIterableIterator<Uint8Array, undefined> = {
    [Symbol.asyncIterator]: () => iterator,
    async next() {
      const step = ahead ?? (await rest.next());
      ahead = undefined;
      return step;
    },
    async return() {
      ahead = undefined;
      return await rest.return(undefined);
    },
  };
  return iterator;
}
