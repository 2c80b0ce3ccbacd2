import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import OpenAI from 'openai';
import { definePlugin, type Plugin } from '../../contract/index.ts';
import { createGateway, type Gateway, type GatewayOptions } from '../../core/gateway.ts';
import { makeFolder, removeFolders } from '../support/folders.ts';
import { completion, delta } from '../support/vendors/openai-vendor.ts';
import {
  respondWith,
  type ScriptedUpstream,
  SSE_HEAD,
  sse,
  startScriptedUpstream,
} from '../support/vendors/scripted-upstream.ts';

/** No file may contain any of these. */
const CANARY = {
  key: 'canary-operator-key-4711',
  header: 'canary-operator-header-4712',
  signed: 'canary-signed-token-4713',
  cookie: 'canary-cookie-4714',
  setting: 'canary-setting-of-a-plugin-4715',
  own: 'sk-ant-oat01-canaryOwnSubscription4716',
};

/** Credential that is neither in a request nor in the configuration: it is recognized by its form. */
const JWT = 'eyJhbGciOiJSUzI1NiJ9.eyJjYW5hcnkiOnRydWV9.c2lnbmF0dXJl';

/** All secrets sent to the vendor, in every form in which it could return them. */
const echoed = (): string =>
  Object.values(CANARY)
    .flatMap((secret) => [
      ...[secret, secret.toUpperCase(), encodeURIComponent(secret), Buffer.from(secret).toString('base64')],
      ...[Buffer.from(secret).toString('base64url'), Buffer.from(secret).toString('hex'), `Bearer ${secret}`],
    ])
    .join(' ');

const signs = definePlugin({
  name: 'signs',
  kind: 'provider',
  apiVersion: 1,
  configSchema: {
    type: 'object',
    additionalProperties: false,
    properties: { url: { type: 'string', format: 'url' }, setting: { type: 'string', secret: true } },
    required: ['url'],
  },
  setup(api, { url }) {
    api.provider({
      ...{ specVersion: 1, vendor: 'signs', baseUrl: url, anyModel: true },
      credential: {
        ...{ header: 'authorization', value: undefined, required: false },
        headers: () => ({ authorization: `Bearer ${CANARY.signed}`, cookie: CANARY.cookie }),
      },
      chat: {
        request: (body: object) => ({ path: '/chat', body }),
        response: (body: unknown) => body,
        stream: () => expect.fail('not here'),
      },
      error: (_status: number, body: unknown) => ({ class: 'upstream_error', message: JSON.stringify(body) }),
    } as never);
  },
});

const text = (message: OpenAI.ChatCompletion): string | null | undefined => message.choices[0]?.message.content;

