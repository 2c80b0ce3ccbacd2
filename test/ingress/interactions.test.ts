import { GoogleGenAI, type Interactions } from '@google/genai';
import { expect } from 'chai';
import { cutScript, type IngressRig, MODEL_OF, startIngressRig, WIRES } from '../support/gateways/ingress-rig.ts';
import { respondWith } from '../support/vendors/scripted-upstream.ts';

type Json = Record<string, unknown>;
type Model = Interactions.CreateModelInteractionParamsNonStreaming['model'];

const TOOLS = [
  {
    type: 'function' as const,
    name: 'read',
    description: 'Reads a file.',
    parameters: { type: 'object', properties: { path: { type: 'string' } } },
  },
];

describe('Google’s interactions', () => {
  let rig: IngressRig;
  let client: GoogleGenAI;
  before(async () => {
    rig = await startIngressRig();
    client = clientOf(rig.gateway.key);
  });
  after(() => rig.stop());

  function clientOf(apiKey: string): GoogleGenAI {
    return new GoogleGenAI({ apiKey, httpOptions: { baseUrl: rig.gateway.url } });
  }
  const post = (body: object, headers: Record<string, string> = {}) =>
    rig.gateway.post('/v1beta/interactions', { model: MODEL_OF.gemini, input: 'Hi', ...body }, headers);
  const refusal = async (response: Response) => {
    const { error } = (await response.json()) as { error: { code: number; status: string; message: string } };
    return { ...error, http: response.status };
  };

  for (const wire of WIRES) {
    const model = MODEL_OF[wire] as Model;

    it(`are created without a stream, and continued from stored ones (${wire})`, async () => {
      rig.say(wire, { pieces: [{ text: 'Hello Ann.' }] });
      const first = await client.interactions.create({ model, input: 'I am Ann.', system_instruction: 'Be brief.' });
      expect(first.output_text).to.equal('Hello Ann.');
      expect(first.status).to.equal('completed');
      expect(first.usage?.total_tokens).to.equal(25);
      rig.say(wire, { pieces: [{ text: 'Ann.' }] });
      const second = await client.interactions.create({
        ...{ model, input: 'Who am I?', previous_interaction_id: first.id },
      });
      expect(second.output_text).to.equal('Ann.');
      expect(second.previous_interaction_id).to.equal(first.id);
      const sent = JSON.stringify(rig.lastBody(wire));
      expect(sent).to.include('I am Ann.').and.include('Hello Ann.').and.include('Who am I?');
      // Instructions of one interaction do not apply to its continuations.
      expect(sent).not.to.include('Be brief.');
    });

    it(`complete a streamed tool loop (${wire})`, async () => {
      const calls = ['/a', '/b'].map((path, at) => ({
        ...{ call: 'read', id: `call_${at}`, arguments: JSON.stringify({ path }) },
      }));
      rig.say(wire, [{ pieces: [{ text: 'Reading both.' }, ...calls] }, { pieces: [{ text: 'Done.' }] }], 7);
      const stream = await client.interactions.create({ model, input: 'Read them', tools: TOOLS, stream: true });
      const begun: Json[] = [];
      const args: string[] = [];
      let text = '';
      let id = '';
      let status = '';
      for await (const event of stream) {
        if (event.event_type === 'step.start') begun.push(event.step as unknown as Json);
        if (event.event_type === 'step.delta' && event.delta.type === 'text') text += event.delta.text;
        if (event.event_type === 'step.delta' && event.delta.type === 'arguments_delta')
          args.push(event.delta.arguments ?? '');
        if (event.event_type === 'interaction.completed') ({ id, status } = event.interaction);
      }
      expect([text, status]).to.deep.equal(['Reading both.', 'requires_action']);
      expect(args).to.deep.equal(['{"path":"/a"}', '{"path":"/b"}']);
      const results = begun
        .filter(({ type }) => type === 'function_call')
        .map(({ id: call, name }, at) => ({
          type: 'function_result' as const,
          ...{ call_id: String(call), name: String(name), result: `text of ${at}` },
        }));
      expect(results).to.have.length(2);
      const last = await client.interactions.create({
        model,
        input: results,
        tools: TOOLS,
        previous_interaction_id: id,
      });
      expect(last.output_text).to.equal('Done.');
      expect(JSON.stringify(rig.lastBody(wire)))
        .to.include('text of 0')
        .and.include('text of 1');
    });

    it(`are stateless with steps that the client stores (${wire})`, async () => {
      rig.say(wire, { pieces: [{ call: 'read', id: 'call_0', arguments: '{"path":"/a"}' }] });
      const said = [{ type: 'user_input' as const, content: [{ type: 'text' as const, text: 'Read it' }] }];
      const first = await client.interactions.create({ model, input: said, tools: TOOLS, store: false });
      const call = first.steps?.find(({ type }) => type === 'function_call') as unknown as { id: string; name: string };
      rig.say(wire, { pieces: [{ text: 'Done.' }] });
      const result = { type: 'function_result' as const, call_id: call.id, name: call.name, result: { lines: 3 } };
      const input = [...said, ...(first.steps ?? []), result];
      const second = await client.interactions.create({ model, input, tools: TOOLS, store: false });
      expect(second.output_text).to.equal('Done.');
      expect(JSON.stringify(rig.lastBody(wire))).to.include('lines');
      for (const { id } of [first, second])
        expect(await client.interactions.get(id).catch((error: unknown) => error)).to.include({ status: 404 });
    });
  }

  it('return a model’s signature to it, from stored ones and from steps that the client stores', async () => {
    const signed = [
      { text: 'I think.', thought: true },
      { functionCall: { name: 'read', args: {} }, thoughtSignature: 'c2lnbmVk' },
    ];
    const usageMetadata = { promptTokenCount: 3, candidatesTokenCount: 2, totalTokenCount: 5 };
    rig.script(
      'gemini',
      respondWith(200, { candidates: [{ content: { parts: signed }, finishReason: 'STOP' }], usageMetadata }),
    );
    const body = { model: MODEL_OF.gemini as Model, input: 'Read it', tools: TOOLS };
    const first = await client.interactions.create({
      ...{ ...body, generation_config: { thinking_summaries: 'auto' } },
    });
    expect(first.steps?.map(({ type }) => type)).to.deep.equal(['thought', 'function_call']);
    const call = first.steps?.at(-1) as unknown as Json;
    const input = [{ type: 'function_result' as const, call_id: String(call['id']), name: 'read', result: 'ok' }];
    for (const more of [
      { previous_interaction_id: first.id, input },
      { input: [{ type: 'user_input' as const, content: [] }, ...(first.steps ?? []), ...input] },
    ]) {
      rig.say('gemini', { pieces: [{ text: 'Done.' }] });
      await client.interactions.create({ ...body, ...more });
      expect(JSON.stringify(rig.lastBody('gemini'))).to.include('"thoughtSignature":"c2lnbmVk"');
    }
  });

  it('are read and deleted only by their owner', async () => {
    rig.say('gemini', { pieces: [{ text: 'Hello' }] });
    const made = await client.interactions.create({ model: MODEL_OF.gemini as Model, input: 'Hi' });
    const { id } = made;
    const { api_key } = await rig.gateway.command<{ api_key: string }>('keys', 'create', '--user', 'ann');
    const other = clientOf(api_key);
    for (const attempt of [
      () => other.interactions.get(id),
      () => other.interactions.delete(id),
      () => other.interactions.create({ model: MODEL_OF.gemini as Model, input: 'Hi', previous_interaction_id: id }),
    ]) {
      const error = (await attempt().catch((thrown: unknown) => thrown)) as { status: number };
      expect(error.status).to.be.oneOf([400, 404]);
    }
    const read = await client.interactions.get(id, { include_input: true });
    expect(read.output_text).to.equal('Hello');
    expect(read.input).to.deep.equal([{ type: 'user_input', content: [{ type: 'text', text: 'Hi' }] }]);
    expect((await refusal(await rig.gateway.post(`/v1beta/interactions/${id}/cancel`, {}))).http).to.equal(400);
    await client.interactions.delete(id);
    const gone = await post({ previous_interaction_id: id });
    const { status, message } = await refusal(gone);
    expect([gone.status, status]).to.deep.equal([400, 'INVALID_ARGUMENT']);
    expect(message).to.include('not found').and.include('Send all steps');
  });

  it('report unsupported features, in Google’s format, and send nothing', async () => {
    const before = rig.sent('gemini').length;
    for (const [body, words] of [
      [{ agent: 'deep-research-pro-preview-12-2025', model: undefined }, 'use `model`'],
      [{ background: true }, 'stream'],
      [{ tools: [{ type: 'google_search' }] }, 'generateContent'],
      [{ cached_content: 'cachedContents/x' }, 'operator’s account'],
      [{ webhook_config: { uris: ['https://example.com'] } }, 'wait for the response'],
      [{ service_tier: 'deferred' }, 'deferred'],
      [{ response_modalities: ['audio'] }, 'response_modalities'],
      [{ input: [{ type: 'image', uri: 'http://10.0.0.1/a.png', mime_type: 'image/png' }] }, 'input[0]'],
      [{ input: [{ type: 'document', uri: 'files/abc' }] }, 'operator’s account'],
      [{ input: [{ type: 'function_result', call_id: 'x', result: 'y' }] }, 'input[0]'],
      [{ generation_config: { temperature: 9 } }, 'generation_config.temperature'],
      [{ input: [] }, 'input'],
    ] as const) {
      const { http, code, status, message } = await refusal(await post(body));
      expect([http, code, status], message).to.deep.equal([400, 400, 'INVALID_ARGUMENT']);
      expect(message).to.include(words);
    }
    expect(rig.sent('gemini')).to.have.length(before);
    const unknown = await fetch(`${rig.gateway.url}/v1beta/interactions`, { method: 'POST', body: '{}' });
    expect((await refusal(unknown)).status).to.equal('UNAUTHENTICATED');
  });

  it('end an interrupted stream with an error event, and store nothing of it', async () => {
    rig.script('anthropic', cutScript('anthropic', { pieces: [{ text: 'Hello there' }] }, 4));
    const text = await (await post({ model: MODEL_OF.anthropic, stream: true })).text();
    expect(text).to.include('event: error').and.include('"code":"UNAVAILABLE"');
    expect(text).not.to.include('[DONE]');
    const id = /"id":"(v1_[^"]+)"/.exec(text)?.[1] ?? '';
    expect(await client.interactions.get(id).catch((error: unknown) => error)).to.include({ status: 404 });
  });

  it('are charged, and refused if the budget is spent', async () => {
    const poor = await startIngressRig({ billing: 'enforce' });
    try {
      const response = await poor.gateway.post('/v1beta/interactions', { model: MODEL_OF.gemini, input: 'Hi' });
      const { http, status } = await refusal(response);
      expect([http, status]).to.deep.equal([402, 'FAILED_PRECONDITION']);
    } finally {
      await poor.stop();
    }
    rig.say('gemini', { pieces: [{ text: 'Hello' }] });
    const paid = await post({});
    expect(Number(paid.headers.get('x-tollgate-cost-usd'))).to.be.greaterThan(0);
  });

  it('cite pages with positions in bytes', async () => {
    const groundingMetadata = {
      groundingChunks: [{ web: { uri: 'https://a.example', title: 'A' } }],
      groundingSupports: [{ segment: { startIndex: 3, endIndex: 9, text: 'Würde' }, groundingChunkIndices: [0] }],
    };
    const parts = [{ text: 'Die Würde.' }];
    const usageMetadata = { promptTokenCount: 3, candidatesTokenCount: 2, totalTokenCount: 5 };
    const candidates = [{ content: { parts }, finishReason: 'STOP', groundingMetadata }];
    rig.script('gemini', respondWith(200, { candidates, usageMetadata }));
    const { steps } = (await (await post({})).json()) as { steps: { content: Json[] }[] };
    const [citation] = (steps[0]?.content[0]?.['annotations'] ?? []) as Json[];
    expect(citation).to.include({ type: 'url_citation', url: 'https://a.example', start_index: 4, end_index: 10 });
  });
});
