import { parseDuration } from '../../../core/index.ts';

/** The option `timeout` of stores on a server. */
export const TIMEOUT_OPTION = Object.freeze({
  type: 'string',
  format: 'duration',
  description: 'The longest an operation may take, 50ms to 1s.',
} as const);

/** A configured `timeout` as `timeoutMs`, within what callers can wait for; nothing when none is set. */
export function readTimeout(timeout: string | undefined): { readonly timeoutMs?: number } {
  return timeout === undefined ? {} : { timeoutMs: Math.min(1000, Math.max(50, parseDuration(timeout))) };
}
