import { expect } from 'chai';
import type { ChatMessage, ChatRequest } from '../../../../core/index.ts';
import type { GeminiRequest } from '../../../../plugins/formats/google/types.ts';
import { geminiRequest } from '../../../../plugins/formats/google/write-request.ts';
import { called, chatRequest, codecCall, result, user } from '../../../support/formats/codec.ts';

const MODEL = 'gemini-3.8-flash';

function translate(fields: Partial<ChatRequest>, model = MODEL): GeminiRequest {
  return geminiRequest(chatRequest(fields), codecCall({ model })).body as GeminiRequest;
}

function contents(messages: readonly ChatMessage[], model = MODEL): unknown {
  return translate({ messages }, model).contents;
}

describe('gemini contents', () => {
  it('gathers system and developer messages into systemInstruction, in order', () => {
    const body = translate({
      messages: [
        { role: 'system', content: 'A' },
        user('Hi'),
        { role: 'developer', content: [{ type: 'text', text: 'B' }] },
      ],
    });
    expect(body.systemInstruction).to.deep.equal({ parts: [{ text: 'A' }, { text: 'B' }] });
    expect(body.contents).to.deep.equal([{ role: 'user', parts: [{ text: 'Hi' }] }]);
  });

  it('gives Gemma, which has no systemInstruction, the system text as the user’s', () => {
    const body = translate({ messages: [{ role: 'system', content: 'A' }, user('Hi')] }, 'gemma-3-27b-it');
    expect(body).to.not.have.property('systemInstruction');
    expect(body.contents).to.deep.equal([{ role: 'user', parts: [{ text: 'A' }, { text: 'Hi' }] }]);
  });

  it('takes a request of system messages alone for a user’s', () => {
    expect(contents([{ role: 'system', content: 'A' }])).to.deep.equal([{ role: 'user', parts: [{ text: 'A' }] }]);
  });

  it('merges messages of one role and drops empty text', () => {
    expect(
      contents([
        user('a'),
        user(''),
        user('b'),
        { role: 'assistant', content: '' },
        user([{ type: 'text', text: 'c' }]),
      ]),
    ).to.deep.equal([{ role: 'user', parts: [{ text: 'a' }, { text: 'b' }, { text: 'c' }] }]);
  });

  it('puts a user’s turn before an assistant who speaks first and after one who speaks last', () => {
    const roles = translate({ messages: [{ role: 'assistant', content: 'Welcome' }] }).contents.map(({ role }) => role);
    expect(roles).to.deep.equal(['user', 'model', 'user']);
  });

  it('refuses messages without any content', () => {
    expect(() => contents([user('')]))
      .to.throw('content')
      .with.property('code', 'invalid_request');
  });

  it('names the function of each result by its call’s id, and answers in the order of the calls', () => {
    const turns = contents([user('x'), called('a', 'b'), result('b', 'B'), result('a', 'A')]) as {
      parts: unknown[];
    }[];
    expect(turns[2]).to.deep.equal({
      role: 'user',
      parts: [
        { functionResponse: { id: 'a', name: 'do_a', response: { output: 'A' } } },
        { functionResponse: { id: 'b', name: 'do_b', response: { output: 'B' } } },
      ],
    });
  });

  it('keeps a result’s text byte for byte, also where it is JSON with long numbers', () => {
    const text = '{"id": 12345678901234567890}';
    expect(JSON.stringify(contents([user('x'), called('a'), result('a', text)]))).to.include(JSON.stringify(text));
  });

  it('keeps results apart from the user’s words after them, as the vendor counts their parts', () => {
    const turns = contents([user('x'), called('a'), result('a', 'A'), user('and?')]) as { parts: unknown[] }[];
    expect(turns.slice(2).map(({ parts }) => parts.length)).to.deep.equal([1, 1]);
  });

  it('wraps arguments that are not a JSON object instead of losing them', () => {
    const message: ChatMessage = {
      role: 'assistant',
      tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{"cut' } }],
    };
    expect(JSON.stringify(contents([user('x'), message, result('a', 'A')]))).to.include(
      '"args":{"arguments":"{\\"cut"}',
    );
  });

  for (const [title, messages, param] of [
    ['a call without its result', [user('x'), called('a', 'b'), result('a', 'A')], 'messages[1].tool_calls[1].id'],
    ['a result without its call', [user('x'), result('a', 'A')], 'messages[1]'],
    ['a result of another call', [user('x'), called('a'), result('z', 'A')], 'messages[2].tool_call_id'],
    [
      'two results of one call',
      [user('x'), called('a'), result('a', '1'), result('a', '2')],
      'messages[3].tool_call_id',
    ],
    ['two calls with one id', [user('x'), called('a', 'a'), result('a', '1')], 'messages[1].tool_calls[1].id'],
  ] as const) {
    it(`refuses ${title}`, () => {
      expect(() => contents(messages))
        .to.throw()
        .with.property('param', param);
    });
  }
});
