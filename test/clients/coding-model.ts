import http from 'node:http';
import type { AddressInfo } from 'node:net';

/** A chat request as it arrives at the vendor, as far as the script looks at it. */
export interface VendorRequest {
  readonly model: string;
  readonly stream?: boolean;
  readonly messages: readonly {
    readonly role: string;
    readonly content?: unknown;
    readonly tool_calls?: readonly { readonly id: string; readonly function: { readonly name: string; readonly arguments: string } }[];
    readonly tool_call_id?: string;
  }[];
  readonly tools?: readonly { readonly type: string; readonly function: { readonly name: string; readonly parameters?: object } }[];
}

/** What the model does next: words, or calls of tools. */
export interface Move {
  readonly text?: string;
  readonly reasoning?: string;
  readonly calls?: readonly { readonly name: string; readonly input: object }[];
}

/** A vendor of OpenAI's wire whose model makes the moves that a script chooses by what it is sent. */
export interface CodingModel {
  /** Ends in `/v1`. */
  readonly url: string;
  readonly requests: readonly VendorRequest[];
  close(): Promise<void>;
}

export async function startCodingModel(choose: (request: VendorRequest) => Move): Promise<CodingModel> {
  const requests: VendorRequest[] = [];
  const server = http.createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    if (request.method !== 'POST') return void response.writeHead(404).end();
    const body = JSON.parse(Buffer.concat(parts).toString()) as VendorRequest;
    requests.push(body);
    const move = choose(body);
    if (body.stream) stream(response, body, move, requests.length);
    else response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(whole(body, move, requests.length)));
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
  for (const [index, call] of callsOf(move, nth).entries()) {
    const text = call.function.arguments;
    delta({ tool_calls: [{ index, id: call.id, type: 'function', function: { name: call.function.name, arguments: '' } }] });
    for (let at = 0; at < text.length; at += 11)
      delta({ tool_calls: [{ index, function: { arguments: text.slice(at, at + 11) } }] });
  }
  delta({}, move.calls ? 'tool_calls' : 'stop');
  send([], { usage: USAGE });
  response.end('data: [DONE]\n\n');
}
