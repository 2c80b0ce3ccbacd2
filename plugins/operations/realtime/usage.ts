import {
  type CostPart,
  costOf,
  isCount,
  type JsonObject,
  type Metered,
  type Price,
  readArray,
  readCount,
  readObject,
  readString,
  type TargetFacts,
} from '../../../contract/index.ts';
import type { RealtimeRequest } from '../../formats/kit/index.ts';

/**
 * The largest limit of output that a session or response may name, and what a model may write of which nothing is known.
 * Source: https://platform.openai.com/docs/api-reference/realtime-client-events/response/create
 */
export const MAX_LIMIT = 4096;

/** The unit of models that are charged by time. */
const SECONDS = 'seconds';

/** What OpenAI counts for an image at most, about. */
const TOKENS_PER_IMAGE = 1600;

/** Tokens by what they are. */
export interface Tokens {
  text: number;
  audio: number;
  images: number;
}

/** The most that a response may cost: all that the model may read and write, by their own rates. What is owed already is not held again. */
export function estimateRealtime(request: RealtimeRequest, { model, price }: TargetFacts<'realtime'>): Metered {
  const { kind, max_tokens: limit, speaks } = request;
  if (kind === 'open') return { units: {}, cost: 0 };
  if (kind === 'transcription') return estimateTranscription(request, price);
  if (kind !== 'response') return { units: {}, cost: 0, owed: true };
  const window = model?.contextWindow ?? Number.POSITIVE_INFINITY;
  const audio = Math.min(request.audio, window);
  const images = Math.min(request.images, window - audio);
  const read = audio + images + Math.min(request.text, window - audio - images);
  const most = model?.maxOutput ?? MAX_LIMIT;
  const written = limit === null ? most : Math.min(limit, MAX_LIMIT, most);
  const usage = {
    ...{ prompt_tokens: read, completion_tokens: written, total_tokens: read + written },
    prompt_tokens_details: { audio_tokens: audio, image_tokens: images },
    ...(speaks && { completion_tokens_details: { audio_tokens: written } }),
  };
  return { units: { prompt_tokens: read, completion_tokens: written }, cost: costOf(usage, price) };
}

/** Tokens of sound in a second, and tokens of text that are written down of a second at most. */
const SOUND_PER_SECOND = 10;
const TEXT_PER_SECOND = 5;

/** The most that the transcription of so much sound costs: by the second where its model is charged so, else by tokens. */
function estimateTranscription({ audio, text }: RealtimeRequest, price: Price | undefined): Metered {
  const seconds = Math.ceil(audio / SOUND_PER_SECOND);
  if (price?.fees?.[SECONDS] !== undefined) return meterSeconds(seconds, price);
  const [read, written] = [audio + text, seconds * TEXT_PER_SECOND];
  const usage = {
    ...{ prompt_tokens: read, completion_tokens: written, total_tokens: read + written },
    prompt_tokens_details: { audio_tokens: audio },
  };
  return { units: { prompt_tokens: read }, cost: costOf(usage, price) };
}

/** What is charged for a response or transcription whose usage the vendor did not report: what is held for one. */
export function heldFor(request: RealtimeRequest, facts: TargetFacts<'realtime'>): Metered {
  const kind = request.kind === 'transcription' || request.kind === 'transcribed' ? 'transcription' : 'response';
  const { owed: _, ...most } = estimateRealtime({ ...request, kind }, facts);
  return { ...most, estimated: true };
}

/** A token count of a vendor; undefined for what is no count or more than any model reads or writes. */
function countOf(value: unknown): number | undefined {
  const count = readCount(value);
  return isCount(count) ? count : undefined;
}

