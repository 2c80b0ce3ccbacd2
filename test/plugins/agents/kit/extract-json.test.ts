import { expect } from 'chai';
import { extractJson } from '../../../../plugins/agents/kit/request-structured.ts';

describe('agents/kit/read-json', () => {
  const FOUND: readonly {
    readonly title: string;
    readonly text: string;
    readonly value: unknown;
    readonly repaired?: boolean;
  }[] = [
    { title: 'the whole text', text: ' {"a":1}\n', value: { a: 1 } },
    { title: 'a fenced block', text: 'Here you are:\n```json\n{"a":1}\n```\nBye {x}', value: { a: 1 } },
    { title: 'a fence without a language', text: '```\n[1,2]\n```', value: [1, 2] },
    { title: 'the first balanced object', text: 'Sure! {"a":"} {"} That is it.', value: { a: '} {' } },
    { title: 'the text after a model’s thinking', text: '<think>{"no":1}</think>{"a":1}', value: { a: 1 } },
    { title: 'JSON inside a JSON string', text: '"{\\"a\\":1}"', value: { a: 1 } },
    { title: 'JSON after a byte order mark', text: '\uFEFF{"a":1}', value: { a: 1 } },
    { title: 'JSON with single quotes and a trailing comma', text: "{'a': 1,}", value: { a: 1 }, repaired: true },
    { title: 'JSON with comments', text: '{"a": 1 // one\n}', value: { a: 1 }, repaired: true },
  ];
  for (const { title, text, value, repaired = false } of FOUND) {
    it(`finds ${title}`, () => {
      expect(extractJson(text, true)).to.deep.equal({ value, repaired });
    });
  }

  const NOT: readonly { readonly title: string; readonly text: string; readonly mend?: boolean }[] = [
    { title: 'nothing', text: '' },
    { title: 'prose', text: 'I cannot do that.' },
    { title: 'a truncated answer, which would become a valid and wrong one', text: '{"a":[1,2', mend: false },
    { title: 'an answer nested too deeply', text: '['.repeat(100) + ']'.repeat(100) },
    { title: 'an answer nested beyond the stack', text: '['.repeat(100_000) },
    { title: 'an answer that is too long', text: `"${'x'.repeat(300_000)}"` },
  ];
  for (const { title, text, mend = true } of NOT) {
    it(`finds no JSON in ${title}`, () => {
      expect(extractJson(text, mend)).to.equal(undefined);
    });
  }
});
