import type {
  ChatRequest,
  DialectContext,
  DialectDefinition,
  DialectInput,
  DialectRequest,
} from '../../../../contract/index.ts';
import { readMessages } from '../../../../plugins/formats/anthropic/read-request.ts';
import type { MessagesRequest } from '../../../../plugins/formats/anthropic/types.ts';

const ROUTE: DialectDefinition['routes'][number] = { path: '/v1/messages', summary: '' };

export function messagesBody(fields: Partial<MessagesRequest> = {}): MessagesRequest {
  return { model: 'm', max_tokens: 100, messages: [{ role: 'user', content: 'Hi' }], ...fields };
}

export function messagesInput(
  body: MessagesRequest,
  headers: Readonly<Record<string, string>> = {},
): DialectInput<MessagesRequest> {
  return { body, params: {}, query: {}, headers, route: ROUTE };
}

/** Result of the dialect for a body with these fields. */
export function readMessagesBody(
  fields: Partial<MessagesRequest>,
  headers: Readonly<Record<string, string>> = {},
): DialectRequest {
  return readMessages(messagesInput(messagesBody(fields), headers));
}

/** Context for writing a response; `seal` marks its input. */
export function messagesContext(
  fields: Partial<MessagesRequest> = {},
  request: Partial<ChatRequest> = {},
): DialectContext<MessagesRequest> {
  const input = messagesInput(messagesBody(fields));
  return {
    input,
    request: { ...readMessages(input).request, ...request },
    id: 'call',
    created: 1_790_000_000,
    requestId: 'req_1',
    estimatedInputTokens: 7,
    seal: (data) => `tg1.here.tag.${data}`,
  };
}
