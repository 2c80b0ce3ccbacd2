import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { type Operator, startOperator } from '../support/gateways/operator.ts';
import { eventually } from '../support/wait.ts';

const SECRET = 'a-secret-of-the-receiver';

interface Got {
  readonly path: string;
  readonly headers: http.IncomingHttpHeaders;
  readonly text: string;
}

/** Receiver that refuses its first requests with these statuses. */
async function startReceiver(...statuses: number[]) {
  const got: Got[] = [];
  const server = http.createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const status = statuses.shift() ?? 204;
    if (status === 204)
      got.push({ path: request.url ?? '', headers: request.headers, text: Buffer.concat(parts).toString() });
    response.writeHead(status).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const stop = async (): Promise<void> => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, got, stop };
}

describe('the export of the audit log', () => {
  let webhook: Awaited<ReturnType<typeof startReceiver>>;
  let collector: Awaited<ReturnType<typeof startReceiver>>;
  let operator: Operator;
  before(async () => {
    [webhook, collector] = await Promise.all([startReceiver(503, 400), startReceiver()]);
    operator = await startOperator({
      policies: {
        admin: {
          auditExport: {
            webhook: { url: `${webhook.url}/lines`, secret: SECRET },
            otlp: { endpoint: collector.url, headers: { 'x-tenant': 'ops' } },
          },
        },
      },
    });
  });
  after(async () => {
    await operator?.gateway.stop();
    await Promise.all([webhook?.stop(), collector?.stop()]);
  });

  it('sends each entry of the API and of the command line once, in order, after refusals too @slow', async function () {
    this.timeout(60_000);
    const { body } = await operator.call('POST', '/keys', { user_id: 'ann', name: 'first' });
    await operator.gateway.command('keys', 'block', body.api_key_info.prefix, '--reason', 'leaked');
    const lines = await eventually(async () => {
      const found = webhook.got.flatMap(({ text }) =>
        text
          .trimEnd()
          .split('\n')
          .map((line) => JSON.parse(line)),
      );
      expect(found.length).to.be.at.least(2);
      return found;
    });
    const own = lines.filter(({ subject }) => subject === body.api_key_info.prefix);
    expect(own.map(({ action, actor }) => [action, actor.via])).to.deep.equal([
      ['key.create', 'api'],
      ['key.block', 'cli'],
    ]);
    expect(lines.map(({ id }) => id)).to.deep.equal([...new Set(lines.map(({ id }) => id))].sort());
    expect(JSON.stringify(lines)).to.not.include(body.api_key);
    const [{ headers, text, path } = {} as Got] = webhook.got;
    expect([path, headers['content-type']]).to.deep.equal(['/lines', 'application/x-ndjson']);
    const [, t = '', v1] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(headers['x-tollgate-signature'])) ?? [];
    expect(v1).to.equal(createHmac('sha256', SECRET).update(`${t}.${text}`).digest('hex'));

    await eventually(async () => expect(collector.got.length).to.be.at.least(1));
    const logs = collector.got.flatMap(({ text: sent }) => JSON.parse(sent).resourceLogs[0].scopeLogs[0].logRecords);
    expect(collector.got[0]?.path).to.equal('/v1/logs');
    expect(collector.got[0]?.headers['x-tenant']).to.equal('ops');
    expect(
      logs.map(({ body: { stringValue } }: { body: { stringValue: string } }) => JSON.parse(stringValue).id),
    ).to.include.members(own.map(({ id }) => id));
  });
});
