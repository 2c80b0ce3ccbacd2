import type { ResponseHeaders } from '../../../core/index.ts';

/**
 * Milliseconds a vendor asks to wait, from `retry-after-ms` or `retry-after` (seconds, or an HTTP date taken against the
 * answer's own `date`, so that no clock is needed). Undefined when there is neither or it is nonsense.
 */
export function readRetryAfter(headers: ResponseHeaders): number | undefined {
  const ms = decimal(headers['retry-after-ms']);
  if (ms !== undefined) return ms;
  const text = headers['retry-after'];
  const seconds = decimal(text);
  if (seconds !== undefined) return seconds * 1000;
  const wait = Date.parse(text ?? '') - Date.parse(headers['date'] ?? '');
  return Number.isFinite(wait) && wait >= 0 ? wait : undefined;
}

function decimal(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,9}(\.\d{1,9})?$/.test(text.trim()) ? Number(text) : undefined;
}
