import {
  type ChatChunk,
  type ChatDelta,
  type ChunkHead,
  type CodecCall,
  chunkHead,
  deltaChunk,
  type JsonObject,
  laterUsage,
  parseExact,
  parseJson,
  readArray,
  readCount,
  readObject,
  readString,
  type SseEvent,
  type StreamDecoder,
  StreamFailure,
  type Usage,
  usageChunk,
} from '../../../contract/index.ts';
import { geminiFailure } from './errors.ts';
import {
  type CandidateState,
  createCandidateState,
  geminiLogprobs,
  geminiUsage,
  isBlocked,
  type Pieces,
  readEnd,
  readPieces,
  unwrap,
} from './read-response.ts';
import { signatureField } from './signatures.ts';

/**
 * Decodes streamGenerateContent: every event is a full response whose parts are the delta. Finish reasons and usage
 * are emitted at the end of the stream, because some models repeat `STOP` in every event and usage is cumulative. A
 * failure of the model also throws {@link StreamFailure} there, after its output was emitted.
 */
export function geminiStream(call: CodecCall): StreamDecoder {
  let head: ChunkHead = chunkHead(call);
  let usage: Usage | undefined;
  const candidates = new Map<number, CandidateState>();
  let isBlockedPrompt = false;

  const read = (candidate: JsonObject, position: number): readonly ChatChunk[] => {
    const index = readCount(candidate['index']) ?? position;
    const known = candidates.get(index);
    const state = known ?? createCandidateState();
    candidates.set(index, state);
    const opening = known ? [] : [openingChunk(head, index)];
    const firstCall = state.calls;
    const pieces = readPieces(candidate, call, index, state);
    return [...opening, ...chunksOfPieces(head, index, pieces, firstCall, geminiLogprobs(candidate))];
  };

  return {
    push(event: SseEvent) {
      const response = readEvent(event);
      if (!response) return [];
      if (candidates.size === 0) head = readHead(response, head);
      const counted = geminiUsage(response);
      if (counted) usage = laterUsage(usage, counted);
      const chunks = readArray(response['candidates']).flatMap((item, at) => read(readObject(item), at));
      if (candidates.size > 0 || !isBlocked(response)) return chunks;
      isBlockedPrompt = true;
      candidates.set(0, { ...createCandidateState(), reason: 'SAFETY' });
      return [openingChunk(head, 0)];
    },
    end() {
      const isDelivered = (): boolean => [...candidates.values()].some(({ hasContent }) => hasContent);
      const ends = [...candidates].flatMap(([index, state]) =>
        state.reason === undefined ? [] : [endingChunk(head, index, readEnd(state.reason, state, isDelivered))],
      );
      const complete = candidates.size > 0 && ends.length === candidates.size;
      return { chunks: usage ? [...ends, usageChunk(head, usage)] : ends, complete };
    },
    // Some models repeat `STOP` in every event, so a finish reason does not mark the end, even with usage.
    progress() {
      if (candidates.size === 0 || candidates.size < (isBlockedPrompt ? 1 : (call.request?.n ?? 1))) return 'open';
      for (const { reason } of candidates.values()) if (reason === undefined) return 'open';
      return usage ? 'ending' : 'finished';
    },
  };
}

/** Parses a stream element; numbers in the arguments of a call keep their text. */
export function parseElement(data: string): unknown {
  return data.includes('"args"') || data.includes('"partialArgs"') ? parseExact(data) : parseJson(data);
}

/**
 * Returns the response in an event; undefined for an empty one. Throws {@link StreamFailure} for an error or invalid
 * JSON.
 */
function readEvent({ data }: SseEvent): JsonObject | undefined {
  if (data.trim() === '' || data.trim() === '[DONE]') return undefined;
  const value = parseElement(data);
  if (value === undefined) {
    throw new StreamFailure({ class: 'upstream_error', message: 'The provider sent an event that is not JSON.' });
  }
  const response = unwrap(value);
  if (response['error']) throw new StreamFailure(geminiFailure(200, response, {}));
  return response;
}

function readHead(response: JsonObject, head: ChunkHead): ChunkHead {
  return {
    ...head,
    id: readString(response['responseId']) ?? head.id,
    model: readString(response['modelVersion']) ?? head.model,
  };
}

function openingChunk(head: ChunkHead, index: number): ChatChunk {
  return deltaChunk(head, { role: 'assistant', content: '', refusal: null }, { index });
}

function endingChunk(head: ChunkHead, index: number, end: ReturnType<typeof readEnd>): ChatChunk {
  const chunk = deltaChunk(head, {}, { index, finish: end.finish_reason });
  return { ...chunk, choices: chunk.choices.map((choice) => ({ ...choice, ...end })) };
}

/** Chunks for one event of a candidate: thinking, text, images, then calls, numbered from `firstCall`. */
function chunksOfPieces(
  head: ChunkHead,
  index: number,
  { reasoning, details, order, text, signature, images, calls, annotations }: Pieces,
  firstCall: number,
  logprobs: JsonObject | null,
): readonly ChatChunk[] {
  const chunkOf = (delta: ChatDelta): ChatChunk => deltaChunk(head, delta, { index });
  const hasText = text !== '' || signature !== undefined || logprobs !== null;
  const content = { content: text, ...signatureField(signature) };
  const words = [
    ...(hasText ? [deltaChunk(head, content, { index, logprobs })] : []),
    ...(images.length === 0 ? [] : [chunkOf({ images })]),
    ...(annotations.length === 0 ? [] : [chunkOf({ annotations })]),
  ];
  const called = calls.map((toolCall, at) => chunkOf({ tool_calls: [{ index: firstCall + at, ...toolCall }] }));
  const isCallFirst = order.findIndex((name) => name.startsWith('tool:')) < order.indexOf('content:0');
  return [
    ...(reasoning === '' ? [] : [chunkOf({ reasoning_content: reasoning })]),
    ...(details.length === 0 ? [] : [chunkOf({ reasoning_details: details })]),
    ...(isCallFirst ? [...called, ...words] : [...words, ...called]),
  ];
}
