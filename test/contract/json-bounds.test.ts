import { expect } from 'chai';
import fc from 'fast-check';
import { measureJson, parseJson } from '../../contract/json.ts';
import { generatedCases } from '../support/generated-cases.ts';

const ANY = { maxDepth: 1000, maxValues: 1e9 };

/** Number of values and names in a parsed value. */
function countOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1;
  if (Array.isArray(value)) return value.reduce((sum: number, member) => sum + countOf(member), 1);
  return Object.values(value).reduce((sum: number, member) => sum + 1 + countOf(member), 1);
}

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

describe('the measure of JSON', () => {
  const blanks = fc.constantFrom(undefined, 1, '\t', '\r\n ');

  it('counts the values, names and levels of any JSON, with any spacing and escapes', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), blanks, (value, space) => {
        const bytes = Buffer.from(JSON.stringify(value, undefined, space));
        const values = countOf(value);
        const depth = depthOf(value);
        expect(measureJson(bytes, ANY)).to.include({ values, exceeded: undefined });
        expect(measureJson(bytes, { maxDepth: depth, maxValues: values }).exceeded).to.equal(undefined);
        expect(measureJson(bytes, { maxDepth: depth, maxValues: values - 1 }).exceeded).to.equal('values');
        if (depth > 0)
          expect(measureJson(bytes, { maxDepth: depth - 1, maxValues: values }).exceeded).to.equal('depth');
      }),
      { numRuns: generatedCases(500) },
    );
  });

  it('skips strings of any length with any escapes', () => {
    for (const length of [0, 1, 62, 63, 64, 65, 66, 127, 128, 129, 500])
      for (const piece of ['"', '\\', '\\"', '{"[', 'é', `${'x'.repeat(63)}"`, `${'x'.repeat(70)}\\`]) {
        const text = `${'x'.repeat(length)}${piece.repeat(3)}`;
        const bytes = Buffer.from(JSON.stringify([text, text, 1]));
        expect(measureJson(bytes, ANY), JSON.stringify(text)).to.include({ values: 4, exceeded: undefined });
      }
  });

  it('stops at the limit', () => {
    const objects = Buffer.from(`[${'{},'.repeat(1_000_000)}{}]`);
    expect(measureJson(objects, { maxDepth: 64, maxValues: 1000 })).to.include({ values: 1001, exceeded: 'values' });
    const deep = Buffer.from('['.repeat(1_000_000));
    expect(measureJson(deep, { maxDepth: 64, maxValues: 1e9 })).to.include({ values: 65, exceeded: 'depth' });
  });

  it('may count numbers and literals separately', () => {
    const bounds = { maxDepth: 64, maxValues: 2, maxLiterals: 3 };
    expect(measureJson(Buffer.from('["a", 1, true, null]'), bounds).exceeded).to.equal(undefined);
    expect(measureJson(Buffer.from('["a", 1, true, null, -2.5e-7]'), bounds).exceeded).to.equal('values');
    expect(measureJson(Buffer.from('["a", "b"]'), bounds).exceeded).to.equal('values');
  });

  it('E28: JSON inside an external text has the limits of responses', () => {
    expect(parseJson(`${'['.repeat(5000)}${']'.repeat(5000)}`)).to.equal(undefined);
    expect(parseJson(`[${'{},'.repeat(600_000)}{}]`)).to.equal(undefined);
    expect(parseJson(`[${'1,'.repeat(1_000_000)}1]`)).to.have.length(1_000_001);
    expect(parseJson('{"a": [1]}')).to.deep.equal({ a: [1] });
  });
});
