import { once } from 'node:events';
import http from 'node:http';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect } from 'chai';
import protobuf from 'protobufjs';
import { PACKAGE_ROOT } from '../../../config/package-root.ts';
import { startGateway, type TestGateway } from '../../support/gateways/gateway.ts';
import { pluginFile } from '../../support/plugins/plugin-file.ts';
import { completion, delta, usageOf } from '../../support/vendors/openai-vendor.ts';
import {
  respondWith,
  type ScriptedUpstream,
  sse,
  startScriptedUpstream,
} from '../../support/vendors/scripted-upstream.ts';
import { eventually, until } from '../../support/wait.ts';

/** Published message definitions, which decode this plugin's hand-written encoding. */
const PROTO = path.join(PACKAGE_ROOT, 'test/fixtures/opentelemetry');
const root = new protobuf.Root();
root.resolvePath = (_origin, target) => path.join(PROTO, target);
root.loadSync([
  'opentelemetry/proto/collector/trace/v1/trace_service.proto',
  'opentelemetry/proto/collector/metrics/v1/metrics_service.proto',
]);

interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly traceState?: string;
  readonly name: string;
  readonly kind: string | number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[];
  readonly status?: { readonly code?: string | number; readonly message?: string };
}

/** Collector that stores decoded requests; the first `refuse` requests get a 503. */
async function startCollector() {
  const received: { path: string; type: string; headers: http.IncomingHttpHeaders; body: Record<string, unknown> }[] =
    [];
  let refusals = 0;
  const server = http.createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    if (refusals > 0) {
      refusals -= 1;
      response.writeHead(503).end();
      return;
    }
    const bytes = gunzipSync(Buffer.concat(chunks));
    const type = String(request.headers['content-type']);
    const name =
      request.url === '/v1/traces' ? 'trace.v1.ExportTraceServiceRequest' : 'metrics.v1.ExportMetricsServiceRequest';
    const message = root.lookupType(`opentelemetry.proto.collector.${name}`);
    const body =
      type === 'application/json'
        ? (JSON.parse(bytes.toString()) as Record<string, unknown>)
        : message.toObject(message.decode(bytes), { longs: String, enums: Number, bytes: String });
    received.push({ path: String(request.url), type, headers: request.headers, body });
    response.writeHead(200, { 'content-type': type }).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  return {
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`,
    received,
    refuse(times: number) {
      refusals = times;
    },
    /** All spans except those of hooks, which depend on the machine's load; ids in hexadecimal. */
    spans(): readonly Span[] {
      return this.all().filter(({ name }) => !name.startsWith('hook '));
    },
    all(): readonly Span[] {
      return received
        .filter((each) => each.path === '/v1/traces')
        .flatMap(({ body, type }) =>
          ((body['resourceSpans'] ?? []) as { scopeSpans: { spans: Span[] }[] }[])
            .flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans))
            .map((span) => (type === 'application/json' ? span : withHexIds(span))),
        );
    },
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

function withHexIds(span: Span): Span {
  const hex = (text: string | undefined): string => Buffer.from(text ?? '', 'base64').toString('hex');
  return { ...span, traceId: hex(span.traceId), spanId: hex(span.spanId), parentSpanId: hex(span.parentSpanId) };
}

const valuesOf = ({ attributes }: Span): Readonly<Record<string, unknown>> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = 'b7ad6b7169203331';
const FROM_CALLER = { traceparent: `00-${TRACE}-${PARENT}-01`, tracestate: 'rojo=00f067aa0ba902b7' };

describe('the policy otel', () => {
  let vendor: ScriptedUpstream;
  let collector: Awaited<ReturnType<typeof startCollector>>;
  let gateway: TestGateway;
  let stopped = false;

  const start = async (
    otel: object,
    more: Record<string, object> = {},
    files: Record<string, string> = {},
  ): Promise<void> => {
    vendor = await startScriptedUpstream();
    collector = await startCollector();
    stopped = false;
    const model = { plugin: 'openai-compatible', apiKey: 'k', models: ['*'] };
    const config = {
      providers: {
        echo: {},
        main: { ...model, baseUrl: vendor.url },
        dead: { ...model, baseUrl: 'http://127.0.0.1:9' },
      },
      models: { both: ['dead/m', 'main/m'] },
      agents: { team: { model: 'echo/echo' } },
      policies: { otel: { endpoint: collector.url, ...otel }, ...more },
    };
    gateway = await startGateway(config, { files });
  };
  /** A gateway sends its buffered data when it stops. */
  const stop = async (): Promise<void> => {
    if (!stopped) await gateway.stop();
    stopped = true;
  };
  afterEach(async () => {
    await stop();
    await collector.close();
    await vendor.close();
  });

  const send = async (body: object, headers: Readonly<Record<string, string>> = {}): Promise<number> => {
    const messages = [{ role: 'user', content: 'the plan with the key sk-abcdefghijklmnopqrstuvwx' }];
    const response = await gateway.post('/v1/chat/completions', { messages, ...body }, headers);
    await response.text();
    return response.status;
  };

  for (const protocol of ['protobuf', 'json'] as const)
    it(`sends a call and its attempts as spans of the caller's trace, over ${protocol} (E74)`, async () => {
      await start({
        protocol,
        headers: { 'x-key': 'for-the-collector' },
        attributes: { 'deployment.environment.name': 'test' },
      });
      vendor.script(respondWith(200, completion('fine', { usage: usageOf(12, 3) })));
      expect(await send({ model: 'both', temperature: 0.5, max_tokens: 64 }, FROM_CALLER)).to.equal(200);
      await stop();
      const [posted] = collector.received;
      expect(posted?.headers['x-key']).to.equal('for-the-collector');
      const spans = collector.spans();
      expect(spans.map(({ name }) => name)).to.deep.equal(['chat m', 'attempt dead/m', 'attempt main/m']);
      const [call, failed, response] = spans as readonly [Span, Span, Span];
      for (const { traceId } of spans) expect(traceId).to.equal(TRACE);
      expect(call).to.include({ parentSpanId: PARENT, traceState: FROM_CALLER.tracestate, kind: 3 });
      for (const { parentSpanId } of [failed, response]) expect(parentSpanId).to.equal(call.spanId);
      for (const { startTimeUnixNano, endTimeUnixNano } of spans)
        expect(BigInt(endTimeUnixNano) >= BigInt(startTimeUnixNano) && BigInt(startTimeUnixNano) > 10n ** 18n).to.equal(
          true,
        );
      expect(failed.status?.code).to.equal(2);
      expect(valuesOf(failed)).to.include({ 'gen_ai.provider.name': 'dead' }).and.have.property('error.type');
      expect(valuesOf(response)).to.include({ 'gen_ai.provider.name': 'main' });
      const values = valuesOf(call);
      expect(values).to.include({
        'gen_ai.operation.name': 'chat',
        'gen_ai.provider.name': 'main',
        'gen_ai.request.model': 'm',
        'gen_ai.request.temperature': 0.5,
        'tollgate.requested_model': 'both',
        'tollgate.outcome': 'ok',
      });
      // Hook actions: the plugin's own hook sent the trace to each vendor.
      expect(JSON.stringify(values['tollgate.hooks']).match(/otel send changed/g)).to.have.length(2);
      expect(String(values['gen_ai.usage.input_tokens'])).to.equal('12');
      expect(String(values['gen_ai.usage.output_tokens'])).to.equal('3');
      expect(String(values['gen_ai.request.max_tokens'])).to.equal('64');
      expect(JSON.stringify(collector.received)).to.not.include('the plan').and.not.include(gateway.key);
      // Spans of the provider belong to its attempt.
      expect(vendor.requests.at(-1)?.headers).to.include({
        traceparent: `00-${TRACE}-${response.spanId}-01`,
        tracestate: FROM_CALLER.tracestate,
      });
    });

  it('has a span for each hook that a call waited for over a millisecond, whatever it did, and for no other', async () => {
    const wait = 'await new Promise((resolve) => setTimeout(resolve, 30));';
    const slow = pluginFile({
      name: 'slow',
      kind: 'policy',
      setup: `api.hook('admit', async () => { ${wait} });
        api.hook('prepare', (call, request) => ({ ...request }));
        api.hook('reserve', async () => { ${wait} throw new Error('broken'); });`,
    });
    await start({}, { slow: { plugin: './slow.mjs' } }, { 'slow.mjs': slow });
    expect(await send({ model: 'echo/echo' })).to.equal(500);
    await stop();
    const spans = collector.all();
    const call = spans.find(({ name }) => name.startsWith('chat'));
    const own = spans.filter((span) => valuesOf(span)['tollgate.plugin'] === 'slow');
    expect(own.map(({ name }) => name)).to.deep.equal(['hook slow admit', 'hook slow reserve']);
    for (const { traceId, parentSpanId, startTimeUnixNano, endTimeUnixNano } of own) {
      expect([traceId, parentSpanId]).to.deep.equal([call?.traceId, call?.spanId]);
      expect(Number(BigInt(endTimeUnixNano) - BigInt(startTimeUnixNano)) / 1e6).to.be.at.least(29);
      expect(BigInt(startTimeUnixNano) >= BigInt(call?.startTimeUnixNano ?? 0)).to.equal(true);
      expect(BigInt(endTimeUnixNano) <= BigInt(call?.endTimeUnixNano ?? 0)).to.equal(true);
    }
  });

  it('creates a trace for a caller without one, with its id in the log and in the record, and follows streams to their end', async () => {
    await start({});
    vendor.script(sse(delta('one'), delta(' two', 'stop', { usage: usageOf(2, 2) }), '[DONE]'));
    expect(await send({ model: 'main/m', stream: true })).to.equal(200);
    await stop();
    const [call] = collector.spans();
    expect(call?.parentSpanId ?? '').to.equal('');
    expect(valuesOf(call as Span))
      .to.include({ 'gen_ai.request.stream': true })
      .and.have.property('gen_ai.response.time_to_first_chunk');
    const line = gateway.logs.find(({ msg }) => msg === 'request');
    expect(line?.['trace_id'])
      .to.equal(call?.traceId)
      .and.match(/^[\da-f]{32}$/);
  });

  it('puts the calls of agents under a span of their request', async () => {
    await start({});
    const response = await gateway.post('/api/core/agent', { message: 'hello there' }, FROM_CALLER);
    await response.text();
    await stop();
    const spans = collector.spans();
    const request = spans.find(({ name }) => name.startsWith('invoke_agent'));
    expect(request).to.include({ parentSpanId: PARENT, traceId: TRACE });
    const calls = spans.filter(({ name }) => name.startsWith('chat '));
    expect(calls.length).to.be.above(0);
    for (const { parentSpanId } of calls) expect(parentSpanId).to.equal(request?.spanId);
  });

  it('sends the configured share, and failures regardless of the share', async () => {
    await start({ sample: 0 });
    vendor.script(respondWith(200, completion()), respondWith(400, { error: { message: 'bad' } }));
    expect(await send({ model: 'main/m' })).to.equal(200);
    expect(vendor.requests[0]?.headers['traceparent']).to.match(/-00$/);
    expect(await send({ model: 'main/m' })).to.equal(400);
    await stop();
    const calls = collector.spans().filter(({ name }) => name.startsWith('chat'));
    expect(calls.map((span) => valuesOf(span)['tollgate.outcome'])).to.deep.equal(['error']);
  });

  for (const [content, shown] of [
    ['redacted', false],
    ['full', true],
  ] as const)
    it(`sends prompts and responses if configured: ${content}`, async () => {
      await start({ content });
      vendor.script(respondWith(200, completion('the answer')), sse(delta('the '), delta('stream', 'stop'), '[DONE]'));
      await send({ model: 'main/m' });
      await send({ model: 'main/m', stream: true });
      await stop();
      const [first, second] = collector
        .spans()
        .filter(({ name }) => name.startsWith('chat'))
        .map(valuesOf);
      expect(first?.['gen_ai.input.messages']).to.include('the plan');
      expect(String(first?.['gen_ai.input.messages']).includes('sk-abcdefghijklmnopqrstuvwx')).to.equal(shown);
      expect(first?.['gen_ai.output.messages']).to.include('the answer');
      expect(second?.['gen_ai.output.messages']).to.include('the stream');
    });

  it('retries an unresponsive collector, and loses nothing @slow', async () => {
    await start({});
    collector.refuse(1);
    vendor.script(respondWith(200, completion()));
    await send({ model: 'main/m' });
    await until('the spans are there', () => collector.spans().length > 0);
    expect(collector.spans().map(({ name }) => name)).to.deep.equal(['chat m', 'attempt main/m']);
  });

  it('reports duration, tokens and the time to the first content as histograms', async () => {
    await start({ metrics: 3600 });
    vendor.script(respondWith(200, completion('fine', { usage: usageOf(12, 3) })));
    await send({ model: 'main/m' });
    await stop();
    const sent = collector.received.find((each) => each.path === '/v1/metrics');
    const { resourceMetrics = [] } = (sent?.body ?? {}) as Partial<Metrics>;
    const metrics = resourceMetrics[0]?.scopeMetrics[0]?.metrics ?? [];
    expect(metrics.map(({ name }) => name)).to.deep.equal([
      'gen_ai.client.operation.duration',
      'gen_ai.client.token.usage',
    ]);
    const points = metrics[1]?.histogram.dataPoints ?? [];
    expect(points.map(({ sum, count }) => [sum, String(count)])).to.deep.equal([
      [12, '1'],
      [3, '1'],
    ]);
    expect(points[0]?.bucketCounts.map(Number).reduce((all, each) => all + each)).to.equal(1);
  });
});

