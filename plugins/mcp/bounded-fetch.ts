/** Error of a response that is larger than allowed. */
export class TooLarge extends Error {
  override readonly name = 'TooLarge';
}

interface FetchBounds {
  readonly maxBytes: number;
  readonly maxMs: number;
  /** True for other requests than those of a session, which may be GET. */
  readonly allowsGet?: boolean;
}

/**
 * Wraps `fetch` for one MCP server: a limit on the size and time of each response, no redirects, and no stream of its own for
 * notifications, which would stay open.
 */
export function boundedFetch(
  fetchAny: typeof fetch,
  { maxBytes, maxMs, allowsGet = false }: FetchBounds,
): (url: string | URL, init?: RequestInit) => Promise<Response> {
  return async (url, init = {}) => {
    if (!allowsGet && (init.method ?? 'GET') === 'GET') return new Response(null, { status: 405 });
    const signals = [AbortSignal.timeout(maxMs), ...(init.signal ? [init.signal] : [])];
    const response = await fetchAny(url, { ...init, redirect: 'manual', signal: AbortSignal.any(signals) });
    if (response.status >= 300 && response.status < 400) {
      await response.body?.cancel();
      throw new Error(`it returned a redirect (${response.status}), which is not followed`);
    }
    if (!response.body) return response;
    const { status, statusText, headers } = response;
    if (Number(headers.get('content-length')) > maxBytes) {
      await response.body.cancel();
      throw tooLarge(maxBytes);
    }
    let bytes = 0;
    const bounded = response.body.pipeThrough(
      new TransformStream<Uint8Array, Uint8Array>({
        transform(chunk, controller) {
          bytes += chunk.length;
          if (bytes > maxBytes) controller.error(tooLarge(maxBytes));
          else controller.enqueue(chunk);
        },
      }),
    );
    return new Response(bounded, { status, statusText, headers });
  };
}

function tooLarge(maxBytes: number): TooLarge {
  return new TooLarge(`it sent a response of more than ${maxBytes} bytes`);
}
