import { expect } from 'chai';
import { type ModelServer, startModelServer } from '../support/agents/model-server.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';

const RESULT = { system: 'You write the one result' };
const NOTES = { specialties: [], red_flags: [], self_harm: false, medicines_involved: false, language: 'en' };
const LISTS = { considerations: [], recommended_next_steps: [], questions: [] };
/** Script of a medical case that succeeds. */
const MEDICAL = [
  { schema: 'triage', reply: { ...NOTES, urgency: 'routine', complexity: 'simple' } },
  { schema: 'opinion', reply: { summary: 'x', considerations: [], must_not_miss: [], questions: [], avoid: [] } },
  { schema: 'answer', reply: { ...LISTS, urgency: 'routine', summary: 'It may be a cold.' } },
  { schema: 'verdict', reply: { verdict: 'pass', reasons: [] } },
];
const NO_AGENTS = { system: 'You lead a team', reply: { agents: [] } };

describe('responses of the agent team', () => {
  let gateway: TestGateway | undefined;
  let vendor: ModelServer | undefined;
  afterEach(async () => {
    await gateway?.stop();
    await vendor?.close();
  });

  async function start(...rules: Parameters<typeof startModelServer>[0]) {
    vendor = await startModelServer([NO_AGENTS, ...rules]);
    const scripted = { plugin: 'openai-compatible', baseUrl: vendor.url, apiKey: 'k', models: ['*'] };
    gateway = await startGateway({
      providers: { scripted: { ...scripted, prices: { '*': { input: 1, output: 2 } } } },
      agents: { team: { model: 'scripted/m' }, medical: { model: 'scripted/m' } },
    });
    return { gateway, model: vendor.model };
  }

  for (const message of [' ', '\n\t', '\u200b\u2060'])
    it(`D29 a blank message (${JSON.stringify(message)}) is refused before any model is called`, async () => {
      const { gateway: own, model } = await start({ ...RESULT, reply: { answer: 'x' } });
      for (const path of ['/api/core/agent', '/api/core/agent/medical']) {
        const response = await own.post(path, { message });
        const { error } = (await response.json()) as { error: object };
        expect(response.status, path).to.equal(400);
        expect(error, path).to.include({ code: 'invalid_request', param: 'message' });
      }
      expect(model.calls).to.have.length(0);
    });

  it('D29 a response contains the cost of all its calls', async () => {
    const { gateway: own } = await start({ ...RESULT, reply: { answer: 'x' } });
    const response = await own.post('/api/core/agent', { message: 'hi' });
    const { usage } = (await response.json()) as { usage: { prompt_tokens: number; completion_tokens: number } };
    const micro = usage.prompt_tokens + 2 * usage.completion_tokens;
    expect(Number(response.headers.get('x-tollgate-cost-usd')))
      .to.be.closeTo(micro / 1e6, 1e-9)
      .and.greaterThan(0);
  });

  for (const path of ['/api/core/agent', '/api/core/agent/medical'])
    it(`D29 the stream of ${path} contains the cost of all its calls in its result`, async () => {
      const { gateway: own } = await start({ ...RESULT, reply: { answer: 'x' } }, ...MEDICAL);
      const whole = await own.post(path, { message: 'hi', session: null });
      await whole.text();
      const stream = await own.post(path, { message: 'hi', session: null, stream: true });
      const frame = (await stream.text()).split('\n\n').findLast((text) => text.startsWith('event: result')) ?? '';
      const { cost_usd: cost } = JSON.parse(frame.slice(frame.indexOf('{'))) as { cost_usd: string };
      expect(Number(cost)).to.be.greaterThan(0);
      expect(cost).to.equal(whole.headers.get('x-tollgate-cost-usd'));
    });

  it('D29 prose instead of JSON for one user does not change the requests for another', async () => {
    const { gateway: own, model } = await start(
      { ...RESULT, user: 'in prose', times: 1, reply: 'Just prose.' },
      { ...RESULT, reply: { answer: 'x' } },
    );
    await (await own.post('/api/core/agent', { message: 'in prose' })).text();
    const { api_key } = await own.command<{ api_key: string }>('keys', 'create', '--user', 'other');
    await (await own.post('/api/core/agent', { message: 'plain' }, { authorization: `Bearer ${api_key}` })).text();
    const formats = model.calls.map(({ request }) => request.response_format?.type);
    expect(formats.slice(0, 3)).to.deep.equal(['json_schema', 'json_schema', 'json_object']);
    expect(formats.slice(3)).to.deep.equal(['json_schema', 'json_schema']);
  });

  const SHAPES: readonly (readonly [shape: object, right: unknown, wrong: unknown])[] = [
    [{ type: 'object', additionalProperties: { type: 'number' } }, { a: 1, b: 2 }, { a: 'one' }],
    [{ names: 'List[str]' }, { names: ['a', 'b'] }, { names: { a: 1 } }],
    [{ by: 'Dict[str, List[int]] - pages' }, { by: { a: [1] } }, { by: { a: 'x' } }],
    [{ n: 'Optional[int]' }, { n: null }, { n: 'x' }],
    [{ mood: 'Literal["calm", "tense"]' }, { mood: 'calm' }, { mood: 'other' }],
  ];
  for (const [shape, right, wrong] of SHAPES)
    it(`D29 the shape ${JSON.stringify(shape)} accepts only matching values`, async () => {
      const { gateway: own, model } = await start(
        { ...RESULT, user: 'wrong', reply: JSON.stringify(wrong) },
        { ...RESULT, reply: JSON.stringify(right) },
      );
      const good = await own.post('/api/core/agent', { message: 'right', response_model: shape });
      expect(((await good.json()) as { content: unknown }).content).to.deep.equal(right);
      expect(model.calls).to.have.length(2);
      await (await own.post('/api/core/agent', { message: 'wrong', response_model: shape })).text();
      expect(model.calls, 'the wrong one is asked for again').to.have.length(5);
    });

  it('D29 an unknown type is refused with its place', async () => {
    const { gateway: own } = await start();
    const response = await own.post('/api/core/agent', { message: 'x', response_model: { a: { b: 'Promise[str]' } } });
    const { error } = (await response.json()) as { error: object };
    expect(error).to.include({ code: 'invalid_request', param: 'response_model.a.b' });
  });
});
