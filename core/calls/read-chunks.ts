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

/** One provider's response in batches. Throws when it broke off. */
export async function* readChunks(opened: OpenedChat): AsyncGenerator<Batch, void, undefined> {
  if (isWhole(opened)) yield { chunks: await readWhole(opened), events: [] };
  else yield* readEventStream(opened);
}

/** Some vendors answer a stream request with one JSON object: an error, or the whole response. */
export function isWhole({ upstreamResponse: { headers } }: OpenedChat): boolean {
  return headers['content-type']?.startsWith('application/json') === true;
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
}: OpenedChat): AsyncGenerator<Batch, void, undefined> {
  const decoder = codec.stream(codecCall);
  const reader = createEventReader();
  // A property, since the compiler takes a variable that only `decode` sets for one that never changes.
  const progress = { hasBegun: false };
  /** What came with an error is passed on before it; but while nothing was, another target may still respond. */
  const decode = function* (events: readonly SseEvent[]): Generator<Batch, void, undefined> {
    const { chunks, read, error } = decodeEvents(decoder, events);
    const passed = passesOn ? events.slice(0, read) : [];
    if (error !== undefined && !progress.hasBegun) throw error;
    progress.hasBegun ||= chunks.some(hasContent);
    if (chunks.length > 0 || passed.length > 0) yield { chunks, events: passed };
    if (error !== undefined) throw error;
  };
  for await (const bytes of body) yield* decode(reader.push(bytes));
  yield* decode(reader.end());
  const { chunks, complete } = decoder.end();
  if (chunks.length > 0) yield { chunks, events: [] };
  if (complete) return;
  throw !progress.hasBegun && headers['content-type']?.startsWith('text/html') ? webPageError() : brokenOff();
}

function decodeEvents(
  decoder: StreamDecoder,
  events: readonly SseEvent[],
): { readonly chunks: readonly ChatChunk[]; readonly read: number; readonly error?: unknown } {
  const chunks: ChatChunk[] = [];
  let read = 0;
  try {
    for (const event of events) {
      chunks.push(...decoder.push(event));
      read += 1;
    }
    return { chunks, read };
  } catch (error) {
    return { chunks, read, error };
  }
}

function brokenOff(): GatewayError {
  return new GatewayError('provider_unavailable', 'The provider broke off before the end of its answer.');
}

/** A stream whose beginning was read already. */
export async function* startWith(
  first: readonly Batch[],
  rest: AsyncIterable<Batch>,
): AsyncGenerator<Batch, void, undefined> {
  yield* first;
  yield* rest;
}

/** How much batches hold, in chunks or events. */
export function sizeOf(batches: readonly Batch[]): number {
  return batches.reduce((sum, { chunks, events }) => sum + Math.max(chunks.length, events.length), 0);
}
