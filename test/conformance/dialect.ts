import assert from 'node:assert/strict';
import type { Plugin } from '../../core/index.ts';
import { testDialectErrors } from './dialect-errors.ts';
import { testGarbage } from './dialect-garbage.ts';
import { testNative } from './dialect-native.ts';
import { testRecorded } from './dialect-recorded.ts';
import { testRequests } from './dialect-requests.ts';
import { createDialectSubject, type DialectOptions } from './dialect-subject.ts';
import { testWriting } from './dialect-writing.ts';
import { findRunner } from './runner.ts';

export type { ContentRow, DialectFormat, EventRow, JsonPath } from './dialect-format.ts';
export type { DialectOptions, ErrorFixture, RequestFixture, ResponseFixture } from './dialect-subject.ts';

/**
 * Runs the tests that every dialect must pass. The folder has `format.json` (a {@link DialectFormat}: the grammar of its streams and
 * where things stand), `errors.json` (status and type of every error code, where they are not ours), `request*.json` and `response*.json` with what has to
 * come of them, and, where `options.vendor` speaks the format, `recorded*.json` and `recorded*.sse` with that vendor's own bytes.
 *
 * ```ts
 * import { testDialect } from 'tollgate/conformance';
 * import plain from '../plain.ts';
 * testDialect(plain, new URL('./fixtures/plain/', import.meta.url));
 * ```
 */
export function testDialect(plugin: Plugin<object, 'dialect'>, folder: URL, options: DialectOptions = {}): void {
  const { describe, it } = findRunner();
  const subject = createDialectSubject(plugin, folder, options);
  const { dialect } = subject;

  describe(`the dialect ${dialect.name}: what every dialect promises`, () => {
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
      it('counts tokens where it has a route for it', () => {
        if (dialect.routes.some(({ action }) => action === 'count')) assert.equal(typeof dialect.count, 'function');
      });
      it('keeps a connection alive with whole frames', () => assert.match(dialect.keepAlive, /\n$/));
    });
    testRequests(subject);
    testGarbage(subject);
    testWriting(subject);
    testRecorded(subject);
    testDialectErrors(subject);
    testNative(subject);
  });
}
