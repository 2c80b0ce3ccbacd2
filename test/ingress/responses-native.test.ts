import { expect } from 'chai';
import { createResponse, gistOf } from '../support/clients/responses-client.ts';
import { readEvents } from '../support/formats/responses-dialect.ts';
import { CUT, type IngressRig, MODEL_OF, startIngressRig } from '../support/gateways/ingress-rig.ts';
import {
  responsesEvents,
  type SaidNatively,
  sayAnywhere,
  sendEvents,
  sendResponses,
} from '../support/vendors/responses-wire.ts';
import {
  heldSse,
  respondWith,
  type ScriptedUpstream,
  startScriptedUpstream,
} from '../support/vendors/scripted-upstream.ts';

/** Requests passed through by core to vendors with the caller's format. */

const MODEL = MODEL_OF.openai;
const HELLO: SaidNatively = { pieces: [{ text: 'Hello' }] };

describe('POST /v1/responses to a vendor that supports it', () => {
  let rig: IngressRig;
  before(async () => {
    rig = await startIngressRig();
  });
  after(() => rig.stop());

  for (const stream of [false, true])
    it(`loses nothing in either direction, ${stream ? 'streamed' : 'not streamed'}`, async () => {
      const items = [
        { id: 'ws_1', type: 'web_search_call', status: 'completed', action: { type: 'search', query: 'x' } },
      ];
      rig.script('openai', sendResponses({ ...HELLO, items, echo: { novelty: { a: 1 } } }, CUT));
      const body = {
        model: MODEL,
        stream,
        novelty: { b: 2 },
        store: true,
        prompt_cache_key: 'k',
        text: { format: { type: 'text' } },
      };
      const { headers, response } = await createResponse(rig, body);
      expect(headers.get('x-tollgate-lane')).to.equal('native');
      expect(response).to.deep.include({ id: 'resp_vendor', novelty: { a: 1 }, status: 'completed' });
      expect(response.output[0]).to.deep.equal(items[0]);
      const sent = rig.lastBody('openai');
      expect(sent).to.deep.include({ model: 'gpt-5', novelty: { b: 2 }, store: false, stream, input: 'Hi' });
      expect(sent['prompt_cache_key']).to.be.a('string').and.not.to.equal('k');
      expect(rig.sent('openai').at(-1)?.path).to.equal('/openai/v1/responses');
    });

  for (const stream of [false, true])
    it(`requests no prompt cache lifetime without a published price, ${stream ? 'streamed' : 'not streamed'}`, async () => {
      const sentFor = async (prompt_cache_options: object) => {
        rig.script('openai', sendResponses(HELLO));
        const { headers } = await createResponse(rig, { model: MODEL, stream, prompt_cache_options });
        return [rig.lastBody('openai')['prompt_cache_options'], headers.get('x-tollgate-dropped')];
      };
      expect(await sentFor({ mode: 'explicit', ttl: '30m' })).to.deep.equal([{ mode: 'explicit', ttl: '30m' }, null]);
      for (const ttl of ['12h', '24h'])
        expect(await sentFor({ mode: 'explicit', ttl })).to.deep.equal([
          { mode: 'explicit' },
          'prompt_cache_options.ttl',
        ]);
    });

  it('passes on the betas that a caller names, except that of the websocket', async () => {
    rig.script('openai', sendResponses(HELLO));
    await createResponse(
      rig,
      { model: MODEL },
      { 'openai-beta': 'responses_websockets=2026-02-06, thing=v1', 'openai-organization': 'org' },
    );
    const { headers } = rig.sent('openai').at(-1) ?? {};
    expect(headers).to.include({ 'openai-beta': 'thing=v1' }).and.not.to.have.property('openai-organization');
  });

  it('G44: returns arguments that are only in a done event', async () => {
    const said: SaidNatively = { pieces: [{ call: 'lookup', id: 'call_one', arguments: '{"q":1}' }] };
    rig.script('openai', sendEvents(responsesEvents(said).filter(({ type }) => !String(type).endsWith('.delta'))));
    const response = await rig.gateway.post('/v1/responses', { model: MODEL, input: 'Hi', stream: true });
    expect(await response.text()).to.include('"arguments":"{\\"q\\":1}"');
  });

  it('G38: reports a failure in the vendor’s stream as one failure of its own', async () => {
    const error = { code: 'server_error', message: 'Organization org-secretsecretsecret is sad.' };
    const failed = { type: 'response.failed', response: { id: 'resp_vendor', status: 'failed', error } };
    const delta = { type: 'response.output_text.delta', output_index: 0, content_index: 0, delta: 'Hel' };
    const { script, finish } = heldSse(delta, { type: 'error', ...error }, failed);
    rig.script('openai', script);
    const response = await rig.gateway.post('/v1/responses', { model: MODEL, input: 'Hi', stream: true });
    finish();
    const events = readEvents(await response.text());
    expect(events.map(({ type }) => type)).to.deep.equal([delta.type, 'response.created', 'error', failed.type]);
    expect(events.at(-1)?.['response']).to.have.nested.property('error.code', 'server_error');
    expect(JSON.stringify(events)).not.to.include('secretsecret');
  });

  it('reports errors of the vendor before its stream in OpenAI’s format', async () => {
    const error = { message: 'Bad thing.', type: 'invalid_request_error', code: 'bad', param: 'text' };
    rig.script('openai', respondWith(400, { error }));
    const { status, response } = await createResponse(rig, { model: MODEL, stream: true });
    expect(status).to.equal(400);
    expect(response['error']).to.include({ code: 'invalid_request', param: 'text' });
  });

  it('refuses data in the operator’s account', async () => {
    const input = [{ role: 'user', content: [{ type: 'input_file', file_id: 'file_1' }] }];
    for (const [body, param] of [
      [{ input }, 'input[0].content[0].file_id'],
      [{ conversation: 'conv_1' }, 'conversation'],
    ] as const) {
      const { status, response } = await createResponse(rig, { model: MODEL, ...body });
      expect([status, (response['error'] as { param: string }).param]).to.deep.equal([400, param]);
    }
  });

  it('E2: refuses actions in the operator’s account in any item', async () => {
    const url = 'http://169.254.169.254/latest';
    const mcp = { type: 'mcp', server_label: 'x', server_url: 'https://mcp.example.org' };
    const hello = { role: 'user', content: 'Hi' };
    for (const [items, status, param] of [
      [[{ type: 'computer_call_output', call_id: 'c', output: { image_url: url } }], 400, 'input[1].output.image_url'],
      [[{ type: 'computer_call_output', call_id: 'c', output: { file_id: 'f' } }], 400, 'input[1].output.file_id'],
      [[{ type: 'code_interpreter_call', container_id: 'c' }], 400, 'input[1].container_id'],
      [
        [{ type: 'shell_call', environment: { type: 'container_reference', container_id: 'c' } }],
        400,
        'input[1].environment.container_id',
      ],
      [
        [{ type: 'mcp_approval_response', approval_request_id: 'a', approve: true }],
        403,
        'input[1].approval_request_id',
      ],
      [[{ type: 'novelty', deep: [{ tool: mcp }] }], 403, 'input[1].deep[0].tool.server_url'],
    ] as const) {
      const { status: got, response } = await createResponse(rig, { model: MODEL, input: [hello, ...items] });
      expect([got, (response['error'] as { param: string }).param]).to.deep.equal([status, param]);
    }
  });

  it('E2: drops the vendor’s tools inside a namespace or among found tools', async () => {
    const own = { type: 'function', name: 'look', parameters: { type: 'object', properties: {} } };
    const mcp = { type: 'mcp', server_label: 'x', server_url: 'https://mcp.example.org' };
    const found = { type: 'tool_search_output', call_id: 'c', tools: [mcp, { ...own, name: 'found' }] };
    const tools = [{ type: 'namespace', name: 'crm', description: 'd', tools: [own, mcp] }];
    rig.script('openai', sendResponses(HELLO));
    const input = [{ role: 'user', content: 'Hi' }, found];
    const { status, headers } = await createResponse(rig, { model: MODEL, input, tools });
    expect([status, headers.get('x-tollgate-lane')]).to.deep.equal([200, 'native']);
    expect(headers.get('x-tollgate-dropped')).to.include('tools.mcp');
    expect(JSON.stringify(rig.lastBody('openai')))
      .to.include('"found"')
      .and.include('"look"')
      .and.not.include('mcp');
  });

  it('does not use the vendor’s format if the operator disabled it', async () => {
    const own = await startScriptedUpstream();
    const provider = { plugin: 'openai', apiKey: 'k', baseUrl: `${own.url}/v1`, models: ['*'], native: false };
    const other = await startIngressRig({ providers: { plain: provider } });
    own.script(
      respondWith(200, {
        id: 'x',
        object: 'chat.completion',
        created: 1,
        model: 'm',
        choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
      }),
    );
    try {
      const { headers, status } = await createResponse(other, { model: 'plain/gpt-5' });
      expect([status, headers.get('x-tollgate-lane')]).to.deep.equal([200, 'translated']);
      expect(own.requests[0]?.path).to.equal('/v1/chat/completions');
    } finally {
      await other.stop();
      await own.close();
    }
  });
});