describe('recorded exchanges', () => {
  let vendor: ScriptedUpstream;
  const gateways: Gateway[] = [];
  const start = async (options: Partial<GatewayOptions>, more: object = {}, plugins: readonly Plugin[] = []) => {
    const gateway = await createGateway({
      config: {
        providers: {
          vendor: {
            plugin: 'openai-compatible',
            ...{
              apiKey: CANARY.key,
              baseUrl: `${vendor.url}/v1`,
              models: ['*'],
              headers: { 'x-operator': CANARY.header },
            },
          },
        },
        auth: { 'api-key': { bootstrap: true } },
        logging: { level: 'silent' },
        ...more,
      },
      ...{ plugins, listen: false, cwd: makeFolder(), env: {}, ...options },
    });
    gateways.push(gateway);
    const apiKey = gateway.announcements.find(({ use }) => use === 'key')?.value ?? '';
    const client = new OpenAI({ apiKey, baseURL: 'http://localhost/v1', maxRetries: 0, fetch: gateway.inject });
    const send = (content: string, rest: object = {}) =>
      client.chat.completions.create({
        model: 'vendor/m',
        messages: [{ role: 'user', content }],
        ...rest,
        stream: false,
      });
    return { gateway, apiKey, client, send };
  };
  const stop = async (): Promise<void> => {
    await Promise.all(gateways.splice(0).map((gateway) => gateway.close()));
  };
  const filesOf = (folder: string) => readdirSync(folder).toSorted();

  beforeEach(async () => {
    vendor = await startScriptedUpstream();
  });
  afterEach(async () => {
    await stop();
    await vendor.close();
    removeFolders();
  });

  it('contain the vendor’s response byte for byte, and respond without it, without its key and without any network', async () => {
    const record = makeFolder();
    const first = await start({ record });
    vendor.script(respondWith(200, completion('Good morning')));
    expect(text(await first.send('Hello'))).to.equal('Good morning');
    await stop();
    const [exchange = '', body = ''] = filesOf(record);
    expect([exchange, body]).to.deep.equal(['chat-completions-0001.exchange', 'chat-completions-0001.json']);
    expect(readFileSync(path.join(record, body), 'utf8')).to.equal(JSON.stringify(completion('Good morning')));
    await vendor.close();
    const providers = { vendor: { plugin: 'openai-compatible', baseUrl: `${vendor.url}/v1`, models: ['*'] } };
    const second = await start({ replay: record }, { providers });
    expect(text(await second.send('Hello'))).to.equal('Good morning');
    expect(text(await second.send('Hello'))).to.equal('Good morning');
  });

  it('store the pieces of a stream, and their times if requested', async () => {
    const record = makeFolder();
    const first = await start({ record, times: true });
    const frames = [delta('Good '), delta('morning'), delta('', 'stop')].map((frame) => `data: ${frame}\n\n`);
    vendor.script(sse(delta('Good '), delta('morning'), delta('', 'stop'), '[DONE]'));
    const said: string[] = [];
    const open = (client: OpenAI) =>
      client.chat.completions.create({
        model: 'vendor/m',
        messages: [{ role: 'user', content: 'Hello' }],
        stream: true,
      });
    for await (const { choices } of await open(first.client)) said.push(choices[0]?.delta.content ?? '');
    expect(said.join('')).to.equal('Good morning');
    await stop();
    const { response } = JSON.parse(
      readFileSync(path.join(record, 'stream-chat-completions-0001.exchange'), 'utf8'),
    ) as {
      readonly response: { readonly chunks: readonly number[]; readonly timesMs: readonly number[] };
    };
    const bytes = readFileSync(path.join(record, 'stream-chat-completions-0001.sse'), 'utf8');
    for (const frame of frames) expect(bytes).to.include(frame);
    expect(response.chunks.length).to.equal(response.timesMs.length);
    expect(response.chunks.reduce((sum, length) => sum + length, 0)).to.equal(bytes.length);
    const second = await start({ replay: record, times: true });
    const again: string[] = [];
    for await (const { choices } of await open(second.client)) again.push(choices[0]?.delta.content ?? '');
    expect(again).to.deep.equal(said);
  });

  it('contain no key, token, cookie or credential, whatever the vendor repeats', async () => {
    const record = makeFolder();
    const config = {
      providers: {
        vendor: {
          plugin: 'openai-compatible',
          ...{
            apiKey: CANARY.key,
            baseUrl: `${vendor.url}/v1`,
            models: ['*'],
            headers: { 'x-operator': CANARY.header },
          },
        },
        signs: { url: vendor.url, setting: CANARY.setting },
        anthropic: { apiKey: CANARY.key, baseUrl: vendor.url, passThroughAuth: true },
      },
    };
    const { apiKey, gateway, send } = await start({ record }, config, [signs]);
    const loud = `${echoed()} ${apiKey} ${JWT}`;
    const heads = { 'set-cookie': CANARY.cookie, 'x-request-id': CANARY.key, 'x-ratelimit-limit-requests': CANARY.key };
    // A vendor may return secrets from earlier requests.
    for (const [status, said] of [
      [200, 'fine'],
      [200, loud],
      [400, loud],
      [401, loud],
      [500, loud],
    ] as const) {
      vendor.script(respondWith(status, { ...completion(said), error: { message: said } }, heads));
      await gateway.inject('/v1/messages', {
        method: 'POST',
        headers: { authorization: `Bearer ${CANARY.own}`, 'x-api-key': apiKey, 'content-type': 'application/json' },
        body: JSON.stringify({
          model: 'anthropic/claude-sonnet-5',
          max_tokens: 9,
          messages: [{ role: 'user', content: 'Hello' }],
        }),
      });
      await send(`Hello ${apiKey}`, { model: 'signs/m' }).catch(() => undefined);
      await send(`Hello ${apiKey} ${JWT}`).catch(() => undefined);
    }
    // Chunks end in the middle of each secret.
    vendor.script(async (wire) => {
      await wire.send(SSE_HEAD);
      const whole = `data: ${delta(loud)}\n\n`;
      for (let at = 0; at < whole.length; at += 5) {
        const piece = whole.slice(at, at + 5);
        await wire.send(`${piece.length.toString(16)}\r\n${piece}\r\n`);
      }
      wire.reset();
    });
    const cut = await gateway.inject('/v1/chat/completions', {
      method: 'POST',
      headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'vendor/m', stream: true, messages: [{ role: 'user', content: 'Hello' }] }),
    });
    await cut.text();
    const sent = vendor.requests.map(({ headers }) => JSON.stringify(headers)).join('\n');
    for (const secret of [CANARY.key, CANARY.header, CANARY.signed, CANARY.cookie, CANARY.own])
      expect(sent, 'the vendor gets it').to.include(secret);
    await stop();
    const files = filesOf(record);
    expect(files.length).to.be.greaterThan(20);
    for (const file of files) {
      const held = `${file}\n${readFileSync(path.join(record, file), 'latin1')}`.toLowerCase();
      for (const secret of [...loud.split(' ').filter((word) => word !== 'Bearer'), apiKey])
        expect(held.includes(secret.toLowerCase()), `${file} has ${secret}`).to.equal(false);
    }
  });

  it('are found by method, path and body, whatever the order of its keys; a missing one is reported, with the nearest', async () => {
    const record = makeFolder();
    const first = await start({ record });
    vendor.script(respondWith(200, completion('one')));
    await first.send('Hello', { temperature: 0.5, seed: 1 });
    await first.send('Good evening', { temperature: 0.5, seed: 1, n: 1 });
    await stop();
    const requestCount = vendor.requests.length;
    const second = await start({ replay: record });
    expect(text(await second.send('Hello', { seed: 1, temperature: 0.5 }))).to.equal('one');
    const missing = await second.send('Good night', { seed: 1, temperature: 0.5 }).catch((error: unknown) => error);
    expect(missing).to.be.instanceOf(OpenAI.APIError).and.include({ status: 404, code: 'not_found' });
    expect((missing as Error).message).to.include(
      'No recording found for this request to the provider: POST /v1/chat/completions. The nearest is chat-completions-0001.exchange, which differs in messages[0].content.',
    );
    const elsewhere = await second.client.embeddings
      .create({ model: 'vendor/m', input: 'x' })
      .catch((error: unknown) => error);
    expect((elsewhere as Error).message).to.match(
      /POST \/v1\/embeddings\. Recorded are: POST \/v1\/chat\/completions\./,
    );
    expect(vendor.requests.length).to.equal(requestCount);
  });

  it('repeat failures in their order: an error, then the result of the next attempt', async () => {
    const record = makeFolder();
    const first = await start({ record });
    vendor.script(
      respondWith(500, { error: { message: 'Busy' } }),
      respondWith(200, completion('at last')),
      respondWith(200, completion('later')),
    );
    const codeOf = (error: unknown): unknown => (error as { readonly code: unknown }).code;
    const busy = codeOf(await first.send('Hello').catch((error: unknown) => error));
    expect(text(await first.send('Hello'))).to.equal('at last');
    vendor.script((wire) => wire.reset());
    const broken = await first.send('Broken').catch((error: unknown) => error);
    await stop();
    await vendor.close();
    const second = await start({ replay: record });
    expect(codeOf(await second.send('Hello').catch((error: unknown) => error))).to.equal(busy);
    expect(text(await second.send('Hello'))).to.equal('at last');
    const again = await second.send('Broken').catch((error: unknown) => error);
    expect(codeOf(again)).to.equal(codeOf(broken));
  });

  it('cut a plugin off from the network too in a replay', async () => {
    const record = makeFolder();
    const first = await start({ record });
    vendor.script(respondWith(200, completion('one')));
    await first.send('Hello');
    await stop();
    const caller = definePlugin({
      name: 'asks',
      kind: 'policy',
      apiVersion: 1,
      hosts: [new URL(vendor.url).host],
      setup(api) {
        api.hook('prepare', async (call) => {
          const tries = [(await api.http()).get(vendor.url), api.fetch(vendor.url)];
          const results = await Promise.allSettled(tries);
          call.headers.set('x-tries', results.map(({ status }) => status).join(','));
          return undefined;
        });
      },
    });
    const requestCount = vendor.connections.total;
    const { client } = await start({ replay: record }, {}, [caller]);
    const { response } = await client.chat.completions

      .create({ model: 'vendor/m', messages: [{ role: 'user', content: 'Hello' }], stream: false })
      .withResponse();
    expect(response.headers.get('x-tries')).to.equal('rejected,rejected');
    expect(vendor.connections.total).to.equal(requestCount);
  });

  const fails = async (options: Partial<GatewayOptions>): Promise<string> => {
    const error = await start(options).catch((thrown: unknown) => thrown);
    expect(error).to.be.instanceOf(Error).and.have.property('name', 'ExchangeError');
    return (error as Error).message;
  };

  it('stop the start if there are none, or broken ones, or both modes are requested', async () => {
    const empty = makeFolder();
    expect(await fails({ replay: empty })).to.include('has no recorded exchange');
    expect(await fails({ replay: path.join(empty, 'none') })).to.include('cannot be read');
    expect(await fails({ replay: empty, record: empty })).to.include(
      'cannot be recorded and replayed at the same time',
    );
    expect(await fails({ times: true })).to.include('timing');
    writeFileSync(path.join(empty, 'x-0001.exchange'), '{"version":1}');
    expect(await fails({ replay: empty })).to.include('x-0001.exchange is not a recorded exchange of this version');
    const request = { method: 'POST', origin: 'http://x', path: '/x' };
    const response = { status: 200, headers: {}, body: '../secret', chunks: [] };
    writeFileSync(path.join(empty, 'x-0001.exchange'), JSON.stringify({ version: 1, request, response }));
    expect(await fails({ replay: empty })).to.include('refers to a body outside of its folder');
    rmSync(empty, { recursive: true });
  });
});
