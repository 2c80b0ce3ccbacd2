/** Reasoning of several vendors passed on by a relay, and other optional members of responses in this format. */
import { expect } from 'chai';
import type { ChatChunk, ReasoningDetail } from '../../../../contract/index.ts';
import openaiCompatible from '../../../../plugins/providers/openai-compatible.ts';
import openrouter from '../../../../plugins/providers/openrouter.ts';
import { setUpProvider } from '../../../conformance/provider-subject.ts';
import { codecCall, collect, decode } from '../../../support/formats/codec.ts';
import { messagesOf, translate } from '../../../support/formats/translate.ts';

const { chat = expect.fail('no chat') } = setUpProvider(openrouter, {});
const relayed = (type: string, fields: object, format = 'anthropic-claude-v1', index = 0) => ({
  ...{ type: `reasoning.${type}`, format, index, ...fields },
});
const text = (words: string, more: object = {}) => relayed('text', { text: words, ...more });

function messageOf(message: object) {
  const choices = [{ index: 0, message: { role: 'assistant', content: 'x', ...message }, finish_reason: 'stop' }];
  return chat.response({ choices }, codecCall()).choices[0]?.message ?? expect.fail('no choice');
}

function stream(...deltas: readonly object[]): readonly ChatChunk[] {
  const events = deltas.map((delta, at) => ({
    choices: [{ index: 0, delta, finish_reason: at === deltas.length - 1 ? 'stop' : null }],
  }));
  return decode(
    chat.stream(codecCall({ stream: true })),
    events.map((event) => ({ data: JSON.stringify(event) })),
  ).chunks;
}

const detailsIn = (chunks: readonly ChatChunk[]): readonly (readonly ReasoningDetail[])[] =>
  chunks.flatMap(({ choices }) =>
    choices.flatMap(({ delta }) => (delta.reasoning_details ? [delta.reasoning_details] : [])),
  );

const GO_ON = { role: 'user', content: 'Go on.' };

