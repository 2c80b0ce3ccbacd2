import { type DialectContext, type FinishReason, isObject, readCount, type Usage } from '../../../core/index.ts';
import { INCOMPLETE } from '../../formats/openai-responses/index.ts';
import type { failedError } from './errors.ts';
import type { Item, ResponsesBody } from './types.ts';

/** What of a response object is not an echo of the request. */
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

/** The id of a response that is written here: random, as the call's id is. */
export function responseId({ id }: ResponsesContext): string {
  return `resp_${id}`;
}

/** A whole response object, with every field that OpenAI's SDKs read. */
export function writeResponse(
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

/** Status and reason of a response that ended. A refusal is a response like any other. */
export function endOf(finish: FinishReason | null, hasRefusal: boolean): Pick<ResponseState, 'status' | 'incomplete'> {
  const cut = Object.entries(INCOMPLETE).find(([, reason]) => reason === finish);
  if (!cut || (finish === 'content_filter' && hasRefusal)) return { status: 'completed' };
  return { status: 'incomplete', incomplete: cut[0] };
}
