import { expect } from 'chai';
import { isStreamFailure, type SseEvent } from '../../../contract/index.ts';
import { createResponsesCodec } from '../../../plugins/formats/openai-responses/read-stream.ts';
import { classifyError } from '../../../plugins/providers/openai-compatible.ts';
import { codecCall, collect, decode } from '../../support/formats/codec.ts';
import { responsesBody, responsesEvents, type SaidNatively } from '../../support/vendors/responses-wire.ts';

const codec = createResponsesCodec((body) => classifyError(200, body, {}));
const sse = (events: readonly object[]): readonly SseEvent[] =>
  events.map((event) => ({ data: JSON.stringify(event) }));
const decoded = (events: readonly object[]) => decode(codec.stream(codecCall({ stream: true })), sse(events));

const SAID: SaidNatively = {
  pieces: [
    { reasoning: 'Let me see.' },
    { text: 'I look, 😀' },
    { call: 'find', id: 'call_1', arguments: '{"a":1}' },
    { call: 'apply_patch', id: 'call_2', arguments: JSON.stringify({ input: '*** "x"\n\\' }) },
  ],
  encrypted: 'secret',
  custom: ['apply_patch'],
  usage: { prompt: 30, completion: 9, cached: 8 },
};
const DETAILS = [
  { kind: 'summary', text: 'Let me see.', format: 'responses', id: 'rs_vendor0' },
  { kind: 'encrypted', data: 'secret', format: 'responses', id: 'rs_vendor0' },
];
const USAGE = {
  prompt_tokens: 30,
  completion_tokens: 9,
  total_tokens: 39,
  prompt_tokens_details: { cached_tokens: 8 },
  completion_tokens_details: { reasoning_tokens: 2 },
};

function failureOf(run: () => unknown) {
  try {
    run();
  } catch (error) {
    if (isStreamFailure(error)) return error.failure;
    throw error;
  }
  throw new Error('nothing failed');
}