describe('details of reasoning from a relay', () => {
  it('are canonical in a JSON message, with their format', () => {
    const { reasoning_details: details, reasoning_content: thought } = messageOf({
      reasoning: 'Hm.',
      reasoning_details: [
        text('Hm.', { signature: 'sig', id: null }),
        relayed('encrypted', { data: 'abc', id: 'rs_1' }, 'openai-responses-v1', 1),
        relayed('summary', { summary: 'So.' }, 'xai-responses-v1', 2),
        relayed('text', { text: 'Eh.' }, 'shiny-v9', 3),
        { type: 'reasoning.magic', text: 'x' },
        null,
      ],
    });
    expect(thought).to.equal('Hm.');
    expect(details).to.deep.equal([
      { kind: 'text', text: 'Hm.', signature: 'sig', format: 'anthropic' },
      { kind: 'encrypted', data: 'abc', format: 'responses', id: 'rs_1' },
      { kind: 'summary', text: 'So.', format: 'xai' },
      { kind: 'text', text: 'Eh.', format: 'unknown' },
    ]);
  });

  it('are complete in a stream, in the chunk that ends their block', () => {
    const chunks = stream(
      { role: 'assistant', reasoning: 'Hm, ', reasoning_details: [text('Hm, ')] },
      { reasoning: 'é.', reasoning_details: [text('é.')] },
      { reasoning_details: [relayed('text', { signature: 'sig' })] },
      { reasoning_details: [relayed('encrypted', { data: 'abc' }, 'anthropic-claude-v1', 1)] },
      { content: 'So.' },
      {},
    );
    expect(detailsIn(chunks)).to.deep.equal([
      [{ kind: 'text', text: 'Hm, é.', signature: 'sig', format: 'anthropic' }],
      [{ kind: 'encrypted', data: 'abc', format: 'anthropic' }],
    ]);
    expect(collect(chunks)).to.deep.include({ content: 'So.', reasoning: 'Hm, é.', finish: ['stop'], roles: 1 });
    const [, , , , spoken] = chunks.map(({ choices }) => choices[0]?.delta);
    expect(Object.keys(spoken ?? {})).to.deep.equal([]);
  });

  it('without following content are sent with the end, and a stream without a role has one', () => {
    const chunks = stream({ reasoning_details: [relayed('encrypted', { data: 'a' }, 'google-gemini-v1')] }, {});
    expect(detailsIn(chunks)).to.deep.equal([[{ kind: 'encrypted', data: 'a', format: 'gemini' }]]);
    expect(collect(chunks)).to.deep.include({ roles: 1, finish: ['stop'] });
  });

  it('are sent back only to models of their vendor, in the relay’s format', () => {
    const details = [
      { kind: 'text', text: 'Hm.', signature: 'sig', format: 'anthropic' },
      { kind: 'encrypted', data: 'abc', format: 'responses', id: 'rs_1' },
      { kind: 'text', text: 'Eh.', format: 'unknown' },
    ];
    const turn = { role: 'assistant', content: 'x', reasoning_content: 'Hm.', reasoning_details: details };
    const sentTo = (model: string) => messagesOf(openrouter, [turn], { model })[0]?.['reasoning_details'];
    const eh = { type: 'reasoning.text', text: 'Eh.', format: 'unknown', index: 2 };
    expect(sentTo('anthropic/claude-sonnet-5')).to.deep.equal([
      { type: 'reasoning.text', text: 'Hm.', signature: 'sig', format: 'anthropic-claude-v1', index: 0 },
      eh,
    ]);
    expect(sentTo('openai/gpt-5')).to.deep.equal([
      { type: 'reasoning.encrypted', data: 'abc', id: 'rs_1', format: 'openai-responses-v1', index: 1 },
      eh,
    ]);
    expect(sentTo('meta-llama/llama-4-scout')).to.deep.equal([eh]);
    const other = translate(openaiCompatible, { messages: [turn, GO_ON] }, { baseUrl: 'http://127.0.0.1:1/v1' });
    expect((other.body['messages'] as object[])[0]).to.deep.equal({
      ...{ role: 'assistant', content: 'x', reasoning_content: 'Hm.' },
    });
    expect(other.dropped).to.deep.equal(['reasoning']);
  });

  it('provide their text for vendors that need it, if the client stored nothing else', () => {
    const turn = {
      role: 'assistant',
      content: 'x',
      reasoning_details: [{ kind: 'summary', text: 'So.', format: 'none' }],
    };
    const { body, dropped } = translate(
      openaiCompatible,
      { messages: [turn, GO_ON] },
      { baseUrl: 'http://127.0.0.1:1/v1' },
    );
    expect((body['messages'] as object[])[0]).to.include({ reasoning_content: 'So.' });
    expect(dropped).to.deep.equal([]);
  });
});

describe('the end of a choice', () => {
  const finishOf = (choice: object) =>
    chat.response({ choices: [{ index: 0, message: { content: 'x' }, ...choice }] }, codecCall()).choices[0]?.finish;

  it('has the vendor’s own reason only if it is unusual', () => {
    expect(finishOf({ finish_reason: 'stop' })).to.equal(undefined);
    expect(finishOf({ finish_reason: 'stop', native_finish_reason: 'end_turn' })).to.equal(undefined);
    for (const native of ['pause_turn', 'compaction', 'model_context_window_exceeded', 'RECITATION', 'SPII'])
      expect(finishOf({ finish_reason: 'stop', native_finish_reason: native }), native).to.deep.equal({ native });
  });

  it('names the stop sequence if a server reports it', () => {
    expect(finishOf({ finish_reason: 'stop', stop_reason: 'END' })).to.deep.equal({ stop_sequence: 'END' });
    expect(finishOf({ finish_reason: 'stop', stop_reason: 128_009 })).to.equal(undefined);
  });
});

describe('a streamed call of a custom tool', () => {
  it('arrives with its input', () => {
    const chunks = stream(
      { role: 'assistant', tool_calls: [{ index: 0, id: 'call_1', type: 'custom', custom: { name: 'f', input: '' } }] },
      { tool_calls: [{ index: 0, custom: { input: 'ab' } }] },
      {},
    );
    expect(chunks.flatMap(({ choices }) => choices[0]?.delta.tool_calls ?? [])).to.deep.equal([
      { index: 0, id: 'call_1', type: 'custom', custom: { name: 'f', input: '' } },
      { index: 0, custom: { input: 'ab' } },
    ]);
    expect(chunks.at(-1)?.choices[0]?.finish_reason).to.equal('tool_calls');
  });
});
