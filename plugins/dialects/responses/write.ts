import {
  type AssistantMessage,
  type ChatResponse,
  type ContentPart,
  isObject,
  type JsonObject,
  type ReasoningDetail,
  readArray,
  readString,
} from '../../../core/index.ts';
import { createSetting } from './blocks.ts';
import { createOutput, type Output } from './output.ts';
import { endOf, type ResponsesContext, responseId, writeResponse } from './response.ts';

/** A whole response in this format. */
export function write({ model, choices, usage }: ChatResponse, context: ResponsesContext): unknown {
  const [choice] = choices;
  const finish = choice?.finish_reason ?? null;
  const output = createOutput(
    createSetting(context, () => {}),
    phaseOf(choice?.message),
  );
  if (choice) writeMessage(choice.message, choice.logprobs, output);
  output.close(finish);
  return writeResponse(context, {
    id: responseId(context),
    model,
    output: output.items(),
    usage,
    ...endOf(finish, output.hasRefusal),
  });
}

function phaseOf(message: AssistantMessage | undefined): string | undefined {
  return readString(message?.dialect_fields?.['responses']?.['phase']);
}

function writeMessage(message: AssistantMessage, logprobs: unknown, output: Output): void {
  const { order, tool_calls: calls = [], refusal, annotations, ...rest } = message;
  const parts = partsOf(message.content);
  const thoughts = thoughtsOf(message);
  const steps: Readonly<Record<string, (index: number) => void>> = {
    reasoning: (index) => thoughts[index]?.(output),
    content(index) {
      const part = parts[index];
      if (part?.type !== 'text') return;
      const cited = [...readObjects(part['annotations']), ...(index === parts.length - 1 ? (annotations ?? []) : [])];
      output.delta({ content: readString(part['text']) ?? '', annotations: cited }, logprobs);
    },
    tool(index) {
      const call = calls[index];
      // oxlint-disable-next-line typescript/no-unnecessary-condition -- providers may send other kinds
      if (call?.type === 'function') output.delta({ tool_calls: [{ index, ...call }] }, undefined);
    },
  };
  for (const place of order ?? usualOrder(thoughts.length, parts.length, calls.length)) {
    const [kind = '', index] = place.split(':');
    steps[kind]?.(Number(index));
  }
  output.delta({ ...(refusal && { refusal }), images: readArray(rest['images']) }, undefined);
}

function partsOf(content: unknown): readonly ContentPart[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }];
  return readArray(content).filter(
    (part): part is JsonObject & ContentPart => isObject(part) && typeof part['type'] === 'string',
  );
}

function readObjects(value: unknown): readonly JsonObject[] {
  return readArray(value).filter(isObject);
}

function usualOrder(thoughts: number, parts: number, calls: number): readonly string[] {
  const list = (kind: string, length: number) => Array.from({ length }, (_, index) => `${kind}:${index}`);
  return [...list('reasoning', thoughts), ...list('content', parts), ...list('tool', calls)];
}

/**
 * How each of the details is written, by its index. Those of one item stand together; where no detail shows its text, the visible
 * thinking is that of the first one.
 */
function thoughtsOf({
  reasoning_content: visible,
  reasoning_details: details = [],
}: AssistantMessage): readonly ((output: Output) => void)[] {
  if (details.length === 0) return visible ? [(output) => output.reasoning(visible)] : [];
  const isTold = details.some(({ text }) => text !== undefined);
  return details.map((detail, index) => (output) => {
    if (index > 0 && isSameItem(details[index - 1], detail)) return;
    const length = details.slice(index + 1).findIndex((next, at) => !isSameItem(details[index + at], next));
    if (index === 0 && !isTold && visible) output.reasoning(visible);
    output.details(details.slice(index, length < 0 ? undefined : index + 1 + length));
  });
}

function isSameItem(one: ReasoningDetail | undefined, other: ReasoningDetail): boolean {
  return one !== undefined && one.id !== undefined && one.id === other.id;
}