/** What a response cost by the vendor's usage; undefined where there is none, or an impossible one. */
export function meterResponse(usage: JsonObject, price: Price | undefined): Metered | undefined {
  const input = countOf(usage['input_tokens']);
  const output = countOf(usage['output_tokens']);
  if (input === undefined || output === undefined || input + output === 0) return undefined;
  const read = readObject(usage['input_token_details']);
  const cached = readObject(read['cached_tokens_details']);
  const wrote = readObject(usage['output_token_details']);
  const count = (from: JsonObject, name: string): number => countOf(from[name]) ?? 0;
  const parts: CostPart[] = [];
  const told = {
    ...{ prompt_tokens: input, completion_tokens: output, total_tokens: input + output },
    prompt_tokens_details: {
      cached_tokens: count(read, 'cached_tokens'),
      audio_tokens: count(read, 'audio_tokens'),
      ...(cached['audio_tokens'] !== undefined && { cached_audio_tokens: count(cached, 'audio_tokens') }),
      ...{ image_tokens: count(read, 'image_tokens'), cached_image_tokens: count(cached, 'image_tokens') },
    },
    completion_tokens_details: { audio_tokens: count(wrote, 'audio_tokens') },
  };
  const cost = costOf(told, price, undefined, undefined, parts);
  return { units: { prompt_tokens: input, completion_tokens: output }, cost, parts };
}

/** What a transcription cost by the vendor's usage; undefined where there is none, or an impossible one. */
export function readTranscription(usage: JsonObject, price: Price | undefined): Metered | undefined {
  const { seconds } = usage;
  if (typeof seconds !== 'number') return meterResponse(usage, price);
  return isCount(Math.ceil(seconds)) ? meterSeconds(seconds, price) : undefined;
}

function meterSeconds(seconds: number, price: Price | undefined): Metered {
  const parts: CostPart[] = [];
  const units = { [SECONDS]: Math.ceil(seconds) };
  const none = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
  return { units, cost: costOf({ ...none, units }, price, undefined, undefined, parts), parts };
}

/** All that a session's model has read and written by the end of a response: what it reads for the next one. */
export function tokensAfter(usage: JsonObject): Tokens | undefined {
  const input = countOf(usage['input_tokens']);
  if (input === undefined) return undefined;
  const read = readObject(usage['input_token_details']);
  const wrote = readObject(usage['output_token_details']);
  const audio = countOf(read['audio_tokens']) ?? 0;
  const images = countOf(read['image_tokens']) ?? 0;
  const spoken = countOf(wrote['audio_tokens']) ?? 0;
  const written = (countOf(usage['output_tokens']) ?? spoken) - spoken;
  return { audio: audio + spoken, images, text: Math.max(0, input - audio - images) + Math.max(0, written) };
}

/** Bytes of sound for one token, a tenth of a second: of 16 bits at 24 kHz, and of G.711. Source: https://platform.openai.com/docs/guides/realtime-costs */
const BYTES_PER_TOKEN = 4800;
const G711_BYTES_PER_TOKEN = 800;

/** The tokens of sound in base64. */
export function tokensOfSound(base64: unknown, isCompressed: boolean): number {
  const bytes = ((readString(base64)?.length ?? 0) * 3) / 4;
  return Math.ceil(bytes / (isCompressed ? G711_BYTES_PER_TOKEN : BYTES_PER_TOKEN));
}

/** Characters of text for one token, about. */
export const CHARACTERS_PER_TOKEN = 4;

/** The tokens of what is put before the model: a new item, a session, or what a response is to be made of. */
export function tokensOfItem(value: JsonObject, isCompressed: boolean): Tokens {
  const tokens = { text: 0, audio: 0, images: 0 };
  let rest = JSON.stringify(value).length;
  for (const part of [value, ...readArray(value['input'])].flatMap((item) => readArray(readObject(item)['content']))) {
    const { audio, image_url: image } = readObject(part);
    tokens.audio += tokensOfSound(audio, isCompressed);
    if (image !== undefined) tokens.images += TOKENS_PER_IMAGE;
    rest -= (readString(audio)?.length ?? 0) + (readString(image)?.length ?? 0);
  }
  return { ...tokens, text: Math.ceil(rest / CHARACTERS_PER_TOKEN) };
}
