import { AUDIO_FORMATS } from '../audio/formats.ts';
import { createSoundCheck } from '../audio/sound-check.ts';
import type { SpeechAnswer } from '../contract/plugin.ts';
import {
  type CodecCall,
  type HttpRequest,
  StreamFailure,
  type TransportAnswer,
  type UpstreamFailure,
} from '../contract/provider.ts';
import { parseErrorBody } from '../contract/read-json.ts';
import type { SpeechRequest } from '../contract/speech.ts';
import type { ResolvedSpeech, SpeechProvider, SpeechTokens, Voice } from '../contract/speech-provider.ts';
import { type CheckedSpeech, checkSpeech } from './check.ts';
import { createSoundJoin } from './join.ts';
import { countCharacters } from './split-text.ts';

/** What a run of speech needs of the world; the pipeline gives it upstream's deadlines, credentials and hooks. */
export interface SpeechIo {
  send(request: HttpRequest, signal: AbortSignal): Promise<TransportAnswer>;
  readonly signal: AbortSignal;
  /** Unique for the attempt. */
  readonly id: string;
  /** Unix seconds. */
  readonly created: number;
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

export interface SpeechRun extends SpeechAnswer {
  usage(): SpeechUsage;
}

/**
 * Checks a request against its vendor, with the voices it is known to have. Throws what {@link checkSpeech} throws, and
 * `feature_disabled` when the vendor is a program that is not there.
 */
export async function resolveSpeech(vendor: SpeechProvider, request: SpeechRequest): Promise<CheckedSpeech> {
  return checkSpeech(vendor, request, await localVoices(vendor));
}

/** The voices that can be had without a call to the vendor. */
export async function localVoices(vendor: SpeechProvider): Promise<readonly Voice[] | undefined> {
  if (vendor.voices) return vendor.voices;
  return typeof vendor.listVoices === 'function' ? await vendor.listVoices() : undefined;
}

/**
 * Makes the sound. Resolves when its first bytes are there, so that until then another attempt or a JSON error is
 * possible. Throws {@link StreamFailure} for what the vendor did wrong, before or, out of `audio`, after the first byte:
 * a sound that is empty, cut or of another format never ends as if it were whole. Leaving `audio` early ends the
 * vendor's work; an answer that nobody reads must be ended by its signal.
 */
export async function runSpeech(vendor: SpeechProvider, speech: CheckedSpeech, io: SpeechIo): Promise<SpeechRun> {
  const { input, model } = speech;
  const used: { characters: number; seconds?: number; tokens?: SpeechTokens } = { characters: 0 };
  const call: CodecCall = { model, stream: input.stream !== false, created: io.created, id: io.id };
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
      io.signal.throwIfAborted();
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
  const answer = await io.send(vendor.codec.request(input, call), io.signal);
  if (answer.status < 200 || answer.status > 299) throw new StreamFailure(await readFailure(vendor, answer));
  let decoder: ReturnType<SpeechProvider['codec']['decode']> | undefined;
  for await (const bytes of answer.body) {
    // Inside the loop, so that a throw of the codec also ends the vendor's answer.
    decoder ??= vendor.codec.decode(input, answer.headers, call);
    yield* decoder.push(bytes);
  }
  decoder ??= vendor.codec.decode(input, answer.headers, call);
  yield* decoder.end();
  const tokens = decoder.usage?.();
  if (tokens) addTokens(tokens);
}

const LONGEST_ERROR_BYTES = 65_536;

async function readFailure(vendor: SpeechProvider, answer: TransportAnswer): Promise<UpstreamFailure> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const bytes of answer.body) {
    pieces.push(bytes);
    length += bytes.length;
    if (length > LONGEST_ERROR_BYTES) break;
  }
  const text = Buffer.concat(pieces).toString('utf8');
  return vendor.error(answer.status, parseErrorBody(text), answer.headers);
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
