import { expect } from 'chai';
import { type ChatRequest, GatewayError, type NativeChange } from '../../../../contract/index.ts';
import type { ResponsesBody } from '../../../../plugins/formats/openai-responses/types.ts';
import { contextOf, native, readBody, readEvents } from '../../../support/formats/responses-dialect.ts';
import { findDisorder } from '../../../support/formats/responses-grammar.ts';
import { responsesBody, responsesEvents, type SaidNatively } from '../../../support/vendors/responses-wire.ts';

interface Patched {
  readonly body: Record<string, unknown>;
  readonly dropped?: readonly string[];
}

function patch(
  body: object,
  changed: Partial<ChatRequest> = {},
  change: Partial<NativeChange> = {},
): Patched | undefined {
  const whole = { model: 'a/b', input: 'Hi', ...body } as ResponsesBody;
  const before = readBody(whole).request;
  return native.patch(whole, {
    before,
    after: { ...before, ...changed },
    model: 'b',
    stream: true,
    open: (sealed) => (sealed.startsWith('tg1.here.') ? sealed.slice('tg1.here.tag.'.length) : undefined),
    scope: (text) => `scoped ${text}`,
    ...change,
  }) as Patched | undefined;
}

describe('a request that goes to a vendor with the Responses API', () => {
  it('is the caller’s own body in its own order, never to be stored there', () => {
    const body = {
      zebra: 1,
      model: 'a/b',
      input: 'Hi',
      store: true,
      instructions: 'x',
      stream: false,
      text: { format: { type: 'text' } },
      tools: [{ type: 'web_search' }],
    };
    const sent = patch(body)?.body ?? {};
    expect(sent).to.deep.equal({
      zebra: 1,
      model: 'b',
      input: 'Hi',
      instructions: 'x',
      text: { format: { type: 'text' } },
      tools: [{ type: 'web_search' }],
      stream: true,
      store: false,
    });
    expect(Object.keys(sent).slice(0, 3)).to.deep.equal(['model', 'input', 'zebra']);
  });

  it('has its cache key scoped, and no id of ours', () => {
    const input = [
      { type: 'message', id: 'msg_1', role: 'assistant', content: [{ type: 'output_text', text: 'x' }] },
      { type: 'function_call', id: 'fc_1', call_id: 'c', name: 'f', arguments: '{}' },
      { type: 'function_call_output', call_id: 'c', output: 'y' },
      { type: 'web_search_call', id: 'ws_1', status: 'completed' },
    ];
    const { body = {} } = patch({ prompt_cache_key: 'k', previous_response_id: 'resp_1', input }) ?? {};
    expect(body).to.include({ prompt_cache_key: 'scoped k' }).and.not.to.have.property('previous_response_id');
    expect((body['input'] as { id?: string }[]).map(({ id }) => id)).to.deep.equal([
      undefined,
      undefined,
      undefined,
      'ws_1',
    ]);
  });

  it('G47: has its own reasoning opened, and that of others dropped and reported', () => {
    const thought = (encrypted_content?: string) => ({
      type: 'reasoning',
      id: 'rs',
      summary: [],
      ...(encrypted_content !== undefined && { encrypted_content }),
    });
    const input = [
      thought('tg1.here.tag.mine'),
      thought('tg1.there.tag.other'),
      thought('raw'),
      thought(),
      thought('tgr.anthropic..tg1.here.tag.signature'),
      { role: 'user', content: 'Hi' },
    ];
    const { body = {}, dropped } = patch({ input }) ?? {};
    expect(body['input']).to.deep.equal([
      { type: 'reasoning', summary: [], encrypted_content: 'mine' },
      { type: 'reasoning', summary: [], encrypted_content: 'raw' },
      { role: 'user', content: 'Hi' },
    ]);
    expect(dropped).to.deep.equal(['input.reasoning']);
  });

  it('shortens call ids that the vendor refuses, in call and result alike', () => {
    const id = 'x'.repeat(200);
    const { body = {} } =
      patch({
        input: [
          { type: 'function_call', call_id: id, name: 'f', arguments: '{}' },
          { type: 'function_call_output', call_id: id, output: '' },
        ],
      }) ?? {};
    const [one, other] = body['input'] as { call_id: string }[];
    expect(one?.call_id)
      .to.match(/^call_[0-9a-f]{32}$/)
      .and.to.equal(other?.call_id);
  });

  it('has hooks’ changes', () => {
    const changed = {
      max_completion_tokens: 50,
      temperature: 0.1,
      top_p: null,
      user: 'u',
      metadata: { a: 'b' },
      service_tier: 'flex',
      reasoning_effort: 'low',
    };
    const { body } =
      patch({ max_output_tokens: 100, top_p: 0.5, reasoning: { effort: 'high', summary: 'auto' } }, changed) ?? {};
    expect(body).to.deep.include({
      max_output_tokens: 50,
      temperature: 0.1,
      user: 'u',
      metadata: { a: 'b' },
      service_tier: 'flex',
      reasoning: { effort: 'low', summary: 'auto' },
    });
    expect(body).not.to.have.property('top_p');
  });

  it('has hooks’ changes of this format’s own fields', () => {
    const { body } = patch({ truncation: 'auto' }, { dialect_fields: { responses: { context_management: [] } } }) ?? {};
    expect(body).to.deep.include({ context_management: [] }).and.not.to.have.property('truncation');
  });

  it('has messages and tools that hooks added, at the end where they were added', () => {
    const body = { input: 'Hi', tools: [{ type: 'web_search' }, { type: 'function', name: 'f', parameters: {} }] };
    const before = readBody(body).request;
    const after = {
      messages: [
        { role: 'system' as const, content: 'First.' },
        ...before.messages,
        { role: 'user' as const, content: [{ type: 'text' as const, text: 'Last.' }] },
      ],
      tools: [
        ...(before.tools ?? []),
        { type: 'function' as const, function: { name: 'g', parameters: { type: 'object' } } },
      ],
    };
    const sent = native.patch(body as unknown as ResponsesBody, {
      before,
      after: { ...before, ...after },
      model: 'b',
      stream: false,
      open: () => undefined,
      scope: (text) => text,
    })?.body as Patched['body'];
    expect(sent['input']).to.deep.equal([
      { type: 'message', role: 'system', content: [{ type: 'input_text', text: 'First.' }] },
      { type: 'message', role: 'user', content: 'Hi' },
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Last.' }] },
    ]);
    expect(sent['tools']).to.deep.equal([
      ...body.tools,
      { type: 'function', name: 'g', parameters: { type: 'object' }, strict: false },
    ]);
  });

  it('leaves out the vendor’s tools that the caller may not have', () => {
    const input = [
      { type: 'additional_tools', tools: [{ type: 'web_search' }, { type: 'custom', name: 'p' }] },
      { role: 'user', content: 'Hi' },
    ];
    const { body, dropped } =
      patch(
        { input, tools: [{ type: 'mcp', server_label: 'x' }, { type: 'local_shell' }] },
        {},
        { without: ['tools[0]', 'input[0].tools[0]'] },
      ) ?? {};
    expect(body?.['tools']).to.deep.equal([{ type: 'local_shell' }]);
    expect(body?.['input'])
      .to.have.property('0')
      .that.deep.equals({
        type: 'additional_tools',
        tools: [{ type: 'custom', name: 'p' }],
      });
    expect(dropped).to.deep.equal(['tools.web_search', 'tools.mcp']);
  });

  it('is not written if this format cannot represent a hook’s change', () => {
    expect(patch({}, { stop: ['x'] })).to.equal(undefined);
  });
});

