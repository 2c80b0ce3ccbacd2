import type {
  ChatDelta,
  ChunkChoice,
  FinishReason,
  NativeFinish,
  ReasoningDetail,
  ToolCall,
  ToolCallDelta,
} from '../../../core/index.ts';
import { hiddenReasoning, type Seal, signatureOf } from './signatures.ts';
import type { WrittenPart } from './types.ts';
import { finishOf, logprobsOf } from './write.ts';
import { callPart, mediaParts, textPart, thoughtPart } from './write-parts.ts';

/** Writes one candidate of a stream. */
export interface CandidateWriter {
  /** The candidate with what a chunk adds to it: one, or none. */
  push(choice: ChunkChoice): readonly object[];
  /** The candidate with what was held back, and how it ended. */
  end(): object;
}

interface OpenCall {
  id: string;
  name: string;
  text: string;
  extra: ToolCallDelta;
  /** Nothing is added to a call that went out. */
  readonly isWritten: boolean;
}

/** Calls are written whole: this format has no pieces of arguments. They go out in their order, before what comes after them. */
export function createCandidateWriter(index: number, seal: Seal, withThoughts: boolean): CandidateWriter {
  const calls = new Map<number, OpenCall>();
  let reason: FinishReason = 'stop';
  let finish: NativeFinish | undefined;
  let isBroken = false;
  /** Whether the thinking of this block was shown already, so that its detail brings the signature only. */
  let isShown = false;
  /** Reasoning that waits for the call it led to. */
  const hidden: ReasoningDetail[] = [];

  /** Calls that are whole, up to the first that is not; at the end all, where what is not whole never will be. */
  const flush = (isEnd: boolean): readonly WrittenPart[] => {
    const parts: WrittenPart[] = [];
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
  const thoughtsOf = (delta: ChatDelta): readonly WrittenPart[] => {
    if (!withThoughts) {
      hidden.push(...hiddenReasoning(delta.reasoning_details));
      return [];
    }
    const shown: WrittenPart[] = delta.reasoning_content ? [{ text: delta.reasoning_content, thought: true }] : [];
    if (shown.length > 0) isShown = true;
    const details = (delta.reasoning_details ?? []).flatMap((detail) => {
      const part = thoughtPart(detail, isShown ? '' : (detail.text ?? ''), seal);
      isShown = false;
      return part.text !== '' || part.thoughtSignature !== undefined ? [part] : [];
    });
    return [...shown, ...details];
  };

  return {
    push({ delta, finish_reason, finish: told, logprobs }) {
      if (finish_reason) reason = finish_reason;
      if (told) finish = told;
      const others = [...thoughtsOf(delta), ...wordsOf(delta), ...mediaParts(delta)];
      const parts = others.length > 0 ? [...flush(false), ...others] : [];
      for (const call of delta.tool_calls ?? []) {
        if (!calls.has(call.index)) parts.push(...flush(false));
        addCall(calls, call);
      }
      if (finish_reason) parts.push(...flush(true));
      const result = logprobsOf(logprobs);
      if (parts.length === 0 && !result) return [];
      return [{ content: { role: 'model', parts }, index, ...(result && { logprobsResult: result }) }];
    },
    end() {
      const parts = flush(true);
      return {
        content: { role: 'model', parts: parts.length === 0 ? [textPart('')] : parts },
        finishReason: finishOf(reason, finish, isBroken),
        index,
      };
    },
  };
}

function wordsOf(delta: ChatDelta): readonly WrittenPart[] {
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
