import { WebSocket } from 'ws';
import type { Event } from '../formats/responses-grammar.ts';
import type { TestGateway } from '../gateways/gateway.ts';
import { until } from '../wait.ts';

/** A client of the websocket of responses, and all that it was sent. */
export interface ResponsesSocket {
  readonly socket: WebSocket;
  readonly events: readonly Event[];
  /** Sends a message; returns the events of its response, or the error alone. */
  create(body: object): Promise<readonly Event[]>;
}

const ENDS = /^(?:error|response\.(?:completed|incomplete|failed))$/;

/** Throws with the status of an upgrade that is refused. */
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
