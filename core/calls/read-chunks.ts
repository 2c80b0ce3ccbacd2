import type { ChatChunk } from '../contract/chat.ts';
import { GatewayError } from '../contract/errors.ts';
import type { SseEvent, StreamDecoder } from '../contract/provider.ts';
import { createEventReader } from '../upstream/event-reader.ts';
import { decodeResponse, MAX_RESPONSE_BYTES, parseResponse, webPageError } from './attempt.ts';
import type { OpenedChat } from './chat.ts';
import { chunksOfResponse, hasContent } from './chat-chunks.ts';

/** Chunks in batches, as they came. */
export type Chunks = AsyncGenerator<readonly ChatChunk[], void, undefined>;

/** The chunks of one provider's response, in batches: what came with one read of its socket. Throws when it broke off. */
export function readChunks(opened: OpenedChat): Chunks {
  // Some vendors answer a stream request with one JSON object: an error, or the whole response.
  const isWhole = opened.upstreamResponse.headers['content-type']?.startsWith('application/json');
  return isWhole ? readWholeStream(opened) : readEventStream(opened);
}

async function* readWholeStream(opened: OpenedChat): Chunks {
  yield await readWhole(opened);
}

async function readWhole({ upstreamResponse, codec, codecCall, call }: OpenedChat): Promise<readonly ChatChunk[]> {
  const bytes = await upstreamResponse.readAll(MAX_RESPONSE_BYTES);
  return chunksOfResponse(decodeResponse(call, () => codec.response(parseResponse(bytes), codecCall)));
}

async function* readEventStream({ upstreamResponse: { body, headers }, codec, codecCall }: OpenedChat): Chunks {
  const decoder = codec.stream(codecCall);
  const reader = createEventReader();
  let hasBegun = false;
  /** What came with an error is passed on before it; but while nothing was, another target may still respond. */
  const decode = (events: readonly SseEvent[]): Decoded => {
    const decoded = decodeEvents(decoder, events);
    if (decoded.error !== undefined && !hasBegun) throw decoded.error;
    hasBegun = hasBegun || decoded.chunks.some(hasContent);
    return decoded;
  };
  for await (const bytes of body) {
    const { chunks, error } = decode(reader.push(bytes));
    if (chunks.length > 0) yield chunks;
    if (error !== undefined) throw error;
  }
  const rest = decode(reader.end());
  if (rest.chunks.length > 0) yield rest.chunks;
  if (rest.error !== undefined) throw rest.error;
  const { chunks, complete } = decoder.end();
  if (chunks.length > 0) yield chunks;
  if (complete) return;
  throw !hasBegun && headers['content-type']?.startsWith('text/html') ? webPageError() : brokenOff();
}

interface Decoded {
  readonly chunks: readonly ChatChunk[];
  readonly error?: unknown;
}

function decodeEvents(decoder: StreamDecoder, events: readonly SseEvent[]): Decoded {
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
