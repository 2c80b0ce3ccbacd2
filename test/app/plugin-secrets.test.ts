import { expect } from 'chai';
import WebSocket from 'ws';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { CHAT, chatOf, pluginFile, routeText, startError } from '../support/plugins/plugin-file.ts';
import { until } from '../support/wait.ts';

/** Secret without the form of any vendor's key. */
const SECRET = 'correct horse "battery"';
/** Credential that the plugin got elsewhere: only its form shows that it is one. */
const FOUND = 'sk-found-0123456789';

const SCHEMA = `configSchema: { type: 'object', properties: { signing: { type: 'string', secret: true } } },`;

/** Plugin that prints its secret in every message that it can send. */
const LEAKY = pluginFile({
  name: 'leaky',
  more: SCHEMA,
  setup: `
    const { signing } = config;
    const leak = signing + ' and ${FOUND}';
    const refuse = () => { throw new GatewayError('permission_denied', 'refused with ' + leak, {
      param: 'messages', headers: { 'x-acme': leak }, refusedBy: 'rule ' + leak }); };
    const has = (call, word) => JSON.stringify(call.request).includes(word);
    api.hook('admit', (call) => { if (has(call, 'refuse')) refuse(); });
    api.hook('prepare', async (call) => { await null; if (has(call, 'break')) throw new Error('broken with ' + leak, { cause: new Error(leak) }); });
    api.hook('error', (call, error) => has(call, 'reword') ? new GatewayError('invalid_request', 'reworded with ' + leak) : undefined);
    api.hook('stream', (call) => has(call, 'late') ? { push() { refuse(); } } : undefined);
    api.hook('finish', (call) => { if (has(call, 'observe')) throw new Error('observed with ' + leak); });
    api.upgrade('/socket', refuse);
    ${routeText('/refuse', 'refuse();')}
    ${routeText('/break', `throw new Error('broken with ' + leak);`)}
    api.use((ctx, next) => ctx.get('x-break') ? refuse() : next());
    ${routeText(
      '/log',
      `const err = Object.assign(new Error('error with ' + leak), { request: { sent: leak } });
      api.log.warn({ err, list: [{ deep: leak }], url: new URL('http://x/?a=' + encodeURIComponent(signing)), text: leak }, 'line with ' + leak);
      api.log.child({ key: leak }).info({}, 'line of a child');
      ctx.body = {};`,
    )}`,
});

/** Provider whose codec prints an option other than its key. */
const CODEC = pluginFile({
  name: 'vendor',
  kind: 'provider',
  more: SCHEMA,
  setup: `
    const fail = (body) => { const words = JSON.stringify(body);
      if (words.includes('refuse')) throw new GatewayError('invalid_request', 'refused with ' + config.signing);
      throw new Error('broken with ' + config.signing); };
    api.provider({ baseUrl: 'http://127.0.0.1:9', models: [{ id: 'm' }], credential: { header: 'authorization', value: 'x' },
      error: () => ({ class: 'unavailable', message: config.signing }),
      chat: { request: fail, response: () => fail(''), stream: () => fail('') } });`,
});

describe('G61: messages and log lines of a plugin', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await startGateway(
      {
        providers: { echo: {}, vendor: { plugin: './codec.mjs', signing: SECRET } },
        policies: { leaky: { plugin: './leaky.mjs', signing: SECRET } },
      },
      { files: { 'leaky.mjs': LEAKY, 'codec.mjs': CODEC } },
    );
  });
  after(() => gateway?.stop());

  const expectHidden = (text: string): void => {
    for (const secret of [SECRET, JSON.stringify(SECRET).slice(1, -1), FOUND]) expect(text).not.to.include(secret);
  };
  const expectNoSecret = async (response: Response, status: number): Promise<string> => {
    const text = await response.text();
    expect(response.status, text).to.equal(status);
    expectHidden(text + JSON.stringify([...response.headers]));
    return text;
  };

  for (const stream of [false, true])
    for (const [word, status] of [
      ['refuse', 403],
      ['break', 500],
      ['refuse reword', 400],
    ] as const)
      it(`do not show its secrets to a caller whose request is to "${word}"${stream ? ', streamed' : ''}`, async () => {
        const text = await expectNoSecret(await gateway.post(CHAT, chatOf(word, { stream })), status);
        if (status !== 500) expect(text).to.include('with [redacted] and [redacted]');
        expectHidden(gateway.logText());
      });

  it('do not show them in a stream that ends with an error', async () => {
    const text = await expectNoSecret(await gateway.post(CHAT, chatOf('late', { stream: true })), 200);
    expect(text).to.include('refused with [redacted]');
  });

  it('do not show them in the response of its route, its middleware or its websocket', async () => {
    await expectNoSecret(await gateway.post('/refuse', {}), 403);
    await expectNoSecret(await gateway.post('/break', {}), 500);
    await expectNoSecret(await gateway.post(CHAT, chatOf('Hi'), { 'x-break': '1' }), 403);
    const reported = await new Promise<string>((resolve, reject) => {
      const socket = new WebSocket(`${gateway.url.replace('http', 'ws')}/socket`, {
        headers: { authorization: `Bearer ${gateway.key}` },
      });
      socket.on('unexpected-response', (_, response) => {
        let text = JSON.stringify(response.headers);
        response.on('data', (chunk) => (text += String(chunk)));
        response.on('end', () => resolve(text));
      });
      socket.on('error', reject);
    });
    expect(reported).to.include('refused with [redacted]');
    expectHidden(reported);
  });

  it('do not show the options of a provider that its codec prints', async () => {
    await expectNoSecret(await gateway.post(CHAT, chatOf('refuse', { model: 'vendor/m' })), 403);
    await expectNoSecret(await gateway.post(CHAT, chatOf('Hi', { model: 'vendor/m' })), 500);
    expectHidden(gateway.logText());
  });

  it('do not show them in the log, at any depth', async () => {
    await gateway.post(CHAT, chatOf('observe'));
    expect((await gateway.post('/log', {})).status).to.equal(200);
    await until('the lines are there', () => /line of a child/.test(gateway.logText()));
    expect(gateway.logText()).to.include('line with [redacted] and [redacted]').and.include('observed with [redacted]');
    expectHidden(gateway.logText());
  });

  it('do not show them in a failed start', async () => {
    const failing = pluginFile({ more: SCHEMA, setup: `throw new Error('no ' + config.signing);` });
    const error = await startError(
      startGateway(
        { policies: { failing: { plugin: './failing.mjs', signing: SECRET } } },
        { files: { 'failing.mjs': failing } },
      ),
    );
    expect(error).to.include('setup failed: no [redacted]');
    expectHidden(error);
  });

  it('show other texts as they are', async () => {
    const plain = pluginFile({
      setup: `${routeText('/plain', `throw new GatewayError('invalid_request', 'The field is missing.', { param: 'a' });`)}`,
    });
    const other = await startGateway(
      { policies: { plain: { plugin: './plain.mjs' } } },
      { files: { 'plain.mjs': plain } },
    );
    expect(await (await other.post('/plain', {})).json())
      .to.have.property('error')
      .that.includes({
        message: 'The field is missing.',
        param: 'a',
      });
    await other.stop();
  });
});
