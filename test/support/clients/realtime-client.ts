import http from 'node:http';
import { WebSocket } from 'ws';
import type { TestGateway } from '../gateways/gateway.ts';
import type { Event } from '../vendors/realtime-vendor.ts';
import { until } from '../wait.ts';

/** Client of the realtime websocket, and all events it received. */
export interface RealtimeClient {
  readonly socket: WebSocket;
  readonly events: readonly Event[];
  readonly texts: readonly string[];
  /** Close code; undefined while it is open. */
  readonly code: number | undefined;
  readonly reason: string;
  send(event: Event): void;
  /** Waits for the `count`-th event of a type. Default: the first. */
  got(type: string, count?: number): Promise<Event>;
  closed(): Promise<number | undefined>;
}

const MODEL = 'openai/gpt-realtime-2';

export async function openRealtime(
  gateway: Pick<TestGateway, 'url' | 'key'>,
  { key = gateway.key, model = MODEL, protocols = [] as readonly string[], header = true } = {},
): Promise<RealtimeClient> {
  const url = `${gateway.url.replace('http', 'ws')}/v1/realtime?model=${encodeURIComponent(model)}`;
  const socket = new WebSocket(url, [...protocols], header ? { headers: { authorization: `Bearer ${key}` } } : {});
  const events: Event[] = [];
  const texts: string[] = [];
  let failed: string | undefined;
  let ended: readonly [number, string] | undefined;
  socket.on('message', (data) => {
    texts.push(String(data));
    events.push(JSON.parse(String(data)) as Event);
  });
  socket.on('close', (code, reason) => {
    ended = [code, String(reason)];
  });
  socket.on('error', ({ message }) => {
    failed = message;
  });
  await until('the websocket is open', () => failed !== undefined || socket.readyState === WebSocket.OPEN);
  if (failed !== undefined) throw new Error(failed);
  const ofType = (type: string) => events.filter((event) => event['type'] === type);
  return {
    ...{ socket, events, texts },
    get code() {
      return ended?.[0];
    },
    get reason() {
      return ended?.[1] ?? '';
    },
    send: (event) => socket.send(JSON.stringify(event)),
    async got(type, count = 1) {
      await until(`${type} came`, () => ofType(type).length >= count || ended !== undefined);
      const event = ofType(type)[count - 1];
      if (event) return event;
      throw new Error(`no ${type} came before the websocket was closed with ${ended?.join()}, of ${texts.join('\n')}`);
    },
    async closed() {
      await until('the websocket is closed', () => ended !== undefined);
      return ended?.[0];
    },
  };
}

/** HTTP response to a rejected upgrade. */
export function refusedRealtime(
  gateway: TestGateway,
  path = `/v1/realtime?model=${MODEL}`,
  headers: Record<string, string> = { authorization: `Bearer ${gateway.key}` },
): Promise<{ readonly status: number; readonly error: Event; readonly headers: http.IncomingHttpHeaders }> {
  return new Promise((resolve, reject) => {
    const upgrade = {
      ...{ connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' },
      'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
    };
    const request = http.get(`${gateway.url}${path}`, { headers: { ...upgrade, ...headers } }, async (response) => {
      let text = '';
      for await (const bytes of response) text += String(bytes);
      const { error } = JSON.parse(text) as Event;
      resolve({ status: response.statusCode ?? 0, error: error as Event, headers: response.headers });
    });
    request.on('upgrade', (_response, socket) => {
      socket.destroy();
      reject(new Error('it was accepted'));
    });
    request.on('error', reject);
  });
}
