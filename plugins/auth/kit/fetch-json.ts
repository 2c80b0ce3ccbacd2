import { isLoopback, OptionError, parseJson } from '../../../contract/index.ts';

/** Parses a URL that may supply keys and tokens: https, or http on this machine; undefined for others. */
export function parseSafeUrl(text: string): URL | undefined {
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  if (url.username || url.password) return undefined;
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname)) ? url : undefined;
}

/**
 * Reads the option `publicUrl`: the gateway's URL for browsers and programs; `what` names the use. Throws an {@link
 * OptionError}.
 */
export function readPublicUrl(publicUrl: string, what: string, example: string): URL {
  const url = parseSafeUrl(publicUrl);
  if (url && url.pathname === '/' && url.search === '' && url.hash === '') return url;
  throw new OptionError(
    '/publicUrl',
    `must be an https URL without a user name, path or query (http only on this machine), since it receives ${what}`,
    example,
  );
}

const TIMEOUT_MS = 5000;
const MAX_BYTES = 1024 * 1024;

/** The platform's `fetch`, or `api.fetch`, which uses the operator's proxy and certificates. */
export type Fetch = typeof fetch;

/** Response of an identity provider. */
export interface Fetched {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/**
 * Fetches JSON within five seconds and one MiB, without redirects: keys come from the configured address alone. Throws
 * an Error with the reason, for the log.
 */
export async function fetchJson(url: URL, fetchBy: Fetch = fetch): Promise<unknown> {
  const { status, text } = await fetchBounded(url, fetchBy, { headers: { accept: 'application/json' } });
  if (status !== 200) throw new Error(`${url.href} returned status ${status}`);
  const value = parseJson(text);
  if (value === undefined) throw new Error(`${url.href} returned a response that is not JSON or nested too deeply`);
  return value;
}

/** Fetches a URL with the same bounds and without redirects, and returns any status. */
export async function fetchBounded(
  url: URL,
  fetchBy: Fetch,
  init: Pick<RequestInit, 'method' | 'headers' | 'body'> = {},
): Promise<Fetched> {
  const response = await fetchBy(url, {
    ...init,
    redirect: 'manual',
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  return { status: response.status, headers: response.headers, text: await readBounded(response, url) };
}

/** Counts received bytes, not `content-length`: neither a wrong header nor compression exceeds the bound. */
async function readBounded(response: Response, url: URL): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength;
    if (size > MAX_BYTES) throw new Error(`${url.href} returned more than ${MAX_BYTES} bytes`);
    chunks.push(chunk);
  }
  return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks));
}
