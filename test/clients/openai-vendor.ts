import { randomUUID } from 'node:crypto';
import { createOpenaiRules } from '../support/vendors/openai-rules.ts';
import { startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';
import type { Piece } from '../support/vendors/vendor-wires.ts';
import type { Move, ScriptedVendor, VendorMessage, VendorRequest } from './scripted-vendor.ts';

/**
 * OpenAI models as of November 2026 that support tools with reasoning only through the Responses API, or that have no
 * other API.
 */
export const OPENAI_MODELS = Object.freeze([
  ...['gpt-6-astra', 'gpt-6.1-sol', 'gpt-6.1-terra', 'gpt-6-sol', 'gpt-5.6-sol', 'gpt-5.5', 'gpt-5.3-codex'],
]);

type Body = Readonly<Record<string, unknown>>;

/** Vendor that rejects what OpenAI rejects. A script chooses the model's responses. */
export async function startOpenaiVendor(choose: (request: VendorRequest) => Move): Promise<ScriptedVendor> {
  const requests: VendorRequest[] = [];
  const upstream = await startScriptedUpstream(
    createOpenaiRules((body) => {
      const request = readRequest(body);
      requests.push(request);
      return piecesOf(choose(request));
    }),
  );
  return { url: `${upstream.url}/v1`, requests, close: () => upstream.close() };
}

const listOf = (value: unknown): readonly Body[] => (Array.isArray(value) ? (value as Body[]) : []);

/** Converts a request of either API to chat completions. */
function readRequest(body: Body): VendorRequest {
  if ('messages' in body) return body as unknown as VendorRequest;
  const { model, input, tools, max_output_tokens: limit } = body;
  return {
    model: String(model),
    messages: listOf(input).flatMap(messageOf),
    tools: listOf(tools).flatMap(({ type, name }) =>
      type === 'function' || type === 'custom' ? [{ function: { name: String(name) } }] : [],
    ),
    ...(typeof limit === 'number' && { max_completion_tokens: limit }),
  };
}

function messageOf(item: Body): readonly VendorMessage[] {
  const { type, role, content } = item;
  // `type` of a message is optional; the AI SDK omits it.
  if (type === 'message' || (type === undefined && role !== undefined)) return [{ role: String(role), content }];
  const id = String(item['call_id']);
  if (type === 'function_call_output' || type === 'custom_tool_call_output')
    return [{ role: 'tool', content: item['output'], tool_call_id: id }];
  if (type !== 'function_call' && type !== 'custom_tool_call') return [];
  const text = String(item['arguments'] ?? item['input']);
  return [{ role: 'assistant', tool_calls: [{ id, function: { arguments: text } }] }];
}

function piecesOf({ text, calls = [] }: Move): readonly Piece[] {
  return [
    ...(text === undefined ? [] : [{ text }]),
    ...calls.map(({ name, input }) => ({
      ...{ call: name, id: `call_${randomUUID().slice(0, 8)}`, arguments: JSON.stringify(input) },
    })),
  ];
}
