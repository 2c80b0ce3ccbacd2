import assert from 'node:assert/strict';
import { testDialectErrors } from './dialect-errors.ts';
import { testGarbage } from './dialect-garbage.ts';
import { testNative } from './dialect-native.ts';
import { testRecorded } from './dialect-recorded.ts';
import { testRequests } from './dialect-requests.ts';
import { chunksOf, SAMPLES } from './dialect-samples.ts';
import {
  contextOf,
  createDialectSubject,
  type DialectKit,
  type DialectSubject,
  inputOf,
  setUpDialect,
} from './dialect-subject.ts';
import { testWriting } from './dialect-writing.ts';
import { findRunner, nameOf, requirePlugin } from './runner.ts';
import { watched } from './watched.ts';

export type { ContentRow, DialectFormat, EventRow, Held, JsonPath, Streamed } from './dialect-format.ts';
export type { DialectKit, ErrorFixture, RequestFixture, ResponseFixture } from './dialect-subject.ts';

/**
 * Runs the tests that every dialect must pass. The folder of fixtures has these files:
 * - `format.json`: a {@link DialectFormat} with the grammar of its streams and the paths of its values
 * - `errors.json`: status and type of every error code that differs from the gateway's
 * - `request*.json` and `response*.json`: inputs with their expected results
 * - `recorded*.json` and `recorded*.sse`: a vendor's own bytes, if `vendor` uses the format
 *
 * ```ts
 * import { testDialect } from 'tollgate/conformance';
 * import plain from '../plain.ts';
 * testDialect({ plugin: plain, fixtures: new URL('./fixtures/plain/', import.meta.url) });
 * ```
 */
export function testDialect(kit: DialectKit): void {
  const { describe, it } = findRunner(kit.runner);

  describe(`the dialect ${nameOf(kit.plugin)}: what every dialect promises`, () => {
    requirePlugin(kit.plugin, 'dialect');
    const subject = createDialectSubject(kit);
    const { dialect } = subject;
    const { plugin } = kit;
    describe('the plugin', () => {
      it('is a dialect of this plugin version, named in kebab-case', () => {
        assert.deepEqual([plugin.kind, plugin.apiVersion], ['dialect', 1]);
        assert.match(dialect.name, /^[a-z][a-z0-9-]{0,39}$/);
      });
      it('has routes with absolute paths, each with one line of summary', () => {
        assert.notEqual(dialect.routes.length, 0);
        for (const { path, summary } of dialect.routes) {
          assert.match(path, /^\//);
          assert.match(summary, /^[^\n]+$/);
        }
      });
      it('counts tokens if it has a route for it', () => {
        if (dialect.routes.some(({ action }) => action === 'count')) assert.equal(typeof dialect.count, 'function');
      });
      it('keeps a connection alive with complete frames', () => assert.match(dialect.keepAlive, /\n$/));
      it('writes nothing to the console, and reads no environment variable', () => watched(() => useAll(subject)));
    });
    testRequests(subject);
    testGarbage(subject);
    testWriting(subject);
    testRecorded(subject);
    testDialectErrors(subject);
    testNative(subject);
  });
}

/** Sets the plugin up and reads and writes each fixture once; other tests check the results. */
function useAll(subject: DialectSubject): void {
  const dialect = setUpDialect(subject.kit.plugin, subject.kit.config);
  for (const fixture of subject.requests)
    try {
      const input = inputOf(subject, fixture);
      const { request } = dialect.read(input);
      const context = contextOf(input, request);
      for (const { response } of SAMPLES) {
        dialect.write(response, context);
        const stream = dialect.stream(context);
        for (const chunk of chunksOf(response)) stream.push(chunk);
        stream.end();
      }
    } catch {
      // Another test reports this error.
    }
}
