import { once } from 'node:events';
import http from 'node:http';
import path from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { expect } from 'chai';
import protobuf from 'protobufjs';
import { PACKAGE_ROOT } from '../../../config/package-root.ts';
import { startGateway, type TestGateway } from '../../support/gateways/gateway.ts';

const PROTO = path.join(PACKAGE_ROOT, 'test/fixtures/opentelemetry');
const root = new protobuf.Root();
root.resolvePath = (_origin, target) => path.join(PROTO, target);
root.loadSync('opentelemetry/proto/collector/trace/v1/trace_service.proto');
const TRACES = root.lookupType('opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest');

/** Attributes that a program reports about itself, with a false user. */
const CLAIMED = { key: 'user.id', value: { stringValue: 'somebody-else' } };
const SERVICE = { key: 'service.name', value: { stringValue: 'claude-code' } };
const SPAN = { name: 'a tool', traceId: Buffer.alloc(16, 1), spanId: Buffer.alloc(8, 2) };
const MESSAGE = {
  resourceSpans: [
    { resource: { attributes: [CLAIMED, SERVICE], droppedAttributesCount: 3 }, scopeSpans: [{ spans: [SPAN] }] },
    { scopeSpans: [{ spans: [SPAN] }] },
  ],
};
const OWN = { key: 'user.id', value: { stringValue: 'local' } };

describe('telemetry of callers’ programs, handed on by otel.relay', () => {
  let received: { url: string; headers: http.IncomingHttpHeaders; body: Buffer }[];
  let status = 200;
  const collector = http.createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    received.push({ url: request.url ?? '', headers: request.headers, body: gunzipSync(Buffer.concat(chunks)) });
    response.writeHead(status).end();
  });
  let gateway: TestGateway;
  before(async () => {
    collector.listen(0, '127.0.0.1');
    await once(collector, 'listening');
    const address = collector.address();
    const endpoint = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
    gateway = await startGateway({
      policies: { otel: { endpoint, headers: { 'x-collector-key': 'of the operator' }, metrics: 0, relay: true } },
    });
  });
  after(async () => {
    await gateway.stop();
    collector.closeAllConnections();
    collector.close();
  });
  beforeEach(() => {
    received = [];
    status = 200;
  });

  const post = (to: string, body: Buffer | string, headers: Record<string, string> = {}) =>
    fetch(gateway.url + to, {
      ...{ method: 'POST', body },
      headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/x-protobuf', ...headers },
    });
  const encoded = (): Buffer => Buffer.from(TRACES.encode(TRACES.fromObject(MESSAGE)).finish());
  const errorOf = async (response: Response) => ((await response.json()) as { error: { code: string } }).error.code;

  it('has the caller as the user of each resource in protobuf, whatever the program claims', async () => {
    const response = await post('/v1/traces', gzipSync(encoded()), { 'content-encoding': 'gzip' });
    expect([response.status, (await response.arrayBuffer()).byteLength]).to.deep.equal([200, 0]);
    const [one] = received;
    expect(one?.url).to.equal('/v1/traces');
    expect(one?.headers).to.include({ 'x-collector-key': 'of the operator', 'content-type': 'application/x-protobuf' });
    expect(one?.headers).not.to.have.property('authorization');
    const { resourceSpans } = TRACES.toObject(TRACES.decode(one?.body ?? Buffer.alloc(0))) as typeof MESSAGE;
    expect(resourceSpans.map(({ resource }) => resource?.attributes)).to.deep.equal([[SERVICE, OWN], [OWN]]);
    expect(resourceSpans[0]?.resource?.droppedAttributesCount).to.equal(3);
    expect(resourceSpans.map(({ scopeSpans }) => scopeSpans[0]?.spans[0]?.name)).to.deep.equal(['a tool', 'a tool']);
  });

  it('does so in JSON, for metrics and logs too', async () => {
    for (const [to, list] of [
      ['/v1/metrics', 'resourceMetrics'],
      ['/v1/logs', 'resourceLogs'],
    ] as const) {
      const message = { [list]: [{ resource: { attributes: [CLAIMED, SERVICE] }, scope: [1] }] };
      const response = await post(to, JSON.stringify(message), { 'content-type': 'application/json; charset=utf-8' });
      expect([response.status, await response.text()]).to.deep.equal([200, '{}']);
      const { url, body } = received.at(-1) ?? {};
      expect([url, JSON.parse(String(body))]).to.deep.equal([
        to,
        { [list]: [{ resource: { attributes: [SERVICE, OWN] }, scope: [1] }] },
      ]);
    }
  });

  it('accepts nothing without a credential', async () => {
    expect((await post('/v1/traces', encoded(), { authorization: '' })).status).to.equal(401);
    expect(received).to.deep.equal([]);
  });

  it('refuses invalid messages, and oversized ones, also after decompression', async () => {
    const large = Buffer.alloc(5 * 1024 * 1024);
    const json = { 'content-type': 'application/json' };
    const cases: readonly (readonly [string, Buffer | string, Record<string, string>, string])[] = [
      ['no protobuf', Buffer.from([10, 200]), {}, 'invalid_request'],
      ['an endless number', Buffer.alloc(20, 255), {}, 'invalid_request'],
      ['many parts', Buffer.alloc(60_000, Buffer.from([16, 1])), {}, 'invalid_request'],
      ['no JSON', '{', json, 'invalid_request'],
      ['no list', '{"resourceSpans":{}}', json, 'invalid_request'],
      ['another type', 'a=b', { 'content-type': 'text/plain' }, 'invalid_request'],
      ['another packing', encoded(), { 'content-encoding': 'br' }, 'invalid_request'],
      ['no gzip', encoded(), { 'content-encoding': 'gzip' }, 'invalid_request'],
      ['too much', large, {}, 'request_too_large'],
      ['too much inside', gzipSync(large), { 'content-encoding': 'gzip' }, 'request_too_large'],
    ];
    for (const [name, body, headers, code] of cases)
      expect(await errorOf(await post('/v1/traces', body, headers)), name).to.equal(code);
    expect(received).to.deep.equal([]);
  });

  it('reports an unavailable collector, so that the program retries, and a refusal', async () => {
    status = 503;
    const away = await post('/v1/traces', encoded());
    expect([away.status, away.headers.get('retry-after')]).to.deep.equal([503, '30']);
    status = 400;
    expect(await errorOf(await post('/v1/traces', encoded()))).to.equal('invalid_request');
  });
});
