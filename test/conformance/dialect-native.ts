import assert from 'node:assert/strict';
import type { ChatRequest, DialectNative, NativeBody, NativeChange } from '../../contract/index.ts';
import { deepFreeze } from './deep-freeze.ts';
import { contextFor, type DialectSubject, inputOf, type RequestFixture, readEvents } from './dialect-subject.ts';
import { plain } from './dialect-writing.ts';
import { findRunner } from './runner.ts';

/** Values that a hook may set, by canonical field. */
const CHANGED: Readonly<Record<string, unknown>> = Object.freeze({
  max_completion_tokens: 2077,
  temperature: 0.25,
  top_p: 0.75,
  stop: ['CHANGED'],
  user: 'changed-user',
  metadata: { team: 'changed' },
  service_tier: 'default',
  reasoning_effort: 'low',
});

/** Tests that a native request keeps the caller's body, except for the listed edits. */
export function testNative(subject: DialectSubject): void {
  const { describe, it } = findRunner();
  const { dialect, format, requests, recorded } = subject;
  const { native } = dialect;
  if (!native) return;
  const { edits = [], changes = {} } = format.native ?? {};
  const patch = (fixture: RequestFixture, changed: Partial<ChatRequest> = {}): Patched =>
    patched(native, subject, fixture, changed);

  describe('native passthrough', () => {
    it('is described in format.json, including every field that hooks may change', () => {
      assert.deepEqual(Object.keys(changes).sort(), Object.keys(CHANGED).sort());
    });

    for (const fixture of requests.filter((one) => inputOf(subject, one).route.action !== 'count')) {
      it(`sends ${fixture.name} on with the listed edits only, in its own order`, () => {
        const { written } = patch(fixture);
        assert.ok(written, 'it can be written');
        assertSame(fixture, plain(written.body) as object, edits);
        const names = Object.keys(fixture.body).filter((name) => Object.hasOwn(written.body, name));
        const kept = Object.keys(written.body).filter((name) => names.includes(name));
        assert.deepEqual(kept, names);
      });
      for (const [field, own] of Object.entries(changes))
        it(`writes a changed ${field} of ${fixture.name} ${own === null ? 'not at all' : `to ${String(own)} only`}`, () => {
          const { written } = patch(fixture, { [field]: CHANGED[field] });
          if (!written) return assert.equal(own, null, 'it is said to be written');
          // A change that the body cannot represent is reported.
          if (own === null) return assert.ok(written.dropped?.includes(field), `${field} is reported as dropped`);
          const body = plain(written.body) as object;
          assertSame(fixture, body, [...edits, own].flat());
          const { written: before } = patch(fixture);
          assert.notDeepEqual(body, plain(before?.body), 'the change is in it');
        });
    }

    for (const { name, text } of recorded.filter((one) => one.name.endsWith('.json')))
      it(`returns ${name} to the caller as an object with the same fields`, () => {
        const body = deepFreeze(JSON.parse(text) as object);
        assert.deepEqual(Object.keys(native.write(body, contextFor(subject, false)) as object), Object.keys(body));
      });
    for (const { name, text } of recorded.filter((one) => one.name.endsWith('.sse')))
      it(`passes on every event of ${name}`, () => {
        const stream = native.stream(contextFor(subject, true));
        const frames = text
          .replaceAll('\r\n', '\n')
          .split('\n\n')
          .filter((frame) => frame.includes('data:'));
        const out = frames.map((frame) => {
          const event = /^event: ?(.*)$/m.exec(frame)?.[1];
          return stream.push({ ...(event !== undefined && { event }), data: /^data: ?(.*)$/m.exec(frame)?.[1] ?? '' });
        });
        assert.equal(readEvents(subject, out.join('') + stream.end(), stream.contentType).length, frames.length);
      });
  });
}

interface Patched {
  readonly written: NativeBody | undefined;
}

function patched(
  native: DialectNative,
  subject: DialectSubject,
  fixture: RequestFixture,
  changed: Partial<ChatRequest>,
): Patched {
  const text = JSON.stringify(fixture.body);
  const input = deepFreeze(inputOf(subject, fixture));
  const { request: before } = subject.dialect.read(input);
  const change: NativeChange = {
    before,
    after: { ...before, ...changed },
    model: subject.format.native?.model ?? 'the-vendors-model',
    stream: before.stream === true,
    open: () => undefined,
    scope: (name) => `scoped-${name}`,
  };
  const written = native.patch(input.body, change);
  assert.equal(JSON.stringify(fixture.body), text, 'the caller’s body stays as it is');
  return { written };
}

/** Asserts that fields outside the edits are unchanged; a null field may be missing. */
function assertSame({ body, native = {} }: RequestFixture, written: object, edits: readonly string[]): void {
  const rest = (value: object) =>
    Object.fromEntries(Object.entries(value).filter(([name, inner]) => !edits.includes(name) && inner !== null));
  assert.deepEqual(rest(written), rest({ ...body, ...native }));
}
