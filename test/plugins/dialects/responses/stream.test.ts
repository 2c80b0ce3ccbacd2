import { expect } from 'chai';
import fc from 'fast-check';
import {
  type ChatChunk,
  type ChatDelta,
  chunkHead,
  deltaChunk,
  type FinishReason,
  GatewayError,
  usageChunk,
} from '../../../../contract/index.ts';
import { codecCall } from '../../../support/formats/codec.ts';
import {
  contextOf,
  readEvents,
  stream,
  type Written,
  writeStream,
  writeWhole,
} from '../../../support/formats/responses-dialect.ts';
import { type Event, findDisorder } from '../../../support/formats/responses-grammar.ts';
import { generatedCases } from '../../../support/generated-cases.ts';

const HEAD = chunkHead(codecCall());
const chunk = (delta: ChatDelta): ChatChunk => deltaChunk(HEAD, delta);
const finish = (reason: FinishReason): ChatChunk => deltaChunk(HEAD, {}, { finish: reason });
const text = (content: string): ChatChunk => chunk({ content });
const thought = (reasoning_content: string): ChatChunk => chunk({ reasoning_content });
const open = (index: number, name: string, first = ''): ChatChunk =>
  chunk({ tool_calls: [{ index, id: `call_${index}`, type: 'function', function: { name, arguments: first } }] });
const more = (index: number, args: string): ChatChunk =>
  chunk({ tool_calls: [{ index, function: { arguments: args } }] });
const USAGE = usageChunk(HEAD, {
  prompt_tokens: 20,
  completion_tokens: 7,
  total_tokens: 27,
  prompt_tokens_details: { cached_tokens: 4 },
  completion_tokens_details: { reasoning_tokens: 2 },
});
const PATCH = { tools: [{ type: 'custom', name: 'apply_patch' }] };

const typesOf = (events: readonly Event[]): readonly string[] =>
  events.map(({ type }) => type.replace('response.', ''));
const endOf = (events: readonly Event[]): Written => events.at(-1)?.['response'] as Written;

function orderly(chunks: readonly ChatChunk[], body: object = {}): readonly Event[] {
  const events = writeStream(chunks, body);
  expect(findDisorder(events)).to.deep.equal([]);
  return events;
}

