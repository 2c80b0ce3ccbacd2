/** Requests responses from a gateway as clients do, as JSON or as a stream. */
import { WebSocket } from 'ws';
import { readEvents, type Written } from '../formats/responses-dialect.ts';
import { type Event, findDisorder } from '../formats/responses-grammar.ts';
import type { TestGateway } from '../gateways/gateway.ts';
import type { IngressRig } from '../gateways/ingress-rig.ts';
import { until } from '../wait.ts';

export interface ResponsesReply {
  readonly status: number;
  readonly headers: Headers;
  /** Response, or the one in a stream's last event. */
  readonly response: Written;
  /** Events of a stream. */
  readonly events: readonly Event[];
  readonly text: string;
}

/** Posts a body; throws if a stream is out of order. */
export async function createResponse(
  rig: IngressRig,
  body: object,
  headers: Record<string, string> = {},
): Promise<ResponsesReply> {
  const reply = await rig.gateway.post('/v1/responses', { input: 'Hi', ...body }, headers);
  const text = await reply.text();
  const isStream = reply.headers.get('content-type')?.startsWith('text/event-stream') === true;
  const events = isStream ? readEvents(text) : [];
  const disorder = isStream ? findDisorder(events) : [];
  if (disorder.length > 0) throw new Error(disorder.join('\n'));
  const response = (isStream ? events.at(-1)?.['response'] : JSON.parse(text)) as Written;
  return { status: reply.status, headers: reply.headers, response, events, text };
}

/** Parts of an item that are equal in every wire format. */
export function gistOf({ output }: Written): readonly (readonly unknown[])[] {
  return output.map((item) => {
    const { type, status, name, call_id: id, arguments: args, input, summary, content } = item;
    const [part] = (content ?? summary ?? []) as readonly { readonly text?: string }[];
    if (type === 'reasoning') return [type, part?.text];
    return type === 'message' ? [type, status, part?.text] : [type, status, name, id, args ?? input];
  });
}

/** Client of the Responses websocket, and all events it received. */
export interface ResponsesSocket {
  readonly socket: WebSocket;
  readonly events: readonly Event[];
  /** Sends a message; returns the events of its response, or only the error. */
  create(body: object): Promise<readonly Event[]>;
}

const ENDS = /^(?:error|response\.(?:completed|incomplete|failed))$/;

/** Throws with the status of a rejected upgrade. */
export async function openResponses(gateway: TestGateway, key = gateway.key): Promise<ResponsesSocket> {
  const headers = { authorization: `Bearer ${key}`, 'openai-beta': 'responses_websockets=2026-02-06' };
  const socket = new WebSocket(`${gateway.url.replace('http', 'ws')}/v1/responses`, { headers });
  const events: Event[] = [];
  socket.on('message', (data) => events.push(JSON.parse(String(data)) as Event));
  let refused: string | undefined;
  socket.on('error', ({ message }) => {
    refused = message;
  });
  await until('the websocket is open', () => refused !== undefined || socket.readyState === WebSocket.OPEN);
  if (refused !== undefined) throw new Error(refused);
  return {
    ...{ socket, events },
    async create(body) {
      const from = events.length;
      socket.send(JSON.stringify({ type: 'response.create', ...body }));
      await until('the response is over', () => events.slice(from).some(({ type }) => ENDS.test(type)));
      return events.slice(from);
    },
  };
}
