import {
  type ChatChunk,
  type ChatDelta,
  type ChunkChoice,
  type DialectContext,
  type DialectStream,
  type FinishReason,
  type JsonObject,
  type NativeFinish,
  type ReasoningDetail,
  type ToolCall,
  type ToolCallDelta,
  writeJson,
} from '../../../contract/index.ts';
import { geminiError } from './errors.ts';
import { writeGrounding } from './grounding.ts';
import { hiddenReasoning, type Seal, signatureOf } from './signatures.ts';
import type { GeminiBody, GeminiPart } from './types.ts';
import {
  callPart,
  finishOf,
  logprobsOf,
  mediaParts,
  textPart,
  thoughtPart,
  usageOf,
  wantsThoughts,
} from './write-response.ts';

/**
 * Writes a stream as Google's servers do: every element is a full response whose parts are the delta. The last
 * element, held until the end, has the finish reasons and the usage.
 */
export function streamGemini(context: DialectContext<GeminiBody>): DialectStream {
  const frames = framesOf(context);
  const seal: Seal = (data) => context.seal(data);
  const withThoughts = wantsThoughts(context);
  const candidates = new Map<number, CandidateWriter>();
  let model = context.request.model;
  let usage: JsonObject | undefined;

  const writerOf = (index: number): CandidateWriter => {
    const writer = candidates.get(index) ?? createCandidateWriter(index, seal, withThoughts);
    candidates.set(index, writer);
    return writer;
  };
  const responseOf = (written: readonly object[]): object => ({
    candidates: written,
    ...(usage && { usageMetadata: usage }),
    modelVersion: model,
    responseId: context.id,
  });
  const pushChoice = (choice: ChunkChoice): readonly WrittenCandidate[] => writerOf(choice.index).push(choice);
  /** One element for all candidates, after one for each call but the last: SDKs read only the last call of an element. */
  const writeAll = (written: readonly WrittenCandidate[]): string => {
    const parts = written.map(splitByCall);
    const before = parts.flatMap((pieces) => pieces.slice(0, -1)).map((piece) => [piece]);
    const elements = [...before, parts.flatMap((pieces) => pieces.slice(-1))];
    return elements.map((element) => frames.frame(responseOf(element))).join('');
  };

  return {
    contentType: frames.contentType,
    keepAlive: frames.keepAlive,
    push(chunk: ChatChunk) {
      model = chunk.model;
      if (chunk.usage) usage = usageOf(chunk.usage);
      const written = chunk.choices.flatMap(pushChoice);
      return written.length === 0 ? '' : writeAll(written);
    },
    end() {
      const last = [...candidates.values()].map((writer) => writer.end());
      return writeAll(last) + frames.end();
    },
    fail: (error, requestId) => frames.frame(geminiError(error, requestId).body) + frames.end(),
  };
}

/** Writes one candidate of a stream. */
export interface CandidateWriter {
  /** Returns the candidate with the delta of a chunk, if any. */
  push(choice: ChunkChoice): readonly WrittenCandidate[];
  /** Returns the candidate with the remaining parts and its finish reason. */
  end(): WrittenCandidate;
}

/** Candidate of one element of a stream. */
interface WrittenCandidate {
  readonly content: { readonly role: 'model'; readonly parts: readonly GeminiPart[] };
  readonly index: number;
}

function callsIn(parts: readonly GeminiPart[]): number {
  return parts.filter(({ functionCall }) => functionCall !== undefined).length;
}

/** Candidates with at most one call each. The last one has the end of the candidate. */
function splitByCall(candidate: WrittenCandidate): readonly WrittenCandidate[] {
  const { content, index } = candidate;
  if (callsIn(content.parts) <= 1) return [candidate];
  const groups: GeminiPart[][] = [];
  for (const part of content.parts) {
    const group = groups.at(-1);
    if (group && (part.functionCall === undefined || callsIn(group) === 0)) group.push(part);
    else groups.push([part]);
  }
  return groups.map((parts, at) => {
    const ownContent = { ...content, parts };
    return at === groups.length - 1 ? { ...candidate, content: ownContent } : { content: ownContent, index };
  });
}

interface OpenCall {
  id: string;
  name: string;
  text: string;
  extra: ToolCallDelta;
  /** A sent call does not change any more. */
  readonly isWritten: boolean;
}

