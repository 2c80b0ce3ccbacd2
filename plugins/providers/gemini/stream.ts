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
import { finishReason, geminiUsage, isBlocked, readEnd, readPieces } from './candidates.ts';
import { geminiFailure } from './errors.ts';
import { geminiLogprobs } from './logprobs.ts';
import { unwrap } from './response.ts';
import { signatureField } from './signatures.ts';

interface CandidateState {
  calls: number;
  reason: string | undefined;
}

/**
 * Decodes streamGenerateContent: every event is a whole response whose parts are the delta. A candidate's end and the
 * usage are told at the end of the stream, because some models repeat `STOP` in every event and usage is cumulative.
 */
export function geminiStream(call: CodecCall): StreamDecoder {
  let head: ChunkHead = chunkHead(call);
  let usage: Usage | undefined;
  const candidates = new Map<number, CandidateState>();

  const open = (index: number): { state: CandidateState; chunks: ChatChunk[] } => {
    const known = candidates.get(index);
    if (known) return { state: known, chunks: [] };
    const state = { calls: 0, reason: undefined };
    candidates.set(index, state);
    return { state, chunks: [deltaChunk(head, { role: 'assistant', content: '', refusal: null }, { index })] };
  };

  const read = (candidate: JsonObject, position: number): readonly ChatChunk[] => {
    const index = readCount(candidate['index']) ?? position;
    const { state, chunks } = open(index);
    const pieces = readPieces(candidate, call, index, state.calls);
    const logprobs = geminiLogprobs(candidate);
    const add = (delta: ChatDelta): number => chunks.push(deltaChunk(head, delta, { index, logprobs: null }));
    if (pieces.reasoning !== '') add({ reasoning_content: pieces.reasoning });
    if (pieces.text !== '' || pieces.signature || logprobs) {
      const delta = { content: pieces.text, ...signatureField(pieces.signature) };
      chunks.push(deltaChunk(head, delta, { index, logprobs }));
    }
    if (pieces.images.length > 0) add({ images: pieces.images });
    for (const toolCall of pieces.calls) {
      add({ tool_calls: [{ index: state.calls, ...toolCall }] });
      state.calls += 1;
    }
    state.reason = readEnd(candidate) ?? state.reason;
    return chunks;
  };

  return {
    push(event: SseEvent) {
      if (event.data.trim() === '' || event.data.trim() === '[DONE]') return [];
      const value = parseJson(event.data);
      if (value === undefined) throw brokenEvent();
      const answer = unwrap(value);
      if (answer['error']) throw new StreamFailure(geminiFailure(200, answer, {}));
      if (candidates.size === 0) {
        head = {
          ...head,
          id: readString(answer['responseId']) ?? head.id,
          model: readString(answer['modelVersion']) ?? head.model,
        };
      }
      usage = geminiUsage(answer['usageMetadata']) ?? usage;
      const chunks = readArray(answer['candidates']).flatMap((item, at) => read(readObject(item), at));
      if (candidates.size > 0 || !isBlocked(answer)) return chunks;
      const opened = open(0);
      opened.state.reason = 'SAFETY';
      return opened.chunks;
    },
    end() {
      const ends = [...candidates].flatMap(([index, { reason, calls }]) =>
        reason === undefined ? [] : [deltaChunk(head, {}, { index, finish: finishReason(reason, calls > 0) })],
      );
      const complete = candidates.size > 0 && ends.length === candidates.size;
      return { chunks: usage ? [...ends, usageChunk(head, usage)] : ends, complete };
    },
  };
}

function brokenEvent(): StreamFailure {
  return new StreamFailure({ class: 'upstream_error', message: 'The provider sent an event that is not JSON.' });
}
