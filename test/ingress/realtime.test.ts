import http from 'node:http';
import path from 'node:path';
import { mock } from 'node:test';
import { expect } from 'chai';
import OpenAI from 'openai';
import { OpenAIRealtimeWS } from 'openai/realtime/ws';
import { loadConfig } from '../../config/load-config.ts';
import { readBooks, settledBooks } from '../support/clients/books.ts';
import { openRealtime, type RealtimeClient, refusedRealtime } from '../support/clients/realtime-client.ts';
import { portOf } from '../support/clients/tls-client.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { createSelfSigned } from '../support/identity/self-signed.ts';
import { startTunnelProxy } from '../support/processes/tunnel-proxy.ts';
import {
  type Event,
  type RealtimeVendor,
  respond,
  responseEvents,
  SESSION,
  startRealtimeVendor,
  usageOf,
  type VendorSession,
} from '../support/vendors/realtime-vendor.ts';
import { until } from '../support/wait.ts';

/** Prices in micro-dollars per token, so that all sums are integers. */
const PRICE = {
  ...{ input: 4, output: 24, cached_input: 1, image_input: 5, cached_image_input: 3 },
  ...{ audio_input: 32, cached_audio_input: 2, audio_output: 64 },
};
const CREATE = { type: 'response.create' };
const MANUAL = {
  type: 'session.update',
  session: { type: 'realtime', audio: { input: { turn_detection: null } } },
};