/** Writes complete calls only: this format has no partial arguments. Calls are sent in order, before later content. */
export function createCandidateWriter(index: number, seal: Seal, withThoughts: boolean): CandidateWriter {
  const calls = new Map<number, OpenCall>();
  let reason: FinishReason = 'stop';
  let finish: NativeFinish | undefined;
  let isBroken = false;
  /** Reasoning that waits for the call it led to. */
  const hidden: ReasoningDetail[] = [];
  const annotations: unknown[] = [];
  let text = '';
  const thoughtsOf = createThoughtWriter(seal);

  /** Returns complete calls up to the first incomplete one. At the end, returns all: no more arguments will arrive. */
  const flush = (isEnd: boolean): readonly GeminiPart[] => {
    const parts: GeminiPart[] = [];
    for (const [at, call] of [...calls].sort(([a], [b]) => a - b)) {
      if (call.isWritten) continue;
      if (!isEnd && !call.text.trimEnd().endsWith('}')) break;
      const part = callPart(wholeCall(call), seal, hidden[0]);
      if (!part && !isEnd) break;
      if (part) {
        hidden.shift();
        parts.push(part);
      } else isBroken = true;
      calls.set(at, { ...call, isWritten: true });
    }
    return parts;
  };

  return {
    push({ delta, finish_reason, finish: native, logprobs }) {
      if (finish_reason) reason = finish_reason;
      if (native) finish = native;
      text += delta.content ?? '';
      annotations.push(...(delta.annotations ?? []));
      if (!withThoughts) hidden.push(...hiddenReasoning(delta.reasoning_details));
      const thoughts = withThoughts ? thoughtsOf(delta) : [];
      const others = [...thoughts, ...wordsOf(delta), ...mediaParts(delta)];
      const parts = others.length > 0 ? [...flush(false), ...others] : [];
      for (const call of delta.tool_calls ?? []) {
        if (!calls.has(call.index)) parts.push(...flush(false));
        addCall(calls, call);
      }
      const result = logprobsOf(logprobs);
      if (parts.length === 0 && !result) return [];
      return [{ content: { role: 'model', parts }, index, ...(result && { logprobsResult: result }) }];
    },
    end() {
      const parts = flush(true);
      const grounding = writeGrounding(annotations, text);
      return {
        content: { role: 'model', parts: parts.length === 0 ? [textPart('')] : parts },
        finishReason: finishOf(reason, finish, isBroken),
        index,
        ...(grounding && { groundingMetadata: grounding }),
      };
    },
  };
}

/** Writes the thinking of one candidate: its text first, then the data that its vendor requires back. */
function createThoughtWriter(seal: Seal): (delta: ChatDelta) => readonly GeminiPart[] {
  /** True once the thinking of this block was sent, so that its detail adds only the signature. */
  let isShown = false;
  return (delta) => {
    const shown: GeminiPart[] = delta.reasoning_content ? [{ text: delta.reasoning_content, thought: true }] : [];
    if (shown.length > 0) isShown = true;
    const details = (delta.reasoning_details ?? []).flatMap((detail) => {
      const part = thoughtPart(detail, isShown ? '' : (detail.text ?? ''), seal);
      isShown = false;
      return part.text !== '' || part.thoughtSignature !== undefined ? [part] : [];
    });
    return [...shown, ...details];
  };
}

function wordsOf(delta: ChatDelta): readonly GeminiPart[] {
  const text = `${delta.content ?? ''}${delta.refusal ?? ''}`;
  const signature = signatureOf(delta);
  return text === '' && signature === undefined ? [] : [textPart(text, signature)];
}

function addCall(calls: Map<number, OpenCall>, delta: ToolCallDelta): void {
  const known = calls.get(delta.index);
  if (known?.isWritten) return;
  const call = known ?? { id: '', name: '', text: '', extra: delta, isWritten: false };
  calls.set(delta.index, call);
  call.id ||= delta.id ?? '';
  call.name ||= delta.function?.name ?? '';
  call.text += delta.function?.arguments ?? '';
  if (delta['extra_content'] !== undefined) call.extra = delta;
}

function wholeCall({ id, name, text, extra }: OpenCall): ToolCall {
  const { extra_content } = extra;
  return {
    id,
    type: 'function',
    function: { name, arguments: text },
    ...(extra_content !== undefined && { extra_content }),
  };
}

/** Framing of the responses of one stream. */
export interface Frames {
  readonly contentType: string;
  readonly keepAlive: string;
  frame(value: unknown): string;
  /** Terminator of the stream. */
  end(): string;
}

/** Server-sent events with `alt=sse`; otherwise one JSON array, sent element by element. */
export function framesOf({ input: { query } }: DialectContext<GeminiBody>): Frames {
  return query['alt'] === 'sse' ? sseFrames() : arrayFrames();
}

function sseFrames(): Frames {
  return {
    contentType: 'text/event-stream; charset=utf-8',
    keepAlive: SSE_KEEP_ALIVE,
    frame: (value) => `data: ${writeJson(value)}\n\n`,
    end: () => '',
  };
}

export const SSE_KEEP_ALIVE = ': keep-alive\n\n';

/** White space is allowed between elements, so a line break keeps the connection alive. */
function arrayFrames(): Frames {
  let isOpen = false;
  return {
    contentType: 'application/json; charset=utf-8',
    keepAlive: '\n',
    frame(value) {
      const lead = isOpen ? ',\n' : '[';
      isOpen = true;
      return lead + writeJson(value);
    },
    end: () => (isOpen ? ']\n' : '[]\n'),
  };
}
