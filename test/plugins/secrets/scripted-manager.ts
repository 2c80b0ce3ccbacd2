import { once } from 'node:events';
import http from 'node:http';

/** Request to a secrets manager. */
export interface ManagerRequest {
  readonly line: string;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
}

/** Server with the published API of a secrets manager; `answers` has the responses by method and path. */
export interface ScriptedManager {
  readonly url: string;
  readonly requests: ManagerRequest[];
  responses: Record<string, (request: ManagerRequest) => readonly [status: number, body: object]>;
  close(): Promise<void>;
}

export async function startScriptedManager(): Promise<ScriptedManager> {
  const requests: ManagerRequest[] = [];
  const server = http.createServer(async (incoming, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const line = `${incoming.method} ${incoming.url}`;
    const request = { line, headers: incoming.headers, body: Buffer.concat(chunks).toString() };
    requests.push(request);
    const [status, body] = manager.responses[line]?.(request) ?? [404, { errors: [] }];
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const manager: ScriptedManager = {
    ...{ url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`, requests, responses: {} },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  return manager;
}

/** Response of KV version 2 to `GET /v1/secret/data/…`. */
export const versioned = (data: object | null) => ({
  ...{ request_id: 'r', lease_id: '', renewable: false, lease_duration: 0 },
  data: { data, metadata: { version: 3, destroyed: false } },
});