describe('reasoning encrypted by a vendor', () => {
  let rig: IngressRig;
  let east: ScriptedUpstream;
  let west: ScriptedUpstream;
  before(async () => {
    east = await startScriptedUpstream();
    west = await startScriptedUpstream();
    const at = ({ url }: ScriptedUpstream) => ({ plugin: 'openai', apiKey: 'k', baseUrl: `${url}/v1`, models: ['*'] });
    rig = await startIngressRig({
      providers: { east: at(east), west: at(west) },
      models: { smart: ['east/gpt-5', 'west/gpt-5'] },
    });
  });
  after(async () => {
    await rig.stop();
    await east.close();
    await west.close();
  });

  const said: SaidNatively = { pieces: [{ reasoning: 'Hm' }, { text: 'Hello' }], encrypted: 'gAAA-secret' };
  const include = ['reasoning.encrypted_content'];

  for (const stream of [false, true])
    it(`G47: is sent back to the deployment that created it, in any order of targets (${stream ? 'streamed' : 'whole'})`, async () => {
      east.script(sendResponses(HELLO));
      west.script(sendResponses(said));
      const first = await createResponse(rig, { model: 'west/gpt-5', include, stream });
      const [thought] = first.response.output;
      expect(thought?.['encrypted_content']).to.match(/^tg1\.west\./);
      const input = [{ role: 'user', content: 'Hi' }, ...first.response.output, { role: 'user', content: 'More' }];
      const before = east.requests.length;
      const second = await createResponse(rig, { model: 'smart', input, include, stream });
      expect(second.status).to.equal(200);
      expect(east.requests.length).to.equal(before);
      const sent = west.requests.at(-1)?.json() as { input: Record<string, unknown>[] };
      expect(sent.input.find(({ type }) => type === 'reasoning')).to.include({ encrypted_content: 'gAAA-secret' });
    });

  for (const stream of [false, true])
    it(`a referenced response continues at its target, while that is healthy (${stream ? 'streamed' : 'whole'})`, async () => {
      for (const vendor of [east, west]) vendor.script(sendResponses(HELLO));
      const { response } = await createResponse(rig, { model: 'west/gpt-5', input: 'One', stream });
      const request = { model: 'smart', previous_response_id: response.id, input: 'Two', stream };
      const before = { east: east.requests.length, west: west.requests.length };
      expect((await createResponse(rig, request)).status).to.equal(200);
      expect(east.requests.length - before.east, 'the first of the alias').to.equal(0);
      expect(west.requests.length - before.west).to.equal(1);
      if (!stream) return;
      west.script(respondWith(429, { error: { message: 'later' } }, { 'retry-after': '60' }));
      for (const by of ['tried', 'skipped']) expect((await createResponse(rig, request)).status, by).to.equal(200);
      expect(east.requests.length - before.east).to.equal(2);
      expect(west.requests.length - before.west).to.equal(2);
    });

  it('is dropped for a deployment that cannot read it, and reported', async () => {
    west.script(sendResponses(said));
    east.script(sendResponses(HELLO));
    const { response } = await createResponse(rig, { model: 'west/gpt-5', include });
    const input = [...response.output, { role: 'user', content: 'More' }];
    const { headers } = await createResponse(rig, { model: 'east/gpt-5', input });
    expect(JSON.stringify(east.requests.at(-1)?.json())).not.to.include('secret');
    expect(headers.get('x-tollgate-dropped')).to.include('reasoning');
  });
});

