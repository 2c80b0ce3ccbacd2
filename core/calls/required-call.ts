/**
 * Tool calls that a caller requires of a model that cannot be forced to call tools. Its codec omits `tool_choice`, and may ask
 * in words. A response without the call is asked for once more, with a reminder. Other calls run only {@link isUnforced}.
 */
import type { Target } from '../../contract/call.ts';
import type { ChatMessage, ChatRequest, ChatResponse } from '../../contract/chat.ts';
import { isForced } from '../../contract/chat-form.ts';
import { GatewayError } from '../../contract/errors.ts';
import { readArray, readObject, readString } from '../../contract/json.ts';
import { type Call, oweMetered } from './call.ts';
import type { CallDeps } from './call-deps.ts';
import { asRefusal } from './error-marks.ts';
import type { SendTo } from './hedge.ts';

/** Returns whether the caller requires a tool call. */
export function requiresCall({ request }: Call): boolean {
  return isForced((request as ChatRequest).tool_choice);
}

/** Returns whether the caller requires a tool call and the last target was not sent that field. */
export function isUnforced(call: Call): boolean {
  return call.record.dropped?.includes('tool_choice') === true && requiresCall(call);
}

/** Returns whether a call of this tool is one that the caller requires. */
export function isRequired({ request }: Call, tool: string | undefined): boolean {
  const names = requiredTools(request as ChatRequest);
  return tool !== undefined && (names.length === 0 || names.includes(tool));
}

/** Returns whether a response is complete and has no call that the caller requires. A refusal is delivered as it is. */
export function lacksCall(call: Call, { choices }: ChatResponse): boolean {
  return choices.every(
    ({ message: { refusal, tool_calls: calls = [] }, finish_reason: reason }) =>
      (reason === 'stop' || reason === 'tool_calls') &&
      !refusal &&
      !calls.some(({ function: { name } }) => isRequired(call, name)),
  );
}

/** Names in a tool choice; empty if any tool may be called. */
function requiredTools({ tool_choice: choice }: ChatRequest): readonly string[] {
  const { function: named, allowed_tools: allowed } = readObject(choice);
  const tools = [named, ...readArray(readObject(allowed)['tools']).map((tool) => readObject(tool)['function'])];
  return tools.flatMap((tool) => readString(readObject(tool)['name']) ?? []);
}

/**
 * Sends a request once more, after a metered `response` that lacks the required call. The maximum cost of the second request is
 * reserved before. Throws a refusal, after which another target may be tried, if `hasCall` is false for its response too.
 */
export async function requestAgain<T extends object>(
  deps: CallDeps,
  call: Call,
  target: Target,
  response: ChatResponse,
  send: SendTo<T>,
  hasCall: (second: T) => boolean,
): Promise<T> {
  const request = call.request as ChatRequest;
  oweMetered(call.record);
  call.replaceRequest(withReminder(request, response));
  try {
    await call.hooks.reserve?.(call);
    const second = await send(deps, call, target);
    if (hasCall(second)) return second;
  } finally {
    call.replaceRequest(request);
  }
  oweMetered(call.record);
  throw asRefusal(
    new GatewayError(
      'invalid_request',
      `\`tool_choice\` requires a tool call, but "${target.provider}" cannot force this model and got two responses without one. Use another model or \`auto\`.`,
      { param: 'tool_choice' },
    ),
  );
}

/** Adds the response without a call, and a reminder. All earlier turns stay the same, so their prompt cache is used. */
function withReminder(request: ChatRequest, { choices: [choice] }: ChatResponse): ChatRequest {
  const names = requiredTools(request).map((name) => `\`${name}\``);
  const content = choice?.message.content ?? '';
  const which = names.length === 0 ? 'one of your tools' : `the tool ${names.join(' or ')}`;
  const reminder: readonly ChatMessage[] = [
    ...(content.trim() === '' ? [] : [{ role: 'assistant' as const, content }]),
    { role: 'user', content: `You did not call a tool. Answer by calling ${which} now. Do not answer in text.` },
  ];
  return { ...request, messages: [...request.messages, ...reminder] };
}
