import type { IncomingMessage } from 'node:http';

export interface DiscardLimits {
  readonly maxBytes: number;
  readonly maxMs: number;
}

const LIMITS: DiscardLimits = Object.freeze({ maxBytes: 32 * 1024 * 1024, maxMs: 5000 });

/**
 * Reads what is left of a request and keeps none of it, so that its sender comes to read the response: a socket that is
 * closed over unread bytes is reset, and the response is lost. Resolves true at the request's end, and false when it goes
 * on for too long; the connection is then to be closed.
 */
export function discardBody(req: IncomingMessage, { maxBytes, maxMs } = LIMITS): Promise<boolean> {
  return new Promise((resolve) => {
    let bytes = 0;
    const finish = (isRead: boolean): void => {
      clearTimeout(timer);
      resolve(isRead);
    };
    const timer = setTimeout(finish, maxMs, false);
    req.on('error', () => finish(false));
    req.on('close', () => finish(req.complete));
    req.on('end', () => finish(true));
    req.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > maxBytes) finish(false);
    });
    req.resume();
    if (req.destroyed) finish(req.complete);
  });
}
