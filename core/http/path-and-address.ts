import type { IncomingMessage } from 'node:http';

/**
 * The path that routes see: double slashes are one, `%3A` is a colon, and the `/v1` that SDKs put after the provider segment is dropped
 * (`/api/core/openai/v1/models` is `/api/core/openai/models`). Accepted, never redirected: clients lose their key or body on a redirect.
 */
export function normalisePath(path: string): string {
  const plain = path.includes('%3') ? path.replace(/%3a/gi, ':') : path;
  const single = plain.includes('//') ? plain.replace(/\/{2,}/g, '/') : plain;
  const trimmed = single.length > 1 && single.endsWith('/') ? single.slice(0, -1) : single;
  return trimmed.startsWith('/api/core/') ? trimmed.replace(PROVIDER_V1, '$1/') : trimmed;
}

const PROVIDER_V1 = /^(\/api\/core\/[^/]+)\/v1\//;

/**
 * The caller's address: the socket's, or, behind `hops` proxies that are trusted, the entry of `x-forwarded-for` that the
 * outermost of them wrote. What a caller put into that header itself is never taken for its address.
 */
export function clientAddress(request: IncomingMessage, hops: number): string {
  const own = request.socket.remoteAddress ?? '';
  if (hops === 0) return own;
  const header = request.headers['x-forwarded-for'];
  const chain = (typeof header === 'string' ? header : '')
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => ADDRESS.test(entry));
  return chain.at(-hops) ?? chain[0] ?? own;
}

/** IPv4, or IPv6 with or without brackets; nothing else gets into a log. */
const ADDRESS = /^[0-9a-fA-F.:[\]]{2,45}$/;
