import { isLoopback, OptionError, parseJson } from '../../../contract/index.ts';

/** A URL that keys and tokens may be fetched from: over https, or on this machine; undefined for others. */
export function parseSafeUrl(text: string): URL | undefined {
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  if (url.username || url.password) return undefined;
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname)) ? url : undefined;
}

/** The option `publicUrl`: where browsers and programs find the gateway; `what` goes there. Throws an {@link OptionError}. */
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

/** The platform's, or `api.fetch`, which goes by the operator's proxy and certificates. */
export type Fetch = typeof fetch;

/** What came back from an identity provider. */
export interface Fetched {
  readonly status: number;
  readonly text: string;
}

/**
 * The JSON behind a URL, within five seconds and one MiB, without following redirects: keys come from where the operator
 * said, or not at all. Throws an Error that says what went wrong, for the log.
 */
export async function fetchJson(
  url: URL,
  fetchBy: Fetch = fetch,
  headers: Readonly<Record<string, string>> = {},
): Promise<unknown> {
  const { status, text } = await fetchBounded(url, fetchBy, { headers });
  if (status !== 200) throw new Error(`${url.href} returned status ${status}`);
  const value = parseJson(text);
  if (value === undefined) throw new Error(`${url.href} returned a response that is not JSON or nested too deeply`);
  return value;
}

/** What is behind a URL, whatever its status: with the same bounds, and without following redirects. */
export async function fetchBounded(
  url: URL,
  fetchBy: Fetch,
  init: { readonly method?: 'POST'; readonly headers?: Readonly<Record<string, string>>; readonly body?: string } = {},
): Promise<Fetched> {
  const response = await fetchBy(url, {
    ...init,
    redirect: 'manual',
    signal: AbortSignal.timeout(TIMEOUT_MS),
    headers: { accept: 'application/json', ...init.headers },
  });
  return { status: response.status, text: await readBounded(response, url) };
}

/** Counts what comes out, not what `content-length` says: neither a lie nor compression gets past the bound. */
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
