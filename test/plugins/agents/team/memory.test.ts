import { expect } from 'chai';
import type { AgentDefinition } from '../../../../contract/index.ts';
import team from '../../../../plugins/agents/team/index.ts';
import { type AgentGateway, openAgentGateway } from '../../../support/agents/agent-gateway.ts';
import {
  gate,
  type Rule,
  type ScriptedModel,
  schemaNameOf,
  scriptModel,
} from '../../../support/agents/scripted-model.ts';
import { until } from '../../../support/wait.ts';

const PATH = '/api/core/agent';
const WIPE = '/api/core/agent/memory';
const DIRECT: readonly Rule[] = [
  { schema: 'assignments', reply: { agents: [] } },
  { schema: 'result', reply: { answer: 'the blue one' } },
];

describe('agents/team memory', () => {
  let gateway: AgentGateway | undefined;
  let model: ScriptedModel;

  const open = async (rules: readonly Rule[], memory: object = {}, agents: readonly AgentDefinition[] = []) => {
    model = scriptModel(rules);
    const config = { model: 'base/model', memory };
    gateway = await openAgentGateway({ plugins: [{ plugin: team, config }], model, agents });
    return gateway;
  };
  const lastPrompt = () => JSON.stringify(model.calls.at(-1)?.request.messages);

  afterEach(async () => {
    await gateway?.close();
    gateway = undefined;
  });

  it('shows the conversation to later calls of the same user', async () => {
    const { post } = await open(DIRECT);
    await post(PATH, { message: 'which one is mine?' });
    await post(PATH, { message: 'and again?' });
    expect(lastPrompt()).to.include('which one is mine?').and.include('the blue one');
  });

  it('keeps sessions and users apart', async () => {
    const { post } = await open(DIRECT);
    await post(PATH, { message: 'a secret', session: 'one' });
    await post(PATH, { message: 'hello', session: 'two' });
    expect(lastPrompt()).to.not.include('a secret');
    await post(PATH, { message: 'hello', session: 'one' }, 'bob');
    expect(lastPrompt()).to.not.include('a secret');
    await post(PATH, { message: 'hello', session: 'one' }, 'ann@other');
    expect(lastPrompt()).to.not.include('a secret');
  });

  it('neither reads nor writes memory when session is null', async () => {
    const { post } = await open(DIRECT);
    await post(PATH, { message: 'a secret', session: null });
    await post(PATH, { message: 'hello' });
    expect(lastPrompt()).to.not.include('a secret');
    await post(PATH, { message: 'hello', session: null });
    expect(lastPrompt()).to.not.include('the blue one');
  });

  it('does not show memory to a specialist that is not to see it', async () => {
    model = scriptModel([
      { schema: 'assignments', reply: { agents: [{ agent: 'planning', instruction: 'plan' }] } },
      { schema: 'report', reply: { summary: 'planned' } },
      { schema: 'result', reply: { answer: 'ok' } },
    ]);
    const config = { model: 'base/model', agents: { planning: { memory: false } } };
    gateway = await openAgentGateway({ plugins: [{ plugin: team, config }], model });
    await gateway.post(PATH, { message: 'a secret' });
    await gateway.post(PATH, { message: 'hello' });
    const [, specialist, writer] = model.calls.slice(-3).map(({ request }) => JSON.stringify(request.messages));
    expect(specialist).to.not.include('a secret');
    expect(writer).to.include('a secret');
  });

  it('deletes everything, returns how much, and nothing the second time', async () => {
    const { post, delete: wipe } = await open(DIRECT);
    await post(PATH, { message: 'a secret', session: 'one' });
    await post(PATH, { message: 'a secret', session: 'two' });
    expect((await wipe(WIPE)).body).to.deep.equal({ message: '2 sessions were deleted.', deleted: 2 });
    expect((await wipe(WIPE)).body.deleted).to.equal(0);
    await post(PATH, { message: 'hello', session: 'one' });
    expect(lastPrompt()).to.not.include('a secret');
  });

  it('wipes one session, and never another user’s', async () => {
    const { post, delete: wipe } = await open(DIRECT);
    await post(PATH, { message: 'a secret', session: 'one' });
    await post(PATH, { message: 'another secret', session: 'two' });
    expect((await wipe(`${WIPE}?session=one`, 'bob')).body.deleted).to.equal(0);
    expect((await wipe(`${WIPE}?session=one`)).body.deleted).to.equal(1);
    await post(PATH, { message: 'hello', session: 'two' });
    expect(lastPrompt()).to.include('another secret');
  });

  it('asks agents with their own data to delete it too', async () => {
    const forgotten: unknown[] = [];
    const diary: AgentDefinition = {
      name: 'diary',
      when: '',
      run: async () => ({ summary: '' }),
      forget: async (principal, session) => forgotten.push([principal.userId, session]),
    };
    const { delete: wipe } = await open(DIRECT, {}, [diary]);
    expect((await wipe(`${WIPE}?session=one`)).body.deleted).to.equal(1);
    expect(forgotten).to.deep.equal([['ann', 'one']]);
  });

  it('gives a deletion precedence over a running call', async () => {
    const writing = gate();
    const { post, delete: wipe } = await open([
      { schema: 'assignments', reply: { agents: [] } },
      { schema: 'result', times: 1, after: writing.opened, reply: { answer: 'late' } },
      { schema: 'result', reply: { answer: 'ok' } },
    ]);
    const inFlight = post(PATH, { message: 'a secret' });
    await until('the writer is asked', () => model.calls.length === 2);
    await wipe(WIPE);
    writing.open();
    expect((await inFlight).status).to.equal(200);
    await post(PATH, { message: 'hello' });
    expect(lastPrompt()).to.not.include('a secret');
  });

  it('summarises older turns with one metered call, and shows the summary', async () => {
    const { post } = await open([{ system: 'Summarise the conversation', reply: 'they chose colours' }, ...DIRECT], {
      turns: 2,
    });
    for (const n of [1, 2, 3]) await post(PATH, { message: `turn ${n}` });
    const calls = model.calls.length;
    const { body } = await post(PATH, { message: 'turn 4' });
    expect(model.calls.length - calls).to.equal(3);
    await post(PATH, { message: 'turn 5' });
    expect(lastPrompt()).to.include('they chose colours').and.not.include('turn 1');
    const [first, ...others] = model.calls.slice(calls, calls + 3);
    expect(first?.context.skip, 'the router’s call is the one that limits are held to').to.equal(undefined);
    expect(schemaNameOf(first!.request)).to.equal('assignments');
    expect(others.every(({ context }) => context.skip?.includes('rpm'))).to.equal(true);
    const paid = model.calls.slice(calls, calls + 3).every(({ replied }) => replied);
    expect(paid && body.usage.total_tokens).to.be.greaterThan(0);
  });

  it('answers all the same when the summary fails', async () => {
    const { post } = await open([{ system: 'Summarise the conversation', reply: new Error('down') }, ...DIRECT], {
      turns: 1,
    });
    for (const n of [1, 2, 3]) expect((await post(PATH, { message: `turn ${n}` })).status).to.equal(200);
  });

  it('answers all the same when the store fails at the end', async () => {
    const { post, store } = await open(DIRECT);
    const documents = store.keyv('agent-memory');
    documents.set = () => Promise.reject(new Error('disk full'));
    const { status, body } = await post(PATH, { message: 'hello' });
    expect(status).to.equal(200);
    expect(body.content.answer).to.equal('the blue one');
  });

  it('is disabled if so configured', async () => {
    const { post, delete: wipe } = await open(DIRECT, { enabled: false });
    await post(PATH, { message: 'a secret' });
    await post(PATH, { message: 'hello' });
    expect(lastPrompt()).to.not.include('a secret');
    expect((await wipe(WIPE)).body.deleted).to.equal(0);
  });

  it('logs nothing of it', async () => {
    const { post, delete: wipe, logged } = await open(DIRECT);
    await post(PATH, { message: 'a secret', session: 'diary' });
    await wipe(WIPE);
    expect(logged()).to.not.match(/a secret|the blue one|diary/);
  });
});