/** Request for each route, and the responses of a vendor with OpenAI's format by path. */
const WAYS: Readonly<Record<string, unknown>> = {
  '/v1/chat/completions': { model: 'main/m', messages: [{ role: 'user', content: 'x' }] },
  '/v1/messages': { model: 'main/m', max_tokens: 9, messages: [{ role: 'user', content: 'x' }] },
  '/v1/responses': { model: 'main/m', input: 'x' },
  '/v1/completions': { model: 'main/m', prompt: 'x' },
  '/v1beta/models/main%2Fm:generateContent': { contents: [{ role: 'user', parts: [{ text: 'x' }] }] },
  '/v1beta/models/main%2Fm:embedContent': { content: { parts: [{ text: 'x' }] } },
  '/v1/embeddings': { model: 'main/m', input: 'x' },
  '/v1/images/generations': { model: 'main/m', prompt: 'x' },
  '/v1/moderations': { model: 'main/m', input: 'x' },
  '/v1/rerank': { model: 'main/m', query: 'x', documents: ['y'] },
  '/v1/audio/transcriptions': formOf({ model: 'main/m' }),
  '/openai/deployments/main%2Fm/chat/completions': { messages: [{ role: 'user', content: 'x' }] },
};

function formOf(fields: Readonly<Record<string, string>>): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.set(name, value);
  form.set('file', new Blob(['RIFF']), 'a.wav');
  return form;
}

