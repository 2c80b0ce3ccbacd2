import assert from 'node:assert/strict';
import type { DialectInput, Schema } from '../../contract/index.ts';
import { createRequestSchemas } from '../../core/plugins/registry.ts';
import { deepFreeze } from './deep-freeze.ts';
import { valuesAt } from './dialect-format.ts';
import { type DialectSubject, inputOf } from './dialect-subject.ts';
import { findRunner } from './runner.ts';

/** Returns the gateway's check of a body, which runs before `read`. */
export function bodyCheck({ dialect }: DialectSubject): (body: unknown, input: Pick<DialectInput, 'route'>) => boolean {
  const schemas = createRequestSchemas([]);
  const compiled = new Map<Schema, (body: unknown) => boolean>();
  return (body, { route }) => {
    const schema = route.request ?? dialect.request;
    const check = compiled.get(schema) ?? schemas.compile(dialect.name, schema, 'the request');
    compiled.set(schema, check);
    return check(body);
  };
}

/** Tests that `read` returns the result in the fixtures on every call, and does not modify its input. */
export function testRequests(subject: DialectSubject): void {
  const { describe, it } = findRunner();
  const { dialect, requests } = subject;
  const takes = bodyCheck(subject);

  describe('requests', () => {
    it('have at least one fixture for a JSON response and one for a stream', () => {
      const wanted = new Set(
        requests.map((fixture) => dialect.read(inputOf(subject, fixture)).request.stream === true),
      );
      assert.deepEqual([...wanted].sort(), [false, true]);
    });
    for (const fixture of requests)
      describe(fixture.name, () => {
        it('is accepted by the schema of its route', () => {
          assert.equal(takes(fixture.body, inputOf(subject, fixture)), true);
        });
        it('is read as in the fixture, with its loss reported', () => {
          const { request, dropped = [], needs = [] } = dialect.read(inputOf(subject, fixture));
          assertHolds(request, fixture.canonical, 'canonical');
          assert.deepEqual([...dropped].sort(), [...(fixture.dropped ?? [])].sort());
          assert.deepEqual(needs.map(({ name }) => name).sort(), [...(fixture.needs ?? [])].sort());
        });
        it('is read to the same result again, from a frozen input that stays unchanged', () => {
          const before = JSON.stringify(fixture.body);
          const input = deepFreeze(inputOf(subject, fixture));
          const [first, second] = [dialect.read(input), dialect.read(input)];
          assert.deepEqual(first.request, second.request);
          assert.deepEqual(
            [first.needs, first.dropped, first.provider],
            [second.needs, second.dropped, second.provider],
          );
          assert.equal(JSON.stringify(fixture.body), before);
        });
        it('knows the place of each canonical message in the caller’s body', () => {
          const { request, place } = dialect.read(inputOf(subject, fixture));
          const missing = request.messages
            .map((_, index) => place?.(`messages[${index}]`) ?? `messages[${index}]`)
            .filter((path) => valuesAt(fixture.body, path).length === 0);
          assert.deepEqual(missing, []);
        });
      });
  });
}

/** Asserts that a value contains the expected one: for objects the named fields, anything else exactly. */
function assertHolds(actual: unknown, expected: unknown, at: string): void {
  if (typeof expected !== 'object' || expected === null || typeof actual !== 'object' || actual === null) {
    assert.deepEqual(actual, expected, at);
    return;
  }
  if (Array.isArray(expected)) assert.equal((actual as readonly unknown[]).length, expected.length, `${at}.length`);
  for (const [name, value] of Object.entries(expected))
    assertHolds((actual as Readonly<Record<string, unknown>>)[name], value, `${at}.${name}`);
}
