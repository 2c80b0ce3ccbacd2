import { expect } from 'chai';
import { SourceError } from '../../config/problems.ts';
import { parseJson } from '../../config/sources.ts';
import { jsonTestSuite } from '../support/corpus.ts';

describe('the JSON reader', () => {
  it('accepts and refuses the same as JSON.parse, except repeated names, deep nesting and a byte order mark', () => {
    for (const { name, bytes } of jsonTestSuite()) {
      const text = bytes.toString();
      const outcome = (parse: () => unknown): unknown => {
        try {
          return JSON.stringify(parse());
        } catch {
          return 'refused';
        }
      };
      const mine = outcome(() => parseJson(text).value);
      const isStricter = mine === 'refused' && /duplicated_key|nested|100000|open_array/.test(name);
      if (!isStricter) expect(mine, name).to.equal(outcome(() => JSON.parse(text.replace(/^\uFEFF/, ''))));
    }
  });

  it('refuses with a place, never with another error', () => {
    for (const { name, bytes } of jsonTestSuite().filter((each) => each.name.startsWith('n_'))) {
      const text = bytes.toString();
      if (text.startsWith('\uFEFF')) continue;
      try {
        parseJson(text);
      } catch (error) {
        expect(error, name).to.be.instanceOf(SourceError);
        expect((error as SourceError).problems[0]?.line, name).to.be.greaterThan(0);
      }
    }
  });

  it('returns the places of keys, values and items', () => {
    const { positions } = parseJson('{\n  "a/b": [1,\n    { "~": "x" }]\n}');
    expect([...positions]).to.deep.equal([
      ['', { value: { line: 1, column: 1 } }],
      ['/a~1b', { key: { line: 2, column: 3 }, value: { line: 2, column: 10 } }],
      ['/a~1b/0', { value: { line: 2, column: 11 } }],
      ['/a~1b/1', { value: { line: 3, column: 5 } }],
      ['/a~1b/1/~0', { key: { line: 3, column: 7 }, value: { line: 3, column: 12 } }],
    ]);
  });
});