const RESPONSES: Readonly<Record<string, unknown>> = {
  embeddings: { object: 'list', model: 'm', data: [{ object: 'embedding', index: 0, embedding: [0.5] }] },
  generations: { created: 1, data: [{ b64_json: 'AA==' }] },
  moderations: { id: 'x', model: 'm', results: [{ flagged: false, categories: {}, category_scores: {} }] },
  rerank: { results: [{ index: 0, relevance_score: 0.5 }] },
  transcriptions: { text: 'x' },
};

describe('a trace without the policy otel (E74)', () => {
  for (const [path, body] of Object.entries(WAYS))
    it(`goes from ${path} to the vendor, the log and the record`, async () => {
      const vendor = await startScriptedUpstream((wire) => {
        const last = wire.request.path.split('/').at(-1) ?? '';
        return wire.send(respondWith(200, RESPONSES[last] ?? completion()));
      });
      const provider = { plugin: 'openai-compatible', apiKey: 'k', models: ['*'], baseUrl: vendor.url };
      const gateway = await startGateway({ providers: { main: provider } });
      try {
        const isForm = body instanceof FormData;
        const response = await fetch(gateway.url + path, {
          method: 'POST',
          headers: {
            ...(path.includes('deployments') ? { 'api-key': gateway.key } : { authorization: `Bearer ${gateway.key}` }),
            ...(isForm ? {} : { 'content-type': 'application/json' }),
            ...FROM_CALLER,
          },
          body: isForm ? body : JSON.stringify(body),
        });
        expect([response.status, await response.text()]).to.have.property('0', 200);
        expect(vendor.requests[0]?.headers).to.include(FROM_CALLER);
        const id = response.headers.get('x-request-id');
        await eventually(async () => {
          const found = await gateway.get(`/api/core/calls?request=${id}`);
          const { data } = (await found.json()) as { data: readonly { trace_id?: string }[] };
          expect(data.map(({ trace_id }) => trace_id)).to.deep.equal([TRACE]);
          const lines = gateway.logs.filter((line) => line['req_id'] === id || line['request_id'] === id);
          expect(lines.map((line) => line['trace_id'])).to.include(TRACE);
        });
      } finally {
        await gateway.stop();
        await vendor.close();
      }
    });

  it('is passed to the vendor unchanged, and into the record of the call', async () => {
    const vendor = await startScriptedUpstream(respondWith(200, completion()));
    const provider = { plugin: 'openai-compatible', apiKey: 'k', models: ['*'], baseUrl: vendor.url };
    const gateway = await startGateway({ providers: { main: provider } });
    try {
      const body = { model: 'main/m', messages: [{ role: 'user', content: 'x' }] };
      const response = await gateway.post('/v1/chat/completions', body, FROM_CALLER);
      const requestId = response.headers.get('x-request-id');
      expect(vendor.requests[0]?.headers).to.include(FROM_CALLER);
      await eventually(async () => {
        const found = await gateway.get(`/api/core/calls?request=${requestId}`);
        const { data } = (await found.json()) as { data: readonly { trace_id?: string }[] };
        expect(data.map(({ trace_id }) => trace_id)).to.deep.equal([TRACE]);
      });
      await gateway.post('/v1/chat/completions', body, { traceparent: `00-${TRACE}-0000000000000000-01` });
      expect(vendor.requests.at(-1)?.headers).to.not.have.property('traceparent');
    } finally {
      await gateway.stop();
      await vendor.close();
    }
  });
});

interface Metrics {
  readonly resourceMetrics: readonly {
    readonly scopeMetrics: readonly {
      readonly metrics: readonly {
        readonly name: string;
        readonly histogram: {
          readonly dataPoints: readonly {
            readonly sum: number;
            readonly count: string;
            readonly bucketCounts: readonly string[];
          }[];
        };
      }[];
    }[];
  }[];
}
