import type { ChatChunk } from '../contract/chat.ts';
import { GatewayError } from '../contract/errors.ts';
import type { SseEvent, StreamDecoder } from '../contract/provider.ts';
import { createEventReader } from '../upstream/event-reader.ts';
import { NOT_YET, type Pull } from '../upstream/pull.ts';
import type { UpstreamResponse } from '../upstream/upstream.ts';
import { PageError } from './attempt.ts';
import { MAX_RESPONSE_BYTES, type OpenedChat, parseAnswer } from './chat.ts';
import { chunksOfResponse, hasContent } from './chat-chunks.ts';

/** The chunks that came of one read of the upstream. */
export type ChatBatch = readonly ChatChunk[];

/**
 * An upstream answer as chunks. `read` answers undefined at a complete end, and throws when the answer broke off, that is
 * ended without a terminal sign.
 */
export type ChatSource = Pull<ChatBatch>;

export async function createChatSource(opened: OpenedChat): Promise<ChatSource> {
  return isJson(opened.upstreamResponse) ? wholeAnswer(opened) : eventStream(opened);
}

/** Some vendors answer a stream request with one JSON object: an error, or the whole answer. */
function isJson(response: UpstreamResponse): boolean {
  return response.headers['content-type']?.startsWith('application/json') ?? false;
}

async function wholeAnswer({ upstreamResponse, codec, codecInfo }: OpenedChat): Promise<ChatSource> {
  const answer = parseAnswer(await upstreamResponse.readAll(MAX_RESPONSE_BYTES));
  let chunks: ChatBatch | undefined = chunksOfResponse(codec.response(answer, codecInfo));
  return {
    read() {
      const batch = chunks;
      chunks = undefined;
      return batch;
    },
    whenReadable: queueMicrotask,
  };
}

function eventStream({ upstreamResponse: { body, headers }, codec, codecInfo }: OpenedChat): ChatSource {
  const decoder = codec.stream(codecInfo);
  const reader = createEventReader();
  let hasEnded = false;
  let failure: { readonly thrown: unknown } | undefined;
  /** Whether something of the answer was read, so that no other target can answer any more. */
  let hasBegun = false;

  /** What came with an error is passed on before it; but while nothing was, another target may still answer. */
  const note = ({ chunks, error }: Decoded): readonly ChatChunk[] => {
    if (error !== undefined) {
      if (!hasBegun || chunks.length === 0) throw error;
      hasEnded = true;
      failure = { thrown: error };
    }
    hasBegun ||= chunks.some(hasContent);
    return chunks;
  };

  const finish = (): ChatBatch => {
    hasEnded = true;
    const decoded = note(decodeEvents(decoder, reader.end()));
    if (failure) return decoded;
    const { chunks, complete } = decoder.end();
    const isPage = !hasBegun && headers['content-type']?.startsWith('text/html');
    if (!complete) failure = { thrown: isPage ? new PageError() : brokenOff() };
    return [...decoded, ...chunks];
  };

  return {
    read() {
      for (;;) {
        if (hasEnded) {
          if (failure) throw failure.thrown;
          return undefined;
        }
        const bytes = body.read();
        if (bytes === NOT_YET) return NOT_YET;
        const batch = bytes ? note(decodeEvents(decoder, reader.push(bytes))) : finish();
        if (batch.length > 0) return batch;
      }
    },
    whenReadable: (listener) => body.whenReadable(listener),
  };
}

const NOTHING: readonly ChatChunk[] = Object.freeze([]);

interface Decoded {
  readonly chunks: readonly ChatChunk[];
  readonly error?: unknown;
}

function decodeEvents(decoder: StreamDecoder, events: readonly SseEvent[]): Decoded {
  const [only] = events;
  if (!only) return { chunks: NOTHING };
  if (events.length === 1) return { chunks: decoder.push(only) };
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
