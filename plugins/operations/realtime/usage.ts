import {
  type CostPart,
  costOf,
  isCount,
  type JsonObject,
  type Metered,
  type Price,
  readArray,
  readObject,
  readString,
  type TargetFacts,
} from '../../../contract/index.ts';
import type { RealtimeRequest } from '../../formats/kit/index.ts';

/**
 * Maximum output limit of a session or response, and the assumed output of an unknown model. Source:
 * https://platform.openai.com/docs/api-reference/realtime-client-events/response/create
 */
export const MAX_LIMIT = 4096;

/** Unit of models that are charged by time. */
const SECONDS = 'seconds';

/** Approximate maximum of OpenAI's tokens for an image. */
const TOKENS_PER_IMAGE = 1600;

/** Tokens by kind. */
export interface Tokens {
  text: number;
  audio: number;
  images: number;
}

/**
 * Maximum cost of a response: all tokens that the model may read and write, at their rates. Work that is charged
 * afterwards is not reserved.
 */
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
    prompt_tokens: read,
    completion_tokens: written,
    total_tokens: read + written,
    prompt_tokens_details: { audio_tokens: audio, image_tokens: images },
    ...(speaks && { completion_tokens_details: { audio_tokens: written } }),
  };
  return { units: { prompt_tokens: read, completion_tokens: written }, cost: costOf(usage, price) };
}

/** Audio tokens per second, and maximum text tokens per transcribed second. */
const SOUND_PER_SECOND = 10;
const TEXT_PER_SECOND = 5;

/** Maximum cost of transcribing this much audio: by second if its model is charged by time, otherwise by token. */
function estimateTranscription({ audio, text }: RealtimeRequest, price: Price | undefined): Metered {
  const seconds = Math.ceil(audio / SOUND_PER_SECOND);
  if (price?.fees?.[SECONDS] !== undefined) return meterSeconds(seconds, price);
  const [read, written] = [audio + text, seconds * TEXT_PER_SECOND];
  const usage = {
    prompt_tokens: read,
    completion_tokens: written,
    total_tokens: read + written,
    prompt_tokens_details: { audio_tokens: audio },
  };
  return { units: { prompt_tokens: read }, cost: costOf(usage, price) };
}

/** Charge for a response or transcription whose usage the vendor did not report: the reserved amount. */
export function heldFor(request: RealtimeRequest, facts: TargetFacts<'realtime'>): Metered {
  const kind = request.kind === 'transcription' || request.kind === 'transcribed' ? 'transcription' : 'response';
  const { owed: _, ...most } = estimateRealtime({ ...request, kind }, facts);
  return { ...most, estimated: true };
}

/** Token count of a vendor; undefined for an invalid count, or more than any model reads or writes. */
function countOf(value: unknown): number | undefined {
  return isCount(value) ? value : undefined;
}

/** Cost of a response by the vendor's usage; undefined if it is missing or invalid. */
export function meterResponse(usage: JsonObject, price: Price | undefined): Metered | undefined {
  const input = countOf(usage['input_tokens']);
  const output = countOf(usage['output_tokens']);
  if (input === undefined || output === undefined || input + output === 0) return undefined;
  const read = readObject(usage['input_token_details']);
  const cached = readObject(read['cached_tokens_details']);
  const wrote = readObject(usage['output_token_details']);
  const count = (from: JsonObject, name: string): number => countOf(from[name]) ?? 0;
  const parts: CostPart[] = [];
  const reported = {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: {
      cached_tokens: count(read, 'cached_tokens'),
      audio_tokens: count(read, 'audio_tokens'),
      ...(cached['audio_tokens'] !== undefined && { cached_audio_tokens: count(cached, 'audio_tokens') }),
      image_tokens: count(read, 'image_tokens'),
      cached_image_tokens: count(cached, 'image_tokens'),
    },
    completion_tokens_details: { audio_tokens: count(wrote, 'audio_tokens') },
  };
  const cost = costOf(reported, price, undefined, undefined, parts);
  return { units: { prompt_tokens: input, completion_tokens: output }, cost, parts };
}

/** Cost of a transcription by the vendor's usage; undefined if it is missing or invalid. */
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

/** Tokens that a session's model has read and written by the end of a response: its input for the next one. */
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

/**
 * Audio bytes per token, a tenth of a second: for 16 bits at 24 kHz, and for G.711. Source:
 * https://platform.openai.com/docs/guides/realtime-costs
 */
const BYTES_PER_TOKEN = 4800;
const G711_BYTES_PER_TOKEN = 800;

/** Tokens of audio in base64. */
export function tokensOfSound(base64: unknown, isCompressed: boolean): number {
  const bytes = ((readString(base64)?.length ?? 0) * 3) / 4;
  return Math.ceil(bytes / (isCompressed ? G711_BYTES_PER_TOKEN : BYTES_PER_TOKEN));
}

/** Approximate characters of text per token. */
export const CHARACTERS_PER_TOKEN = 4;

/** Tokens of a new item, a session, or the options of a response, which the model reads. */
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
