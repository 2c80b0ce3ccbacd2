import { expect } from 'chai';
import type { JsonObject } from '../../../contract/index.ts';
import type { MessagesRequest } from '../../../plugins/formats/anthropic/types.ts';
import { readMessagesStream } from '../formats/messages-grammar.ts';
import type { IngressRig } from '../gateways/ingress-rig.ts';

/** Message of a gateway, with the same fields for JSON and for a stream. */
export interface ReceivedMessage {
  readonly id: unknown;
  readonly content: readonly JsonObject[];
  readonly stop: JsonObject;
  readonly usage: JsonObject;
  /** Usage in the first event of a stream. */
  readonly firstUsage?: JsonObject;
  readonly headers: Headers;
}

export const LOOK = { name: 'look', input_schema: { type: 'object', properties: { at: { type: 'string' } } } } as const;

/** Posts a body for this model, by default with one user message and a tool. */
export function postMessages(
  { gateway }: IngressRig,
  model: string,
  fields: Partial<MessagesRequest> = {},
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  const body = { model, max_tokens: 1000, messages: [{ role: 'user', content: 'Hi' }], tools: [LOOK], ...fields };
  // Claude Code sends this query.
  return gateway.post('/v1/messages?beta=true', body, { 'anthropic-version': '2023-06-01', ...headers });
}

/** Posts a body and reads the message; a stream must be grammatical. */
export async function receiveMessage(...given: Parameters<typeof postMessages>): Promise<ReceivedMessage> {
  const response = await postMessages(...given);
  const text = await response.text();
  expect(response.status, text).to.equal(200);
  const { headers } = response;
  if (given[2]?.stream !== true) {
    const { id, content, stop_reason, stop_sequence, usage } = JSON.parse(text) as JsonObject;
    return {
      ...{ id, content: content as JsonObject[], stop: { stop_reason, stop_sequence } },
      ...{ usage: usage as JsonObject, headers },
    };
  }
  const { message, content, delta, usage, error } = readMessagesStream(text);
  expect(error, text).to.equal(undefined);
  return { id: message['id'], content, stop: delta, usage, firstUsage: message['usage'] as JsonObject, headers };
}
