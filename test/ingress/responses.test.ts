import { expect } from 'chai';
import { askResponse, gistOf } from '../support/clients/responses-client.ts';
import {
  CUTS,
  cutScript,
  type IngressRig,
  MODEL_OF,
  startIngressRig,
  WIRES,
  type Wire,
} from '../support/gateways/ingress-rig.ts';
import { responsesEvents, type SaidNatively, sayAnywhere, sendEvents } from '../support/vendors/responses-wire.ts';

const LOOKUP = {
  type: 'function',
  name: 'lookup',
  description: 'Looks up.',
  parameters: { type: 'object', properties: { q: { type: 'string' } } },
};
const PATCH = { type: 'custom', name: 'apply_patch', description: 'Edits files.' };
const INPUT = '*** Begin Patch\n+ "é" \\ 😀\n*** End Patch';
const CALL = { call: 'lookup', id: 'call_one', arguments: '{"q":"a b"}' };

const isStreamed = [false, true];
const cutsOf = (stream: boolean) => (stream ? CUTS : [65_536]);

describe('POST /v1/responses', () => {
  let rig: IngressRig;
  before(async () => {
    rig = await startIngressRig();
  });
  after(() => rig.stop());

  /** Runs a case on every wire, whole and streamed, in pieces of every size. */
  function everywhere(
    title: string,
    run: (ask: (said: SaidNatively, body?: object) => ReturnType<typeof askResponse>, wire: Wire) => Promise<void>,
  ): void {
    for (const wire of WIRES)
      for (const stream of isStreamed)
        it(`${title} (${wire}, ${stream ? 'streamed' : 'whole'})`, async () => {
          for (const cut of cutsOf(stream))
            await run((said, body = {}) => {
              sayAnywhere(rig, wire, said, cut);
              return askResponse(rig, { model: MODEL_OF[wire], stream, store: false, ...body });
            }, wire);
        });
  }

  everywhere('G35, G36, G37: a text comes in the full order of events with every field', async (ask) => {
    const { status, response } = await ask({
      pieces: [{ text: 'Hello, 😀!' }],
      usage: { prompt: 20, completion: 5, cached: 4 },
    });
    expect(status).to.equal(200);
    expect(gistOf(response)).to.deep.equal([['message', 'completed', 'Hello, 😀!']]);
    expect(response).to.deep.include({
      object: 'response',
      status: 'completed',
      error: null,
      incomplete_details: null,
    });
    expect(response['usage']).to.nested.include({
      input_tokens: 20,
      'input_tokens_details.cached_tokens': 4,
      output_tokens: 5,
      total_tokens: 25,
    });
    expect(response.output[0]).to.have.nested.property('content[0].logprobs').that.deep.equals([]);
  });

  everywhere('G39: a response that ran out of tokens is incomplete', async (ask) => {
    const { response, events } = await ask({ pieces: [{ text: 'Hel' }], finish: 'length' });
    expect(response).to.deep.include({ status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } });
    expect(events.at(-1)?.type ?? 'response.incomplete').to.equal('response.incomplete');
  });

  everywhere('G40, G41: calls at once are items of their own', async (ask) => {
    const pieces = [CALL, { ...CALL, id: 'call_two', arguments: '{"q":"c"}' }];
    const { response } = await ask({ pieces }, { tools: [LOOKUP] });
    expect(
      gistOf(response).map(([type, status, name, , args]) => [type, status, name, JSON.parse(String(args))]),
    ).to.deep.equal([
      ['function_call', 'completed', 'lookup', { q: 'a b' }],
      ['function_call', 'completed', 'lookup', { q: 'c' }],
    ]);
    expect(new Set(response.output.map(({ call_id: id }) => id)).size).to.equal(2);
  });

  everywhere('G42: a custom tool is called with its plain input', async (ask, wire) => {
    const call = { call: 'apply_patch', id: 'call_one', arguments: JSON.stringify({ input: INPUT }) };
    const { response, events } = await ask({ pieces: [call], custom: ['apply_patch'] }, { tools: [PATCH] });
    expect(response.output).to.have.length(1);
    expect(response.output[0]).to.include({ type: 'custom_tool_call', name: 'apply_patch', input: INPUT });
    const deltas = events.filter(({ type }) => type === 'response.custom_tool_call_input.delta');
    if (events.length > 0) expect(deltas.map(({ delta }) => delta).join('')).to.equal(INPUT);
    const sent = JSON.stringify(rig.lastBody(wire));
    expect(sent).to.include('apply_patch').and.to.include('Edits files.');
  });

  everywhere('G43: tools of a namespace and additional ones are known by their own names', async (ask, wire) => {
    const call = { call: 'mail__lookup', id: 'call_one', arguments: '{}' };
    const tools = [{ type: 'namespace', name: 'mail', description: 'Mail.', tools: [LOOKUP] }];
    const input = [
      { type: 'additional_tools', role: 'developer', tools: [PATCH] },
      { role: 'user', content: 'Hi' },
    ];
    const said = { pieces: [call], namespace: 'mail' };
    const { response } = await ask(said, { tools, input, tool_choice: 'required' });
    expect(response.output[0]).to.include({ type: 'function_call', name: 'lookup', namespace: 'mail' });
    expect(JSON.stringify(rig.lastBody(wire))).to.include('apply_patch');
  });

  for (const wire of WIRES)
    it(`G38: a vendor that breaks off is one response.failed (${wire})`, async () => {
      const said: SaidNatively = { pieces: [{ text: 'Hello there, how are you?' }] };
      rig.script(wire, (connection) => {
        const isNative = connection.request.path.endsWith('/responses');
        return (isNative ? sendEvents(responsesEvents(said).slice(0, 7)) : cutScript(wire, said, 6))(connection);
      });
      const { response, events } = await askResponse(rig, { model: MODEL_OF[wire], stream: true });
      expect(events.at(-1)?.type).to.equal('response.failed');
      expect(response['error']).to.have.property('code', 'server_error');
    });

  for (const wire of WIRES.filter((name) => name !== 'gemini'))
    for (const tool of ['lookup', 'apply_patch'])
      it(`G45: a call of ${tool} that was cut is an incomplete item (${wire})`, async () => {
        const call = { call: tool, id: 'call_one', arguments: '{"input":"rm -r' };
        sayAnywhere(rig, wire, { pieces: [call], finish: 'length', custom: ['apply_patch'] });
        const body = { model: MODEL_OF[wire], stream: true, tools: [LOOKUP, PATCH] };
        const { response, events } = await askResponse(rig, body);
        expect(response).to.include({ status: 'incomplete' });
        expect(response.output[0]).to.include({ status: 'incomplete' });
        expect(events.some(({ type }) => /arguments\.done|input\.done/.test(type))).to.equal(false);
      });

  it('shows the reasoning of a vendor before what it led to', async () => {
    for (const wire of ['anthropic', 'deepseek', 'gemini'] as const)
      for (const stream of isStreamed) {
        sayAnywhere(rig, wire, { pieces: [{ reasoning: 'Hmm.' }, { text: 'Hello' }] });
        const { response } = await askResponse(rig, { model: MODEL_OF[wire], stream });
        expect(gistOf(response), wire).to.deep.equal([
          ['reasoning', 'Hmm.'],
          ['message', 'completed', 'Hello'],
        ]);
      }
  });

  it('sends a whole tool loop to vendors with other formats', async () => {
    const input = [
      { role: 'user', content: [{ type: 'input_text', text: 'Find a.' }] },
      {
        type: 'reasoning',
        id: 'rs_1',
        summary: [{ type: 'summary_text', text: 'I look.' }],
        encrypted_content: 'tg1.a.b.c',
      },
      { type: 'function_call', call_id: 'call_one', name: 'lookup', arguments: '{"q":"a"}' },
      { type: 'custom_tool_call', call_id: 'call_two', name: 'apply_patch', input: INPUT },
      { type: 'function_call_output', call_id: 'call_one', output: 'found' },
      { type: 'custom_tool_call_output', call_id: 'call_two', output: 'patched' },
    ];
    sayAnywhere(rig, 'mistral', { pieces: [{ text: 'Done' }] });
    const { status } = await askResponse(rig, {
      model: MODEL_OF.mistral,
      instructions: 'Be brief.',
      input,
      tools: [LOOKUP, PATCH],
    });
    expect(status).to.equal(200);
    const { messages } = rig.lastBody<{ messages: Record<string, unknown>[] }>('mistral');
    expect(messages.map(({ role }) => role)).to.deep.equal(['system', 'user', 'assistant', 'tool', 'tool']);
    const [one, two] = (messages[2]?.['tool_calls'] ?? []) as { function: { name: string; arguments: string } }[];
    expect([one?.function.name, two?.function.name]).to.deep.equal(['lookup', 'apply_patch']);
    expect(JSON.parse(two?.function.arguments ?? '')).to.deep.equal({ input: INPUT });
    sayAnywhere(rig, 'anthropic', { pieces: [{ text: 'Done' }] });
    expect((await askResponse(rig, { model: MODEL_OF.anthropic, input, tools: [LOOKUP, PATCH] })).status).to.equal(200);
  });

  it('leaves out tools that only OpenAI runs, and says so', async () => {
    sayAnywhere(rig, 'mistral', { pieces: [{ text: 'Hi' }] });
    const { status, headers } = await askResponse(rig, {
      model: MODEL_OF.mistral,
      tools: [LOOKUP, { type: 'web_search' }],
      tool_choice: 'auto',
    });
    expect(status).to.equal(200);
    expect(rig.lastBody<{ tools: object[] }>('mistral').tools).to.have.length(1);
    if (headers.has('x-tollgate-lane')) expect(headers.get('x-tollgate-dropped')).to.include('tools.web_search');
  });

  const BAD: readonly (readonly [body: object, param: string])[] = [
    [{ input: [{ role: 'wizard', content: 'x' }] }, 'input[0].role'],
    [{ input: 7 }, 'input'],
    [{ tools: [{ name: 'x' }] }, 'tools[0].type'],
    [{ tools: [{ type: 'function' }] }, 'tools[0].name'],
    [{ max_output_tokens: 'many' }, 'max_output_tokens'],
    [{ text: { format: { type: 'xml' } } }, 'text.format.type'],
    [{ background: true }, 'background'],
  ];
  for (const [body, param] of BAD)
    it(`refuses ${JSON.stringify(body)} and names ${param}`, async () => {
      const { status, response } = await askResponse(rig, { model: 'echo/echo', ...body });
      expect(status).to.equal(400);
      expect(response['error']).to.include({ code: 'invalid_request', type: 'invalid_request_error', param });
    });

  it('tells errors before the stream in OpenAI’s body', async () => {
    const { status, response } = await askResponse(rig, { model: 'echo/nothing', stream: true });
    expect(status).to.equal(404);
    expect(response['error']).to.include({ code: 'unsupported_model', type: 'invalid_request_error' });
  });
});
