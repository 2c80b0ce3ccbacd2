import type { ChatChunk } from '../contract/chat.ts';
import { GatewayError } from '../contract/errors.ts';
import type { SseEvent, StreamDecoder } from '../contract/provider.ts';
import { createEventReader } from '../upstream/event-reader.ts';
import { decodeResponse, MAX_RESPONSE_BYTES, parseResponse, webPageError } from './attempt.ts';
import type { OpenedChat } from './chat.ts';
import { chunksOfResponse, hasContent } from './chat-chunks.ts';

/** The chunks of one provider's response, in batches: what came with one read of its socket. Throws when it broke off. */
export async function* readChunks(opened: OpenedChat): AsyncGenerator<readonly ChatChunk[], void, undefined> {
  // Some vendors answer a stream request with one JSON object: an error, or the whole response.
  if (opened.upstreamResponse.headers['content-type']?.startsWith('application/json')) yield await readWhole(opened);
  else yield* readEventStream(opened);
}

async function readWhole({ upstreamResponse, codec, codecCall, call }: OpenedChat): Promise<readonly ChatChunk[]> {
  const bytes = await upstreamResponse.readAll(MAX_RESPONSE_BYTES);
  return chunksOfResponse(decodeResponse(call, () => codec.response(parseResponse(bytes), codecCall)));
}

async function* readEventStream({
  upstreamResponse: { body, headers },
  codec,
  codecCall,
}: OpenedChat): AsyncGenerator<readonly ChatChunk[], void, undefined> {
  const decoder = codec.stream(codecCall);
  const reader = createEventReader();
  // A property, since the compiler takes a variable that only `decode` sets for one that never changes.
  const progress = { hasBegun: false };
  /** What came with an error is passed on before it; but while nothing was, another target may still respond. */
  const decode = function* (events: readonly SseEvent[]): Generator<readonly ChatChunk[], void, undefined> {
    const { chunks, error } = decodeEvents(decoder, events);
    if (error !== undefined && !progress.hasBegun) throw error;
    progress.hasBegun ||= chunks.some(hasContent);
    if (chunks.length > 0) yield chunks;
    if (error !== undefined) throw error;
  };
  for await (const bytes of body) yield* decode(reader.push(bytes));
  yield* decode(reader.end());
  const { chunks, complete } = decoder.end();
  if (chunks.length > 0) yield chunks;
  if (complete) return;
  throw !progress.hasBegun && headers['content-type']?.startsWith('text/html') ? webPageError() : brokenOff();
}

function decodeEvents(
  decoder: StreamDecoder,
  events: readonly SseEvent[],
): { readonly chunks: readonly ChatChunk[]; readonly error?: unknown } {
  const chunks: ChatChunk[] = [];
  try {
    for (const event of events) chunks.push(...decoder.push(event));
    return { chunks };
  } catch (error) {
    return { chunks, error };
  }
}

function brokenOff(): GatewayError {
  return new GatewayError('provider_unavailable', 'The provider broke off before the end of its answer.');
}
