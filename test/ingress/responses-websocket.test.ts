import { expect } from 'chai';
import { openResponses, type ResponsesSocket } from '../support/clients/responses-client.ts';
import { type Event, findDisorder } from '../support/formats/responses-grammar.ts';
import { cutScript, type IngressRig, MODEL_OF, startIngressRig, WIRES } from '../support/gateways/ingress-rig.ts';
import { sayAnywhere } from '../support/vendors/responses-wire.ts';

const user = (text: string) => ({ type: 'message', role: 'user', content: text });

function responseOf(events: readonly Event[]): Record<string, unknown> & { id: string } {
  return events.at(-1)?.['response'] as Record<string, unknown> & { id: string };
}

describe('GET /v1/responses as a websocket', () => {
  let rig: IngressRig;
  let client: ResponsesSocket;
  before(async () => {
    rig = await startIngressRig();
  });
  after(() => rig.stop());
  beforeEach(async () => {
    client = await openResponses(rig.gateway);
  });
  afterEach(() => client.socket.close());

  for (const wire of WIRES)
    it(`G46: sends the events of each response as text frames, numbered from 0 (${wire})`, async () => {
      for (const text of ['Hello', 'Again']) {
        sayAnywhere(rig, wire, { pieces: [{ text }] });
        const events = await client.create({ model: MODEL_OF[wire], input: 'Hi', store: false });
        expect(findDisorder(events)).to.deep.equal([]);
        expect(events[0]).to.include({ type: 'response.created', sequence_number: 0 });
        expect(responseOf(events)).to.have.nested.property('output[0].content[0].text', text);
      }
    });

  it('continues an unstored response: the vendor gets the complete conversation', async () => {
    const request = { model: MODEL_OF.deepseek, store: false };
    sayAnywhere(rig, 'deepseek', { pieces: [{ text: 'Red.' }] });
    const first = responseOf(await client.create({ ...request, input: [user('Which colour?')] }));
    sayAnywhere(rig, 'deepseek', { pieces: [{ call: 'paint', id: 'call_1', arguments: '{}' }] });
    const tools = [{ type: 'function', name: 'paint', parameters: { type: 'object', properties: {} } }];
    const second = responseOf(
      await client.create({ ...request, tools, input: [user('Paint it.')], previous_response_id: first.id }),
    );
    expect(second['previous_response_id']).to.equal(first.id);
    sayAnywhere(rig, 'deepseek', { pieces: [{ text: 'Done.' }] });
    const output = { type: 'function_call_output', call_id: 'call_1', output: 'painted' };
    await client.create({ ...request, tools, input: [output], previous_response_id: second.id });
    const { messages } = rig.lastBody<{ messages: { role: string; content: unknown }[] }>('deepseek');
    expect(messages.map(({ role }) => role)).to.deep.equal(['user', 'assistant', 'user', 'assistant', 'tool']);
    expect(messages.at(-1)).to.include({ content: 'painted' });
  });

  it('does not show the responses of one websocket to another one', async () => {
    sayAnywhere(rig, 'deepseek', { pieces: [{ text: 'Red.' }] });
    const request = { model: MODEL_OF.deepseek, store: false, input: 'Hi' };
    const { id } = responseOf(await client.create(request));
    const other = await openResponses(rig.gateway);
    const [error] = await other.create({ ...request, previous_response_id: id });
    expect(error).to.deep.include({ type: 'error', status: 400 });
    expect(error).to.have.nested.property('error.code', 'previous_response_not_found');
    other.socket.close();
  });

  it('continues responses of HTTP on a websocket, and vice versa', async () => {
    sayAnywhere(rig, 'deepseek', { pieces: [{ text: 'Red.' }] });
    const model = MODEL_OF.deepseek;
    const stored = (await (await rig.gateway.post('/v1/responses', { model, input: 'One' })).json()) as { id: string };
    const second = responseOf(await client.create({ model, input: 'Two', previous_response_id: stored.id }));
    const third = responseOf(await client.create({ model, input: 'Three', previous_response_id: second.id }));
    await rig.gateway.post('/v1/responses', { model, input: 'Four', previous_response_id: third.id });
    const { messages } = rig.lastBody<{ messages: { role: string; content: unknown }[] }>('deepseek');
    expect(messages.flatMap(({ role, content }) => (role === 'user' ? [content] : []))).to.deep.equal([
      ...['One', 'Two', 'Three', 'Four'],
    ]);
  });

  it('forgets the conversation of a failed turn, so that the client sends everything', async () => {
    const request = { model: MODEL_OF.deepseek, store: false, input: 'Hi' };
    sayAnywhere(rig, 'deepseek', { pieces: [{ text: 'Red.' }] });
    const { id } = responseOf(await client.create(request));
    const [refused] = await client.create({ ...request, temperature: 'hot', previous_response_id: id });
    expect(refused).to.deep.include({ type: 'error', status: 400 });
    expect(refused).to.have.nested.property('error.param', 'temperature');
    const [gone] = await client.create({ ...request, previous_response_id: id });
    expect(gone).to.have.nested.property('error.code', 'previous_response_not_found');
  });

  it('G38: ends a response interrupted by its vendor with response.failed', async () => {
    rig.script('deepseek', cutScript('deepseek', { pieces: [{ text: 'Hello there' }] }, 2));
    const events = await client.create({ model: MODEL_OF.deepseek, input: 'Hi', store: false });
    expect(findDisorder(events)).to.deep.equal([]);
    expect(events.at(-1)?.type).to.equal('response.failed');
    expect(responseOf(events)).to.have.nested.property('error.code', 'server_error');
  });

  it('reports an unknown model with the status that Codex needs, and stays open', async () => {
    const [error] = await client.create({ model: 'missing/nothing', input: 'Hi' });
    expect(error).to.deep.include({ type: 'error', status: 404 });
    sayAnywhere(rig, 'deepseek', { pieces: [{ text: 'Yes.' }] });
    const events = await client.create({ model: MODEL_OF.deepseek, input: 'Hi' });
    expect(events.at(-1)?.type).to.equal('response.completed');
  });

  it('calls no vendor for generate: false, and continues from it', async () => {
    const before = rig.sent('deepseek').length;
    const request = { model: MODEL_OF.deepseek, store: false };
    const warm = responseOf(await client.create({ ...request, input: [user('Be ready.')], generate: false }));
    expect(rig.sent('deepseek')).to.have.length(before);
    sayAnywhere(rig, 'deepseek', { pieces: [{ text: 'Red.' }] });
    await client.create({ ...request, input: [user('Now.')], previous_response_id: warm.id });
    const { messages } = rig.lastBody<{ messages: object[] }>('deepseek');
    expect(messages).to.have.length(2);
  });

  it('is refused with 426 if the configuration disables it', async () => {
    const off = await startIngressRig({ dialects: { responses: { websocket: false } } });
    const error = await openResponses(off.gateway).catch((thrown: Error) => thrown);
    expect(error).to.be.an('error').with.property('message').that.includes('426');
    await off.stop();
  });
});
