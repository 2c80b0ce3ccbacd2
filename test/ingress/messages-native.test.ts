import Anthropic from '@anthropic-ai/sdk';
import { expect } from 'chai';
import type { JsonObject } from '../../contract/index.ts';
import { LOOK, postMessages, receiveMessage } from '../support/clients/post-messages.ts';
import { fixture } from '../support/formats/codec.ts';
import { readMessagesStream } from '../support/formats/messages-grammar.ts';
import { type IngressRig, MODEL_OF, startIngressRig } from '../support/gateways/ingress-rig.ts';
import { chunk, LAST_CHUNK, respondWith, type Script, SSE_HEAD } from '../support/vendors/scripted-upstream.ts';

/** Request of Claude Code with fields that the gateway does not know. */
const BODY = {
  system: [
    { type: 'text', text: 'x-anthropic-billing-header: cc_version=2.1.0; cch=00000;' },
    { type: 'text', text: 'Be kind.', cache_control: { type: 'ephemeral' } },
  ],
  messages: [{ role: 'user', content: [{ type: 'future_block', secret: 1 }] }],
  thinking: { type: 'enabled', budget_tokens: 31_999 },
  max_tokens: 32_000,
  context_management: { edits: [{ type: 'clear_tool_uses_20250919' }] },
  metadata: { user_id: 'user_1_account_2_session_3' },
  future_field: { a: [1, null] },
};
const MESSAGE = {
  ...{ id: 'msg_vendor', type: 'message', role: 'assistant', model: 'claude-vendor', future: true },
  content: [{ type: 'future_block', x: 1 }],
  ...{ stop_reason: 'end_turn', stop_sequence: null, usage: { input_tokens: 3, output_tokens: 2, future_tokens: 1 } },
};
const stream =
  (path: string): Script =>
  async (wire) => {
    await wire.send(SSE_HEAD);
    await wire.send(chunk(fixture(path)));
    await wire.send(LAST_CHUNK);
  };

