import type { Move, VendorMessage, VendorRequest } from './scripted-vendor.ts';

/** Model responses to the SDKs, by the words of the last user message; `sdk/behaviours.mjs` has the requests. */
export function createSdkMoves(): (request: VendorRequest) => Move {
  const limited = new Set<string>();
  return (request) => {
    const { model, messages, tools = [] } = request;
    if (model === 'always-limited') return { error: { status: 429, headers: { 'retry-after': '2' } } };
    if (model.startsWith('limited-once') && !limited.has(model)) {
      limited.add(model);
      return { error: { status: 429, headers: { 'retry-after': '1' } } };
    }
    if (model === 'broken') return { error: { status: 500 } };
    const last = messages.findLast(({ role }) => role === 'user');
    const text = textOf(last);
    if (/weather/i.test(text)) return tools.length > 0 ? weather(messages) : { text: 'There is no tool.' };
    if (/json/i.test(text)) return person(request);
    if (/image/i.test(text)) return { text: `I see ${mediaOf(last, 'image_url')}.` };
    if (/document/i.test(text)) return { text: `I read ${mediaOf(last, 'file')}.` };
    if (/slowly/i.test(text)) return { text: 'One ', isEndless: true };
    if (/break off/i.test(text)) return { text: 'One two three ', breaksOff: true };
    return { reasoning: 'A greeting.', text: 'Hello there, friend.' };
  };
}

/** Responds by the response schema, or by a tool whose name contains "json", because some clients have no other way. */
function person({ tools = [], response_format: format }: VendorRequest): Move {
  const input = { name: 'Ada', age: 36 };
  const name = tools.map((tool) => tool.function?.name).find((one) => /json/i.test(one ?? ''));
  if (name !== undefined) return { calls: [{ name, input }] };
  return { text: format ? JSON.stringify(input) : 'There is no schema.' };
}

/** Two parallel calls, then their results, each with its own city. */
function weather(messages: readonly VendorMessage[]): Move {
  const from = messages.findLastIndex(({ role }) => role === 'user');
  const since = messages.slice(from);
  const calls = since.flatMap((message) => message.tool_calls ?? []);
  if (calls.length === 0) return { calls: ['Paris', 'Rome'].map((city) => ({ name: 'get_weather', input: { city } })) };
  const reported = calls.map(({ id, function: { arguments: text } }) => {
    const { city } = JSON.parse(text) as { city: string };
    return `${city} is ${textOf(since.find((message) => message.tool_call_id === id)).replaceAll('"', '')}`;
  });
  return { text: `${reported.join(', ')}.` };
}

function partsOf(message: VendorMessage | undefined): readonly Record<string, unknown>[] {
  return Array.isArray(message?.content) ? (message.content as Record<string, unknown>[]) : [];
}

function textOf(message: VendorMessage | undefined): string {
  if (typeof message?.content === 'string') return message.content;
  return partsOf(message)
    .map(({ text }) => (typeof text === 'string' ? text : ''))
    .join('');
}

/** Type and size of the received media, so that a client can verify that it arrived complete. */
function mediaOf(message: VendorMessage | undefined, type: string): string {
  const part = partsOf(message).find((one) => one['type'] === type)?.[type] as
    | { readonly url?: string; readonly file_data?: string }
    | undefined;
  const [, mime, data = ''] = /^data:([^;,]+);base64,(.*)$/.exec(part?.url ?? part?.file_data ?? '') ?? [];
  return mime === undefined ? 'nothing' : `${mime} of ${Buffer.from(data, 'base64').length} bytes`;
}
