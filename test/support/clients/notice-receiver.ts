import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { eventually } from '../wait.ts';

/** Request that a receiver of notices received. */
export interface GotNotice {
  readonly headers: http.IncomingHttpHeaders;
  readonly text: string;
  /** Body as JSON. */
  readonly body: Readonly<Record<string, unknown>>;
}

/** Server on the loopback that stores received notices. */
export interface NoticeReceiver {
  readonly url: string;
  readonly got: readonly GotNotice[];
  /** Sets the statuses of the next responses, then 204. 0 never responds. */
  respond(...statuses: readonly number[]): void;
  /** Waits for `count` notices of a type, checks their signatures and returns them. */
  verified(type: string, secret: string, count?: number): Promise<readonly GotNotice['body'][]>;
  close(): Promise<void>;
}

export async function startNoticeReceiver(): Promise<NoticeReceiver> {
  const got: GotNotice[] = [];
  const statuses: number[] = [];
  const server = http.createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const text = Buffer.concat(parts).toString();
    got.push({ headers: request.headers, text, body: JSON.parse(text) as GotNotice['body'] });
    const status = statuses.shift() ?? 204;
    if (status !== 0) response.writeHead(status).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/notices`,
    got,
    respond: (...next) => void statuses.push(...next),
    async verified(type, secret, count = 1) {
      const found = await eventually(async () => {
        const of = got.filter(({ body }) => body['type'] === type);
        expect(of, type).to.have.lengthOf(count);
        return of;
      });
      for (const { headers, text } of found) {
        const [, t = '', v1] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(headers['x-tollgate-signature'])) ?? [];
        expect(v1).to.equal(createHmac('sha256', secret).update(`${t}.${text}`).digest('hex'));
      }
      return found.map(({ body }) => body);
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
