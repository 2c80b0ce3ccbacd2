import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';

/** Event of any shape. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into events of all kinds
export type Event = Record<string, any>;

/** Websocket at the vendor: received events, and a function to send some. */
export interface VendorSession {
  readonly url: string;
  readonly headers: http.IncomingHttpHeaders;
  readonly events: Event[];
  readonly socket: WebSocket;
  /** Close code; undefined while it is open. */
  code: number | undefined;
  send(...events: readonly Event[]): void;
}

/** Vendor of OpenAI's realtime websocket. */
export interface RealtimeVendor {
  readonly url: string;
  readonly sessions: VendorSession[];
  /** Response that rejects handshakes. */
  refusal: { readonly status: number; readonly body: object } | undefined;
  /** Handles each event. A script must start automatic responses by voice detection itself. */
  onEvent: (event: Event, session: VendorSession) => void;
  /** Disconnects and forgets all sessions, and restores the default behaviour. */
  reset(): void;
  close(): Promise<void>;
}

/**
 * Session as the vendor reports it. Source:
 * https://platform.openai.com/docs/api-reference/realtime-server-events/session/created
 */
export const SESSION = Object.freeze({
  type: 'realtime',
  object: 'realtime.session',
  id: 'sess_C9G5QPteg4UIbotdKLoYQ',
  model: 'gpt-realtime-2',
  output_modalities: ['audio'],
  instructions: 'Be kind.',
  tools: [],
  tool_choice: 'auto',
  max_output_tokens: 'inf',
  tracing: null,
  prompt: null,
  audio: {
    input: {
      format: { type: 'audio/pcm', rate: 24_000 },
      transcription: null,
      noise_reduction: null,
      turn_detection: { type: 'server_vad', threshold: 0.5, create_response: true, interrupt_response: true },
    },
    output: { format: { type: 'audio/pcm', rate: 24_000 }, voice: 'marin', speed: 1 },
  },
});

/** Usage of text only. Source: https://platform.openai.com/docs/api-reference/realtime-server-events/response/done */
export const usageOf = (read: Partial<Event> = {}, wrote: Partial<Event> = {}): Event => {
  const input = { text_tokens: 0, audio_tokens: 0, image_tokens: 0, cached_tokens: 0, ...read };
  const output = { text_tokens: 0, audio_tokens: 0, ...wrote };
  const input_tokens = Number(input.text_tokens) + Number(input.audio_tokens) + Number(input.image_tokens);
  const output_tokens = Number(output.text_tokens) + Number(output.audio_tokens);
  return {
    ...{ input_tokens, output_tokens, total_tokens: input_tokens + output_tokens },
    ...{ input_token_details: input, output_token_details: output },
  };
};

/** Events of a response, in the vendor's order. */
export function responseEvents(
  id: string,
  { text, audio = [], call, usage, status = 'completed' }: Partial<Event> & { readonly usage?: Event | null },
): readonly Event[] {
  const at = { response_id: id, item_id: 'item_1', output_index: 0, content_index: 0 };
  const item = call
    ? { id: 'item_1', type: 'function_call', status: 'completed', ...call }
    : { id: 'item_1', type: 'message', role: 'assistant', status: 'completed', content: [] };
  const sound: readonly Event[] = [...audio].map((delta) => ({ type: 'response.output_audio.delta', ...at, delta }));
  const response = { object: 'realtime.response', id, conversation_id: 'conv_1', output: [] };
  return [
    { type: 'response.created', response: { ...response, status: 'in_progress', usage: null } },
    { type: 'response.output_item.added', response_id: id, output_index: 0, item },
    ...(text === undefined ? [] : [{ type: 'response.output_text.delta', ...at, delta: text }]),
    ...sound,
    ...(call ? [{ type: 'response.function_call_arguments.done', ...at, ...call }] : []),
    { type: 'response.output_item.done', response_id: id, output_index: 0, item },
    { type: 'response.done', response: { ...response, status, output: [item], usage: usage ?? null } },
  ];
}

let number = 0;

/**
 * Starts a vendor that sends `session.created`, confirms updates, and responds with `fine` to each `response.create`.
 */
export async function startRealtimeVendor(): Promise<RealtimeVendor> {
  const server = http.createServer((_request, response) => response.writeHead(404).end());
  const acceptor = new WebSocketServer({ noServer: true });
  const sessions: VendorSession[] = [];
  server.on('upgrade', (request, stream, head) => {
    const { refusal } = vendor;
    if (refusal) {
      const body = JSON.stringify(refusal.body);
      stream.end(
        `HTTP/1.1 ${refusal.status} Refused\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`,
      );
      return;
    }
    acceptor.handleUpgrade(request, stream, head, (socket) => {
      const session: VendorSession = {
        ...{ url: request.url ?? '', headers: request.headers, events: [], socket, code: undefined },
        send(...events) {
          for (const event of events) socket.send(JSON.stringify({ event_id: `event_${++number}`, ...event }));
        },
      };
      sessions.push(session);
      socket.on('message', (data) => {
        const event = JSON.parse(String(data)) as Event;
        session.events.push(event);
        vendor.onEvent(event, session);
      });
      socket.on('close', (code) => {
        session.code = code;
      });
      session.send({ type: 'session.created', session: SESSION });
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const vendor: RealtimeVendor = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    sessions,
    refusal: undefined,
    onEvent: respond,
    reset() {
      for (const { socket } of sessions.splice(0)) socket.terminate();
      vendor.refusal = undefined;
      vendor.onEvent = respond;
    },
    async close() {
      vendor.reset();
      server.close();
      await once(server, 'close');
    },
  };
  return vendor;
}

/** Default behaviour of the vendor. */
export function respond(event: Event, session: VendorSession): void {
  if (event['type'] === 'session.update') {
    const { audio, ...rest } = event['session'] as Event;
    const input = { ...SESSION.audio.input, ...(audio as Event | undefined)?.['input'] };
    session.send({ type: 'session.updated', session: { ...SESSION, ...rest, audio: { ...SESSION.audio, input } } });
  }
  if (event['type'] === 'response.create')
    session.send(
      ...responseEvents(`resp_${++number}`, {
        text: 'fine',
        usage: usageOf({ text_tokens: 100 }, { text_tokens: 10 }),
      }),
    );
}
