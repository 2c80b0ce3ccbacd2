import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { sameJson } from '../../../core/calls/same-json.ts';

describe('the sameness of two values of JSON', () => {
  const json = fc.jsonValue({ maxDepth: 3 }).map((value) => JSON.parse(JSON.stringify(value)) as unknown);

  it('is what Node says of them', () => {
    fc.assert(fc.property(json, json, (a, b) => sameJson(a, b) === isDeepStrictEqual(a, b)));
  });

  it('is there between a value and its copy, in whatever order its names are', () => {
    const turned = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(turned);
      if (typeof value !== 'object' || value === null) return value;
      const entries = Object.entries(value).reverse();
      return Object.fromEntries(entries.map(([name, field]) => [name, turned(field)]));
    };
    fc.assert(fc.property(json, (value) => sameJson(value, turned(value))));
  });
});
