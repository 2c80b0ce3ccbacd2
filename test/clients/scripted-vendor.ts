import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Template, templateError } from '../support/vendors/chat-templates.ts';

/** Chat request at the vendor, reduced to the fields that scripts read. */
export interface VendorRequest {
  readonly model: string;
  readonly stream?: boolean;
  readonly messages: readonly VendorMessage[];
  readonly tools?: readonly { readonly function?: { readonly name: string } }[];
  readonly response_format?: { readonly type: string };
  /** Output limit, by either name. */
  readonly max_tokens?: number;
  readonly max_completion_tokens?: number;
}

export interface VendorMessage {
  readonly role: string;
  readonly content?: unknown;
  readonly tool_calls?: readonly { readonly id: string; readonly function: { readonly arguments: string } }[];
  readonly tool_call_id?: string;
}

/** Next response of the model. */
export interface Move {
  readonly text?: string;
  readonly reasoning?: string;
  readonly calls?: readonly { readonly name: string; readonly input: object }[];
  /** Streams word by word until the connection closes. */
  readonly isEndless?: boolean;
  /** Cuts the connection after the text. */
  readonly breaksOff?: boolean;
  /** Error in place of a response. */
  readonly error?: { readonly status: number; readonly headers?: Readonly<Record<string, string>> };
}

/** Vendor with OpenAI's chat format. A script chooses the model's response to each request. */
export interface ScriptedVendor {
  /** URL that ends in `/v1`. `/v1/closed` returns how many endless streams the caller closed. */
  readonly url: string;
  readonly requests: readonly VendorRequest[];
  close(): Promise<void>;
}

const WORD_MS = 20;

/** Starts a vendor that rejects requests that its model's chat template rejects. */
export async function startScriptedVendor(
  choose: (request: VendorRequest) => Move,
  template: Template = 'qwen',
): Promise<ScriptedVendor> {
  const requests: VendorRequest[] = [];
  let closed = 0;
  const server = http.createServer(async (request, response) => {
    if (request.method === 'GET') return void response.end(JSON.stringify({ closed }));
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const body = JSON.parse(Buffer.concat(parts).toString()) as VendorRequest;
    requests.push(body);
    const isRerank = request.url?.endsWith('/rerank') === true;
    const refused = isRerank ? undefined : templateError(template, body as unknown as Record<string, unknown>);
    if (refused) return sendJson(response, 400, refused);
    const move = choose(isRerank ? { ...body, messages: [] } : body);
    if (move.error) sendError(response, move.error);
    else if (isRerank) sendJson(response, 200, reranked(body as unknown as RerankRequest, requests.length));
    else if (!body.stream) sendJson(response, 200, whole(body, move, requests.length));
    else stream(response, body, move, requests.length);
    if (!move.isEndless) return;
    response.on('close', () => {
      closed += 1;
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function sendJson(response: http.ServerResponse, status: number, body: object, headers: object = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}

function sendError(response: http.ServerResponse, { status, headers }: NonNullable<Move['error']>): void {
  const type = status === 429 ? 'rate_limit_exceeded' : 'server_error';
  sendJson(response, status, { error: { message: `The script says ${status}.`, type, code: type } }, headers);
}

const USAGE = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 };

function callsOf({ calls = [] }: Move, nth: number) {
  return calls.map(({ name, input }, index) => ({
    id: `call_${nth}_${index}`,
    type: 'function' as const,
    function: { name, arguments: JSON.stringify(input) },
  }));
}

function whole({ model }: VendorRequest, move: Move, nth: number): object {
  const calls = callsOf(move, nth);
  const message = {
    role: 'assistant',
    content: move.text ?? null,
    ...(move.reasoning && { reasoning_content: move.reasoning }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
  const choice = { index: 0, message, finish_reason: calls.length > 0 ? 'tool_calls' : 'stop', logprobs: null };
  return { id: `chatcmpl-${nth}`, object: 'chat.completion', created: 1, model, choices: [choice], usage: USAGE };
}

interface RerankRequest {
  readonly model: string;
  readonly documents: readonly string[];
  readonly top_n?: number;
}

/** Ranks documents that contain hello first. */
function reranked({ model, documents, top_n: most = documents.length }: RerankRequest, nth: number): object {
  const scored = documents.map((text, index) => ({ index, relevance_score: /hello/i.test(text) ? 0.9 : 0.1 }));
  const results = scored.toSorted((one, other) => other.relevance_score - one.relevance_score).slice(0, most);
  return { id: `rerank-${nth}`, model, results, usage: { total_tokens: 20 } };
}

function stream(response: http.ServerResponse, { model }: VendorRequest, move: Move, nth: number): void {
  const head = { id: `chatcmpl-${nth}`, object: 'chat.completion.chunk', created: 1, model };
  const send = (choices: readonly object[], rest: object = {}): void =>
    void response.write(`data: ${JSON.stringify({ ...head, choices, ...rest })}\n\n`);
  const delta = (value: object, finish: string | null = null): void =>
    send([{ index: 0, delta: value, finish_reason: finish, logprobs: null }]);
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  delta({ role: 'assistant', content: '' });
  if (move.reasoning) delta({ reasoning_content: move.reasoning });
  for (const word of move.text?.split(/(?<= )/) ?? []) delta({ content: word });
  if (move.isEndless) {
    const timer = setInterval(() => delta({ content: 'and on ' }), WORD_MS);
    response.on('close', () => clearInterval(timer));
    return;
  }
  if (move.breaksOff) return void setTimeout(() => response.destroy(), WORD_MS);
  for (const [index, call] of callsOf(move, nth).entries()) {
    const { name, arguments: text } = call.function;
    delta({ tool_calls: [{ index, id: call.id, type: 'function', function: { name, arguments: '' } }] });
    for (let at = 0; at < text.length; at += 11)
      delta({ tool_calls: [{ index, function: { arguments: text.slice(at, at + 11) } }] });
  }
  delta({}, move.calls ? 'tool_calls' : 'stop');
  send([], { usage: USAGE });
  response.end('data: [DONE]\n\n');
}
