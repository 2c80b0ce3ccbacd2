import type { ChatChunk } from '../contract/chat.ts';
import { GatewayError } from '../contract/errors.ts';
import type { SseEvent, StreamDecoder } from '../contract/provider.ts';
import { createEventReader } from '../upstream/event-reader.ts';
import { decodeResponse, MAX_RESPONSE_BYTES, parseResponse } from './attempt.ts';
import type { OpenedChat } from './chat.ts';
import { chunksOfResponse, hasContent } from './chat-chunks.ts';
import { webPageError } from './error-marks.ts';

/** What came with one read of a provider's socket. */
export interface Batch {
  readonly chunks: readonly ChatChunk[];
  /** The vendor's events that the chunks were read from, where the caller gets those. */
  readonly events: readonly SseEvent[];
}

export type Batches = AsyncGenerator<Batch, void, undefined>;

const NO_EVENTS: readonly SseEvent[] = Object.freeze([]);

/** Chunks that were read from no events that the caller gets. */
export function batchOf(chunks: readonly ChatChunk[]): Batch {
  return { chunks, events: NO_EVENTS };
}

/** One provider's response in batches. Throws when it broke off. */
export function readChunks(opened: OpenedChat): Batches {
  return isWhole(opened) ? readWholeStream(opened) : readEventStream(opened);
}

/** Some vendors answer a stream request with one JSON object: an error, or the whole response. */
export function isWhole({ upstreamResponse: { headers } }: OpenedChat): boolean {
  return headers['content-type']?.startsWith('application/json') === true;
}

async function* readWholeStream(opened: OpenedChat): Batches {
  yield batchOf(await readWhole(opened));
}

async function readWhole({ upstreamResponse, codec, codecCall, call }: OpenedChat): Promise<readonly ChatChunk[]> {
  const bytes = await upstreamResponse.readAll(MAX_RESPONSE_BYTES);
  return chunksOfResponse(decodeResponse(call, () => codec.response(parseResponse(bytes), codecCall)));
}

async function* readEventStream({
  upstreamResponse: { body, headers },
  codec,
  codecCall,
  passesOn,
}: OpenedChat): Batches {
  const decoder = codec.stream(codecCall);
  const reader = createEventReader();
  // A property, since the compiler takes a variable that only `decode` sets for one that never changes.
  const progress = { hasBegun: false };
  /** What came with an error is passed on before it; but while nothing was, another target may still respond. */
  const decode = (events: readonly SseEvent[]): Decoded => {
    const decoded = decodeEvents(decoder, events, passesOn);
    if (decoded.error !== undefined && !progress.hasBegun) throw decoded.error;
    progress.hasBegun ||= decoded.chunks.some(hasContent);
    return decoded;
  };
  for await (const bytes of body) {
    const batch = decode(reader.push(bytes));
    if (batch.chunks.length > 0 || batch.events.length > 0) yield batch;
    if (batch.error !== undefined) throw batch.error;
  }
  const rest = decode(reader.end());
  if (rest.chunks.length > 0 || rest.events.length > 0) yield rest;
  if (rest.error !== undefined) throw rest.error;
  const { chunks, complete } = decoder.end();
  if (chunks.length > 0) yield batchOf(chunks);
  if (complete) return;
  throw !progress.hasBegun && headers['content-type']?.startsWith('text/html') ? webPageError() : brokenOff();
}

interface Decoded extends Batch {
  readonly error?: unknown;
}

function decodeEvents(decoder: StreamDecoder, events: readonly SseEvent[], passesOn: boolean): Decoded {
  const chunks: ChatChunk[] = [];
  const passed: SseEvent[] = [];
  try {
    for (const event of events) {
      chunks.push(...decoder.push(event));
      if (passesOn) passed.push(event);
    }
    return { chunks, events: passed };
  } catch (error) {
    return { chunks, events: passed, error };
  }
}

function brokenOff(): GatewayError {
  return new GatewayError('provider_unavailable', 'The provider broke off before the end of its answer.');
}