describe('a streamed response', () => {
  it('G35, G36: has the nine events of a text in order, numbered without gaps', () => {
    const events = orderly([chunk({ role: 'assistant', content: '' }), text('Hel'), text('lo'), finish('stop'), USAGE]);
    expect(typesOf(events)).to.deep.equal([
      'created',
      'in_progress',
      'output_item.added',
      'content_part.added',
      'output_text.delta',
      'output_text.delta',
      'output_text.done',
      'content_part.done',
      'output_item.done',
      'completed',
    ]);
    expect(endOf(events)).to.deep.include({ status: 'completed', id: 'resp_call', model: 'test-model' });
  });

  it('G37: has every field that SDKs validate', () => {
    const events = orderly([text('Hi'), finish('stop'), USAGE], {
      instructions: 'Be brief.',
      temperature: 0.5,
      metadata: { a: 'b' },
    });
    const response = endOf(events);
    expect(response['usage']).to.deep.equal({
      input_tokens: 20,
      input_tokens_details: { cached_tokens: 4, cache_write_tokens: 0 },
      output_tokens: 7,
      output_tokens_details: { reasoning_tokens: 2 },
      total_tokens: 27,
    });
    expect(response).to.deep.include({
      object: 'response',
      created_at: 1_790_000_000,
      error: null,
      incomplete_details: null,
      instructions: 'Be brief.',
      metadata: { a: 'b' },
      parallel_tool_calls: true,
      temperature: 0.5,
      tool_choice: 'auto',
      tools: [],
      truncation: 'disabled',
    });
    expect(response.output).to.deep.equal([
      {
        id: 'msg_call_0',
        type: 'message',
        status: 'completed',
        role: 'assistant',
        content: [{ type: 'output_text', text: 'Hi', annotations: [], logprobs: [] }],
      },
    ]);
  });

  it('has the reasoning as an item before the one that it led to', () => {
    const events = orderly([thought('Hm'), thought('m'), text('Hi'), finish('stop')]);
    expect(endOf(events).output.map(({ type, summary }) => [type, summary])).to.deep.equal([
      ['reasoning', [{ type: 'summary_text', text: 'Hmm' }]],
      ['message', undefined],
    ]);
  });

  it('seals the encrypted reasoning, if the caller includes it', () => {
    const details = [
      { kind: 'summary', text: 'Hmm', format: 'responses', id: 'rs' },
      { kind: 'encrypted', data: 'secret', format: 'responses', id: 'rs' },
    ] as const;
    const signed = [{ kind: 'text', text: 'Hmm', signature: 'sig', format: 'anthropic' }] as const;
    const include = { include: ['reasoning.encrypted_content'] };
    const chunks = (list: ChatDelta['reasoning_details']) => [
      thought('Hmm'),
      chunk({ reasoning_details: list ?? [] }),
      text('Hi'),
      finish('stop'),
    ];
    expect(endOf(orderly(chunks(details), include)).output[0]).to.deep.include({
      encrypted_content: 'tg1.here.tag.secret',
    });
    const foreign = endOf(orderly(chunks(signed), include)).output[0];
    expect(foreign?.['summary']).to.deep.equal([{ type: 'summary_text', text: 'Hmm' }]);
    expect(foreign?.['encrypted_content']).to.equal('tgr.anthropic..tg1.here.tag.sig');
    expect(endOf(orderly(chunks(details))).output[0]).not.to.have.property('encrypted_content');
  });

  it('G40: has each call as a separate item, in order', () => {
    const events = orderly([
      open(0, 'f'),
      more(0, '{"a":'),
      more(0, '1}'),
      open(1, 'g'),
      more(1, '{}'),
      finish('tool_calls'),
    ]);
    expect(endOf(events).output.map(({ name, call_id: id, arguments: args }) => [name, id, args])).to.deep.equal([
      ['f', 'call_0', '{"a":1}'],
      ['g', 'call_1', '{}'],
    ]);
  });

  it('keeps the arguments of interleaved calls, and of one without any', () => {
    const events = orderly([
      open(0, 'f', '{"a"'),
      open(1, 'g', '{"b":'),
      more(0, ':1}'),
      more(1, '2}'),
      open(2, 'h'),
      text('Done'),
      finish('tool_calls'),
    ]);
    expect(endOf(events).output.map(({ arguments: args, content }) => args ?? content)).to.deep.equal([
      '{"a":1}',
      '{"b":2}',
      '{}',
      [{ type: 'output_text', text: 'Done', annotations: [], logprobs: [] }],
    ]);
  });

  it('G42: has the unchanged input of a custom tool, in its own deltas', () => {
    const input = '*** Begin Patch\n"a" \\ é 😀\n';
    const json = JSON.stringify({ input }).replace('é', '\\u00e9').replace('😀', '\\ud83d\\ude00');
    const events = orderly(
      [open(0, 'apply_patch'), ...[...json].map((bit) => more(0, bit)), finish('tool_calls')],
      PATCH,
    );
    const deltas = events.filter(({ type }) => type === 'response.custom_tool_call_input.delta');
    expect(deltas.map(({ delta }) => delta).join('')).to.equal(input);
    expect(deltas.length).to.be.greaterThan(20);
    expect(endOf(events).output).to.deep.equal([
      {
        id: 'ctc_call_0',
        type: 'custom_tool_call',
        status: 'completed',
        call_id: 'call_0',
        name: 'apply_patch',
        input,
      },
    ]);
  });

  for (const [args, input] of [
    ['plain words', 'plain words'],
    ['"quoted"', 'quoted'],
    ['{"patch":"x"}', '{"patch":"x"}'],
    ['', ''],
  ])
    it(`reads ${JSON.stringify(args)} of a custom tool as the input ${JSON.stringify(input)}`, () => {
      expect(endOf(orderly([open(0, 'apply_patch', args), finish('tool_calls')], PATCH)).output[0]).to.deep.include({
        input,
      });
    });

  it('G43: restores the name of a tool in a namespace', () => {
    const tools = [{ type: 'namespace', name: 'mail', tools: [{ type: 'function', name: 'find' }] }];
    const events = orderly([open(0, 'mail__find', '{}'), finish('tool_calls')], { tools });
    expect(endOf(events).output[0]).to.deep.include({ type: 'function_call', name: 'find', namespace: 'mail' });
  });

  it('G39: is incomplete if the model ran out of tokens', () => {
    const events = orderly([text('Hel'), finish('length')]);
    expect(events.at(-1)?.type).to.equal('response.incomplete');
    expect(endOf(events)).to.deep.include({
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
    });
    expect(endOf(events).output[0]).to.deep.include({ status: 'incomplete' });
  });

  for (const [name, body] of [
    ['f', {}],
    ['apply_patch', PATCH],
  ] as const)
    it(`G45: has a call of ${name} that was cut as an incomplete item, never as done`, () => {
      const events = orderly([open(0, name, '{"input":"rm -r'), finish('length')], body);
      expect(typesOf(events)).not.to.include.members(['function_call_arguments.done']);
      expect(typesOf(events)).not.to.include.members(['custom_tool_call_input.done']);
      expect(endOf(events).output[0]).to.deep.include({ status: 'incomplete' });
    });

  it('has a complete call as completed, also if the model ran out of tokens after it', () => {
    const events = orderly([open(0, 'f', '{}'), open(1, 'g', '{"a'), finish('length')]);
    expect(endOf(events).output.map(({ status }) => status)).to.deep.equal(['completed', 'incomplete']);
  });

  it('has a refusal as a separate part, and is complete with it', () => {
    const events = orderly([chunk({ refusal: 'I can' }), chunk({ refusal: 'not.' }), finish('content_filter')]);
    expect(typesOf(events)).to.include.members(['refusal.delta', 'refusal.done', 'completed']);
    expect(endOf(events).output[0]).to.have.deep.property('content', [{ type: 'refusal', refusal: 'I cannot.' }]);
  });

  it('is incomplete if a filter cut it without text', () => {
    expect(endOf(orderly([text('Hm'), finish('content_filter')]))).to.deep.include({
      incomplete_details: { reason: 'content_filter' },
    });
  });

  it('has citations with their text, and images that the model made', () => {
    const citation = { start_index: 0, end_index: 2, url: 'https://a.example', title: 'A' };
    const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } };
    const events = orderly([
      text('Hi'),
      chunk({ annotations: [{ type: 'url_citation', url_citation: citation }] }),
      chunk({ images: [image] }),
      finish('stop'),
    ]);
    const [message, made] = endOf(events).output;
    expect(message)
      .to.have.nested.property('content[0].annotations')
      .that.deep.equals([{ type: 'url_citation', ...citation }]);
    expect(made).to.deep.include({ type: 'image_generation_call', result: 'AAAA', status: 'completed' });
  });

  it('G38: ends with response.failed if the vendor interrupts it, with the content until then', () => {
    const writer = stream(contextOf({}));
    const sent = [open(0, 'f', '{"a'), USAGE].map((one) => writer.push(one)).join('');
    const error = new GatewayError('upstream_rate_limited', 'Too many.', { retryAfterMs: 6500 });
    const events = readEvents(sent + writer.fail(error, 'req'));
    expect(findDisorder(events)).to.deep.equal([]);
    const failed = { code: 'rate_limit_exceeded', message: 'Too many. Please try again in 7s.' };
    expect(endOf(events)).to.deep.include({ status: 'failed', error: failed });
    expect(events.at(-2)?.['error']).to.deep.equal({ type: 'rate_limit_error', ...failed, param: null });
    expect(endOf(events).output[0]).to.deep.include({ type: 'function_call', status: 'incomplete' });
    expect(endOf(events)['usage']).to.have.property('output_tokens', 7);
    expect(writer.response?.()).to.equal(undefined);
  });

  it('begins with response.created also if there is only an error', () => {
    const events = readEvents(stream(contextOf({})).fail(new GatewayError('provider_unavailable', 'Away.'), 'req'));
    expect(typesOf(events)).to.deep.equal(['created', 'in_progress', 'error', 'failed']);
  });
});

