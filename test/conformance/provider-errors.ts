import assert from 'node:assert/strict';
import type { FailureClass, ResponseHeaders } from '../../contract/index.ts';
import { itShows } from './cells.ts';
import { lackOf } from './provider-features.ts';
import { assertIncludes } from './provider-shape.ts';
import { type Fixture, type ProviderSubject, readJson } from './provider-subject.ts';
import { findRunner } from './runner.ts';

/** Row of `errors*.json`. */
export interface ErrorCase {
  readonly name: string;
  readonly status: number;
  readonly headers?: ResponseHeaders;
  readonly body: unknown;
  readonly class: FailureClass;
  readonly retryAfterMs?: number;
  readonly param?: string;
}

/** Classes that follow from a status alone, whatever the body. */
const BY_STATUS: readonly (readonly [number, readonly FailureClass[]])[] = [
  [400, ['invalid_request']],
  [401, ['authentication', 'billing']],
  [402, ['billing']],
  [403, ['permission', 'authentication']],
  [404, ['not_found', 'model_not_found']],
  [408, ['upstream_error', 'timeout']],
  [413, ['request_over_limit', 'invalid_request', 'context_length']],
  [422, ['invalid_request']],
  [429, ['rate_limit']],
  [500, ['upstream_error']],
  [502, ['upstream_error']],
  [503, ['overloaded', 'upstream_error']],
  [504, ['timeout']],
  [529, ['overloaded', 'upstream_error']],
];
const POOR_BODIES: readonly unknown[] = ['', '<html><body>Bad gateway</body></html>', null, 7, [], {}, { error: null }];

/** Headers of a 429 with an empty body, and the expected wait in milliseconds. */
const HINTS: readonly (readonly [ResponseHeaders, number | undefined])[] = [
  [{ 'retry-after': '7' }, 7000],
  [{ 'retry-after-ms': '250' }, 250],
  [{ 'retry-after-ms': '250', 'retry-after': '7' }, 250],
  [{ 'retry-after': 'Fri, 20 Nov 2026 10:00:30 GMT', date: 'Fri, 20 Nov 2026 10:00:00 GMT' }, 30_000],
  [{ 'retry-after': 'soon' }, undefined],
  [{ 'retry-after': '-5' }, undefined],
  [{ 'retry-after': '' }, undefined],
  [{}, undefined],
];

/** Tests that errors are classified by the vendor's fields, otherwise by status, and that retry hints are read. */
export function testErrors(subject: ProviderSubject): void {
  const { describe, it } = findRunner();
  const { name, provider, fixtures } = subject;
  const cannotFail = lackOf(subject, 'errors') !== undefined;
  const shows = (feature: string, title: string, body: () => void) =>
    cannotFail ? it(title, body) : itShows(it, { provider: name, feature, says: 'verified' }, title, body);

  describe('an error', () => {
    for (const fixture of fixtures('errors', '.json')) {
      for (const { name: title, status, headers = {}, body, ...expected } of readErrorCases(fixture)) {
        shows('errors', `is ${expected.class}: ${title}`, () => {
          assertIncludes(provider.error(status, body, headers), expected);
        });
      }
    }
    for (const [status, classes] of BY_STATUS) {
      shows('errors', `with status ${status} and a body that says nothing is ${classes.join(' or ')}`, () => {
        for (const body of POOR_BODIES) {
          const failure = provider.error(status, body, {});
          assert.ok(classes.includes(failure.class), `${failure.class} for ${JSON.stringify(body)}`);
          assert.ok(typeof failure.message === 'string' && !failure.message.includes('<'), 'no page of HTML');
        }
      });
    }
    for (const [headers, expected] of HINTS) {
      shows(
        'retry hints',
        `with ${JSON.stringify(headers)} may be retried after ${expected ?? 'an unknown number of'} ms`,
        () => {
          assert.equal(provider.error(429, {}, headers).retryAfterMs, expected);
        },
      );
    }
  });
}

/** Rows of an errors file. Throws with the missing field and its place. */
export function readErrorCases({ name, text }: Fixture): readonly ErrorCase[] {
  const rows = readJson(text, name);
  if (!Array.isArray(rows)) throw new Error(`the fixture ${name} has to be a list of { name, status, body, class }`);
  return (rows as readonly Partial<ErrorCase>[]).map((row, at) => {
    const missing = (['name', 'status', 'body', 'class'] as const).filter((field) => row?.[field] === undefined);
    if (missing.length > 0) throw new Error(`the fixture ${name} has no ${missing.join(', ')} in its row ${at + 1}`);
    return row as ErrorCase;
  });
}
