import assert from 'node:assert/strict';
import { ERRORS, type ErrorCode } from '../../contract/errors.ts';
import { GatewayError } from '../../contract/index.ts';
import { valuesAt } from './dialect-format.ts';
import { contextFor, type DialectSubject, type ErrorFixture, readEvents } from './dialect-subject.ts';
import { plain } from './dialect-writing.ts';
import { findRunner } from './runner.ts';

const CODES = Object.keys(ERRORS) as readonly ErrorCode[];

/** Tests that every gateway error has a status and a type in the format, as a body and in a stream. */
export function testDialectErrors(subject: DialectSubject): void {
  const { describe, it } = findRunner();
  const { dialect, format, errors } = subject;
  const { body: inBody, streamed: inStream } = format.error;

  describe('errors', () => {
    it('are all listed in errors.json, and no others', () => {
      assert.deepEqual(Object.keys(errors ?? ERRORS).sort(), [...CODES].sort());
    });

    for (const code of CODES) {
      const {
        status,
        type,
        streamed = type,
      } = errors ? rowOf(errors, code) : { status: ERRORS[code].status, type: code };
      const error = new GatewayError(code, 'What happened, and what to do.', { param: 'field', retryAfterMs: 7000 });
      it(`${code} is ${status} ${type}, with its message`, () => {
        const written = dialect.error(error, 'req_conformance');
        const body = plain(written.body);
        assert.equal(written.status ?? error.status, status);
        assert.deepEqual(valuesAt(body, inBody.type), [type]);
        assert.match(String(valuesAt(body, inBody.message)[0]), /What happened, and what to do\./);
        assert.equal(
          Math.floor(status / 100),
          Math.floor(error.status / 100),
          'the class of the status stays the same',
        );
      });
      it(`${code} in the middle of a stream is one event with ${streamed}`, () => {
        const stream = dialect.stream(contextFor(subject, true));
        const events = readEvents(subject, stream.fail(error, 'req_conformance'), stream.contentType);
        const last = events.at(-1)?.value;
        assert.deepEqual(valuesAt(last, inStream.type), [streamed]);
        assert.match(String(valuesAt(last, inStream.message)[0]), /What happened, and what to do\./);
      });
    }
  });
}

function rowOf(errors: Readonly<Record<string, ErrorFixture>>, code: ErrorCode): ErrorFixture {
  return errors[code] ?? { status: 0, type: `a row for ${code} in errors.json` };
}
