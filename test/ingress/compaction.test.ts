import { expect } from 'chai';
import type OpenAI from 'openai';
import type { ResponseInputItem } from 'openai/resources/responses/responses';
import { createResponse } from '../support/clients/responses-client.ts';
import { type IngressRig, MODEL_OF, startIngressRig, type Wire } from '../support/gateways/ingress-rig.ts';
import { sayAnywhere, sendResponses } from '../support/vendors/responses-wire.ts';
import { respondWith } from '../support/vendors/scripted-upstream.ts';

type Json = Record<string, unknown>;
type CompactModel = OpenAI.Responses.ResponseCompactParams['model'];

const HISTORY: ResponseInputItem[] = [
  { role: 'user', content: 'Paint the shed.' },
  { role: 'assistant', content: 'Which colour?' },
  { type: 'function_call', call_id: 'c1', name: 'colours', arguments: '{}' },
  { type: 'function_call_output', call_id: 'c1', output: 'red, blue' },
  { role: 'user', content: 'Blue.' },
];
const TOOLS = [{ type: 'function', name: 'colours', parameters: { type: 'object', properties: {} } }];
const SUMMARY = 'The user wants a blue shed; colours were looked up.';
const TRIGGER = { type: 'compaction_trigger' };
const NEXT = { role: 'user', content: 'Go on.' } as const;

/** Response of a vendor that supports compaction. */
const COMPACTED = {
  ...{ id: 'resp_vendor', object: 'response.compaction', created_at: 1_790_000_000 },
  output: [
    { id: 'm1', type: 'message', role: 'user', status: 'completed', content: [{ type: 'input_text', text: 'Blue.' }] },
    { id: 'cmp_1', type: 'compaction', encrypted_content: 'vendors-own-secret' },
  ],
  usage: {
    ...{ input_tokens: 300, input_tokens_details: { cached_tokens: 0 }, output_tokens: 20, total_tokens: 320 },
    output_tokens_details: { reasoning_tokens: 0 },
  },
};

