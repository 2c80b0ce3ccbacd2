import type { CallContext, ChatRequest, ChatResponse, FinishReason } from '../../../contract/index.ts';

/** Reply of a scripted model: a text, an object (sent as JSON) or an error to throw. */
export type Reply = string | object | Error;

export interface Rule {
  /** Schema in the request: `assignments` (router), `report` (specialist), `result` (writer). */
  readonly schema?: string;
  /** Text that the system message must contain. */
  readonly system?: string;
  /** Text that the last user message must contain. */
  readonly user?: string;
  readonly model?: string;
  /** Maximum number of uses of the rule. Default: unlimited. */
  readonly times?: number;
  readonly reply: Reply | ((request: ChatRequest) => Reply);
  readonly finish?: FinishReason;
  /** Function that the model calls in place of a reply. */
  readonly call?: { readonly name: string; readonly arguments: object };
  /** Waits for this before the reply; an abort ends the wait. */
  readonly after?: Promise<unknown>;
}

export interface MadeCall {
  readonly request: ChatRequest;
  readonly context: CallContext;
  /** True if a reply was sent, which the caller pays. */
  replied: boolean;
  aborted: boolean;
}

export interface ScriptedModel {
  readonly calls: readonly MadeCall[];
  chat(request: ChatRequest, context: CallContext): Promise<ChatResponse>;
}

/** Model that replies by the first matching rule. A request without a rule fails the test. Tokens are words. */
export function scriptModel(rules: readonly Rule[]): ScriptedModel {
  const calls: MadeCall[] = [];
  const used = new Map<Rule, number>();
  return {
    calls,
    async chat(request, context) {
      const call: MadeCall = { request, context, replied: false, aborted: false };
      calls.push(call);
      const rule = rules.find((one) => matches(one, request) && (used.get(one) ?? 0) < (one.times ?? Infinity));
      if (!rule) throw new Error(`no rule for ${schemaNameOf(request)}: ${systemOf(request).slice(0, 200)}`);
      used.set(rule, (used.get(rule) ?? 0) + 1);
      if (rule.after) await waitFor(rule.after, context.signal, () => (call.aborted = true));
      const reply = typeof rule.reply === 'function' ? rule.reply(request) : rule.reply;
      if (reply instanceof Error) throw reply;
      call.replied = true;
      const response = respond(
        request,
        typeof reply === 'string' ? reply : JSON.stringify(reply),
        rule.finish ?? 'stop',
      );
      return rule.call ? withCall(response, `call_${calls.length}`, rule.call) : response;
    },
  };
}

/** Name of the schema in a request; `text` if it has none. */
export function schemaNameOf(request: ChatRequest): string {
  const format = request.response_format;
  if (format?.type === 'json_schema') return format.json_schema.name;
  return format?.type ?? 'text';
}

export function systemOf(request: ChatRequest): string {
  return request.messages.map(({ role, content }) => (role === 'system' ? String(content) : '')).join('\n');
}

export function lastUserText(request: ChatRequest): string {
  const content = request.messages.findLast(({ role }) => role === 'user')?.content ?? '';
  if (typeof content === 'string') return content;
  return content.map((part) => (part.type === 'text' ? String(part['text']) : '')).join('\n');
}

export function wordCount(text: string): number {
  return text.split(/\s+/).filter(Boolean).length;
}

function matches(rule: Rule, request: ChatRequest): boolean {
  return (
    (rule.schema === undefined || rule.schema === schemaNameOf(request)) &&
    (rule.model === undefined || rule.model === request.model) &&
    systemOf(request).includes(rule.system ?? '') &&
    lastUserText(request).includes(rule.user ?? '')
  );
}

function respond(request: ChatRequest, content: string, finish: FinishReason): ChatResponse {
  const prompt = request.messages.reduce((sum, { content: text }) => sum + wordCount(JSON.stringify(text ?? '')), 0);
  const completion = wordCount(content);
  return {
    id: 'chatcmpl-scripted',
    object: 'chat.completion',
    created: 0,
    model: request.model,
    choices: [
      { index: 0, message: { role: 'assistant', content, refusal: null }, finish_reason: finish, logprobs: null },
    ],
    usage: { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion },
  };
}

function withCall(
  response: ChatResponse,
  id: string,
  { name, arguments: args }: NonNullable<Rule['call']>,
): ChatResponse {
  const [choice] = response.choices;
  if (!choice) return response;
  const call = { id, type: 'function' as const, function: { name, arguments: JSON.stringify(args) } };
  const message = { ...choice.message, tool_calls: [call] };
  return { ...response, choices: [{ ...choice, message, finish_reason: 'tool_calls' }] };
}

async function waitFor(event: Promise<unknown>, signal: AbortSignal | undefined, onAbort: () => void): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const stop = () => {
      onAbort();
      reject(signal?.reason instanceof Error ? signal.reason : new Error('aborted'));
    };
    if (signal?.aborted) stop();
    signal?.addEventListener('abort', stop, { once: true });
    event.then(() => resolve(), reject);
  });
}

/** A promise and the function that resolves it. */
export function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}