describe('any stream of chunks', () => {
  const reason = fc.constantFrom<FinishReason>('stop', 'length', 'tool_calls', 'content_filter');
  const word = fc.string({ maxLength: 6 });
  const args = fc.oneof(word, fc.json({ maxDepth: 1 }), fc.constantFrom('{"input":"', 'a\\', '"}', '{}', ''));
  const delta: fc.Arbitrary<ChatChunk> = fc.oneof(
    word.map(text),
    word.map(thought),
    word.map((refusal) => chunk({ refusal })),
    fc
      .tuple(fc.nat(3), fc.constantFrom('f', 'apply_patch'), args)
      .map(([index, name, first]) => open(index, name, first)),
    fc.tuple(fc.nat(3), args).map(([index, rest]) => more(index, rest)),
    fc
      .constantFrom('anthropic', 'responses')
      .map((format) => chunk({ reasoning_details: [{ kind: 'encrypted', data: 'x', format }] })),
    fc.constant(chunk({ annotations: [{ type: 'url_citation', url_citation: { url: 'https://a.example' } }] })),
    reason.map(finish),
    fc.constant(USAGE),
  );
  const include = ['reasoning.encrypted_content'];

  it('is written in the order of the grammar', () => {
    fc.assert(
      fc.property(fc.array(delta, { maxLength: 24 }), (chunks) => void orderly(chunks, { ...PATCH, include })),
      { numRuns: generatedCases(1000) },
    );
  });

  it('is ended by one failure in the order of the grammar, wherever it breaks', () => {
    fc.assert(
      fc.property(fc.array(delta, { maxLength: 12 }), (chunks) => {
        const writer = stream(contextOf({ ...PATCH, include }));
        const sent = chunks.map((one) => writer.push(one)).join('');
        const events = readEvents(sent + writer.fail(new GatewayError('provider_unavailable', 'Away.'), 'req'));
        expect(findDisorder(events)).to.deep.equal([]);
      }),
      { numRuns: generatedCases(500) },
    );
  });
});

