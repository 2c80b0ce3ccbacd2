import assert from 'node:assert/strict';
import { isObject, StreamFailure, type UpstreamFailure } from '../../contract/index.ts';
import { itShows } from './cells.ts';
import { readErrorCases } from './provider-errors.ts';
import { lackOf, testLack } from './provider-features.ts';
import { assertExpected, assertIncludes } from './provider-shape.ts';
import { CALL, decodeStream, type Fixture, type ProviderSubject, readJson } from './provider-subject.ts';
import { findRunner } from './runner.ts';

/** OpenAI's error event in the middle of a stream. */
export const OPENAI_ERROR =
  'data: {"error":{"message":"The server had an error","type":"server_error","code":null,"param":null}}\n\n';

const ROWS = ['errors', 'retry hints', 'failures in streams', 'failures with status 200'] as const;

/**
 * Tests failures with status 200: the recorded ones, and each of the vendor's error bodies. A body is sent in place of
 * a response, and as an event of a stream.
 */
export function testFailures(subject: ProviderSubject): void {
  const { describe, it } = findRunner();
  const { name, provider, kit, fixtures } = subject;
  const { chat } = provider;
  if (!chat) return;
  if (lackOf(subject, 'errors') !== undefined) {
    for (const row of ROWS) testLack(subject, row, 'errors', () => assertCannotFail(subject));
    return;
  }
  const shows = (feature: (typeof ROWS)[number], title: string, body: () => void) =>
    itShows(it, { provider: name, feature, says: 'verified' }, title, body);
  const event = kit.errorEvent ?? OPENAI_ERROR;
  const bodies = [...errorBodies(fixtures('errors', '.json')), { name: 'the error event of its streams', body: event }];

  describe('a failure in place of a success', () => {
    for (const fixture of fixtures('failure', '.json')) {
      shows('failures with status 200', `is a failure: ${fixture.name}`, () => {
        assertExpected(
          failureOf(() => chat.response(JSON.parse(fixture.text), CALL)),
          fixture,
        );
      });
    }
    for (const fixture of fixtures('failure', '.sse')) {
      shows('failures in streams', `is a failure: ${fixture.name}`, () => {
        assertExpected(
          failureOf(() => decodeStream(provider, [encode(fixture.text)])),
          fixture,
        );
      });
    }
    for (const { name: title, body } of bodies) {
      const json = typeof body === 'string' ? readJson(/^data: (.*)$/m.exec(body)?.[1] ?? 'null', 'errorEvent') : body;
      const expected = () => ({ class: provider.error(200, json, {}).class });
      shows('failures with status 200', `is a failure with status 200: ${title}`, () => {
        assertIncludes(
          failureOf(() => chat.response(json, CALL)),
          expected(),
        );
      });
      shows('failures in streams', `is a failure in the middle of a stream: ${title}`, () => {
        const bytes =
          typeof body === 'string' ? body : event.replace(/^data: .*$/m, () => `data: ${JSON.stringify(body)}`);
        const pieces = [firstEvents(fixtures('stream', '.sse')), encode(bytes)];
        assertIncludes(
          failureOf(() => decodeStream(provider, pieces)),
          expected(),
        );
      });
    }
  });
}

/** Returns the failure that reading throws; anything else is an error of the codec. */
function failureOf(read: () => unknown): UpstreamFailure {
  try {
    read();
  } catch (error) {
    assert.ok(error instanceof StreamFailure, `a StreamFailure, not ${String(error)}`);
    return error.failure;
  }
  throw new assert.AssertionError({ message: 'it is read as a success' });
}

function assertCannotFail({ provider, fixtures }: ProviderSubject): void {
  assert.ok(provider.transport, 'a provider behind a network can always fail');
  const shown = [...fixtures('errors', '.json'), ...fixtures('failure', '.json'), ...fixtures('failure', '.sse')];
  assert.deepEqual(shown, [], 'no fixture shows a failure');
}

/** Error fixtures that are JSON objects; a page of HTML cannot occur in a stream. */
function errorBodies(files: readonly Fixture[]): readonly { readonly name: string; readonly body: object }[] {
  return files.flatMap(readErrorCases).flatMap(({ name, body }) => (isObject(body) ? [{ name, body }] : []));
}

/** First half of the vendor's simplest stream. */
function firstEvents([stream]: readonly Fixture[]): Uint8Array {
  const events = (stream?.text ?? '').replaceAll('\r\n', '\n').split('\n\n');
  return encode(`${events.slice(0, Math.ceil(events.length / 3)).join('\n\n')}\n\n`);
}

function encode(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
