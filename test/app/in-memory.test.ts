import { readdirSync } from 'node:fs';
import { mock } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import { expect } from 'chai';
import OpenAI from 'openai';
import { definePlugin, GatewayError, type Plugin } from '../../contract/index.ts';
import { createGateway, type Gateway } from '../../core/gateway.ts';
import { makeFolder, removeFolders } from '../support/folders.ts';
import { framesOf } from '../support/plugins/plugin-file.ts';

const quiet = { logging: { level: 'silent' } };

const guard = definePlugin({
  name: 'guard',
  kind: 'policy',
  apiVersion: 1,
  configSchema: {
    type: 'object',
    additionalProperties: false,
    properties: { word: { type: 'string', default: 'orion' } },
  },
  setup(api, { word }) {
    api.hook('prepare', (_call, request) => {
      if (JSON.stringify(request).includes(word)) throw new GatewayError('content_filtered', 'Not here.');
      return undefined;
    });
  },
});

const bodyOf = (content: string, stream = false) =>
  JSON.stringify({ model: 'echo/echo', stream, messages: [{ role: 'user', content }] });

describe('a gateway in memory', () => {
  const gateways: Gateway[] = [];
  const start = async (config: object, plugins: readonly Plugin[] = []): Promise<Gateway> => {
    const gateway = await createGateway({
      ...{ config: { ...quiet, auth: { 'api-key': { bootstrap: true } }, ...config }, plugins },
      ...{ listen: false, cwd: makeFolder(), env: {} },
    });
    gateways.push(gateway);
    return gateway;
  };
  const keyOf = ({ announcements }: Gateway): string => announcements.find(({ use }) => use === 'key')?.value ?? '';
  const post = (gateway: Gateway, body: string): Promise<Response> =>
    gateway.inject('/v1/chat/completions', {
      method: 'POST',
      headers: { authorization: `Bearer ${keyOf(gateway)}`, 'content-type': 'application/json' },
      body,
    });

  afterEach(async () => {
    await Promise.all(gateways.splice(0).map((gateway) => gateway.close()));
    removeFolders();
  });

  it('takes its configuration and its plugins as objects, opens no port and writes no file', async () => {
    const cwd = makeFolder();
    const gateway = await createGateway({
      ...{ config: { ...quiet, providers: { echo: {} } }, plugins: [guard], listen: false, cwd, env: {} },
    });
    gateways.push(gateway);
    expect(gateway.server.listening).to.equal(false);
    expect((await gateway.inject('/livez')).status).to.equal(200);
    expect(readdirSync(cwd)).to.deep.equal([]);
  });

  it('closes without the delay of a drain, because no load balancer has to notice it', async () => {
    const gateway = await start({ providers: { echo: {} } });
    mock.timers.enable({ apis: ['setTimeout'] });
    try {
      await gateway.close();
    } finally {
      mock.timers.reset();
    }
  });

  for (const stream of [false, true])
    it(`answers ${stream ? 'a stream' : 'as a whole'}, and a passed plugin is enabled without an entry`, async () => {
      const gateway = await start({ providers: { echo: {} } }, [guard]);
      const good = await post(gateway, bodyOf('Hello there', stream));
      expect(good.status).to.equal(200);
      const text = await good.text();
      if (stream) expect(framesOf(text).length).to.be.greaterThan(2);
      expect(text).to.include('there');
      const refused = await post(gateway, bodyOf('about orion', stream));
      expect(refused.status).to.equal(400);
      expect(await refused.text()).to.include('content_filtered');
    });

  it('gives a passed plugin its options from the configuration, under its name there', async () => {
    const gateway = await start({ providers: { echo: {} }, policies: { mine: { plugin: 'guard', word: 'vega' } } }, [
      guard,
    ]);
    expect((await post(gateway, bodyOf('orion'))).status).to.equal(200);
    expect((await post(gateway, bodyOf('vega'))).status).to.equal(400);
  });

  it('is the fetch of an SDK', async () => {
    const gateway = await start({ providers: { echo: {} } });
    const openai = new OpenAI({ apiKey: keyOf(gateway), baseURL: 'http://gateway/v1', fetch: gateway.inject });
    const { choices } = await openai.chat.completions.create({
      model: 'echo/echo',
      messages: [{ role: 'user', content: 'Hello there' }],
    });
    expect(choices[0]?.message.content).to.equal('Hello there');
    const anthropic = new Anthropic({ apiKey: keyOf(gateway), baseURL: 'http://gateway', fetch: gateway.inject });
    const message = await anthropic.messages
      .stream({ model: 'echo/echo', max_tokens: 50, messages: [{ role: 'user', content: 'Hello there' }] })
      .finalMessage();
    expect(message.content).to.deep.include({ type: 'text', text: 'Hello there' });
  });

  it('cancels a call when its caller disconnects', async () => {
    const ended = deferred<string>();
    const watch = definePlugin({
      name: 'watch',
      kind: 'policy',
      apiVersion: 1,
      setup(api) {
        api.hook('finish', (_call, { status }) => ended.resolve(status));
      },
    });
    const gateway = await start({ providers: { echo: {} } }, [watch]);
    const controller = new AbortController();
    const response = await gateway.inject('/v1/chat/completions', {
      method: 'POST',
      signal: controller.signal,
      headers: { authorization: `Bearer ${keyOf(gateway)}`, 'content-type': 'application/json' },
      body: bodyOf('word '.repeat(50_000), true),
    });
    expect(response.status).to.equal(200);
    controller.abort();
    expect(await ended.promise).to.equal('aborted');
  });

  const refusalOf = (options: object): Promise<string> =>
    createGateway({ listen: false, cwd: '/', env: {}, ...options }).then(
      async (gateway) => {
        gateways.push(gateway);
        return '';
      },
      (error: Error) => error.message,
    );
  const WRONG: readonly (readonly [what: string, options: object, says: RegExp])[] = [
    ['an object and a file', { config: {}, configPath: 'x.yaml' }, /config cannot be combined with configPath/],
    ['a text', { config: 'providers: {}' }, /config is not an object\. Use an object of sections/],
    [
      'a misspelt key',
      { config: { providers: { echo: {} }, sever: {} } },
      /config sever: unknown key. Did you mean "server"/,
    ],
    [
      'what is no plugin',
      { config: {}, plugins: [{ name: 'x' }] },
      /plugins \[0\]: "plugins\[0\]" has no "apiVersion"\. Write apiVersion: 1/,
    ],
    [
      'a plugin twice',
      { config: {}, plugins: [guard, guard] },
      /plugins \[1\]: is a duplicate of plugins\[0\]: the policy plugin "guard"/,
    ],
    [
      'an option that a given plugin does not have',
      { config: { policies: { guard: { wrod: 'x' } } }, plugins: [guard] },
      /config policies\.guard\.wrod: unknown key\. Did you mean "word"/,
    ],
  ];
  for (const [what, options, says] of WRONG)
    it(`refuses ${what}, with its place`, async () => expect(await refusalOf(options)).to.match(says));
});

function deferred<T>(): { readonly promise: Promise<T>; resolve(value: T): void } {
  let resolve: (value: T) => void = () => undefined;
  const promise = new Promise<T>((done) => {
    resolve = done;
  });
  return { promise, resolve: (value) => resolve(value) };
}
