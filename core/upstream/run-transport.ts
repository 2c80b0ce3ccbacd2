import type { HttpRequest, Transport, TransportResponse } from '../contract/provider.ts';
import type { Attempt } from './attempt.ts';

/** Lets a provider's own {@link Transport} answer a request, with the same deadlines and abort as the network. */
export async function runTransport(
  transport: Transport,
  request: HttpRequest,
  attempt: Attempt,
): Promise<TransportResponse> {
  attempt.isSent = () => true;
  try {
    const head = await inTime(transport(request, attempt.signal), 'firstByte', attempt);
    return { ...head, body: readInTime(head.body, attempt) };
  } catch (error) {
    throw attempt.explain(error, 'firstByte');
  }
}

/** The body as it comes, read when somebody reads it; one that is silent for too long fails. */
async function* readInTime(body: AsyncIterable<Uint8Array>, attempt: Attempt): AsyncGenerator<Uint8Array> {
  const chunks = body[Symbol.asyncIterator]();
  let isWhole = false;
  try {
    for (;;) {
      const { done, value } = await inTime(chunks.next(), 'idle', attempt);
      isWhole = done === true;
      if (done) return;
      yield value;
    }
  } finally {
    // Not waited for: a transport that hangs would never come to it.
    if (!isWhole) chunks.return?.().catch(() => {});
  }
}

/** Waits for some work, until its deadline has passed or the attempt is stopped. */
function inTime<T>(work: Promise<T>, phase: 'firstByte' | 'idle', attempt: Attempt): Promise<T> {
  const { signal, timeouts } = attempt;
  return new Promise<T>((resolve, reject) => {
    const timer = setTimeout(() => attempt.expire(phase), timeouts[`${phase}Ms`]).unref();
    const onAbort = (): void => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    signal.addEventListener('abort', onAbort);
    void work.then(resolve, reject).finally(() => {
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
    });
  });
}
