import { expect } from 'chai';
import { parseExact, writeJson } from '../../contract/index.ts';

describe('parseExact and writeJson', () => {
  const TEXTS = [
    '{"id":12345678901234567890,"price":1.10,"list":[-0.50,1e5,{"deep":9007199254740993}],"text":"1.10, : 1.20"}',
    '[1E400]',
    '{"__proto__":{"price":2.0}}',
    String.raw`{"quoted \" 1.10":"\\","n":1.10}`,
  ];

  it('write numbers as they came, also inside of other values (G9)', () => {
    for (const text of TEXTS) {
      expect(writeJson(parseExact(text))).to.equal(text);
      expect(writeJson({ input: parseExact(text) })).to.equal(`{"input":${text}}`);
    }
  });

  it('read the same value as JSON.parse, and JSON.stringify writes it as before (G9)', () => {
    for (const text of TEXTS) {
      expect(parseExact(text)).to.deep.equal(JSON.parse(text));
      expect(JSON.stringify(parseExact(text))).to.equal(JSON.stringify(JSON.parse(text)));
    }
  });

  it('write a number that was changed since as it is (G9)', () => {
    const value = parseExact('{"price":1.10,"count":2.0}') as Record<string, unknown>;
    value['price'] = 3;
    expect(writeJson(value)).to.equal('{"price":3,"count":2.0}');
    expect(writeJson({ ...value, count: 5 })).to.equal('{"price":3,"count":5}');
  });

  it('refuse what JSON.parse refuses', () => {
    for (const text of ['{"price":01.10}', '{"price":1.10', '[1.10.0]', `${'['.repeat(600)}1.10`])
      expect(parseExact(text)).to.equal(undefined);
  });
});
