/** The Responses dialect without a gateway: reads requests, writes responses and streams. */
import type {
  ChatChunk,
  ChatRequest,
  ChatResponse,
  DialectContext,
  DialectRequest,
  DialectRoute,
} from '../../../contract/index.ts';
import { RESPONSES_NATIVE } from '../../../plugins/formats/openai-responses/native.ts';
import { readResponsesRequest } from '../../../plugins/formats/openai-responses/read-request.ts';
import type { ResponsesBody } from '../../../plugins/formats/openai-responses/types.ts';
import { writeResponse } from '../../../plugins/formats/openai-responses/write-response.ts';
import { streamResponse } from '../../../plugins/formats/openai-responses/write-stream.ts';
import { readSse } from './codec.ts';
import type { Event } from './responses-grammar.ts';

const ROUTE: DialectRoute = { path: '/v1/responses', summary: 'Response' };

function inputOf(body: object) {
  return {
    body: { model: 'm', input: 'Hi', ...body } as ResponsesBody,
    params: {},
    query: {},
    headers: {},
    route: ROUTE,
  };
}

/** Body with one user message by default. */
export function readBody(body: object): DialectRequest {
  return readResponsesRequest(inputOf(body));
}

export function contextOf(body: object, request?: ChatRequest): DialectContext<ResponsesBody> {
  const input = inputOf(body);
  return {
    input,
    request: request ?? readResponsesRequest(input).request,
    id: 'call',
    created: 1_790_000_000,
    requestId: 'req_test',
    estimatedInputTokens: 3,
    seal: (data) => `tg1.here.tag.${data}`,
  };
}

export interface Written {
  readonly id: string;
  readonly status: string;
  readonly output: readonly Record<string, unknown>[];
  readonly [field: string]: unknown;
}

export function writeWhole(response: ChatResponse, body: object = {}): Written {
  return writeResponse(response, contextOf(body)) as Written;
}

/** Events of a stream, read from its frames. */
export function writeStream(chunks: readonly ChatChunk[], body: object = {}): readonly Event[] {
  const writer = streamResponse(contextOf(body));
  return readEvents(chunks.map((chunk) => writer.push(chunk)).join('') + writer.end());
}

/** Frames as events; the name of each is its type. */
export function readEvents(text: string): readonly Event[] {
  return readSse(Buffer.from(text)).map(({ event, data }) => {
    const parsed = JSON.parse(data) as Event;
    if (parsed.type !== event) throw new Error(`${event} is named ${parsed.type}`);
    return parsed;
  });
}

export { RESPONSES_NATIVE as native };
export const stream = streamResponse;
