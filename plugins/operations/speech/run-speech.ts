import type { AttemptResponse, CodecCall, HttpRequest } from '../../../core/index.ts';
import {
  AUDIO_FORMATS,
  countCharacters,
  createSoundCheck,
  createSoundJoin,
  type ResolvedSpeech,
  type SpeechProvider,
  type SpeechResponse,
  type SpeechTokens,
} from '../../tts/kit/index.ts';
import type { CheckedSpeech } from './check.ts';

/** What a run of speech needs of the world; an attempt of core gives it, with deadlines, credentials and hooks. */
export interface SpeechIo {
  /** Throws for every response that is not a success. */
  send(request: HttpRequest): Promise<Pick<AttemptResponse, 'headers' | 'body'>>;
  readonly abortSignal: AbortSignal;
  readonly codecCall: CodecCall;
}

/** What was used so far; whole once the audio has ended. */
export interface SpeechUsage {
  /** Characters that were sent to the vendor. */
  readonly characters: number;
  /** Seconds of sound, where the format tells. */
  readonly seconds?: number;
  /** Where the vendor told. */
  readonly tokens?: SpeechTokens;
}

export interface SpeechRun extends SpeechResponse {
  usage(): SpeechUsage;
}

/**
 * Makes the sound. Resolves when its first bytes are there, so that until then another attempt or a JSON error is
 * possible. Throws `StreamFailure` for what the vendor did wrong, before or, out of `audio`, after the first byte:
 * a sound that is empty, cut or of another format never ends as if it were whole. Leaving `audio` early ends the
 * vendor's work; a response that nobody reads must be ended by its signal.
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

/** One piece of text as plain sound. */
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
    // Inside the loop, so that a throw of the codec also ends the vendor's response.
    decoder ??= vendor.codec.decode(input, upstream.headers, call);
    yield* decoder.push(bytes);
  }
  decoder ??= vendor.codec.decode(input, upstream.headers, call);
  yield* decoder.end();
  const tokens = decoder.usage?.();
  if (tokens) addTokens(tokens);
}

/** An iteration whose first step was taken already; leaving it early leaves the rest too, begun or not. */
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
