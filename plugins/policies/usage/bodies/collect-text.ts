import type { ChatChunk } from '../../../../core/index.ts';

/** One choice of a stream, as far as it has come. */
interface CollectedChoice {
  readonly index: number;
  content: string;
  reasoning_content: string;
  readonly tool_calls: { name: string; arguments: string }[];
  finish_reason: string | null;
}

/** Puts together what a stream says, also of one that breaks off. */
export interface TextCollector {
  push(chunk: ChatChunk): void;
  /** Undefined when nothing came. */
  response(): object | undefined;
}

/** How many choices and tool calls are told apart. */
const MAX_PARTS = 128;

/** Collects at most so many characters; what comes after them is left out. */
export function createTextCollector(maxChars: number): TextCollector {
  const choices = new Map<number, CollectedChoice>();
  let left = maxChars;
  const take = (text: unknown): string => {
    if (typeof text !== 'string' || left <= 0) return '';
    const taken = text.slice(0, left);
    left -= taken.length;
    return taken;
  };
  const choiceOf = (index: number): CollectedChoice | undefined => {
    const known = choices.get(index);
    if (known || choices.size >= MAX_PARTS) return known;
    const made = { index, content: '', reasoning_content: '', tool_calls: [], finish_reason: null };
    choices.set(index, made);
    return made;
  };
  return {
    push({ choices: parts }) {
      for (const { index, delta, finish_reason } of parts) {
        const choice = choiceOf(index);
        if (!choice) continue;
        choice.content += take(delta.content ?? delta.refusal);
        choice.reasoning_content += take(delta.reasoning_content);
        for (const { index: at, function: part } of delta.tool_calls ?? []) {
          if (at < 0 || at >= MAX_PARTS) continue;
          choice.tool_calls[at] ??= { name: '', arguments: '' };
          choice.tool_calls[at].name += take(part?.name);
          choice.tool_calls[at].arguments += take(part?.arguments);
        }
        choice.finish_reason = finish_reason ?? choice.finish_reason;
      }
    },
    response() {
      return choices.size === 0 ? undefined : { choices: [...choices.values()] };
    },
  };
}
