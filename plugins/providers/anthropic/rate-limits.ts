import type { ResponseHeaders } from '../../../core/index.ts';

/** OpenAI's names, and the vendor's that fill them: the first that is there. */
const SOURCES: readonly (readonly [string, readonly string[]])[] = Object.freeze([
  ['requests', ['requests']],
  ['tokens', ['tokens', 'input-tokens']],
]);

/** Anthropic's rate-limit headers as OpenAI's; the reset, a time of day, becomes a duration from the response's own `date`. */
export function anthropicRateLimits(headers: ResponseHeaders): Readonly<Record<string, string>> {
  const limits: Record<string, string> = {};
  for (const [name, sources] of SOURCES) {
    const source = sources.find((candidate) => headers[`anthropic-ratelimit-${candidate}-limit`] !== undefined);
    for (const what of ['limit', 'remaining', 'reset']) {
      const value = headers[`anthropic-ratelimit-${source}-${what}`];
      const shown = what === 'reset' ? duration(value, headers['date']) : value;
      if (shown !== undefined) limits[`x-ratelimit-${what}-${name}`] = shown;
    }
  }
  return limits;
}

function duration(reset: string | undefined, date: string | undefined): string | undefined {
  const ms = Date.parse(reset ?? '') - Date.parse(date ?? '');
  return Number.isFinite(ms) ? `${Math.max(0, Math.ceil(ms / 1000))}s` : undefined;
}