describe('continued responses', () => {
  for (const wire of ['openai', 'mistral'] as const)
    it(`are stored for an hour by default, for requests that refer to them or their items (${wire})`, async () => {
      const rig = await startIngressRig();
      try {
        const model = MODEL_OF[wire];
        for (const stream of [false, true]) {
          sayAnywhere(rig, wire, HELLO);
          const { response } = await createResponse(rig, { model, input: 'One', stream });
          const input = [{ role: 'user', content: 'Two' }];
          const named = await createResponse(rig, { model, previous_response_id: response.id, input, stream });
          expect(named.status).to.equal(200);
          expect(named.response['previous_response_id']).to.equal(response.id);
          expect(JSON.stringify(rig.lastBody(wire)))
            .to.match(/One.*Hello.*Two/)
            .and.not.to.include(response.id);
          const reference = { type: 'item_reference', id: response.output[0]?.['id'] };
          await createResponse(rig, { model, input: [{ role: 'user', content: 'One' }, reference, ...input], stream });
          expect(JSON.stringify(rig.lastBody(wire)))
            .to.match(/One.*Hello.*Two/)
            .and.not.to.include('item_reference');
        }
        const gone = await createResponse(rig, { model, previous_response_id: 'resp_missing', stream: true });
        expect([gone.status, gone.response['error']]).to.have.deep.nested.property(
          '1.code',
          'previous_response_not_found',
        );
        expect((await rig.gateway.get('/v1/responses/resp_missing')).status).to.equal(404);
      } finally {
        await rig.stop();
      }
    });

  it('are read and deleted by their owner if storage is enabled', async () => {
    const rig = await startIngressRig({ dialects: { responses: { store: 'on', retention: '24h' } } });
    try {
      sayAnywhere(rig, 'mistral', HELLO);
      const { response } = await createResponse(rig, { model: MODEL_OF.mistral });
      const openai = rig.gateway.openai();
      const kept = await openai.responses.retrieve(response.id);
      expect(gistOf(kept as never)).to.deep.equal(gistOf(response));
      await openai.responses.delete(response.id);
      expect((await rig.gateway.get(`/v1/responses/${response.id}`)).status).to.equal(404);
    } finally {
      await rig.stop();
    }
  });

  it('E73: are read, listed and deleted by their owner under the default store', async () => {
    const rig = await startIngressRig();
    try {
      sayAnywhere(rig, 'mistral', HELLO);
      const openai = rig.gateway.openai();
      const model = MODEL_OF.mistral;
      const first = await openai.responses.create({ model, input: 'One' });
      const input = [{ role: 'user' as const, content: 'Two' }];
      const { id } = await openai.responses.create({ model, input, previous_response_id: first.id });
      expect((await openai.responses.retrieve(id)).id).to.equal(id);
      const items = await openai.responses.inputItems.list(id, { order: 'asc' });
      const texts = items.data.map((item) => (item as { content: { text: string }[] }).content[0]?.text);
      expect(texts).to.deep.equal(['One', 'Hello', 'Two']);
      const pages: string[] = [];
      for await (const item of openai.responses.inputItems.list(id, { limit: 2 })) pages.push(String(item.id));
      expect(pages).to.deep.equal(items.data.map((item) => item.id).toReversed());
      const status = async (path: string, method = 'GET') => {
        const headers = { authorization: `Bearer ${rig.gateway.key}` };
        return (await fetch(`${rig.gateway.url}/v1/responses/${path}`, { method, headers })).status;
      };
      expect(await status(`${id}?stream=true`)).to.equal(400);
      expect(await status(`${id}/input_items?limit=0`)).to.equal(400);
      expect(await status(`${id}/input_items?after=msg_other`)).to.equal(400);
      expect(await status(`${id}/cancel`, 'POST')).to.equal(400);
      expect(await status('resp_gone/cancel', 'POST')).to.equal(404);
      await openai.responses.delete(id);
      expect([await status(id), await status(`${id}/input_items`)]).to.deep.equal([404, 404]);
    } finally {
      await rig.stop();
    }
  });

  it('are refused if storage is disabled, with the setting', async () => {
    const rig = await startIngressRig({ dialects: { responses: { store: 'off' } } });
    try {
      const { status, text } = await createResponse(rig, { model: 'echo/echo', previous_response_id: 'resp_1' });
      expect(status).to.equal(400);
      expect(text).to.include('store: short');
    } finally {
      await rig.stop();
    }
  });
});
