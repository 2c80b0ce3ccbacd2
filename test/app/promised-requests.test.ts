import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { CHAT, chatOf, pluginFile } from '../support/plugins/plugin-file.ts';

/** Provider whose codec returns a promise of its request: `made` is the promise. */
const provider = (made: string) =>
  pluginFile({
    name: 'acme',
    kind: 'provider',
    setup: `
      const transport = async ({ path, body }) => ({ status: 200, headers: { 'content-type': 'application/json' },
        body: (async function* () { yield Buffer.from(JSON.stringify({ path, said: body.said })); })() });
      const head = { id: 'x', created: 1, model: 'm' };
      api.provider({ baseUrl: 'http://127.0.0.1:9', models: [{ id: 'm' }], credential: { header: 'authorization', value: 'x', required: false },
        transport, error: () => ({ class: 'upstream_error', message: '' }),
        chat: {
          request: (input, call) => ${made},
          response: ({ path, said }) => ({ ...head, object: 'chat.completion', choices: [{ index: 0, finish_reason: 'stop', logprobs: null,
            message: { role: 'assistant', content: 'via ' + path + ': ' + said, refusal: null } }] }),
          stream: () => ({ push: () => [], end: () => ({ chunks: [], complete: true }) }),
        } });`,
  });
const WRITTEN = `new Promise((resolve) => setImmediate(() =>
  resolve({ path: '/' + call.model, body: { said: input.messages[0].content }, dropped: ['user'] })))`;

describe('a codec that returns a promise of its request', () => {
  let gateway: TestGateway | undefined;
  afterEach(async () => {
    await gateway?.stop();
    gateway = undefined;
  });
  const start = async (made: string): Promise<TestGateway> => {
    gateway = await startGateway(
      { providers: { echo: {}, acme: { plugin: './acme.mjs' } }, models: { fast: ['acme/m', 'echo/echo'] } },
      { files: { 'acme.mjs': provider(made) } },
    );
    return gateway;
  };

  for (const stream of [false, true])
    it(`serves the call${stream ? ', streamed' : ''}, and its dropped fields are reported`, async () => {
      const running = await start(WRITTEN);
      const response = await running.post(CHAT, chatOf('Hi', { model: 'acme/m', stream, user: 'ann' }));
      const text = await response.text();
      expect(response.status, text).to.equal(200);
      expect(text).to.include('via /m: Hi');
      expect(response.headers.get('x-tollgate-dropped')).to.equal('user');
    });

  it('refuses a request by a rejection: the next target serves it, or the caller gets the error', async () => {
    const running = await start(`Promise.reject(new GatewayError('invalid_request', 'Acme reads no verse.'))`);
    const refused = await running.post(CHAT, chatOf('Hi', { model: 'acme/m' }));
    expect(refused.status).to.equal(400);
    expect(await refused.text()).to.include('Acme reads no verse.');
    const served = await running.post(CHAT, chatOf('Hi', { model: 'fast' }));
    expect(served.headers.get('x-tollgate-provider')).to.equal('echo');
    expect(served.headers.get('x-tollgate-skipped')).to.equal('acme');
  });

  it('with a wrong value is named in the log, and the next target serves the call (G70)', async () => {
    const running = await start('Promise.resolve(undefined)');
    const served = await running.post(CHAT, chatOf('Hi', { model: 'fast' }));
    expect(served.headers.get('x-tollgate-provider')).to.equal('echo');
    expect(running.logText().replaceAll('\\"', '"')).to.include('plugin "acme": chat.request() returned undefined');
  });
});