describe('a response of a vendor with the Responses API', () => {
  it('is read completely, with its reasoning, its calls and their order', () => {
    const { choices, usage, id } = codec.response(responsesBody(SAID), codecCall());
    const [choice] = choices;
    expect(id).to.equal('resp_vendor');
    expect(usage).to.deep.equal(USAGE);
    expect(choice?.finish_reason).to.equal('tool_calls');
    expect(choice?.message).to.deep.include({
      content: 'I look, 😀',
      reasoning_content: 'Let me see.',
      reasoning_details: DETAILS,
      order: ['reasoning:0', 'reasoning:1', 'content:0', 'tool:0', 'tool:1'],
    });
    const patch = JSON.stringify({ input: '*** "x"\n\\' });
    expect(choice?.message.tool_calls?.map((call) => [call.id, call.function.arguments])).to.deep.equal([
      ['call_1', '{"a":1}'],
      ['call_2', patch],
    ]);
  });

  it('is read from its stream, with the same result as from JSON', () => {
    const { chunks, complete } = decoded(responsesEvents(SAID));
    const whole = collect(chunks);
    expect(complete).to.equal(true);
    expect(whole).to.deep.include({
      content: 'I look, 😀',
      reasoning: 'Let me see.',
      finish: ['tool_calls'],
      roles: 1,
    });
    expect(whole.calls.map(({ arguments: args }) => JSON.parse(args) as unknown)).to.deep.equal([
      { a: 1 },
      { input: '*** "x"\n\\' },
    ]);
    expect(chunks.at(-1)?.usage).to.deep.equal(USAGE);
    expect(chunks.flatMap(({ choices }) => choices[0]?.delta.reasoning_details ?? [])).to.deep.equal(DETAILS);
  });

  it('G44: reads content from done events that no delta had', () => {
    const events = responsesEvents(SAID).filter(({ type }) => !String(type).endsWith('.delta'));
    for (const sent of [events, events.filter(({ type }) => !/(arguments|input|text)\.done$/.test(String(type)))]) {
      const whole = collect(decoded(sent).chunks);
      expect(whole.calls.map(({ arguments: args }) => JSON.parse(args) as unknown)).to.deep.equal([
        { a: 1 },
        { input: '*** "x"\n\\' },
      ]);
      expect(whole).to.deep.include({ content: 'I look, 😀', reasoning: 'Let me see.' });
    }
  });

  it('reads calls with only the done event of the item', () => {
    const events = responsesEvents(SAID).filter(({ type }) => /created|item\.done|completed/.test(String(type)));
    const whole = collect(decoded(events).chunks);
    expect(whole.calls.map(({ name, id }) => [name, id])).to.deep.equal([
      ['find', 'call_1'],
      ['apply_patch', 'call_2'],
    ]);
    expect(whole.calls.map(({ arguments: args }) => JSON.parse(args) as unknown)).to.deep.equal([
      { a: 1 },
      { input: '*** "x"\n\\' },
    ]);
  });

  it('ends with length if the model ran out of tokens', () => {
    const cut: SaidNatively = { pieces: [{ text: 'Hel' }], finish: 'length' };
    expect(collect(decoded(responsesEvents(cut)).chunks).finish).to.deep.equal(['length']);
    expect(codec.response(responsesBody(cut), codecCall()).choices[0]?.finish_reason).to.equal('length');
  });

  it('G29: bills tools that only `tool_usage` counts', () => {
    const usage = { input_tokens: 1, output_tokens: 2 };
    const unitsOf = (tool_usage: object, output: readonly object[] = []) =>
      codec.response({ ...responsesBody(SAID), output, usage, tool_usage }, codecCall()).usage?.units;
    expect(unitsOf({ image_gen: { output_tokens: 7024 } })).to.deep.equal({ images: 1 });
    expect(unitsOf({ web_search: { num_requests: 3 } })).to.deep.equal({ web_search_requests: 3 });
    expect(unitsOf({ image_gen: { output_tokens: 0 }, web_search: { num_requests: 0 } })).to.equal(undefined);
    const drawn = { type: 'image_generation_call', id: 'ig_1', result: 'AAAA' };
    expect(unitsOf({ image_gen: { output_tokens: 7024 } }, [drawn, drawn])).to.deep.equal({ images: 2 });
  });

  it('is not complete without its last event', () => {
    expect(decoded(responsesEvents(SAID).slice(0, -1)).complete).to.equal(false);
  });

  it('knows its tools by the names that other vendors get', () => {
    const item = {
      type: 'function_call',
      id: 'fc',
      call_id: 'c',
      name: 'find',
      namespace: 'mail',
      arguments: '{}',
      status: 'completed',
    };
    const events = responsesEvents({ pieces: [], items: [item] });
    expect(collect(decoded(events).chunks).calls[0]).to.deep.include({ name: 'mail__find' });
  });

  it('has a refusal as one', () => {
    const content = [{ type: 'refusal', refusal: 'No.' }];
    const body = responsesBody({
      pieces: [],
      items: [{ type: 'message', id: 'm', role: 'assistant', status: 'completed', content }],
    });
    expect(codec.response(body, codecCall()).choices[0]).to.deep.nested.include({
      'message.refusal': 'No.',
      finish_reason: 'content_filter',
    });
    const event = { type: 'response.refusal.delta', output_index: 0, content_index: 0, delta: 'No.' };
    const chunks = decoded([event, { type: 'response.completed', response: body }]).chunks;
    expect(collect(chunks)).to.deep.include({ refusal: 'No.', finish: ['content_filter'] });
  });

  const FAILURES: readonly (readonly [object, string])[] = [
    [
      {
        type: 'response.failed',
        response: { status: 'failed', error: { code: 'rate_limit_exceeded', message: 'Slow.' } },
      },
      'rate_limit',
    ],
    [
      {
        type: 'response.failed',
        response: { status: 'failed', error: { code: 'context_length_exceeded', message: 'Long.' } },
      },
      'context_length',
    ],
    [
      { type: 'error', error: { type: 'insufficient_quota', code: 'insufficient_quota', message: 'Empty.' } },
      'billing',
    ],
    [{ type: 'error', code: 'server_is_overloaded', message: 'Busy.', param: null, sequence_number: 1 }, 'overloaded'],
    [
      { type: 'response.failed', response: { status: 'failed', error: { code: 'invalid_prompt', message: 'Bad.' } } },
      'invalid_request',
    ],
    [{ type: 'response.failed', response: {} }, 'upstream_error'],
  ];
  for (const [event, is] of FAILURES)
    it(`fails as ${is} if its stream has ${JSON.stringify(event).slice(0, 90)}`, () => {
      expect(failureOf(() => decoded([event])).class).to.equal(is);
    });

  it('fails if its body is a failure, or is invalid', () => {
    const error = { code: 'server_error', message: 'Oh.' };
    expect(failureOf(() => codec.response({ status: 'failed', error, output: [] }, codecCall()))).to.deep.include({
      class: 'upstream_error',
      message: 'Oh.',
    });
    expect(failureOf(() => codec.response({ choices: [] }, codecCall())).class).to.equal('upstream_error');
  });

  it('ignores unknown items and garbage', () => {
    const odd = [
      { data: '[DONE]' },
      { data: '{"type":"response.web_search_call.searching","output_index":0}' },
      { data: '{"type":"response.output_item.done"}' },
      { data: '[]' },
    ];
    expect(decode(codec.stream(codecCall()), odd)).to.deep.equal({ chunks: [], complete: false });
  });
});
