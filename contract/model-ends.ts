import type { ModelInfo } from './provider.ts';

/** Warning period before the shutdown of a model. */
const SOON_MS = 30 * 86_400_000;

/** Returns the shutdown of a model in Unix milliseconds, if it is past or within 30 days. */
export function nearEndOf(model: ModelInfo | undefined, now = Date.now()): number | undefined {
  const end = model?.shutdown === undefined ? Number.NaN : Date.parse(model.shutdown);
  return end - now < SOON_MS ? end : undefined;
}

/** Returns whether a model's vendor has shut it down. */
export function hasEnded(model: ModelInfo | undefined): boolean {
  return (nearEndOf(model) ?? Number.POSITIVE_INFINITY) <= Date.now();
}

/** Formats a date with its age: `2026-11-23, 3 days ago`. */
export function describeAge(date: string | undefined, now = Date.now()): string {
  if (date === undefined) return 'an unknown day';
  const days = Math.floor((now - Date.parse(date)) / 86_400_000);
  return `${date}, ${days < 1 ? 'today' : days === 1 ? 'yesterday' : `${days} days ago`}`;
}
