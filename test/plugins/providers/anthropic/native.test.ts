import { expect } from 'chai';
import { GatewayError, type NativeRow } from '../../../../contract/index.ts';
import anthropic from '../../../../plugins/providers/anthropic.ts';
import { setUpProvider } from '../../../conformance/provider-subject.ts';

function rowOf(config: Readonly<Record<string, unknown>> = {}): NativeRow | undefined {
  return setUpProvider(anthropic, { apiKey: 'k', ...config }).native?.('claude-sonnet-5', true)['messages'];
}

describe('anthropic with its own format', () => {
  it('has its path, and one for token counts', () => {
    const row = rowOf();
    expect(row?.path).to.equal('/v1/messages');
    expect(row?.count?.path).to.equal('/v1/messages/count_tokens');
    expect(row?.count?.response({ input_tokens: 12 })).to.equal(12);
    expect(row?.count?.response('x')).to.equal(undefined);
    const body = { model: 'm', max_tokens: 1, messages: [], stream: true, thinking: {} };
    const count: object = row?.count ?? {};
    expect('body' in count && typeof count.body === 'function' && count.body(body)).to.deep.equal({
      ...{ model: 'm', messages: [], thinking: {} },
    });
  });

  it('E19: reads a message whose stop reason only the caller knows', () => {
    const call = { model: 'm', stream: false, created: 1, id: 'c' };
    for (const content of [[{ type: 'text', text: 'x' }], []]) {
      const body = { id: 'msg_1', content, stop_reason: 'something_new' };
      expect(rowOf()?.codec?.response(body, call).choices[0]).to.deep.include({
        finish_reason: 'length',
        finish: { native: 'something_new', unmapped: true },
      });
    }
  });

  it('is switched off by native: false', () => {
    expect(rowOf({ native: false })).to.equal(undefined);
  });

  for (const [name, headers, config, sent] of [
    ['no header', {}, {}, {}],
    ['the version of the caller', { 'anthropic-version': '2023-06-01' }, {}, { 'anthropic-version': '2023-06-01' }],
    ['betas byte for byte', { 'anthropic-beta': 'a,  b ' }, {}, { 'anthropic-beta': 'a,  b ' }],
    [
      'those of the operator that are missing behind them',
      { 'anthropic-beta': 'a,b' },
      { headers: { 'Anthropic-Beta': 'b, c' } },
      { 'anthropic-beta': 'a,b,c' },
    ],
    ['those of the operator alone', {}, { headers: { 'anthropic-beta': 'b' } }, { 'anthropic-beta': 'b' }],
  ] as const) {
    it(`sends ${name}`, () => {
      expect(rowOf(config)?.headers?.(headers)).to.deep.equal(sent);
    });
  }

  for (const [name, headers] of [
    ['a beta that is denied', { 'anthropic-beta': 'a,bad-1' }],
    ['control characters', { 'anthropic-version': 'a\u0001' }],
    ['more than 4 kB', { 'anthropic-beta': 'a'.repeat(5000) }],
  ] as const) {
    it(`refuses ${name}`, () => {
      const run = () => rowOf({ betas: { deny: ['bad-1'] } })?.headers?.(headers);
      expect(run).to.throw(GatewayError).with.property('param', Object.keys(headers)[0]);
    });
  }

  it('merges and denies betas of translated requests too', () => {
    const { chat } = setUpProvider(anthropic, {
      apiKey: 'k',
      betas: { deny: ['bad-1'] },
      headers: { 'anthropic-beta': 'c' },
    });
    const request = (betas: readonly string[]) =>
      chat?.request(
        { model: 'm', messages: [{ role: 'user', content: 'Hi' }], dialect_fields: { messages: { betas } } },
        { model: 'claude-sonnet-5', stream: false, created: 1, id: 'c' },
      ).headers;
    expect(request(['a'])).to.deep.equal({ 'anthropic-beta': 'a,c' });
    expect(() => request(['bad-1'])).to.throw(GatewayError, /bad-1/);
  });
});

describe('an anthropic request with members of the vendor’s own format', () => {
  const translate = (fields: object, model = 'claude-sonnet-4-5') => {
    const { chat } = setUpProvider(anthropic, { apiKey: 'k' });
    const input = { model, messages: [{ role: 'user' as const, content: 'Hi' }], ...fields };
    const { body, dropped = [] } = chat!.request(input, { model, stream: false, created: 1, id: 'c' });
    return { body: body as Record<string, unknown>, dropped };
  };
  const own = (messages: object) => ({ dialect_fields: { messages } });

  it('has the exact thinking, whatever effort was derived from it', () => {
    const thinking = { type: 'enabled', budget_tokens: 2000, future: 1 };
    const { body } = translate({ ...own({ thinking }), reasoning_effort: 'high', max_completion_tokens: 9000 });
    expect(body).to.deep.include({ thinking, max_tokens: 9000 }).and.not.to.have.property('output_config');
  });

  it('has fields of betas, and drops those of the operator’s account or without a known price', () => {
    const { body, dropped } = translate(own({ future: 1, speed: 'fast', container: 'c', mcp_servers: [], model: 'x' }));
    expect(body).to.include({ future: 1, model: 'claude-sonnet-4-5' });
    expect(body).not.to.have.any.keys('speed', 'container', 'mcp_servers');
    expect(dropped).to.include.members(['speed', 'container']);
  });

  it('reports fields of other formats as dropped', () => {
    const { body, dropped } = translate({ dialect_fields: { gemini: { safetySettings: [] } } });
    expect(body).not.to.have.property('safetySettings');
    expect(dropped).to.deep.equal(['safetySettings']);
  });

  it('lowers a budget that a cap of the key does not leave room for', () => {
    const thinking = { type: 'enabled', budget_tokens: 8000 };
    expect(translate({ ...own({ thinking }), max_tokens: 4000 }).body['thinking']).to.deep.equal({
      ...thinking,
      budget_tokens: 3999,
    });
    const { body, dropped } = translate({ ...own({ thinking }), max_tokens: 1000 });
    expect(body['thinking']).to.deep.equal({ type: 'disabled' });
    expect(dropped).to.include('thinking');
  });

  it('has the vendor’s own tools and blocks unchanged, in their order', () => {
    const search = { type: 'web_search_20250305', name: 'web_search' };
    const opaque = (value: object) => ({ type: 'opaque', dialect: 'messages', value });
    const use = { type: 'server_tool_use', id: 's', name: 'web_search', input: {} };
    const { body } = translate({
      tools: [opaque(search), { type: 'function', function: { name: 'look' } }],
      tool_choice: { type: 'function', function: { name: 'web_search' } },
      messages: [
        { role: 'user', content: 'Hi' },
        {
          role: 'assistant',
          content: [opaque(use), { type: 'text', text: 'b' }],
          reasoning_details: [{ kind: 'text', text: 'a', signature: 'S', format: 'anthropic' }],
          order: ['content:0', 'reasoning:0', 'content:1'],
        },
        { role: 'user', content: 'Go on.' },
      ],
    });
    expect(body['tools']).to.deep.include(search);
    expect(body['tool_choice']).to.deep.equal({ type: 'tool', name: 'web_search' });
    expect((body['messages'] as { content: object[] }[])[1]?.content).to.deep.equal([
      use,
      { type: 'thinking', thinking: 'a', signature: 'S' },
      { type: 'text', text: 'b' },
    ]);
  });
});