describe('a JSON response', () => {
  const message = { role: 'assistant', content: null, refusal: null } as const;
  const response = (fields: object, reason: FinishReason = 'stop') => ({
    ...({ id: 'x', object: 'chat.completion', created: 1, model: 'm' } as const),
    choices: [{ index: 0, message: { ...message, ...fields }, finish_reason: reason, logprobs: null }],
  });
  const call = (id: string, name: string, args: string) => ({
    id,
    type: 'function',
    function: { name, arguments: args },
  });

  it('G41: has calls as items, custom ones with plain input', () => {
    const { output } = writeWhole(
      response(
        { content: 'Look', tool_calls: [call('a', 'f', ''), call('b', 'apply_patch', '{"input":"x\\n"}')] },
        'tool_calls',
      ),
      PATCH,
    );
    expect(output.map(({ type, arguments: args, input }) => [type, args ?? input])).to.deep.equal([
      ['message', undefined],
      ['function_call', '{}'],
      ['custom_tool_call', 'x\n'],
    ]);
  });

  it('has its items in the true order, reasoning before the item it belongs to', () => {
    const details = ['rs_1', 'rs_2'].map((id) => ({ kind: 'summary', text: `about ${id}`, format: 'responses', id }));
    const order = ['reasoning:0', 'content:0', 'reasoning:1', 'tool:0'];
    const { output } = writeWhole(
      response(
        {
          content: 'Look',
          reasoning_content: 'x',
          reasoning_details: details,
          tool_calls: [call('a', 'f', '{}')],
          order,
        },
        'tool_calls',
      ),
    );
    expect(output.map(({ type, summary }) => [type, summary])).to.deep.equal([
      ['reasoning', [{ type: 'summary_text', text: 'about rs_1' }]],
      ['message', undefined],
      ['reasoning', [{ type: 'summary_text', text: 'about rs_2' }]],
      ['function_call', undefined],
    ]);
  });

  it('equals the result of its stream', () => {
    const streamed = endOf(orderly([thought('Hm'), text('Hi'), open(0, 'f', '{}'), finish('tool_calls')]));
    const whole = writeWhole(
      response({ content: 'Hi', reasoning_content: 'Hm', tool_calls: [call('call_0', 'f', '{}')] }, 'tool_calls'),
    );
    expect(whole.output).to.deep.equal(streamed.output);
  });

  it('G39: is incomplete if the model ran out of tokens', () => {
    expect(writeWhole(response({ content: 'Hel' }, 'length'))).to.deep.include({
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
    });
  });
});
