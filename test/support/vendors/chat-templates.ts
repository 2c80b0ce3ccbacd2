/**
 * Requests that the chat templates of self-hosted models reject, with their servers' messages, and empty lists that
 * vendors with OpenAI's format reject. Sources: `chat_template.jinja` of Qwen/Qwen3.5-27B (system first, a user's
 * query), mistral-common `protocol/instruct/validator.py` and the templates of mistralai (order, last role,
 * alternation), `chat_template` of meta-llama/Llama-3.3-70B-Instruct (one call at once).
 * https://github.com/vllm-project/vllm/issues/41114 has a complete error.
 */

export const TEMPLATES = ['qwen', 'mistral', 'llama'] as const;
export type Template = (typeof TEMPLATES)[number];

interface Message {
  readonly role?: unknown;
  readonly content?: unknown;
  readonly tool_calls?: unknown;
  readonly prefix?: unknown;
}

type Body = Readonly<Record<string, unknown>>;

/** Error message of a server with this template for a chat completion; undefined if it accepts the body. */
export function refusalOf(template: Template, body: Body): string | undefined {
  const messages = listOf(body['messages']) as readonly Message[];
  const [first] = messages;
  const systemAt = messages.findLastIndex(({ role }) => role === 'system' || role === 'developer');
  if (systemAt > 0) return 'System message must be at the beginning.';
  if (template === 'mistral') return refusalOfMistral(messages, body);
  if (template === 'qwen') {
    if (!messages.some(({ role }) => role === 'user')) return 'No user query found in messages.';
    return messages.at(-1)?.role === 'system' ? 'The conversation has no turn.' : undefined;
  }
  if (messages.some(({ tool_calls: calls }) => listOf(calls).length > 1))
    return 'This model only supports single tool-calls at once!';
  return first?.role === 'tool' ? 'A tool result has no call.' : undefined;
}

/** Roles that may follow another one. */
const AFTER: Readonly<Record<string, readonly string[]>> = {
  system: ['user', 'assistant'],
  user: ['assistant'],
  assistant: ['user', 'tool'],
  tool: ['assistant', 'tool'],
};

function refusalOfMistral(messages: readonly Message[], body: Body): string | undefined {
  const roles = messages.map(({ role }) => String(role));
  for (const [at, role] of roles.entries()) {
    const before = roles[at - 1];
    if (before !== undefined && !AFTER[before]?.includes(role))
      return `Unexpected role '${role}' after role '${before}'`;
  }
  const last = messages.at(-1);
  const isContinued = last?.prefix === true || body['continue_final_message'] === true;
  const isLast = last?.role === 'user' || last?.role === 'tool' || (last?.role === 'assistant' && isContinued);
  return isLast ? undefined : `Expected last role User or Tool for serving but got ${String(last?.role)}`;
}

/** First empty list in a body that vendors reject; undefined without one. */
export function emptyListIn(body: Body): string | undefined {
  for (const field of ['tools', 'functions', 'stop']) if (isEmptyList(body[field])) return field;
  for (const [at, message] of listOf(body['messages']).entries())
    for (const field of ['content', 'tool_calls'])
      if (isEmptyList((message as Body)[field])) return `messages[${at}].${field}`;
  return undefined;
}

/** Error body of a server that cannot render a prompt from the messages, or rejects an empty list. */
export function templateError(template: Template | undefined, body: Body): object | undefined {
  const empty = emptyListIn(body);
  if (empty !== undefined)
    return {
      error: {
        message: `Invalid '${empty}': empty array. Expected an array with minimum length 1, but got an empty array instead.`,
        ...{ type: 'invalid_request_error', param: empty, code: 'empty_array' },
      },
    };
  const message = template && refusalOf(template, body);
  return message === undefined
    ? undefined
    : { error: { message, type: 'BadRequestError', param: null, code: 400 }, object: 'error' };
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}
