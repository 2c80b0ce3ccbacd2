import assert from 'node:assert/strict';
import { isGatewayError } from '../../contract/index.ts';
import { deepFreeze } from './deep-freeze.ts';
import { bodyCheck } from './dialect-requests.ts';
import { SAMPLES, type Sample } from './dialect-samples.ts';
import { contextOf, type DialectSubject, inputOf } from './dialect-subject.ts';
import { findRunner } from './runner.ts';

/** Replacements for each value of a request, one at a time; undefined removes it. */
const WRONG: readonly unknown[] = Object.freeze([
  ...[
    undefined,
    null,
    true,
    false,
    0,
    -1,
    0.5,
    1e300,
    '',
    'x',
    '__proto__',
    'constructor',
    'data:',
    'https://',
    '\u0000',
  ],
  ...[[], {}, [null], [[]], [{}], [''], { type: 'x' }, { type: 1 }, { type: null }, { role: 'x' }, [{ type: 'x' }]],
  { constructor: { name: 'x' } },
  JSON.parse('{"__proto__":{"type":"text"}}') as unknown,
  'x'.repeat(70_000),
  Array.from({ length: 300 }, () => ({})),
]);

/** Names of dropped fields are sent in a header. */
const NAME = /^[\x21-\x7e]{1,200}$/;

/** Tests that a dialect reads any body or rejects it with a `param`, and throws nothing else. */
export function testGarbage(subject: DialectSubject): void {
  const { describe, it } = findRunner();
  const { dialect, requests } = subject;
  const takes = bodyCheck(subject);

  describe('garbage', () => {
    for (const fixture of requests)
      it(`in any place of ${fixture.name} is read, or refused with the place of the error`, () => {
        for (const [at, body] of mutationsOf(fixture.body)) {
          const input = inputOf(subject, fixture, deepFreeze(body));
          if (!takes(body, input)) continue;
          const read = readOrRefuse(() => dialect.read(input), at);
          if (!read) continue;
          assert.ok(Array.isArray(read.request.messages) && typeof read.request.model === 'string', at);
          for (const name of read.dropped ?? []) assert.match(name, NAME, at);
          for (const { name, param } of read.needs ?? []) assert.ok(typeof name === 'string' && param !== '', at);
          assert.equal(typeof (read.place?.('messages[0].content') ?? ''), 'string', at);
          if (input.route.action === 'count') continue;
          const context = contextOf(input, read.request);
          const [{ response }] = SAMPLES as readonly [Sample];
          readOrRefuse(() => dialect.write(response, context), at);
          readOrRefuse(() => dialect.stream(context).end(), at);
          const { request: before } = read;
          const change = { before, after: before, model: 'm', stream: before.stream === true };
          readOrRefuse(
            () => dialect.native?.patch(body, { ...change, open: () => undefined, scope: (text) => text }),
            at,
          );
        }
      });
  });
}

/** Returns the result; undefined if it is rejected with a valid error. */
function readOrRefuse<T>(make: () => T, at: string): T | undefined {
  try {
    return make();
  } catch (error) {
    assert.ok(isGatewayError(error), `${at}: threw ${String((error as Error | undefined)?.stack ?? error)}`);
    assert.ok(error.status < 500, `${at}: ${error.code}`);
    assert.ok(typeof error.param === 'string' && error.param !== '', `${at}: "${error.message}" has no param`);
    return undefined;
  }
}

/** Yields each body with one value replaced, and a description of the change. */
function* mutationsOf(body: object): Generator<readonly [what: string, body: object]> {
  for (const path of pathsOf(body))
    for (const wrong of WRONG) {
      const copy = structuredClone(body);
      let owner = copy as Record<string, unknown>;
      for (const step of path.slice(0, -1)) owner = owner[step] as Record<string, unknown>;
      const last = path.at(-1) ?? '';
      if (wrong !== undefined) owner[last] = wrong;
      else if (Array.isArray(owner)) owner.splice(Number(last), 1);
      else delete owner[last];
      yield [`${path.join('.')} = ${(JSON.stringify(wrong) ?? 'nothing').slice(0, 60)}`, copy];
    }
  yield* Object.entries({ model: 'm', x: 1 }).map(
    ([name, value]) => ['a body of one field', { [name]: value }] as const,
  );
}

function pathsOf(value: unknown): readonly (readonly string[])[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => [[name], ...pathsOf(inner).map((rest) => [name, ...rest])]);
}
