import type { CodecCall, HttpRequest, Plugin } from '../../../contract/index.ts';
import { setUpProvider } from '../../conformance/provider-subject.ts';

export interface Translated {
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
  readonly dropped: readonly string[];
}

/** Translates a chat request by a provider's codec; `fields` default to one user message. */
export function translate(plugin: Plugin, fields: object, config: Readonly<Record<string, unknown>> = {}): Translated {
  const { chat } = setUpProvider(plugin, config);
  if (!chat) throw new Error(`${plugin.name} has no chat`);
  const request = { model: 'm', messages: [{ role: 'user' as const, content: 'Hi' }], ...fields };
  const call: CodecCall = {
    model: request.model,
    stream: 'stream' in request && request.stream === true,
    created: 1_750_000_000,
    id: 'chatcmpl-test',
  };
  const { path, body, dropped = [] }: HttpRequest = chat.request(request, call);
  return { path, body: JSON.parse(JSON.stringify(body ?? {})), dropped };
}

/** Messages of a translated request. */
export function messagesOf(
  plugin: Plugin,
  messages: readonly object[],
  fields: object = {},
): readonly Record<string, unknown>[] {
  return translate(plugin, { messages, ...fields }).body['messages'] as readonly Record<string, unknown>[];
}