describe('compacted conversations', () => {
  let rig: IngressRig;
  let openai: OpenAI;
  before(async () => {
    rig = await startIngressRig();
    openai = rig.gateway.openai();
  });
  after(() => rig.stop());

  const compact = (wire: Wire, more: object = {}) =>
    openai.responses.compact({ model: MODEL_OF[wire] as CompactModel, input: HISTORY, ...more });

  it('are compacted by a vendor that supports it, and continue there', async () => {
    rig.script('openai', respondWith(200, COMPACTED));
    const { data, response } = await openai.responses
      .compact({ model: MODEL_OF.openai as CompactModel, input: HISTORY, instructions: 'Be brief.' })
      .withResponse();
    expect(response.headers.get('x-tollgate-lane')).to.equal('native');
    expect(Number(response.headers.get('x-tollgate-cost-usd') ?? 0)).to.be.greaterThan(0);
    const [request] = rig.sent('openai').slice(-1);
    expect(request?.path).to.equal('/openai/v1/responses/compact');
    expect(request?.json()).to.deep.equal({ model: 'gpt-5', input: HISTORY, instructions: 'Be brief.' });
    expect(data).to.deep.include({ object: 'response.compaction', id: 'resp_vendor', usage: COMPACTED.usage });
    const item = data.output.find(({ type }) => type === 'compaction') as unknown as Json;
    expect(item['encrypted_content']).to.match(/^tg1\./);

    rig.script('openai', sendResponses({ pieces: [{ text: 'Done' }] }));
    const input = [...(data.output as ResponseInputItem[]), NEXT];
    const next = await openai.responses.create({ model: MODEL_OF.openai, input, store: false });
    expect(next.output_text).to.equal('Done');
    const sent = rig.lastBody<{ input: Json[] }>('openai').input;
    expect(sent.find(({ type }) => type === 'compaction')).to.deep.equal({
      type: 'compaction',
      encrypted_content: 'vendors-own-secret',
    });

    for (const [model, words] of [
      [MODEL_OF.anthropic, 'input[1]'],
      [MODEL_OF.mistral, 'is not supported by the provider'],
    ] as const) {
      const refused = await createResponse(rig, { model, input });
      expect(refused.status).to.equal(400);
      expect((refused.response['error'] as Json)['message']).to.include(words);
    }
  });

  it('are refused if another account or deployment compacted them, and not truncated', async () => {
    const before = rig.sent('openai').length;
    const input = [{ type: 'compaction', encrypted_content: 'tg1.openai.forged.secret' }, NEXT];
    const { status, response } = await createResponse(rig, { model: MODEL_OF.openai, input });
    expect([status, (response['error'] as Json)['param']]).to.deep.equal([400, 'input[0]']);
    expect((response['error'] as Json)['message']).to.include('cannot be read');
    expect(rig.sent('openai')).to.have.length(before);
  });

  it('drop and report fields that the vendor’s endpoint does not accept', async () => {
    rig.script('openai', respondWith(200, COMPACTED));
    const response = await rig.gateway.post('/v1/responses/compact', {
      ...{ model: MODEL_OF.openai, input: HISTORY, tools: TOOLS, reasoning: { effort: 'low' }, store: true },
      ...{ prompt_cache_key: 'k', service_tier: 'default' },
    });
    expect(response.status).to.equal(200);
    expect(response.headers.get('x-tollgate-dropped')?.split(', ')).to.have.members(['tools', 'reasoning']);
    const sent = rig.lastBody('openai');
    expect(Object.keys(sent)).to.have.members(['model', 'input', 'prompt_cache_key', 'service_tier']);
    expect(sent['prompt_cache_key']).not.to.equal('k');
  });

  for (const wire of ['anthropic', 'gemini', 'mistral', 'deepseek'] as const) {
    it(`are summarized by the model elsewhere, and continue at any model (${wire})`, async () => {
      rig.say(wire, { pieces: [{ reasoning: 'Hm' }, { text: SUMMARY }] });
      const { output, object, usage } = await compact(wire, { tools: TOOLS });
      expect(JSON.stringify(rig.lastBody(wire)))
        .to.include('Write the summary alone.')
        .and.include('Paint the shed.');
      expect(object).to.equal('response.compaction');
      expect(usage.total_tokens).to.equal(25);
      expect(output.map((item) => [item.type, 'content' in item && item.content])).to.deep.equal([
        ['message', [{ type: 'input_text', text: 'Paint the shed.' }]],
        ['message', [{ type: 'input_text', text: 'Blue.' }]],
        ['compaction', false],
      ]);

      const input = [...(output as ResponseInputItem[]), NEXT];
      for (const other of ['openai', 'anthropic', wire] as const) {
        sayAnywhere(rig, other, { pieces: [{ text: 'Done' }] });
        const next = await openai.responses.create({ model: MODEL_OF[other], input, store: false });
        expect(next.output_text).to.equal('Done');
        const sent = JSON.stringify(rig.lastBody(other));
        expect(sent).to.include(SUMMARY).and.not.include('compaction');
      }
    });

    it(`are not replaced by half a summary (${wire})`, async () => {
      rig.say(wire, { pieces: [{ text: 'The user wa' }], finish: 'length' });
      const error = await compact(wire).catch((thrown: unknown) => thrown);
      expect(error).to.include({ status: 400 });
      expect(String(error)).to.include('did not complete the summary');
    });

    for (const stream of [false, true])
      it(`are compacted in the middle of a session, ${stream ? 'streamed' : 'not streamed'} (${wire})`, async () => {
        rig.say(wire, { pieces: [{ text: SUMMARY }] });
        const { response, events } = await createResponse(rig, {
          ...{ model: MODEL_OF[wire], stream, tools: TOOLS, tool_choice: 'required' },
          input: [...HISTORY, TRIGGER],
        });
        expect(response.status).to.equal('completed');
        expect(response.output.map(({ type }) => type)).to.deep.equal(['compaction']);
        const done = events.filter(({ type }) => type === 'response.output_item.done');
        if (stream) expect(done.map(({ item }) => item)).to.deep.equal(response.output);

        rig.say(wire, { pieces: [{ text: 'Done' }] });
        const body = { model: MODEL_OF[wire], previous_response_id: response.id, input: [NEXT] };
        expect((await createResponse(rig, body)).status).to.equal(200);
        const sent = JSON.stringify(rig.lastBody(wire));
        expect(sent).to.include(SUMMARY).and.not.include('Which colour').and.not.include('Write the summary');
      });
  }

  it('end a stream with a failure if the summary was truncated', async () => {
    rig.say('anthropic', { pieces: [{ text: 'The user wa' }], finish: 'length' });
    const { response, events } = await createResponse(rig, {
      ...{ model: MODEL_OF.anthropic, stream: true, input: [...HISTORY, TRIGGER] },
    });
    expect(events.at(-1)?.type).to.equal('response.failed');
    expect(response.output).to.deep.equal([]);
  });

  it('pass a trigger to a vendor that supports it, and one in the middle to none', async () => {
    const item = { id: 'cmp_2', type: 'compaction', encrypted_content: 'secret' };
    rig.script('openai', sendResponses({ pieces: [], items: [item] }));
    const { response } = await createResponse(rig, {
      model: MODEL_OF.openai,
      stream: true,
      input: [...HISTORY, TRIGGER],
    });
    expect(rig.lastBody<{ input: Json[] }>('openai').input.at(-1)).to.deep.equal(TRIGGER);
    expect(response.output[0]?.['encrypted_content']).to.match(/^tg1\./);

    rig.script('openai', sendResponses({ pieces: [{ text: 'Done' }] }));
    await createResponse(rig, { model: MODEL_OF.openai, input: [...HISTORY, TRIGGER, ...response.output, NEXT] });
    const { input } = rig.lastBody<{ input: Json[] }>('openai');
    expect(input.map(({ type }) => type)).not.to.include('compaction_trigger');
    expect(input.at(-2)).to.deep.equal({ type: 'compaction', encrypted_content: 'secret' });
  });

  it('are triggered by the vendor itself if it supports that, otherwise reported as dropped', async () => {
    const context_management = [{ type: 'compaction', compact_threshold: 200_000 }];
    rig.script('openai', sendResponses({ pieces: [{ text: 'Hello' }] }));
    await createResponse(rig, { model: MODEL_OF.openai, context_management });
    expect(rig.lastBody('openai')['context_management']).to.deep.equal(context_management);
    rig.say('anthropic', { pieces: [{ text: 'Hello' }] });
    const { headers } = await createResponse(rig, { model: MODEL_OF.anthropic, context_management });
    expect(headers.get('x-tollgate-dropped')).to.include('context_management');
  });

  it('are compacted from a stored response, and refused as a stream, and without input', async () => {
    rig.say('anthropic', { pieces: [{ text: 'Which colour?' }] });
    const first = await openai.responses.create({ model: MODEL_OF.anthropic, input: 'Paint the shed.' });
    rig.say('anthropic', { pieces: [{ text: SUMMARY }] });
    const { output } = await openai.responses.compact({
      ...{ model: MODEL_OF.anthropic as CompactModel, previous_response_id: first.id },
    });
    expect(JSON.stringify(rig.lastBody('anthropic'))).to.include('Which colour?');
    expect(output.map(({ type }) => type)).to.deep.equal(['message', 'compaction']);
    const stream = await rig.gateway.post('/v1/responses/compact', { model: 'echo/echo', input: 'Hi', stream: true });
    expect(stream.status).to.equal(400);
    const none = await rig.gateway.post('/v1/responses/compact', { model: 'echo/echo' });
    expect(none.status).to.equal(400);
  });
});
