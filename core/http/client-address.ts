import type { IncomingMessage } from 'node:http';

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
