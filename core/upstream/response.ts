import type { AttemptResponse } from '../contract/operation.ts';
import type { ResponseHeaders, TransportResponse } from '../contract/provider.ts';
import type { Attempt } from './attempt.ts';

/** A response as an operation sees it, and also one of a bad status, 400 to 599. Errors are {@link UpstreamError}s. */
export interface UpstreamResponse extends AttemptResponse {
  /** Read once. Who stops reading stops the vendor, who leaves hangs up. */
  readonly body: AsyncIterable<Buffer>;
}

/** Makes the response whose head is there; throws when that head makes it useless whatever its body says. */
export function openResponse(head: TransportResponse, attempt: Attempt, maxBytes: number): UpstreamResponse {
  const { status, headers } = head;
  // Both say that the vendor did no work.
  const refused = { ...USELESS, refused: true };
  if (status >= 300 && status < 400)
    throw attempt.fail(`the provider answered with a redirect (${status}); none is followed`, refused);
  if (status === 204 || status === 205)
    throw attempt.fail(`the provider answered with status ${status}, which has no content`, refused);
  if (Number(headers['content-length']) > maxBytes) throw tooLong(attempt, maxBytes);
  if (isEncoded(headers)) {
    if (status < 400) throw attempt.fail('the provider answered with a content-encoding nobody asked for', USELESS);
    // An encoded error page is still an error: its status counts, its text is dropped.
    attempt.leave();
  }
  const body = readBody(head.body, attempt, maxBytes);
  return {
    status,
    headers,
    body,
    readAll: (limit = maxBytes) => readAll(body, attempt, limit),
    destroy: () => attempt.leave(),
  };
}

async function* readBody(body: AsyncIterable<Uint8Array>, attempt: Attempt, maxBytes: number): AsyncGenerator<Buffer> {
  let size = 0;
  try {
    for await (const { buffer, byteOffset, byteLength } of body) {
      if (attempt.wasLeft) return;
      size += byteLength;
      if (size > maxBytes) throw tooLong(attempt, maxBytes);
      yield Buffer.from(buffer, byteOffset, byteLength);
    }
    attempt.end();
  } catch (error) {
    if (!attempt.wasLeft) throw attempt.explain(error, 'body');
  } finally {
    attempt.leave();
  }
}

async function readAll(body: AsyncIterable<Buffer>, attempt: Attempt, maxBytes: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of body) {
    size += part.length;
    if (size > maxBytes) throw tooLong(attempt, maxBytes);
    parts.push(part);
  }
  return Buffer.concat(parts, size);
}

/** Whether a body is compressed. We ask for `identity`; nothing here decodes anything. */
function isEncoded(headers: ResponseHeaders): boolean {
  const encoding = headers['content-encoding']?.trim().toLowerCase();
  return encoding !== undefined && encoding !== '' && encoding !== 'identity';
}

const USELESS = Object.freeze({ failure: 'upstream_error', phase: 'body' } as const);

function tooLong(attempt: Attempt, maxBytes: number): Error {
  return attempt.fail(`the answer is longer than ${maxBytes} bytes`, USELESS);
}