describe('the realtime websocket', () => {
  let vendor: RealtimeVendor;
  let gateway: TestGateway | undefined;

  before(async () => {
    vendor = await startRealtimeVendor();
  });
  afterEach(async () => {
    await gateway?.stop();
    gateway = undefined;
    vendor.reset();
  });
  after(() => vendor.close());

  const start = async (config: Record<string, unknown> = {}, provider: object = {}): Promise<TestGateway> => {
    gateway = await startGateway({
      providers: {
        openai: { apiKey: 'sk-operator-0123456789', baseUrl: `${vendor.url}/v1`, prices: { '*': PRICE }, ...provider },
        anthropic: { apiKey: 'x' },
      },
      models: { voice: 'openai/gpt-realtime-2' },
      ...config,
    });
    return gateway;
  };
  const theVendor = async (at = 0): Promise<VendorSession> => {
    await until('the vendor has a websocket', () => vendor.sessions.length > at);
    return vendor.sessions[at] as VendorSession;
  };
  const records = async (own: TestGateway) =>
    ((await own.command<{ data: Event[] }>('calls', '--limit', '50')).data ?? []).filter(
      ({ operation }) => operation === 'realtime',
    );

  it('passes text both ways, opened with the operator’s key and the model behind an alias', async () => {
    const own = await start();
    const client = await openRealtime(own, { model: 'voice' });
    const created = await client.got('session.created');
    expect(created['session']).to.deep.equal(SESSION);
    client.send({
      type: 'conversation.item.create',
      item: { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hi' }] },
    });
    client.send(CREATE);
    expect((await client.got('response.output_text.delta'))['delta']).to.equal('fine');
    await client.got('response.done');
    const session = await theVendor();
    expect(session.url).to.equal('/v1/realtime?model=gpt-realtime-2');
    expect(session.headers.authorization).to.equal('Bearer sk-operator-0123456789');
    expect(session.events.map(({ type }) => type)).to.deep.equal(['conversation.item.create', 'response.create']);
    // 100 tokens read at 4, 10 written at 24.
    expect((await settledBooks(own.url, own.key)).spent).to.equal(640);
    client.socket.close();
    await until('the vendor is left', () => session.code !== undefined);
  });

  it('serves OpenAI’s own client over TLS, with a function call and its result', async () => {
    const certificate = createSelfSigned();
    gateway = await startGateway(
      {
        server: { port: 0, drainTimeout: '2s', tls: { cert: 'tls.crt', key: 'tls.key' } },
        providers: { openai: { apiKey: 'sk-x', baseUrl: `${vendor.url}/v1` } },
      },
      { files: { 'tls.crt': certificate.cert, 'tls.key': certificate.key } },
    );
    const call = { name: 'weather', call_id: 'call_1', arguments: '{"city":"Oslo"}' };
    let requestCount = 0;
    vendor.onEvent = (event, session) => {
      if (event['type'] !== 'response.create') return respond(event, session);
      requestCount += 1;
      session.send(
        ...responseEvents(`resp_${requestCount}`, {
          ...(requestCount === 1 ? { call } : { text: 'Rain.' }),
          usage: usageOf({ text_tokens: 10 }, { text_tokens: 5 }),
        }),
      );
    };
    const client = new OpenAI({ apiKey: gateway.key, baseURL: `https://localhost:${portOf(gateway.url)}/v1` });
    const realtime = new OpenAIRealtimeWS(
      { model: 'openai/gpt-realtime-2', options: { ca: certificate.cert } },
      client,
    );
    const text = await new Promise<string>((resolve, reject) => {
      realtime.on('error', reject);
      realtime.on('session.created', () => {
        realtime.send({
          type: 'session.update',
          session: {
            type: 'realtime',
            output_modalities: ['text'],
            tools: [{ type: 'function', name: 'weather', parameters: { type: 'object' } }],
          },
        });
        realtime.send({ type: 'response.create' });
      });
      realtime.on('response.function_call_arguments.done', ({ call_id }) => {
        realtime.send({
          type: 'conversation.item.create',
          item: { type: 'function_call_output', call_id, output: 'rain' },
        });
      });
      realtime.on('response.done', ({ response }) => {
        if (response.id === 'resp_1')
          realtime.send({ type: 'response.create', response: { instructions: 'Be short.' } });
        else realtime.close();
      });
      realtime.on('response.output_text.delta', ({ delta }) => resolve(delta));
    });
    expect(text).to.equal('Rain.');
    const { events } = await theVendor();
    expect(events.map(({ type }) => type)).to.deep.equal([
      ...['session.update', 'response.create', 'conversation.item.create', 'response.create'],
    ]);
    expect(events[3]).to.deep.include({ response: { instructions: 'Be short.' } });
  });

  it('passes audio byte for byte, and charges each kind of token by its own rate', async () => {
    const own = await start();
    const sound = Array.from({ length: 40 }, (_, at) => Buffer.alloc(4800, at).toString('base64'));
    const usage = usageOf(
      {
        ...{ text_tokens: 1000, audio_tokens: 2000, image_tokens: 300, cached_tokens: 1600 },
        cached_tokens_details: { text_tokens: 500, audio_tokens: 1000, image_tokens: 100 },
      },
      { text_tokens: 50, audio_tokens: 800 },
    );
    vendor.onEvent = (event, session) => {
      if (event['type'] === 'input_audio_buffer.commit')
        session.send(...responseEvents('resp_heard', { audio: sound, usage }));
    };
    const client = await openRealtime(own);
    await client.got('session.created');
    for (const audio of sound) client.send({ type: 'input_audio_buffer.append', audio });
    client.send({ type: 'input_audio_buffer.commit' });
    await client.got('response.done');
    const heard = client.events.filter(({ type }) => type === 'response.output_audio.delta');
    expect(heard.map(({ delta }) => delta)).to.deep.equal(sound);
    const { events } = await theVendor();
    expect(events.flatMap(({ audio }) => audio ?? [])).to.deep.equal(sound);
    // 500 of text at 4, 500 cached at 1; 1,000 of sound at 32, 1,000 cached at 2; 200 of images at 5, 100 cached at 3;
    // 50 at 24 and 800 at 64.
    const cost = 500 * 4 + 500 + 1000 * 32 + 1000 * 2 + 200 * 5 + 100 * 3 + 50 * 24 + 800 * 64;
    expect((await settledBooks(own.url, own.key)).spent).to.equal(cost);
  });

  it('reads the key of a web page from its subprotocol, and passes it on to no one', async () => {
    const own = await start({ server: { port: 0, cors: { origins: ['https://app.example'] } } });
    const client = await openRealtime(own, {
      header: false,
      protocols: ['realtime', `openai-insecure-api-key.${own.key}`],
    });
    expect(client.socket.protocol).to.equal('realtime');
    client.send(CREATE);
    await client.got('response.done');
    const session = await theVendor();
    expect(JSON.stringify([session.headers, session.events, client.texts])).not.to.include(own.key);
    expect(own.logText()).not.to.include(own.key);
    client.socket.close();
  });

  it('refuses the same requests as a chat before it opens, in the common format', async () => {
    const own = await start();
    const { api_key: small } = await own.command<{ api_key: string }>(
      'keys',
      'create',
      '--user',
      'u_1',
      '--models',
      'openai/gpt-5.4',
    );
    const of = (key: string) => ({ authorization: `Bearer ${key}` });
    const path = '/v1/realtime?model=openai/gpt-realtime-2';
    for (const [status, code, at, headers] of [
      [401, 'invalid_api_key', path, of('tg_wrong')],
      [401, 'missing_api_key', path, {}],
      [403, 'model_not_allowed', path, of(small)],
      [400, 'invalid_request', '/v1/realtime', undefined],
      [400, 'invalid_request', '/v1/realtime?call_id=rtc_1', undefined],
      [404, 'unsupported_provider', '/v1/realtime?model=anthropic/claude-opus-4-8', undefined],
      [404, 'unsupported_model', '/v1/realtime?model=openai/nothing', undefined],
    ] as const) {
      const refused = await refusedRealtime(own, at, headers);
      expect([refused.status, refused.error['code']], at).to.deep.equal([status, code]);
    }
    const { error } = await refusedRealtime(own, '/v1/realtime?model=anthropic/claude-opus-4-8');
    expect(error['message']).to.equal('The provider "anthropic" does not support realtime; use one of openai.');
    const plain = await own.get(path);
    expect(plain.status).to.equal(426);
    for (const each of ['client_secrets', 'calls', 'sessions']) {
      const response = await own.post(`/v1/realtime/${each}`, {});
      const body = (await response.json()) as { error: { message: string } };
      expect(response.status, each).to.equal(404);
      expect(body.error.message).to.include('Open the websocket at /v1/realtime?model=');
    }
    expect(vendor.sessions).to.have.length(0);
  });

  it('reports a vendor’s rejection of the handshake as for a chat', async () => {
    const own = await start();
    const error = { message: 'Incorrect API key provided: sk-operator-0123456789.', type: 'x', code: 'x' };
    for (const [status, expected, code] of [
      [401, 503, 'provider_auth_failed'],
      [404, 404, 'unsupported_model'],
      [500, 503, 'provider_unavailable'],
    ] as const) {
      vendor.refusal = {
        status,
        body: {
          error: status === 404 ? { ...error, message: 'The model does not exist.', code: 'model_not_found' } : error,
        },
      };
      const refused = await refusedRealtime(own);
      expect([refused.status, refused.error['code']]).to.deep.equal([expected, code]);
      expect(JSON.stringify(refused.error)).not.to.include('sk-operator');
    }
    expect((await settledBooks(own.url, own.key)).spent).to.equal(0);
  });

  describe('limits events to the caller’s rights', () => {
    let shared: TestGateway;
    before(async () => {
      shared = await start();
      gateway = undefined;
    });
    after(() => shared.stop());
    const refused = async (event: Event | string): Promise<Event> => {
      const client = await openRealtime(shared);
      await client.got('session.created');
      if (typeof event === 'string') client.socket.send(event);
      else client.send(event);
      const reported = await client.got('error');
      client.send(CREATE);
      await client.got('response.done');
      const session = await theVendor();
      expect(session.events.map(({ type }) => type)).to.deep.equal(['response.create']);
      client.socket.close();
      return reported['error'] as Event;
    };
    const mcp = [{ type: 'mcp', server_label: 'x', server_url: 'https://evil.example' }];
    const image = (image_url: string) => ({
      type: 'conversation.item.create',
      item: { type: 'message', role: 'user', content: [{ type: 'input_image', image_url }] },
    });
    const cases: readonly (readonly [title: string, event: Event | string, code: string, param: string | null])[] = [
      [
        'tools of the vendor’s in a session',
        { type: 'session.update', event_id: 'e', session: { type: 'realtime', tools: mcp } },
        'permission_denied',
        'tools',
      ],
      [
        'tools of the vendor’s in a response',
        { ...CREATE, event_id: 'e', response: { tools: mcp } },
        'permission_denied',
        'tools',
      ],
      [
        'another model',
        { type: 'session.update', event_id: 'e', session: { type: 'realtime', model: 'gpt-5.4' } },
        'invalid_request',
        'session.model',
      ],
      [
        'a session of another kind',
        { type: 'session.update', session: { type: 'transcription' } },
        'invalid_request',
        'session.type',
      ],
      [
        'a prompt of the operator’s account',
        { type: 'session.update', session: { prompt: { id: 'pmpt_1' } } },
        'invalid_request',
        'prompt',
      ],
      [
        'traces in the operator’s account',
        { type: 'session.update', session: { tracing: 'auto' } },
        'invalid_request',
        'tracing',
      ],
      [
        'an approval of a tool',
        { type: 'conversation.item.create', item: { type: 'mcp_approval_response', approve: true } },
        'permission_denied',
        'item',
      ],
      [
        'an image on an inner network',
        image('http://169.254.169.254/x.png'),
        'invalid_request',
        'item.content[0].image_url',
      ],
      [
        'an image by http in what a response is to be made of',
        { ...CREATE, response: { input: [image('http://example.com/x.png').item] } },
        'invalid_request',
        'input[0].content[0].image_url',
      ],
      ['an unknown event', { type: 'output.everything' }, 'invalid_request', 'type'],
      ['a name in another case', { type: 'session.update', session: { Tools: mcp } }, 'invalid_request', 'Tools'],
      [
        'a name that reaches a prototype',
        '{"type":"response.create","__proto__":{"a":1}}',
        'invalid_json',
        '__proto__',
      ],
      [
        'what is nested too deeply',
        `{"type":"response.create","response":${'{"a":'.repeat(100)}1${'}'.repeat(101)}`,
        'invalid_json',
        null,
      ],
      ['what is no JSON', '{', 'invalid_json', null],
    ];
    for (const [title, event, code, param] of cases)
      it(`and refuses ${title}, after which the session continues`, async () => {
        const error = await refused(event);
        expect([error['code'], error['param']]).to.deep.equal([code, param]);
        if (typeof event !== 'string') expect(error['event_id']).to.equal(event['event_id'] ?? null);
      });

    it('and accepts tools that a plan allows, and a transcription model', async () => {
      const own = await start({ plans: { open: { serverTools: ['mcp'] } }, defaultPlan: 'open' });
      const client = await openRealtime(own);
      client.send({
        type: 'session.update',
        session: {
          type: 'realtime',
          model: 'gpt-realtime-2',
          tools: mcp,
          audio: { input: { transcription: { model: 'gpt-4o-transcribe' } } },
        },
      });
      await client.got('session.updated');
      const { events } = await theVendor();
      expect(events[0]?.['session']).to.not.have.property('model');
      expect(events[0]?.['session']).to.deep.include({ tools: mcp });
      client.socket.close();
    });

    it('and closes on an oversized event', async () => {
      const own = await start({ operations: { realtime: { maxEventSize: '100kb' } } });
      const client = await openRealtime(own);
      client.send({ type: 'input_audio_buffer.append', audio: 'A'.repeat(200_000) });
      expect(await client.closed()).to.equal(1009);
      await until('the vendor is left', () => vendor.sessions[0]?.code !== undefined);
    });
  });

  describe('reserves the maximum cost of a response', () => {
    const keyWith = async (own: TestGateway, usd: string) =>
      (await own.command<{ api_key: string }>('keys', 'create', '--user', 'local', '--budget', usd)).api_key;

    it('and ends the session when the money ends', async () => {
      const own = await start();
      // A response costs at most 1,000 tokens at 24; each one costs 640.
      const key = await keyWith(own, '0.0255');
      const client = await openRealtime(own, { key });
      const response = { max_output_tokens: 1000, output_modalities: ['text'] };
      client.send(MANUAL);
      await client.got('session.updated');
      client.send({ ...CREATE, response });
      await client.got('response.done');
      client.send({ ...CREATE, response });
      await client.got('response.done', 2);
      await settledBooks(own.url, key);
      client.send({ ...CREATE, response });
      const { error } = await client.got('error');
      expect(error).to.include({ code: 'insufficient_balance', type: 'insufficient_quota' });
      expect(await client.closed()).to.equal(1008);
      const session = await theVendor();
      await until('the vendor is left', () => session.code !== undefined);
      expect(session.events.filter(({ type }) => type === 'response.create')).to.have.length(2);
      expect((await settledBooks(own.url, own.key)).spent).to.equal(1280);
    });

    it('and sends the rest as the limit of a response without one, up to the vendors’ maximum', async () => {
      const own = await start();
      const client = await openRealtime(own, { key: await keyWith(own, '0.1') });
      client.send({ ...CREATE, response: { max_output_tokens: 'inf', instructions: 'Be short.' } });
      await client.got('response.done');
      const { events } = await theVendor();
      const [{ response }] = events as [Event];
      // 0.1 USD is 1,562 tokens of speech at 64.
      expect(response.max_output_tokens).to.be.within(1500, 1562);
      expect(response.instructions).to.equal('Be short.');
      client.send({ ...CREATE, response: { max_output_tokens: 300 } });
      await client.got('response.done', 2);
      expect(events[1]?.['response']).to.deep.equal({ max_output_tokens: 300 });
      client.socket.close();
      const richer = await openRealtime(own, { key: await keyWith(own, '1') });
      richer.send(CREATE);
      await richer.got('response.done');
      expect((await theVendor(1)).events[0]?.['response']).to.deep.equal({ max_output_tokens: 4096 });
      richer.socket.close();
    });

    it('and sends the maximum of the policy max-cost as the limit of a response without one', async () => {
      const own = await start({ policies: { 'max-cost': { usd: '0.05' } } });
      const client = await openRealtime(own);
      client.send(CREATE);
      await client.got('response.done');
      expect((await theVendor()).events[0]?.['response'].max_output_tokens).to.be.within(770, 781);
      client.send({ ...CREATE, response: { max_output_tokens: 4096 } });
      expect((await client.got('error'))['error'].message).to.match(/Limit the output to 7\d\d tokens/);
      client.socket.close();
    });

    it('of many sessions at once, which together spend no more than the balance', async () => {
      const own = await start({ billing: 'enforce' });
      await own.command('accounts', 'credit', 'local', '2');
      const clients = await Promise.all(Array.from({ length: 16 }, () => openRealtime(own)));
      const requests: [Event, VendorSession][] = [];
      vendor.onEvent = (event, session) => void requests.push([event, session]);
      for (const client of clients) client.send(CREATE);
      const reported = () => clients.flatMap(({ events }) => events.filter(({ type }) => type === 'error'));
      await until(
        'all have gone to the vendor or were refused',
        () => requests.length + reported().length === clients.length,
      );
      const codes = new Set(reported().map(({ error }) => error.code));
      expect([...codes]).to.deep.equal(['rate_limited']);
      const limits = requests.map(([{ response }]) => Number(response.max_output_tokens));
      // Each reserves 4,096 tokens of speech at 64, until less is left.
      expect(limits.filter((limit) => limit === 4096)).to.have.length(7);
      expect(Math.min(...limits)).to.be.at.least(256);
      for (const [{ response }, session] of requests) {
        const usage = usageOf({ text_tokens: 1 }, { audio_tokens: response.max_output_tokens });
        session.send(...responseEvents(`resp_${requests.length}`, { audio: ['AAAA'], usage }));
      }
      const spent = limits.reduce((sum, limit) => sum + 4 + limit * 64, 0);
      await until('they are charged', async () => (await settledBooks(own.url, own.key)).spent === spent);
      expect(spent).to.be.at.most(2_000_000);
      for (const { socket } of clients) socket.close();
    });

    it('before audio is passed on to which the vendor responds automatically', async () => {
      const own = await start();
      const client = await openRealtime(own, { key: await keyWith(own, '0.01') });
      await client.got('session.created');
      client.send({ type: 'input_audio_buffer.append', audio: 'AAAA' });
      expect((await client.got('error'))['error']).to.include({ code: 'insufficient_balance' });
      expect(await client.closed()).to.equal(1008);
      expect((await theVendor()).events).to.have.length(0);
    });

    it('and charges it if the vendor disconnects in the middle', async () => {
      const own = await start();
      vendor.onEvent = (event, session) => {
        if (event['type'] === 'session.update') return respond(event, session);
        session.send(...responseEvents('resp_half', { text: 'ha' }).slice(0, 3));
        session.socket.terminate();
      };
      const client = await openRealtime(own);
      client.send(MANUAL);
      await client.got('session.updated');
      client.send({ ...CREATE, response: { max_output_tokens: 1000, output_modalities: ['text'] } });
      expect((await client.got('error'))['error']).to.include({ code: 'provider_unavailable' });
      expect(await client.closed()).to.equal(1011);
      const { spent } = await settledBooks(own.url, own.key);
      expect(spent).to.be.within(24_000, 26_000);
    });

    it('and charges the vendor’s usage when its client disconnects in the middle', async () => {
      const own = await start();
      vendor.onEvent = (event, session) => {
        if (event['type'] === 'response.create')
          session.send(...responseEvents('resp_long', { text: 'ha' }).slice(0, 3));
        if (event['type'] === 'response.cancel')
          session.send(
            ...responseEvents('resp_long', {
              status: 'cancelled',
              usage: usageOf({ text_tokens: 100 }, { text_tokens: 2 }),
            }).slice(-1),
          );
      };
      const client = await openRealtime(own);
      client.send(CREATE);
      await client.got('response.output_text.delta');
      client.socket.terminate();
      const session = await theVendor();
      await until('the vendor is left', () => session.code !== undefined);
      expect(session.events.map(({ type }) => type)).to.deep.equal(['response.create', 'response.cancel']);
      expect((await settledBooks(own.url, own.key)).spent).to.equal(448);
      const [last] = await records(own);
      expect(last).to.include({ operation: 'realtime', model: 'gpt-realtime-2' });
    });

    it('and nothing for a refused one', async () => {
      const own = await start();
      vendor.onEvent = (event, session) =>
        session.send({
          type: 'error',
          error: {
            type: 'invalid_request_error',
            code: 'conversation_already_has_active_response',
            message: 'No.',
            param: null,
            event_id: event['event_id'],
          },
        });
      const client = await openRealtime(own);
      client.send({ ...CREATE, event_id: 'mine' });
      expect((await client.got('error'))['error']).to.include({
        code: 'conversation_already_has_active_response',
        event_id: 'mine',
      });
      client.socket.close();
      expect((await settledBooks(own.url, own.key)).spent).to.equal(0);
    });

    it('and charges the transcription of the caller by the price of its model', async () => {
      const own = await start(
        {},
        { prices: { 'gpt-realtime': PRICE, 'gpt-4o-transcribe': { input: 2, output: 10, audio_input: 6 } } },
      );
      vendor.onEvent = (event, session) => {
        respond(event, session);
        if (event['type'] === 'input_audio_buffer.commit')
          session.send({
            type: 'conversation.item.input_audio_transcription.completed',
            ...{ item_id: 'item_1', content_index: 0, transcript: 'Hi' },
            usage: {
              type: 'tokens',
              input_tokens: 30,
              output_tokens: 5,
              total_tokens: 35,
              input_token_details: { audio_tokens: 20, text_tokens: 10 },
            },
          });
      };
      const client = await openRealtime(own);
      client.send({
        type: 'session.update',
        session: {
          type: 'realtime',
          audio: { input: { turn_detection: null, transcription: { model: 'gpt-4o-transcribe' } } },
        },
      });
      await client.got('session.updated');
      client.send({ type: 'input_audio_buffer.append', audio: 'AAAA' });
      client.send({ type: 'input_audio_buffer.commit' });
      await client.got('conversation.item.input_audio_transcription.completed');
      client.socket.close();
      // 10 at 2, 20 of sound at 6, 5 at 10.
      await until('it is charged', async () => (await settledBooks(own.url, own.key)).spent === 190);
      const [last] = await records(own);
      expect(last).to.include({ model: 'gpt-4o-transcribe' });
    });
  });

  describe('reserves the cost of transcriptions (G17)', () => {
    /** A minute of sound is 600 tokens; billed by the second it is 60 at 0.001 USD. */
    const MINUTE = Buffer.alloc(600 * 4800).toString('base64');
    const append = (audio = MINUTE) => ({ type: 'input_audio_buffer.append', audio });
    const COMMIT = { type: 'input_audio_buffer.commit' };
    const WHISPER = { 'gpt-realtime': PRICE, 'whisper-1': { input: 0, output: 0, fees: { seconds: 0.001 } } };
    const TRANSCRIBE = {
      type: 'session.update',
      session: { type: 'realtime', audio: { input: { turn_detection: null, transcription: { model: 'whisper-1' } } } },
    };
    const completed = (item: number, usage?: object): Event => ({
      type: 'conversation.item.input_audio_transcription.completed',
      ...{ item_id: `item_${item}`, content_index: 0, transcript: 'Hi', usage },
    });
    /** Vendor that commits items, and transcribes each by default. */
    const transcribe = (usage: object | undefined = { type: 'duration', seconds: 60 }, isDone = true) => {
      let item = 0;
      vendor.onEvent = (event, session) => {
        respond(event, session);
        if (event['type'] !== COMMIT.type) return;
        item += 1;
        session.send({ type: 'input_audio_buffer.committed', item_id: `item_${item}`, previous_item_id: null });
        if (isDone) session.send(completed(item, usage));
      };
    };
    const open = async (own: TestGateway, usd?: string) => {
      const key = usd === undefined ? own.key : (await own.command<{ api_key: string }>(...budget(usd))).api_key;
      const client = await openRealtime(own, { key });
      client.send(TRANSCRIBE);
      await client.got('session.updated');
      return { client, key };
    };
    const budget = (usd: string) => ['keys', 'create', '--user', 'local', '--budget', usd] as const;
    const minute = async (client: RealtimeClient, count: number): Promise<void> => {
      client.send(append());
      client.send(COMMIT);
      await client.got('conversation.item.input_audio_transcription.completed', count);
    };

    it('and ends the session when the money does, before more audio is passed on', async () => {
      const own = await start({}, { prices: WHISPER });
      transcribe();
      const { client, key } = await open(own, '0.13');
      await minute(client, 1);
      await minute(client, 2);
      await until('both are charged', async () => (await settledBooks(own.url, key)).spent === 120_000);
      client.send(append());
      const { error } = await client.got('error');
      expect(error).to.include({ code: 'insufficient_balance', type: 'insufficient_quota' });
      expect(await client.closed()).to.equal(1008);
      const heard = (await theVendor()).events.filter(({ type }) => type === 'input_audio_buffer.append');
      expect(heard).to.have.length(2);
      expect((await settledBooks(own.url, own.key)).spent).to.equal(120_000);
    });

    it('and releases it if nothing is transcribed', async () => {
      const own = await start({}, { prices: WHISPER });
      transcribe(undefined, false);
      const { client } = await open(own);
      client.send(append('AAAA'));
      const session = await theVendor();
      await until('the sound has come', () => session.events.some(({ type }) => type === 'input_audio_buffer.append'));
      expect((await readBooks(own.url, own.key)).held).to.equal(60_000);
      client.socket.close();
      expect(await settledBooks(own.url, own.key)).to.include({ spent: 0, held: 0 });
    });

    it('and charges audio whose transcription the vendor did not report', async () => {
      const own = await start({}, { prices: WHISPER });
      let spent = 0;
      for (const usage of [{ type: 'duration', seconds: 1e308 }, { input_tokens: 1e308, output_tokens: 5 }, {}]) {
        transcribe(usage);
        const { client } = await open(own);
        await minute(client, 1);
        spent += 60_000;
        await until('it is charged', async () => (await settledBooks(own.url, own.key)).spent === spent);
        client.socket.close();
      }
    });

    for (const [title, leave] of [
      ['its client is gone @slow', (client: RealtimeClient) => client.socket.terminate()],
      ['the vendor closes', () => vendor.sessions.at(-1)?.socket.terminate()],
    ] as const)
      it(`and charges the committed audio when ${title}`, async () => {
        const own = await start({}, { prices: WHISPER });
        transcribe(undefined, false);
        const { client } = await open(own);
        client.send(append());
        client.send(COMMIT);
        await client.got('input_audio_buffer.committed');
        leave(client);
        await until('it is charged', async () => (await settledBooks(own.url, own.key)).spent === 60_000);
      });

    const update = (transcription: object | null) => ({
      type: 'session.update',
      session: { type: 'realtime', audio: { input: { turn_detection: null, transcription } } },
    });
    const heard = ({ events }: VendorSession) => events.filter(({ type }) => type === 'input_audio_buffer.append');

    it('and refuses a model that the provider does not have, whatever its price, after which the session continues', async () => {
      const own = await start({}, { prices: { ...WHISPER, whisper: { input: 1, output: 1 } } });
      transcribe();
      const client = await openRealtime(own);
      client.send({ ...update({ model: 'whisper' }), event_id: 'mine' });
      const { error } = await client.got('error');
      expect(error).to.include({ code: 'invalid_request', event_id: 'mine' });
      expect(error.param).to.equal('session.audio.input.transcription.model');
      expect(error.message).to.include('"whisper-1"');
      client.send(TRANSCRIBE);
      await client.got('session.updated');
      await minute(client, 1);
      const updates = (await theVendor()).events.filter(({ type }) => type === 'session.update');
      expect(updates).to.have.length(1);
      client.socket.close();
    });

    it('and ends the session of a model without a price under enforcement, at the first audio', async () => {
      const own = await start({ billing: 'enforce' }, { prices: { 'gpt-realtime': PRICE } });
      await own.command('accounts', 'credit', 'local', '2');
      const client = await openRealtime(own);
      client.send(update({ model: 'gpt-99-transcribe' }));
      await client.got('session.updated');
      client.send(append('AAAA'));
      const { error } = await client.got('error');
      expect(error.message).to.include('gpt-99-transcribe').and.to.include('price');
      expect(await client.closed()).to.equal(1008);
      expect(heard(await theVendor())).to.have.length(0);
    });

    it('also while an update that enables it is pending', async () => {
      const own = await start({}, { prices: WHISPER });
      transcribe(undefined, false);
      const responses: (() => void)[] = [];
      vendor.onEvent = (event, session) => {
        if (event['type'] === 'session.update') responses.push(() => respond(event, session));
      };
      const client = await openRealtime(own);
      client.send(update(null));
      client.send(update({ model: 'whisper-1' }));
      await until('both have come', () => responses.length === 2);
      responses[0]?.();
      await client.got('session.updated');
      client.send(append('AAAA'));
      const session = await theVendor();
      await until('the sound has come', () => heard(session).length === 1);
      expect((await readBooks(own.url, own.key)).held).to.equal(60_000);
      responses[1]?.();
      await client.got('session.updated', 2);
      client.socket.close();
      expect(await settledBooks(own.url, own.key)).to.include({ spent: 0, held: 0 });
    });

    it('and no more once the vendor has refused the update that would enable it', async () => {
      const own = await start({}, { prices: WHISPER });
      const client = await openRealtime(own);
      client.send(update(null));
      await client.got('session.updated');
      vendor.onEvent = ({ type, event_id }, session) => {
        if (type === 'session.update')
          session.send({
            type: 'error',
            error: { type: 'invalid_request_error', code: 'x', message: 'No.', event_id },
          });
      };
      client.send(update({ model: 'whisper-1' }));
      await client.got('error');
      client.send(append('AAAA'));
      const session = await theVendor();
      await until('the sound has come', () => heard(session).length === 1);
      expect((await readBooks(own.url, own.key)).held).to.equal(0);
      client.socket.close();
    });

    it('and charges a transcription that arrives after the money ran out', async () => {
      const own = await start({}, { prices: WHISPER });
      transcribe({ type: 'duration', seconds: 90 });
      const { client, key } = await open(own, '0.06');
      await minute(client, 1);
      await until('it is charged', async () => (await settledBooks(own.url, key)).spent === 90_000);
      (await theVendor()).send(completed(9, { type: 'duration', seconds: 30 }));
      await client.got('conversation.item.input_audio_transcription.completed', 2);
      await until('it is charged too', async () => (await settledBooks(own.url, key)).spent === 120_000);
      client.socket.close();
    });
  });

  it('charges the reservation for a response with impossible usage (G17)', async () => {
    const own = await start();
    vendor.onEvent = (event, session) => {
      if (event['type'] !== 'response.create') return;
      const usage = { ...usageOf({ text_tokens: 1 }, { text_tokens: 1 }), input_tokens: 1e308 };
      session.send(...responseEvents('resp_1', { text: 'ha', usage }));
    };
    const client = await openRealtime(own);
    client.send({ ...CREATE, response: { max_output_tokens: 1000, output_modalities: ['text'] } });
    await client.got('response.done');
    client.socket.close();
    const charged = async (): Promise<boolean> => (await settledBooks(own.url, own.key)).spent > 0;
    await until('it is charged', charged);
    expect((await settledBooks(own.url, own.key)).spent).to.be.within(24_000, 26_000);
  });

  describe('supports a vendor that responds automatically', () => {
    const SAID = usageOf({ audio_tokens: 100 }, { audio_tokens: 10 });
    const append = { type: 'input_audio_buffer.append', audio: 'AAAA' };
    /** Plan of the key, with one concurrent call. */
    const one = { plans: { one: { concurrency: 1 } }, defaultPlan: 'one' };

    it('with a reservation in the meantime, and no charge without a response', async () => {
      const own = await start();
      const client = await openRealtime(own);
      await client.got('session.created');
      client.send(append);
      const session = await theVendor();
      await until('sound has come', () => session.events.length === 1);
      // 600 tokens of sound that may arrive at 32, and 32,000 of speech at 64.
      expect((await readBooks(own.url, own.key)).held).to.be.at.least(600 * 32 + 32_000 * 64);
      client.socket.close();
      expect((await settledBooks(own.url, own.key)).spent).to.equal(0);
    });

    describe('and gets the output limit of a response if money is short', () => {
      const limitsOf = ({ events }: VendorSession) =>
        events.flatMap(({ type, session }) => (type === 'session.update' ? [session.max_output_tokens] : []));
      const openShort = async (output_modalities = ['audio']) => {
        const own = await start();
        const { api_key: key } = await own.command<{ api_key: string }>(
          ...(['keys', 'create', '--user', 'local', '--budget', '0.2'] as const),
        );
        const client = await openRealtime(own, { key });
        client.send({ type: 'session.update', session: { type: 'realtime', output_modalities } });
        await client.got('session.updated');
        const session = await theVendor();
        session.events.length = 0;
        client.send(append);
        await until('sound has come', () => session.events.at(-1)?.['type'] === append.type);
        return { own, client, session, key };
      };

      it('before the audio, and again after its response', async () => {
        const { own, client, session, key } = await openShort();
        // Rest of 0.2 USD after 600 tokens of sound at 32, in tokens at 64.
        const [first] = limitsOf(session);
        expect(first).to.be.within(2700, 2825);
        expect(session.events.map(({ type }) => type)).to.deep.equal(['session.update', append.type]);
        expect((await client.got('session.updated', 2))['session'].max_output_tokens).to.equal(first);
        session.send(...responseEvents('resp_1', { audio: ['AAAA'], usage: SAID }));
        await client.got('response.done');
        await settledBooks(own.url, key);
        client.send(append);
        await until(
          'sound has come again',
          () => session.events.filter(({ type }) => type === append.type).length === 2,
        );
        const [, second] = limitsOf(session);
        expect(second)
          .to.be.below(first)
          .and.above(first - 200);
        client.socket.close();
        expect((await settledBooks(own.url, own.key)).spent).to.equal(100 * 32 + 10 * 64);
      });

      it('which is the maximum cost of one that it starts without speech and interrupts', async () => {
        const { own, client, session } = await openShort();
        const [limit] = limitsOf(session);
        session.send(...responseEvents('resp_1', { audio: ['AAAA'], usage: SAID }));
        await client.got('response.done');
        const said = 100 * 32 + 10 * 64;
        await until('it is charged', async () => (await settledBooks(own.url, own.key)).spent === said);
        session.send(...responseEvents('resp_idle', { audio: ['AAAA'] }).slice(0, 3));
        await client.got('response.output_audio.delta', 2);
        session.socket.terminate();
        expect(await client.closed()).to.equal(1011);
        // Its maximum output, and the 110 tokens of sound that it had read.
        const { spent } = await settledBooks(own.url, own.key);
        expect(spent).to.be.within(said + limit * 64, said + limit * 64 + 200 * 32);
      });

      it('and a lower one before audio output, which is more expensive', async () => {
        const { client, session } = await openShort(['text']);
        // 4,096 tokens of text at 24.
        expect(limitsOf(session)).to.deep.equal([4096]);
        client.send({ type: 'session.update', session: { type: 'realtime', output_modalities: ['audio'] } });
        await until('it is passed on', () => session.events.length === 4);
        const [limit, wanted] = session.events.slice(2).map((event) => event['session']);
        expect(limit.max_output_tokens).to.be.within(2700, 2825);
        expect(wanted).to.deep.equal({ type: 'realtime', output_modalities: ['audio'] });
        client.socket.close();
      });

      it('also when its client sets no limit, while a lower one stays', async () => {
        const { own, client, session } = await openShort();
        const [held] = limitsOf(session);
        const updates = (instructions: string) =>
          session.events.filter((event) => event['session']?.instructions === instructions);
        for (const [instructions, max_output_tokens] of [
          ['none', 'inf'],
          ['much', 4000],
          ['small', 400],
        ] as const)
          client.send({ type: 'session.update', session: { type: 'realtime', instructions, max_output_tokens } });
        await until('they are passed on', () => updates('small').length === 1);
        const limits = limitsOf(session);
        // An update's addition to the prompt is reserved too, so each limit is slightly lower.
        expect(limits).to.deep.equal([...limits.slice(0, -1).sort((a, b) => b - a), 400]);
        expect(limits[0]).to.equal(held);
        for (const name of ['none', 'much'])
          expect(updates(name)[0]?.['session'].max_output_tokens).to.be.within(2500, held);
        await until('the last is known', () => client.events.at(-1)?.['session']?.max_output_tokens === 400);
        client.send(CREATE);
        await client.got('response.done');
        expect(session.events.at(-1)).to.not.have.property('response');
        client.socket.close();
        expect((await settledBooks(own.url, own.key)).spent).to.equal(640);
      });
    });

    it('and takes turns with its client’s requests, as one concurrent call', async () => {
      const own = await start(one);
      let number = 0;
      vendor.onEvent = (event, session) => {
        if (event['type'] === 'input_audio_buffer.append' || event['type'] === 'response.create')
          session.send(...responseEvents(`resp_${++number}`, { audio: ['AAAA'], usage: SAID }));
      };
      const client = await openRealtime(own);
      await client.got('session.created');
      client.send(append);
      await client.got('response.done');
      vendor.onEvent = (event, session) => {
        if (event['type'] === 'response.create')
          session.send(...responseEvents('resp_last', { audio: ['AAAA'], usage: SAID }));
      };
      await settledBooks(own.url, own.key);
      client.send(append);
      client.send(CREATE);
      await client.got('response.done', 2);
      expect(client.events.filter(({ type }) => type === 'error')).to.deep.equal([]);
      client.socket.close();
      expect((await settledBooks(own.url, own.key)).spent).to.equal(2 * (100 * 32 + 10 * 64));
    });

    it('and charges a response that it starts without speech', async () => {
      const own = await start();
      const client = await openRealtime(own);
      await client.got('session.created');
      (await theVendor()).send(...responseEvents('resp_idle', { audio: ['AAAA'], usage: SAID }));
      await client.got('response.done');
      await until('it is charged', async () => (await settledBooks(own.url, own.key)).spent === 3840);
      client.socket.close();
    });
  });

  it('goes to the next target of an alias if the first refuses the handshake, and through a proxy', async () => {
    const refusing = await startRealtimeVendor();
    refusing.refusal = { status: 500, body: { error: { message: 'No.' } } };
    const proxy = await startTunnelProxy(Number(new URL(vendor.url).port));
    try {
      const prices = { '*': PRICE };
      const own = await start({
        providers: {
          first: { plugin: 'openai', apiKey: 'sk-1', baseUrl: `${refusing.url}/v1`, prices },
          second: { plugin: 'openai', apiKey: 'sk-2', baseUrl: 'http://vendor.example/v1', proxy: proxy.url, prices },
        },
        models: { voice: ['first/gpt-realtime-2', 'second/gpt-realtime-2'] },
      });
      const client = await openRealtime(own, { model: 'voice' });
      client.send(CREATE);
      await client.got('response.done');
      expect(proxy.requests.map(({ address }) => address)).to.deep.equal(['vendor.example:80']);
      expect((await theVendor()).headers.authorization).to.equal('Bearer sk-2');
      client.socket.close();
      expect((await settledBooks(own.url, own.key)).spent).to.equal(640);
      expect(own.logs.filter(({ msg, kind }) => msg === 'realtime call' && kind === 'response')).to.have.length(1);
    } finally {
      await proxy.close();
      await refusing.close();
    }
  });

  describe('limits open sessions', () => {
    beforeEach(() => mock.timers.enable({ apis: ['setInterval', 'Date'], now: Date.now() }));
    afterEach(async () => {
      await gateway?.stop();
      gateway = undefined;
      mock.timers.reset();
    });
    const openWith = async (options: object) => {
      const own = await start({ operations: { realtime: options } });
      const client = await openRealtime(own);
      await client.got('session.created');
      return { client, session: await theVendor() };
    };
    const CLEAR = { type: 'input_audio_buffer.clear' };

    it('and closes one at its maximum age, even if it is active', async () => {
      const { client, session } = await openWith({ maxDuration: '9s' });
      mock.timers.tick(5000);
      client.send(CREATE);
      await client.got('response.done');
      mock.timers.tick(5000);
      expect((await client.got('error'))['error']).to.include({ code: 'request_timeout' });
      expect(await client.closed()).to.equal(1000);
      expect(client.reason).to.equal('maximum age reached');
      await until('the vendor is left', () => session.code !== undefined);
    });

    it('and closes an idle one after the timeout', async () => {
      const { client, session } = await openWith({ idleTimeout: '9s' });
      mock.timers.tick(5000);
      client.send(CLEAR);
      await until('it is passed on', () => session.events.length === 1);
      mock.timers.tick(5000);
      session.send({ type: 'input_audio_buffer.cleared' });
      await client.got('input_audio_buffer.cleared');
      mock.timers.tick(5000);
      expect(client.code).to.equal(undefined);
      mock.timers.tick(5000);
      expect(await client.closed()).to.equal(1000);
      expect(client.reason).to.equal('idle');
      await until('the vendor is left', () => session.code !== undefined);
    });

    it('and disconnects only a client that does not answer a ping', async () => {
      const { client, session } = await openWith({});
      const dead = await openRealtime(gateway as TestGateway);
      const left = await theVendor(1);
      dead.socket.pause();
      let pings = 0;
      client.socket.on('ping', () => (pings += 1));
      mock.timers.tick(30_000);
      await until('it was asked', () => pings === 1);
      client.send(CLEAR);
      await until('its pong has come with it', () => session.events.length === 1);
      mock.timers.tick(30_000);
      await until('the vendor of the other is left', () => left.code !== undefined);
      await until('it was asked again', () => pings === 2);
      client.send(CLEAR);
      await until('it goes on', () => session.events.length === 2);
    });
  });

  it('closes on binary frames, on invalid UTF-8, and on binary frames of its vendor', async () => {
    const own = await start();
    for (const [code, spoil] of [
      [1003, ({ socket }: RealtimeClient) => socket.send(Buffer.from('{}'), { binary: true })],
      [1007, ({ socket }: RealtimeClient) => socket.send(Buffer.from([0x22, 0xff, 0x22]), { binary: false })],
      [1011, (_: RealtimeClient, { socket }: VendorSession) => socket.send(Buffer.from('{}'), { binary: true })],
    ] as const) {
      const client = await openRealtime(own);
      const session = await theVendor(vendor.sessions.length - 1);
      spoil(client, session);
      expect(await client.closed()).to.equal(code);
      await until('the vendor is left', () => session.code !== undefined);
      expect(session.events).to.deep.equal([]);
    }
    expect((await settledBooks(own.url, own.key)).spent).to.equal(0);
  });

  it('disconnects from the vendor if the handshake of its client is invalid', async () => {
    const own = await start();
    const status = await new Promise((resolve, reject) => {
      const headers = {
        ...{ authorization: `Bearer ${own.key}`, connection: 'Upgrade', upgrade: 'websocket' },
        ...{ 'sec-websocket-version': '13', 'sec-websocket-key': 'short' },
      };
      const request = http.get(`${own.url}/v1/realtime?model=openai/gpt-realtime-2`, { headers });
      request.on('error', reject).on('response', (response) => resolve(response.resume().statusCode));
    });
    expect(status).to.equal(400);
    const session = await theVendor();
    await until('the vendor is left', () => session.code !== undefined);
  });

  it('allows 16 sessions per key, and 64 per user', async () => {
    const own = await start();
    const openAll = async (key: string) => {
      const clients = await Promise.all(Array.from({ length: 16 }, () => openRealtime(own, { key })));
      const refused = await refusedRealtime(own, undefined, { authorization: `Bearer ${key}` });
      return { clients, refused };
    };
    const refusals = [];
    for (let at = 0; at < 4; at += 1) {
      const { api_key: key } = await own.command<{ api_key: string }>('keys', 'create', '--user', 'many');
      refusals.push(await openAll(key));
    }
    for (const { refused } of refusals) {
      expect([refused.status, refused.error['code']]).to.deep.equal([429, 'rate_limited']);
      expect(refused.error['message']).to.include('Limit of 16 realtime websockets per key');
      expect(refused.headers['retry-after']).to.equal('5');
    }
    const { api_key: fifth } = await own.command<{ api_key: string }>('keys', 'create', '--user', 'many');
    const of = { authorization: `Bearer ${fifth}` };
    expect((await refusedRealtime(own, undefined, of)).error['message']).to.include(
      'Limit of 64 realtime websockets per user',
    );
    await openRealtime(own);
    refusals[0]?.clients[0]?.socket.close();
    await until('its vendor is left', () => vendor.sessions.some(({ code }) => code !== undefined));
    await until('there is room again', () =>
      openRealtime(own, { key: fifth }).then(
        () => true,
        () => false,
      ),
    );
    for (const { clients } of refusals) for (const { socket } of clients) socket.terminate();
  });

  it('reports a reached limit, and continues', async () => {
    const own = await start({ plans: { few: { rpm: 2 } }, defaultPlan: 'few' });
    const client = await openRealtime(own);
    client.send(CREATE);
    await client.got('response.done');
    client.send({ ...CREATE, event_id: 'third' });
    expect((await client.got('error'))['error']).to.include({ code: 'rate_limited', event_id: 'third' });
    client.send({ type: 'input_audio_buffer.clear' });
    const { events } = await theVendor();
    await until('it goes on', () => events.at(-1)?.['type'] === 'input_audio_buffer.clear');
    client.socket.close();
  });

  for (const [name, config] of Object.entries({
    words: { words: ['forbidden'] },
    pii: { action: 'mask' },
    injection: {},
    topics: { model: 'openai/gpt-5', denied: ['law'] },
    'http-guardrail': { url: 'http://127.0.0.1:9/' },
    'http-hook': { url: 'http://127.0.0.1:9/', hooks: ['prepare'] },
  }))
    it(`G66: is refused to callers whose texts ${name} checks`, async () => {
      const own = await start({ policies: { [name]: config } });
      const { status, error } = await refusedRealtime(own);
      expect([status, error['code']]).to.deep.equal([403, 'permission_denied']);
      expect(error['message']).to.include(`"${name}"`);
    });

  it('ends at the next response with a key that was revoked @slow', async () => {
    const own = await start();
    const made = await own.command<{ api_key: string; api_key_info: { id: string } }>(
      'keys',
      'create',
      '--user',
      'local',
    );
    const key = made.api_key;
    const client = await openRealtime(own, { key });
    client.send(CREATE);
    await client.got('response.done');
    await own.command('keys', 'revoke', made.api_key_info.id);
    // The lookup of a key is cached for a short time.
    await until(
      'it is refused',
      async () => (await own.get('/v1/models', { authorization: `Bearer ${key}` })).status === 401,
    );
    client.send(CREATE);
    expect((await client.got('error'))['error']).to.include({ code: 'revoked_api_key' });
    expect(await client.closed()).to.equal(1008);
    expect((await theVendor()).events.map(({ type }) => type)).to.deep.equal(['response.create']);
  });

  it('notifies its clients of a drain, and lets a response end first', async () => {
    const own = await start();
    let finish = (): void => {};
    vendor.onEvent = (event, session) => {
      if (event['type'] !== 'response.create') return;
      const [created, ...rest] = responseEvents('resp_1', {
        text: 'ha',
        usage: usageOf({ text_tokens: 100 }, { text_tokens: 10 }),
      });
      session.send(created as Event);
      finish = () => session.send(...rest);
    };
    const client = await openRealtime(own);
    client.send(CREATE);
    await client.got('response.created');
    const stopped = own.stop();
    gateway = undefined;
    finish();
    await client.got('response.done');
    expect((await client.got('error'))['error']).to.include({ code: 'shutting_down' });
    expect(await client.closed()).to.equal(1001);
    await stopped;
  });

  it('survives a reload of the configuration', async () => {
    const own = await start();
    const client = await openRealtime(own);
    client.send(CREATE);
    await client.got('response.done');
    const configPath = path.join(own.folder, 'tollgate.config.json');
    await own.use(await loadConfig({ cwd: own.folder, env: {}, configPath }));
    client.send(CREATE);
    await client.got('response.done', 2);
    client.socket.close();
    expect((await settledBooks(own.url, own.key)).spent).to.equal(1280);
  });
});
