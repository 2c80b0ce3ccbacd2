/** Client of chat completions that combines streams as careless SDKs do: duplicates stay. */
import { expect } from 'chai';
import type { ChatChunk, ChatResponse, Usage } from '../../../contract/index.ts';
import type { IngressRig } from '../gateways/ingress-rig.ts';
import { chunk, head, LAST_CHUNK, type Script, SSE_HEAD } from '../vendors/scripted-upstream.ts';

export interface ReceivedCall {
  id: string;
  name: string;
  arguments: unknown;
}

export interface ReceivedChat {
  readonly content: string;
  readonly reasoning: string;
  readonly calls: readonly ReceivedCall[];
  readonly finish: readonly string[];
  readonly usage: Usage | undefined;
  readonly headers: Headers;
  /** The complete message, or the deltas of the stream. */
  readonly parts: readonly Record<string, unknown>[];
  /** Frames of a stream, unchanged. */
  readonly frames: readonly string[];
}

/** Sends a chat and receives its response, as JSON or as a stream. */
export async function receiveChat(
  rig: IngressRig,
  body: { readonly model: string; readonly stream?: boolean; readonly [field: string]: unknown },
): Promise<ReceivedChat> {
  const messages = [{ role: 'user', content: 'Hi' }];
  const options = body.stream ? { stream_options: { include_usage: true } } : {};
  const response = await rig.gateway.post('/v1/chat/completions', { messages, ...options, ...body });
  const text = await response.text();
  expect(response.status, text).to.equal(200);
  return body.stream
    ? readStream(text, response.headers)
    : readWhole(JSON.parse(text) as ChatResponse, response.headers);
}

function readWhole({ choices, usage }: ChatResponse, headers: Headers): ReceivedChat {
  const [choice] = choices;
  const { message, finish_reason } = choice ?? expect.fail('no choice');
  return {
    content: message.content ?? '',
    reasoning: message.reasoning_content ?? '',
    calls: (message.tool_calls ?? []).map(({ id, function: { name, arguments: text } }) => ({
      id,
      name,
      arguments: text,
    })),
    finish: [finish_reason],
    ...{ usage, headers, parts: [{ ...message }], frames: [] },
  };
}

function readStream(text: string, headers: Headers): ReceivedChat {
  const frames = text.split('\n\n').filter((frame) => frame.startsWith('data: '));
  const data = frames.map((frame) => frame.slice('data: '.length)).filter((frame) => frame !== '[DONE]');
  const chunks = data.map((frame) => JSON.parse(frame) as ChatChunk).filter((one) => 'choices' in one);
  const choices = chunks.flatMap(({ choices: some }) => some);
  const joined = (field: 'content' | 'reasoning_content') => choices.map(({ delta }) => delta[field] ?? '').join('');
  const calls: ReceivedCall[] = [];
  for (const delta of choices.flatMap(({ delta: { tool_calls = [] } }) => tool_calls)) {
    const call = calls[delta.index] ?? { id: '', name: '', arguments: '' };
    calls[delta.index] = call;
    call.id += delta.id ?? '';
    call.name += delta.function?.name ?? '';
    call.arguments = `${String(call.arguments)}${delta.function?.arguments ?? ''}`;
  }
  return {
    content: joined('content'),
    reasoning: joined('reasoning_content'),
    calls,
    finish: choices.flatMap(({ finish_reason }) => finish_reason ?? []),
    usage: chunks.findLast(({ usage }) => usage)?.usage ?? undefined,
    headers,
    parts: choices.map(({ delta }) => ({ ...delta })),
    frames,
  };
}

/**
 * Sends a body, or the events of a stream if the request has `stream`, `cut` bytes at a time. The last event waits for
 * `isLastDue`.
 */
export function vendorScript(
  whole: object,
  events: readonly (object | string)[],
  cut = 65_536,
  isLastDue: Promise<unknown> = Promise.resolve(),
): Script {
  return async (wire) => {
    const isStream =
      wire.request.path.includes('streamGenerateContent') ||
      (wire.request.json() as { readonly stream?: boolean }).stream === true;
    if (!isStream) {
      const body = Buffer.from(JSON.stringify(whole));
      await wire.send(head(200, { 'content-type': 'application/json', 'content-length': String(body.length) }));
      for (const piece of pieces(body, cut)) await wire.send(piece);
      return;
    }
    const frames = events.map((event) => `data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`);
    await wire.send(SSE_HEAD);
    for (const piece of pieces(Buffer.from(frames.slice(0, -1).join('')), cut)) await wire.send(chunk(piece));
    await isLastDue;
    for (const piece of pieces(Buffer.from(frames.at(-1) ?? ''), cut)) await wire.send(chunk(piece));
    await wire.send(LAST_CHUNK);
  };
}

function pieces(bytes: Buffer, size: number): readonly Buffer[] {
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) => bytes.subarray(at * size, (at + 1) * size));
}

/** Complete response in OpenAI's format. */
export function completion(
  message: object,
  finish: string,
  usage: object = { prompt_tokens: 20, completion_tokens: 5 },
) {
  return {
    ...{ id: 'chatcmpl-vendor', object: 'chat.completion', created: 1_790_000_000, model: 'vendor-model' },
    choices: [{ index: 0, message: { role: 'assistant', content: null, ...message }, finish_reason: finish }],
    usage,
  };
}

/** Events of a stream in OpenAI's format: one per delta, then the finish, the usage and the end. */
export function completionEvents(deltas: readonly object[], finish: string): readonly (object | string)[] {
  const frame = {
    id: 'chatcmpl-vendor',
    object: 'chat.completion.chunk',
    created: 1_790_000_000,
    model: 'vendor-model',
  };
  const event = (delta: object, reason: string | null = null) => ({
    ...{ ...frame, choices: [{ index: 0, delta, finish_reason: reason }] },
  });
  return [
    event({ role: 'assistant', content: null }),
    ...deltas.map((delta) => event(delta)),
    event({}, finish),
    { ...frame, choices: [], usage: { prompt_tokens: 20, completion_tokens: 5, total_tokens: 25 } },
    '[DONE]',
  ];
}
