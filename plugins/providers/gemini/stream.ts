import {
  type ChatChunk,
  type ChatDelta,
  type ChunkHead,
  type CodecCall,
  chunkHead,
  deltaChunk,
  type JsonObject,
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
} from '../../../core/index.ts';
import {
  type CandidateState,
  createCandidateState,
  finishReason,
  geminiUsage,
  isBlocked,
  nativeFinish,
  type Pieces,
  readPieces,
} from './candidates.ts';
import { geminiFailure } from './errors.ts';
import { geminiLogprobs, unwrap } from './response.ts';
import { signatureField } from './signatures.ts';

/**
 * Decodes streamGenerateContent: every event is a whole response whose parts are the delta. A candidate's end and the
 * usage are told at the end of the stream, because some models repeat `STOP` in every event and usage is cumulative.
 */
export function geminiStream(call: CodecCall): StreamDecoder {
  let head: ChunkHead = chunkHead(call);
  let usage: Usage | undefined;
  const candidates = new Map<number, CandidateState>();

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
      usage = geminiUsage(response['usageMetadata']) ?? usage;
      const chunks = readArray(response['candidates']).flatMap((item, at) => read(readObject(item), at));
      if (candidates.size > 0 || !isBlocked(response)) return chunks;
      candidates.set(0, { ...createCandidateState(), reason: 'SAFETY' });
      return [openingChunk(head, 0)];
    },
    end() {
      const ends = [...candidates].flatMap(([index, { reason, calls }]) =>
        reason === undefined
          ? []
          : [withFinish(deltaChunk(head, {}, { index, finish: finishReason(reason, calls > 0) }), reason)],
      );
      const complete = candidates.size > 0 && ends.length === candidates.size;
      return { chunks: usage ? [...ends, usageChunk(head, usage)] : ends, complete };
    },
  };
}

/** The response in an event; undefined for an empty one. Throws {@link StreamFailure} for an error, or for what is no JSON. */
function readEvent({ data }: SseEvent): JsonObject | undefined {
  if (data.trim() === '' || data.trim() === '[DONE]') return undefined;
  const value = parseJson(data);
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

function withFinish(chunk: ChatChunk, reason: string): ChatChunk {
  return { ...chunk, choices: chunk.choices.map((choice) => ({ ...choice, ...nativeFinish(reason) })) };
}

/** What one event adds to a candidate: thinking, words, images, then calls, numbered from `firstCall`. */
function chunksOfPieces(
  head: ChunkHead,
  index: number,
  { reasoning, details, order, text, signature, images, calls }: Pieces,
  firstCall: number,
  logprobs: JsonObject | null,
): readonly ChatChunk[] {
  const chunkOf = (delta: ChatDelta): ChatChunk => deltaChunk(head, delta, { index });
  const hasText = text !== '' || signature !== undefined || logprobs !== null;
  const content = { content: text, ...signatureField(signature) };
  const words = [
    ...(hasText ? [deltaChunk(head, content, { index, logprobs })] : []),
    ...(images.length === 0 ? [] : [chunkOf({ images })]),
  ];
  const called = calls.map((toolCall, at) => chunkOf({ tool_calls: [{ index: firstCall + at, ...toolCall }] }));
  const isCallFirst = order.findIndex((name) => name.startsWith('tool:')) < order.indexOf('content:0');
  return [
    ...(reasoning === '' ? [] : [chunkOf({ reasoning_content: reasoning })]),
    ...(details.length === 0 ? [] : [chunkOf({ reasoning_details: details })]),
    ...(isCallFirst ? [...called, ...words] : [...words, ...called]),
  ];
}
