import type { ResponseHeaders } from '../contract/provider.ts';

const NO_CONTENT: ReadonlySet<number> = new Set([204, 205]);

/** Why the head of an answer makes it useless whatever its body says; undefined when it does not. */
export function findFault(status: number, headers: ResponseHeaders, maxBytes: number): string | undefined {
  if (status >= 300 && status < 400) return `the provider answered with a redirect (${status}); none is followed`;
  if (NO_CONTENT.has(status)) return `the provider answered with status ${status}, which has no content`;
  if (Number(headers['content-length']) > maxBytes) return tooLong(maxBytes);
  if (status < 400 && isEncoded(headers)) return 'the provider answered with a content-encoding nobody asked for';
  return undefined;
}

/** Whether a status says that the vendor did no work: a redirect, or no content. */
export function isRefusal(status: number): boolean {
  return (status >= 300 && status < 400) || NO_CONTENT.has(status);
}

/** Whether the body is compressed. We ask for `identity`; nothing here decodes anything. */
export function isEncoded(headers: ResponseHeaders): boolean {
  const encoding = headers['content-encoding']?.trim().toLowerCase();
  return encoding !== undefined && encoding !== '' && encoding !== 'identity';
}

export function tooLong(maxBytes: number): string {
  return `the answer is longer than ${maxBytes} bytes`;
}

/** Undici gives a header that came more than once as a list; ours are text. */
export function joinRepeated(
  headers: Readonly<Record<string, string | readonly string[] | undefined>>,
): ResponseHeaders {
  const joined: Record<string, string | undefined> = {};
  for (const name in headers) {
    const value = headers[name];
    joined[name] = typeof value === 'object' ? value.join(', ') : value;
  }
  return joined;
}
