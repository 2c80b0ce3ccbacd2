import {
  type AssistantMessage,
  type ChatResponse,
  type ContentPart,
  type DialectContext,
  type FinishReason,
  isObject,
  type JsonObject,
  type ReasoningDetail,
  readArray,
  readCount,
  readObject,
  readString,
  type Usage,
} from '../../../contract/index.ts';
import { transcriptOf } from '../kit/index.ts';
import { createCompaction, endsInTrigger } from './compaction.ts';
import type { failedError } from './errors.ts';
import { readToolTable } from './read-tools.ts';
import { sealReasoning } from './reasoning.ts';
import { FORMAT, INCLUDE_ENCRYPTED, INCOMPLETE, usualOrder } from './tables.ts';
import type { Item, ResponsesBody } from './types.ts';
import { createOutput, type Output } from './write-output.ts';
import type { BlockSetting } from './write-tools.ts';

/** Fields of a response object that do not repeat the request. */
export interface ResponseState {
  readonly id: string;
  readonly model: string;
  readonly status: 'in_progress' | 'completed' | 'incomplete' | 'failed';
  readonly output: readonly Item[];
  readonly usage?: Usage | undefined;
  readonly incomplete?: string;
  readonly error?: ReturnType<typeof failedError>;
}

export type ResponsesContext = DialectContext<ResponsesBody>;

/** Id of a response written here: random, like the call's id. */
export function responseId({ id }: ResponsesContext): string {
  return `resp_${id}`;
}

/** Complete response object, with every field that OpenAI's SDKs read. */
export function responseObject(
  { input: { body }, created }: { readonly input: Pick<ResponsesContext['input'], 'body'>; readonly created: number },
  state: ResponseState,
) {
  const { id, model, status, output, usage, incomplete, error } = state;
  const { effort = null, summary = null } = body.reasoning ?? {};
  return {
    id,
    object: 'response',
    created_at: created,
    status,
    background: false,
    completed_at: null,
    error: error ?? null,
    incomplete_details: incomplete === undefined ? null : { reason: incomplete },
    instructions: body.instructions ?? null,
    max_output_tokens: body.max_output_tokens ?? null,
    max_tool_calls: body['max_tool_calls'] ?? null,
    model,
    output,
    parallel_tool_calls: body['parallel_tool_calls'] ?? true,
    previous_response_id: body.previous_response_id ?? null,
    prompt_cache_key: body['prompt_cache_key'] ?? null,
    reasoning: { effort, summary },
    safety_identifier: body['safety_identifier'] ?? null,
    service_tier: body['service_tier'] ?? 'auto',
    store: body.store ?? true,
    temperature: body['temperature'] ?? null,
    text: { format: body.text?.format ?? { type: 'text' }, verbosity: body.text?.verbosity ?? 'medium' },
    tool_choice: body.tool_choice ?? 'auto',
    tools: body.tools ?? [],
    top_logprobs: body['top_logprobs'] ?? 0,
    top_p: body['top_p'] ?? null,
    truncation: body['truncation'] ?? 'disabled',
    usage: usage ? writeUsage(usage) : null,
    user: body['user'] ?? null,
    metadata: isObject(body['metadata']) ? body['metadata'] : {},
  };
}

function writeUsage({ prompt_tokens, completion_tokens, total_tokens, ...details }: Usage) {
  const { prompt_tokens_details: input, completion_tokens_details: output } = details;
  return {
    input_tokens: prompt_tokens,
    input_tokens_details: {
      cached_tokens: readCount(input?.cached_tokens) ?? 0,
      cache_write_tokens: readCount(input?.cache_write_tokens) ?? 0,
    },
    output_tokens: completion_tokens,
    output_tokens_details: { reasoning_tokens: readCount(output?.reasoning_tokens) ?? 0 },
    total_tokens,
  };
}

/** Status and reason of a finished response. A refusal is a completed response. */
export function endOf(finish: FinishReason | null, hasRefusal: boolean): Pick<ResponseState, 'status' | 'incomplete'> {
  const cut = Object.entries(INCOMPLETE).find(([, reason]) => reason === finish);
  if (!cut || (finish === 'content_filter' && hasRefusal)) return { status: 'completed' };
  return { status: 'incomplete', incomplete: cut[0] };
}

/** Writes a complete response in this format. */
export function writeResponse({ model, choices, usage }: ChatResponse, context: ResponsesContext) {
  const [choice] = choices;
  const finish = choice?.finish_reason ?? null;
  const setting = createSetting(context, () => {});
  const output = outputFor(context, setting, phaseOf(choice?.message));
  if (choice) writeMessage(choice.message, choice.logprobs, output);
  output.close(finish);
  return responseObject(context, {
    id: responseId(context),
    model,
    output: output.items(),
    usage,
    ...endOf(finish, output.hasRefusal),
  });
}

/** Output of a call: items, or the item of a compacted conversation. */
export function outputFor({ input }: ResponsesContext, setting: BlockSetting, phase?: string): Output {
  return endsInTrigger(input.body) ? createCompaction(setting) : createOutput(setting, phase);
}

function phaseOf(message: AssistantMessage | undefined): string | undefined {
  return readString(message?.dialect_fields?.[FORMAT]?.['phase']);
}

function writeMessage(message: AssistantMessage, logprobs: unknown, output: Output): void {
  const { order, tool_calls: calls = [], refusal, annotations, ...rest } = message;
  const parts = partsOf(message.content || transcriptOf(message));
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
  if (message.mcp_calls) output.delta({ mcp_calls: message.mcp_calls }, undefined);
  for (const place of order ?? usualOrder(thoughts.length, parts.length, calls.length)) {
    const [kind = '', index] = place.split(':');
    steps[kind]?.(Number(index));
  }
  const { data } = readObject(rest['audio']);
  output.delta({ ...(refusal && { refusal }), images: readArray(rest['images']), audio: { data } }, undefined);
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

/**
 * Writers of the details, by index. Details of one item stay together. If no detail has text, the visible thinking
 * belongs to the first.
 */
function thoughtsOf({
  reasoning_content: visible,
  reasoning_details: details = [],
}: AssistantMessage): readonly ((output: Output) => void)[] {
  if (details.length === 0) return visible ? [(output) => output.reasoning(visible)] : [];
  const isReported = details.some(({ text }) => text !== undefined);
  return details.map((detail, index) => (output) => {
    if (index > 0 && isSameItem(details[index - 1], detail)) return;
    const length = details.slice(index + 1).findIndex((next, at) => !isSameItem(details[index + at], next));
    if (index === 0 && !isReported && visible) output.reasoning(visible);
    output.details(details.slice(index, length < 0 ? undefined : index + 1 + length));
  });
}

function isSameItem(one: ReasoningDetail | undefined, other: ReasoningDetail): boolean {
  return one !== undefined && one.id !== undefined && one.id === other.id;
}

/** Setting for the output of a call. */
export function createSetting(context: ResponsesContext, emit: BlockSetting['emit']): BlockSetting {
  const { body } = context.input;
  const { callers } = readToolTable(body);
  const isSealWanted = body.include?.includes(INCLUDE_ENCRYPTED) === true;
  return {
    emit,
    omit: context.omit,
    itemId: (prefix, index) => `${prefix}_${context.id}_${index}`,
    callerOf: (name) => callers.get(name) ?? { kind: 'function', name },
    seal: (details) => (isSealWanted ? sealReasoning(details, context.seal) : undefined),
  };
}