describe('POST /v1/messages at Anthropic itself', () => {
  let rig: IngressRig;
  before(async () => {
    rig = await startIngressRig({
      providers: {
        strict: {
          plugin: 'anthropic',
          apiKey: 'k',
          baseUrl: 'http://127.0.0.1:9',
          betas: { deny: ['fast-mode-2026'] },
        },
      },
      plans: { searching: { serverTools: ['web_search'] } },
      models: { 'claude-alias': MODEL_OF.openai },
    });
  });
  after(() => rig.stop());

  it('passes the caller’s body and the vendor’s message on, with unknown fields', async () => {
    rig.script('anthropic', respondWith(200, MESSAGE));
    const response = await postMessages(rig, MODEL_OF.anthropic, BODY as never);
    expect(response.headers.get('x-tollgate-lane')).to.equal('native');
    expect(await response.json()).to.deep.equal(MESSAGE);
    const { model, tools: _tools, ...sent } = rig.lastBody<JsonObject>('anthropic');
    expect(model).to.equal('claude-sonnet-4-5');
    expect(sent).to.deep.equal(BODY);
  });

  it('E38: passes the vendor’s events on, with sealed signatures of its thinking', async () => {
    rig.script('anthropic', stream('anthropic/stream-thinking-and-tools.sse'));
    const response = await postMessages(rig, MODEL_OF.anthropic, { stream: true });
    const text = await response.text();
    const seals = /tg1\.anthropic\.[\w-]+\./g;
    expect(text.match(seals)).to.have.length(2);
    expect(readMessagesStream(text.replace(seals, ''))).to.deep.equal(
      readMessagesStream(fixture('anthropic/stream-thinking-and-tools.sse')),
    );
  });

  it('G24: sends betas byte for byte, and refuses one that the operator denies', async () => {
    rig.script('anthropic', respondWith(200, MESSAGE));
    const header = 'a-2025-01-01,  b-2026-01-01 ,c';
    await receiveMessage(rig, MODEL_OF.anthropic, {}, { 'anthropic-beta': header });
    expect(rig.sent('anthropic').at(-1)?.headers['anthropic-beta']).to.equal(header);
    const denied = await postMessages(rig, 'strict/claude-sonnet-4-5', {}, { 'anthropic-beta': 'fast-mode-2026' });
    expect(denied.status).to.equal(400);
    expect(await denied.text()).to.include('fast-mode-2026');
  });

  it('G5: fits cache marks to what Anthropic accepts, also in a count and in results of tools, and reports it', async () => {
    const mark = { type: 'ephemeral' };
    const text = (own: object) => ({ type: 'text', text: 'a', ...own });
    const marked = { cache_control: mark };
    const body = {
      tools: [{ name: 'look', input_schema: { type: 'object' }, ...marked }],
      system: [text(marked), text({})],
      messages: [
        { role: 'user', content: [text(marked), text(marked)] },
        { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'look', input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: [text(marked)], ...marked }] },
      ],
    };
    const marksOf = (sent: unknown) => JSON.stringify(sent).match(/"cache_control":\{[^}]*\}/g) ?? [];
    rig.script('anthropic', respondWith(200, MESSAGE));
    const response = await postMessages(rig, MODEL_OF.anthropic, body as never);
    expect([response.headers.get('x-tollgate-lane'), response.headers.get('x-tollgate-dropped')]).to.deep.equal([
      ...['native', 'cache_control'],
    ]);
    const { system, tools, messages } = rig.lastBody<typeof body>('anthropic');
    expect([tools, system, messages[0]?.content].map((each) => marksOf(each).length)).to.deep.equal([1, 0, 1]);
    expect(marksOf(messages[2]?.content)).to.have.length(2);
    expect(system).to.deep.equal([text({}), text({})]);
    const lines = [text({ cache_control: { ...mark, ttl: '5m' } }), text({ cache_control: { ...mark, ttl: '1h' } })];
    await postMessages(rig, MODEL_OF.anthropic, { messages: [{ role: 'user', content: lines }] } as never);
    const sent = rig.lastBody<typeof body>('anthropic');
    expect(marksOf(sent).map((each) => /\d[mh]/.exec(each)?.[0])).to.deep.equal(['5m', undefined]);
    rig.script('anthropic', respondWith(200, { input_tokens: 7 }));
    const count = { model: MODEL_OF.anthropic, ...body };
    expect(await (await rig.gateway.post('/v1/messages/count_tokens', count)).json()).to.include({ input_tokens: 7 });
    expect(marksOf(rig.lastBody('anthropic'))).to.have.length(4);
    const four = { ...body, tools: undefined, system: undefined };
    rig.script('anthropic', respondWith(200, MESSAGE));
    const same = await postMessages(rig, MODEL_OF.anthropic, four as never);
    expect(same.headers.get('x-tollgate-dropped')).to.equal(null);
    expect(rig.lastBody<typeof body>('anthropic').messages).to.deep.equal(body.messages);
  });

  it('G29: refuses Anthropic’s server tool at another vendor, by its name', async () => {
    const tools = [{ type: 'web_search_20250305', name: 'web_search' }];
    expect((await postMessages(rig, MODEL_OF.anthropic, { tools })).status).to.equal(403);
    const made = await rig.gateway.command<{ api_key: string }>('keys', 'create', '--user', 'u', '--plan', 'searching');
    const allowed = { authorization: `Bearer ${made.api_key}` };
    rig.script('anthropic', respondWith(200, MESSAGE));
    expect((await postMessages(rig, MODEL_OF.anthropic, { tools }, allowed)).status).to.equal(200);
    const response = await postMessages(rig, MODEL_OF.openai, { tools }, allowed);
    expect(response.status).to.equal(400);
    expect(await response.json())
      .to.have.nested.property('error.message')
      .that.includes('web_search_20250305')
      .and.includes('tools[0].type');
  });

  it('refuses data in the operator’s account', async () => {
    const source = { type: 'file', file_id: 'file_1' };
    const messages = [{ role: 'user', content: [{ type: 'document', source }] }];
    const response = await postMessages(rig, MODEL_OF.anthropic, { messages });
    expect(response.status).to.equal(400);
    expect(await response.text()).to.include('messages[0].content[0].source');
  });

  it('E2: refuses a file of the operator’s account also in a document inside a tool’s result', async () => {
    const document = {
      type: 'document',
      source: { type: 'content', content: [{ type: 'image', source: { type: 'file', file_id: 'f' } }] },
    };
    const result = { type: 'tool_result', tool_use_id: 't', content: [document] };
    const messages = [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'look', input: { file_id: 'mine' } }] },
      { role: 'user', content: [result] },
    ];
    const response = await postMessages(rig, MODEL_OF.anthropic, { messages });
    expect(response.status).to.equal(400);
    expect(await response.json())
      .to.have.nested.property('error.message')
      .that.includes('messages[2].content[0].content[0].source.content[0].source.file_id');
  });

  it('G21, G22: counts system, tools and messages, by Anthropic itself or here, free of charge', async () => {
    rig.script('anthropic', respondWith(200, { input_tokens: 728 }));
    const body = {
      ...{ system: 'Be kind. '.repeat(50), tools: [LOOK], messages: [{ role: 'user', content: 'Hi' }] },
      ...{ max_tokens: 5, stream: true, temperature: 1 },
    };
    const count = async (model: string, more: object = body) => {
      const response = await rig.gateway.post('/v1/messages/count_tokens', { model, ...more });
      expect(response.status).to.equal(200);
      return { ...((await response.json()) as object), estimated: response.headers.get('x-tollgate-estimated') };
    };
    expect(await count(MODEL_OF.anthropic)).to.deep.equal({ input_tokens: 728, estimated: null });
    const sent = rig.sent('anthropic').at(-1);
    expect(sent?.path).to.equal('/anthropic/v1/messages/count_tokens');
    expect(sent?.json()).to.have.all.keys('model', 'system', 'tools', 'messages');
    const before = rig.sent('openai').length;
    const whole = await count(MODEL_OF.openai);
    expect(whole).to.include({ estimated: 'true' });
    expect(whole).to.have.property('input_tokens').that.is.above(100);
    expect(rig.sent('openai')).to.have.length(before);
  });

  it('G34: lists models in Anthropic’s shape by its header, including aliases with claude in their names', async () => {
    const response = await rig.gateway.get('/v1/models?limit=1000', { 'anthropic-version': '2023-06-01' });
    const list = (await response.json()) as { data: JsonObject[] };
    expect(list).to.include({ has_more: false }).and.to.include.keys('first_id', 'last_id');
    const alias = list.data.find(({ id }) => id === 'claude-alias');
    expect(alias).to.include({ type: 'model', display_name: 'claude-alias' });
    expect(alias?.['created_at']).to.match(/^\d{4}-\d\d-\d\dT/);
    const client = new Anthropic({ apiKey: rig.gateway.key, baseURL: rig.gateway.url, maxRetries: 0 });
    const ids: string[] = [];
    for await (const model of client.models.list({ limit: 2 })) ids.push(model.id);
    expect(ids).to.deep.equal(list.data.map(({ id }) => id));
    const { input_tokens: tokens } = await client.messages.countTokens({
      ...{ model: 'echo/echo', messages: [{ role: 'user', content: 'Hi there' }] },
    });
    expect(tokens).to.be.above(0);
  });

  it('G20: reports an overload without another target as 529, and unknown paths in Anthropic’s format', async () => {
    const full = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } };
    rig.script('anthropic', respondWith(529, full, { 'retry-after': '7' }));
    const response = await postMessages(rig, MODEL_OF.anthropic);
    expect(response.status).to.equal(529);
    expect(response.headers.get('retry-after')).to.equal('7');
    expect(response.headers.get('request-id')).to.match(/^req_/);
    expect(await response.json()).to.have.nested.property('error.type', 'overloaded_error');
    const unknown = await rig.gateway.post('/v1/messages/nowhere', {});
    expect(await unknown.json()).to.have.nested.property('error.type', 'not_found_error');
  });
});
