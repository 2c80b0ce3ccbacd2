import { expect } from 'chai';
import { GatewayError } from '../../contract/index.ts';
import { type ModelServer, startModelServer } from '../support/agents/model-server.ts';
import { gate, type Rule } from '../support/agents/scripted-model.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { until } from '../support/wait.ts';

const report = { summary: 'go north', confidence: 1 };
const route = (...agents: string[]) => ({ agents: agents.map((agent) => ({ agent, instruction: `do ${agent}` })) });

// biome-ignore lint/suspicious/noExplicitAny: answers of every shape
type Loose = any;

describe('a gateway with agents', () => {
  let gateway: TestGateway;
  let vendor: ModelServer;

  const start = async (
    rules: readonly Rule[],
    more: Record<string, unknown> = {},
    level: 'debug' | 'info' = 'info',
  ) => {
    vendor = await startModelServer(rules);
    const scripted = { plugin: 'openai-compatible', baseUrl: vendor.url, apiKey: 'sk-canary', models: ['*'] };
    gateway = await startGateway(
      {
        providers: { echo: {}, scripted: { ...scripted, prices: { '*': { input: 1, output: 2 } } } },
        agents: { team: { model: 'scripted/m' }, medical: { model: 'scripted/m' } },
        ...more,
      },
      { level },
    );
  };
  const send = async (body: object, path = '/api/core/agent') => {
    const response = await gateway.post(path, body);
    return { status: response.status, headers: response.headers, body: (await response.json()) as Loose };
  };
  /** Requests and tokens of all calls in the ledger. */
  const used = async () => {
    const { data } = (await (await gateway.get('/api/core/usage?group_by=model')).json()) as Loose;
    const sum = (field: string) =>
      data.reduce((all: number, row: Record<string, number>) => all + (row[field] ?? 0), 0);
    return { requests: sum('requests'), tokens: sum('prompt_tokens') + sum('completion_tokens') };
  };

  afterEach(async () => {
    await gateway?.stop();
    await vendor?.close();
  });

  it('charges every model call, and reports the same tokens', async () => {
    await start([
      { schema: 'assignments', reply: route('navigation', 'perception') },
      { schema: 'report', reply: report },
      { schema: 'result', times: 1, reply: { wrong: 1 } },
      { schema: 'result', reply: { answer: 'north' } },
    ]);
    const { status, body } = await send({ message: 'where to?' });
    expect(status).to.equal(200);
    await until('all calls are in the books', () => vendor.open() === 0);
    let books = await used();
    for (let tries = 0; books.requests < 5 && tries < 200; tries += 1) books = await used();
    expect(books).to.deep.equal({ requests: 5, tokens: body.usage.total_tokens });
  });

  it('counts one request of the caller however many calls it makes', async () => {
    await start(
      [
        { schema: 'assignments', reply: route('navigation', 'perception') },
        { schema: 'report', reply: report },
        { schema: 'result', reply: { answer: 'north' } },
      ],
      { plans: { small: { rpm: 2 } }, defaultPlan: 'small' },
    );
    expect((await send({ message: 'one' })).status).to.equal(200);
    expect((await send({ message: 'two' })).status).to.equal(200);
    const third = await send({ message: 'three' });
    expect(third.status).to.equal(429);
    expect(third.body.error.code).to.equal('rate_limited');
    expect(Number(third.headers.get('retry-after'))).to.be.within(1, 60);
  });

  it('cancels every upstream call when the client disconnects', async () => {
    const never = gate();
    await start([
      { schema: 'assignments', reply: route('navigation', 'perception') },
      { schema: 'report', after: never.opened, reply: report },
    ]);
    const client = new AbortController();
    const request = fetch(`${gateway.url}/api/core/agent`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ message: 'x' }),
      signal: client.signal,
    }).catch(() => 'gone');
    await until('both specialists are asked', () => vendor.open() === 2);
    client.abort();
    await request;
    await until('no call is open upstream', () => vendor.open() === 0);
  });

  it('falls back to json_object if the vendor has no json_schema', async () => {
    const refusal = new GatewayError('invalid_request', 'no such format', { param: 'response_format' });
    await start([
      { schema: 'assignments', reply: refusal },
      { schema: 'result', reply: refusal },
      { schema: 'json_object', system: 'You lead a team', reply: route() },
      { schema: 'json_object', reply: { answer: 'north' } },
    ]);
    const { status, body } = await send({ message: 'where to?' });
    expect(status, JSON.stringify(body)).to.equal(200);
    expect(body.content).to.deep.equal({ answer: 'north' });
    expect(vendor.model.calls).to.have.length(3);
  });

  it('accepts an alias, and falls back to the next model of its list', async () => {
    await start(
      [
        { model: 'broken', reply: new GatewayError('provider_unavailable', 'down') },
        { schema: 'assignments', reply: route() },
        { schema: 'result', reply: { answer: 'north' } },
      ],
      { models: { smart: ['scripted/broken', 'scripted/whole'] } },
    );
    const { status, body } = await send({ model: 'smart', message: 'where to?' });
    expect(status, JSON.stringify(body)).to.equal(200);
    expect(body.model).to.equal('whole');
  });

  const UNKNOWN: readonly { readonly model: string; readonly code: string }[] = [
    { model: 'missing/m', code: 'unsupported_model' },
    { model: 'echo/nothing', code: 'unsupported_model' },
    { model: 'm', code: 'unsupported_model' },
  ];
  for (const { model, code } of UNKNOWN) {
    it(`answers 404 ${code} for the model "${model}"`, async () => {
      await start([]);
      for (const path of ['/api/core/agent', '/api/core/agent/medical']) {
        const { status, body } = await send({ model, message: 'x' }, path);
        expect(status).to.equal(404);
        expect(body.error.code).to.equal(code);
      }
    });
  }

  it('uses an agent that a plugin publishes, and charges its calls', async () => {
    const tides = `export default { name: 'tides', kind: 'agent', apiVersion: 1, setup(api) {
      api.agent({ name: 'tides', when: 'tides and harbours', async run({ instruction, inputs }, { chat, emit }) {
        emit({ looking: 'tide tables' });
        const response = await chat([{ role: 'user', content: instruction + JSON.stringify(inputs) }]);
        return { summary: response.choices[0].message.content, confidence: 0.8 };
      } });
    } };`;
    vendor = await startModelServer([
      { schema: 'assignments', system: '- tides: tides and harbours', reply: route('tides') },
      { schema: 'text', user: 'do tides{"port":"Kiel"}', reply: 'high at noon' },
      { schema: 'result', user: 'high at noon', reply: { answer: 'leave at noon' } },
    ]);
    gateway = await startGateway(
      {
        providers: {
          scripted: { plugin: 'openai-compatible', baseUrl: vendor.url, apiKey: 'sk-canary', models: ['*'] },
        },
        agents: { team: { model: 'scripted/m', agents: { navigation: false } }, tides: { plugin: './tides.mjs' } },
      },
      { files: { 'tides.mjs': tides } },
    );
    const { status, body } = await send({ message: 'when can I leave?', inputs: { port: 'Kiel' } });
    expect(status, JSON.stringify(body)).to.equal(200);
    expect(body.content).to.deep.equal({ answer: 'leave at noon' });
    expect(vendor.model.calls).to.have.length(3);
  });

  it('does not start with a team that uses an unregistered tool', async () => {
    vendor = await startModelServer([]);
    const failure = await startGateway({
      agents: { team: { model: 'echo/echo', agents: { planning: { tools: ['rag'] } } } },
    }).catch((error: Error) => error);
    expect(String(failure)).to.include('team').and.include('"rag"');
  });

  it('answers 401 without a key', async () => {
    await start([]);
    for (const path of ['/api/core/agent', '/api/core/agent/medical']) {
      const response = await fetch(gateway.url + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{"message":"x"}',
      });
      expect(response.status).to.equal(401);
    }
  });

  it('responds to the medical request offline, the urgent-care notice first', async () => {
    await start([]);
    const { status, body } = await send(
      { model: 'echo/echo', message: 'I have chest pain and my arm is numb' },
      '/api/core/agent/medical',
    );
    expect(status, JSON.stringify(body)).to.equal(200);
    expect(body.content.urgency).to.equal('emergency');
    expect(body.content.summary).to.match(/^This may be an emergency/);
  });

  it('keeps prompts and answers out of the log, at debug level too', async () => {
    await start([{ reply: { summary: 'secret-answer' } }], {}, 'debug');
    await send({ message: 'secret-message', context: 'secret-context' });
    await send(
      { message: 'secret-message', patient: { history: 'secret-history' }, session: 'secret-session' },
      '/api/core/agent/medical',
    );
    await send({ message: 'x', response_model: { type: 'object', properties: { a: { type: 'secret-type' } } } });
    expect(gateway.logText()).to.not.match(/secret-(?:message|answer|context|history|session)/);
  });

  it('remembers sessions over HTTP and forgets them on DELETE', async () => {
    await start([
      { schema: 'assignments', reply: route() },
      { schema: 'result', reply: { answer: 'blue' } },
    ]);
    await send({ message: 'my colour is blue', session: 's' });
    await send({ message: 'which colour?', session: 's' });
    expect(JSON.stringify(vendor.model.calls.at(-1)?.request.messages)).to.include('my colour is blue');
    const wipe = await fetch(`${gateway.url}/api/core/agent/memory?session=s`, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${gateway.key}` },
    });
    expect(await wipe.json()).to.deep.equal({ message: 'One session was deleted.', deleted: 1 });
    await send({ message: 'which colour?', session: 's' });
    expect(JSON.stringify(vendor.model.calls.at(-1)?.request.messages)).to.not.include('my colour is blue');
  });
});
