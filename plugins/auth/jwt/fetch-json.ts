const TIMEOUT_MS = 5000;
const MAX_BYTES = 1024 * 1024;

/**
 * The JSON behind a URL, within five seconds and one MiB, without following redirects: keys come from where the operator
 * said, or not at all. Throws an Error that says what went wrong, for the log.
 */
export async function fetchJson(url: URL): Promise<unknown> {
  const response = await fetch(url, {
    redirect: 'manual',
    signal: AbortSignal.timeout(TIMEOUT_MS),
    headers: { accept: 'application/json' },
  });
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new Error(`${url.href} answered with status ${response.status}`);
  }
  return JSON.parse(await readBounded(response, url));
}

/** Counts what comes out, not what `content-length` says: neither a lie nor compression gets past the bound. */
async function readBounded(response: Response, url: URL): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength;
    if (size > MAX_BYTES) throw new Error(`${url.href} answered with more than ${MAX_BYTES} bytes`);
    chunks.push(chunk);
  }
  return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks));
}
