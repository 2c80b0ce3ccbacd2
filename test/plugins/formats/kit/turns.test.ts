import { expect } from 'chai';
import type { ChatMessage } from '../../../../contract/index.ts';
import { parseArguments, readConversation } from '../../../../plugins/providers/kit/index.ts';
import { called, result, user } from '../../../support/formats/codec.ts';

describe('conversations', () => {
  it('hold system and developer texts apart from the turns', () => {
    const { system, turns } = readConversation([
      { role: 'system', content: 'A' },
      user('Hi'),
      { role: 'developer', content: 'B' },
    ]);
    expect(system.map(({ value, at }) => [value.text, at])).to.deep.equal([
      ['A', 'messages[0].content'],
      ['B', 'messages[2].content'],
    ]);
    expect(turns.map(({ kind }) => kind)).to.deep.equal(['user']);
  });

  it('hold the results of a turn together, in the order of its calls', () => {
    const { turns } = readConversation([user('x'), called('a', 'b'), result('b', 'B'), result('a', 'A'), user('y')]);
    expect(turns.map(({ kind }) => kind)).to.deep.equal(['user', 'assistant', 'results', 'user']);
    const responses = turns[2];
    if (responses?.kind !== 'results') throw new Error('there are no results');
    expect(responses.results.map(({ call }) => call.id)).to.deep.equal(['a', 'b']);
  });

  it('treat an assistant’s refusal as its text', () => {
    const { turns } = readConversation([{ role: 'assistant', content: null, refusal: 'No.' }]);
    expect(turns[0]).to.have.nested.property('parts[0].value.text', 'No.');
  });

  for (const [title, messages, param] of [
    [
      'an image in a system message',
      [{ role: 'system', content: [{ type: 'image_url', image_url: { url: 'x' } }] }],
      'messages[0].content[0].type',
    ],
    ['calls that are no list', [{ role: 'assistant', tool_calls: {} }], 'messages[0].tool_calls'],
    [
      'a call of no function',
      [{ role: 'assistant', tool_calls: [{ id: 'a', type: 'custom', custom: {} }] }],
      'messages[0].tool_calls[0]',
    ],
    [
      'a call without an id',
      [{ role: 'assistant', tool_calls: [{ function: { name: 'f' } }] }],
      'messages[0].tool_calls[0].id',
    ],
    [
      'a call without a name',
      [{ role: 'assistant', tool_calls: [{ id: 'a', function: {} }] }],
      'messages[0].tool_calls[0].function.name',
    ],
    ['a part without a type', [{ role: 'user', content: [{ text: 'x' }] }], 'messages[0].content[0]'],
    ['a text part without text', [{ role: 'user', content: [{ type: 'text' }] }], 'messages[0].content[0].text'],
    ['content that is a number', [{ role: 'user', content: 7 }], 'messages[0].content'],
  ] as const) {
    it(`refuse ${title}`, () => {
      expect(() => readConversation(messages as unknown as ChatMessage[]))
        .to.throw()
        .with.property('param', param);
    });
  }
});

describe('arguments of a call', () => {
  for (const [text, expected] of [
    ['{"a":1}', { a: 1 }],
    ['', {}],
    [' ', {}],
    ['[1]', { arguments: [1] }],
    ['null', { arguments: 'null' }],
    ['{"cut', { arguments: '{"cut' }],
  ] as const) {
    it(`of ${JSON.stringify(text)} are ${JSON.stringify(expected)}`, () => {
      expect(parseArguments(text)).to.deep.equal(expected);
    });
  }
});
