import { isDeepStrictEqual } from 'node:util';
import suite, { keyvIteratorTests } from '@keyv/test-suite';
import { expect } from 'chai';
import Keyv, { type KeyvStoreAdapter } from 'keyv';

/**
 * Runs Keyv's own test suite, which is written for vitest, under mocha: `expect` with the matchers that it uses, and
 * `expect.assertions`. `open` returns a new adapter on the same data at every call.
 */
export function testWithKeyvSuite(title: string, open: () => KeyvStoreAdapter): void {
  const body = (run: typeof suite) => () => run(vitest as never, Keyv, open);
  describe(`${title}: Keyv’s own test suite`, body(suite));
  describe(`${title}: Keyv’s own iterator tests`, body(keyvIteratorTests));
}

let asserted = 0;
let expected: number | undefined;

function expectation(actual: unknown) {
  asserted += 1;
  const check = (isMet: boolean, what: string) => expect(isMet, `${String(actual)} ${what}`).to.equal(true);
  return {
    toBe: (value: unknown) => check(Object.is(actual, value), `is ${String(value)}`),
    toEqual: (value: unknown) => check(isDeepStrictEqual(actual, value), `equals ${JSON.stringify(value)}`),
    toBeTruthy: () => check(Boolean(actual), 'is truthy'),
    toBeFalsy: () => check(!actual, 'is falsy'),
    toBeUndefined: () => check(actual === undefined, 'is undefined'),
    toBeDefined: () => check(actual !== undefined, 'is defined'),
    toBeNull: () => check(actual === null, 'is null'),
  };
}

const context = {
  expect: Object.assign(expectation, {
    assertions: (count: number) => {
      expected = count;
    },
  }),
};

const vitest = {
  beforeEach,
  afterEach,
  it: (title: string, body: (t: typeof context) => unknown) =>
    it(title, async () => {
      asserted = 0;
      expected = undefined;
      await body(context);
      if (expected !== undefined) expect(asserted, 'number of assertions').to.equal(expected);
    }),
};