describe('a response of a vendor with the Responses API, passed on', () => {
  const said: SaidNatively = {
    pieces: [{ reasoning: 'Hm' }, { text: 'Hello' }, { call: 'f', id: 'c', arguments: '{"a":1}' }],
    encrypted: 'secret',
    items: [{ id: 'ws_1', type: 'web_search_call', status: 'completed', action: { type: 'search', query: 'x' } }],
    echo: { prompt_cache_key: 'scoped k', novelty: { a: 1 } },
  };
  const context = contextOf({ prompt_cache_key: 'k', previous_response_id: 'resp_0' });
  const frames = (events: readonly object[]) => {
    const writer = native.stream(context);
    return { writer, text: events.map((event) => writer.push({ data: JSON.stringify(event) })).join('') };
  };

  it('keeps unknown ids and fields, and has its reasoning sealed', () => {
    const body = native.write(responsesBody(said), context) as Record<string, unknown>;
    expect(body).to.deep.include({
      id: 'resp_vendor',
      novelty: { a: 1 },
      prompt_cache_key: 'k',
      previous_response_id: 'resp_0',
      store: true,
    });
    const output = body['output'] as Record<string, unknown>[];
    expect(output[0]).to.deep.equal(said.items?.[0]);
    expect(output[1]).to.include({ id: 'rs_vendor0', encrypted_content: 'tg1.here.tag.secret' });
  });

  it('G35: has renumbered events, without gaps, and everything else unchanged', () => {
    const { writer, text } = frames(responsesEvents(said));
    const events = readEvents(text + writer.end());
    expect(findDisorder(events)).to.deep.equal([]);
    expect(JSON.stringify(events)).not.to.include('"secret"').and.not.to.include('scoped k');
    expect(events.find(({ type }) => type === 'response.output_text.delta')).to.include({ obfuscation: 'x' });
    expect(writer.response?.()).to.deep.equal(events.at(-1)?.['response']);
  });

  it('G38: ends with one failure of the gateway if the vendor interrupts it', () => {
    const { writer, text } = frames(responsesEvents(said).slice(0, 9));
    const events = readEvents(text + writer.fail(new GatewayError('provider_unavailable', 'Away.'), 'req'));
    expect(findDisorder(events)).to.deep.equal([]);
    const response = events.at(-1)?.['response'] as Record<string, unknown>;
    expect(response).to.deep.include({
      id: 'resp_vendor',
      status: 'failed',
      error: { code: 'server_error', message: 'Away.' },
    });
    expect(events.at(-2)).to.deep.include({ type: 'error' }).and.to.have.nested.property('error.code', 'server_error');
    expect((response['output'] as { status: string }[]).map(({ status }) => status)).to.deep.equal([
      'completed',
      'incomplete',
    ]);
  });

  it('sends nothing after its last event', () => {
    const { writer, text } = frames([...responsesEvents(said), { type: 'response.output_text.delta' }]);
    const events = readEvents(text + writer.end());
    expect(events.at(-1)?.type).to.equal('response.completed');
  });

  it('keeps its last event until the response is remembered', () => {
    const { writer, text } = frames(responsesEvents(said));
    expect(text).not.to.include('response.completed');
    expect(writer.response?.()).to.equal(undefined);
    expect(writer.end()).to.include('response.completed');
  });
});
