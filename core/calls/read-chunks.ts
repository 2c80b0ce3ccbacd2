import type { ChatChunk } from '../contract/chat.ts';
import { GatewayError } from '../contract/errors.ts';
import { readEvents } from '../upstream/event-reader.ts';
import type { UpstreamResponse } from '../upstream/upstream.ts';
import { PageError } from './attempt.ts';
import { chunksOfResponse, hasContent } from './chat-chunks.ts';
import { MAX_RESPONSE_BYTES, type OpenedChat, parseAnswer } from './open-chat.ts';

/** The chunks that came of one read of the upstream. */
export type ChatBatch = readonly ChatChunk[];

/**
 * Reads an upstream response as chunks. Ends when the response is complete, and throws when it broke off, that is ended
 * without a terminal sign. Leaving it early hangs up.
 */
export async function* readChunks({ upstreamResponse, codec, codecInfo }: OpenedChat): AsyncGenerator<ChatBatch> {
  if (isJson(upstreamResponse)) {
    const whole = parseAnswer(await upstreamResponse.readAll(MAX_RESPONSE_BYTES));
    yield chunksOfResponse(codec.response(whole, codecInfo));
    return;
  }
  const decoder = codec.stream(codecInfo);
  let hasBegun = false;
  for await (const events of readEvents(upstreamResponse.body)) {
    const chunks: ChatChunk[] = [];
    try {
      for (const event of events) chunks.push(...decoder.push(event));
    } catch (error) {
      // What came before the error is passed on. But while nothing of an answer was, another target may still give one.
      if (hasBegun && chunks.length > 0) yield chunks;
      throw error;
    }
    hasBegun ||= chunks.some(hasContent);
    if (chunks.length > 0) yield chunks;
  }
  const { chunks, complete } = decoder.end();
  if (chunks.length > 0) yield chunks;
  if (complete) return;
  throw !hasBegun && isPage(upstreamResponse) ? new PageError() : brokenOff();
}

/** Some vendors answer a stream request with one JSON object: an error, or the whole answer. */
function isJson({ headers }: UpstreamResponse): boolean {
  return headers['content-type']?.startsWith('application/json') ?? false;
}

function isPage({ headers }: UpstreamResponse): boolean {
  return headers['content-type']?.startsWith('text/html') ?? false;
}

function brokenOff(): GatewayError {
  return new GatewayError('provider_unavailable', 'The provider broke off before the end of its answer.');
}
