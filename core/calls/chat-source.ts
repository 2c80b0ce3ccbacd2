import type { ChatChunk } from '../contract/chat.ts';
import { GatewayError } from '../contract/errors.ts';
import type { SseEvent, StreamDecoder } from '../contract/provider.ts';
import { createEventReader } from '../upstream/event-reader.ts';
import { NOT_YET, type Pull } from '../upstream/pull.ts';
import type { UpstreamResponse } from '../upstream/upstream.ts';
import { PageError } from './attempt.ts';
import { MAX_RESPONSE_BYTES, type OpenedChat, parseAnswer } from './chat.ts';
import { chunksOfResponse, hasContent, isFinished } from './chat-chunks.ts';
import { createExactTextReader, type ExactText, type ExactTextReader } from './exact-text.ts';

/** What came of one read of the upstream: chunks, or the bytes of events that need no look. */
export type ChatBatch = readonly ChatChunk[] | ExactText;

/**
 * An upstream answer as chunks. `read` answers undefined at a complete end, and throws when the answer broke off, that is
 * ended without a terminal sign.
 */
export interface ChatSource extends Pull<ChatBatch> {
  /** From here on events of plain text may come as bytes, where they are like `first` and the vendor's frames are ours. */
  passBytes(first: ChatChunk): void;
}

const LF = 0x0a;
const CR = 0x0d;
const EMPTY = Buffer.alloc(0);

/** Of the beginning of an event, in bytes; the reader has its own bound for longer ones. */
const MAX_KEPT = 64 * 1024;

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
    passBytes() {},
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
  const isExact = codec.identity?.(codecInfo) ?? false;
  let readText: ExactTextReader | undefined;
  let hasEnded = false;
  let failure: { readonly thrown: unknown } | undefined;
  /** Whether something of the answer was read, so that no other target can answer any more. */
  let hasBegun = false;
  /** Whether the decoder has seen whole events only, so that the next byte begins one. */
  let isBetween = false;
  /** The beginning of an event, kept here while whole ones may pass as they are. */
  let rest: Buffer = EMPTY;

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

  const decode = (bytes: Buffer): readonly ChatChunk[] => {
    const chunks = note(decodeEvents(decoder, reader.push(bytes)));
    isBetween = endsEvent(bytes);
    // What follows a reason to stop is the decoder's to judge.
    if (readText && chunks.some(isFinished)) readText = undefined;
    return chunks;
  };

  const take = (bytes: Buffer): ChatBatch => {
    const all = rest.length > 0 ? Buffer.concat([rest, bytes]) : bytes;
    rest = EMPTY;
    if (!readText || !isBetween) return decode(all);
    if (endsEvent(all)) return readText(all) ?? decode(all);
    const end = all.lastIndexOf('\n\n') + 2;
    // Another way to end lines, or an event too long to be text.
    if (end < 2) {
      if (all.includes(CR) || all.length > MAX_KEPT) return decode(all);
      rest = all;
      return NOTHING;
    }
    rest = all.subarray(end);
    const whole = all.subarray(0, end);
    return readText(whole) ?? decode(whole);
  };

  const finish = (): ChatBatch => {
    hasEnded = true;
    const decoded = note(decodeEvents(decoder, [...reader.push(rest), ...reader.end()]));
    if (failure) return decoded;
    const { chunks, complete } = decoder.end();
    const isPage = !hasBegun && headers['content-type']?.startsWith('text/html');
    if (!complete) failure = { thrown: isPage ? new PageError() : brokenOff() };
    return [...decoded, ...chunks];
  };

  return {
    passBytes(first) {
      if (isExact) readText = createExactTextReader(first);
    },
    read() {
      for (;;) {
        if (hasEnded) {
          if (failure) throw failure.thrown;
          return undefined;
        }
        const bytes = body.read();
        if (bytes === NOT_YET) return NOT_YET;
        const batch = bytes ? take(bytes) : finish();
        if (batch.length > 0) return batch;
      }
    },
    whenReadable: (listener) => body.whenReadable(listener),
  };
}

function endsEvent(bytes: Buffer): boolean {
  return bytes[bytes.length - 1] === LF && bytes[bytes.length - 2] === LF;
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
