import type { Target } from '../contract/call.ts';
import type { Endpoint, ResponseHeaders } from '../contract/provider.ts';
import { formatUsd } from '../contract/units.ts';
import type { LiveCall } from './live-call.ts';

/** What HTTP tells about a response beside its body. */
export interface ResponseNotes {
  readonly call: LiveCall;
  /** The headers, as far as the call has come when they are asked for; names in lower case. */
  headers(): Record<string, string>;
}

interface NotesInput {
  /** Request fields that the provider does not have. */
  readonly dropped?: readonly string[];
  /** Whose rate limits are passed on. */
  readonly endpoint?: Endpoint;
  readonly upstream?: ResponseHeaders;
  /** What a plugin tells beside. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Tells how a response came about (docs/http.md lists the headers). */
export function responseNotes(call: LiveCall, target: Target | undefined, input: NotesInput): ResponseNotes {
  const { dropped = [], endpoint, upstream = {}, headers = {} } = input;
  const rateLimits = endpoint ? readRateLimits(endpoint, upstream) : {};
  return {
    call,
    headers() {
      const { attempts, metered, upstreamMs, lane, skipped } = call.record;
      const gatewayMs = Math.max(call.elapsedMs - upstreamMs, 0);
      return {
        ...rateLimits,
        ...(target && { 'x-tollgate-provider': target.provider, 'x-tollgate-model': headerSafe(target.model) }),
        'x-tollgate-attempts': String(attempts),
        ...(lane && { 'x-tollgate-lane': lane }),
        ...(skipped.length > 0 && { 'x-tollgate-skipped': skipped.join(', ') }),
        'server-timing': `gateway;dur=${gatewayMs.toFixed(2)}, upstream;dur=${upstreamMs.toFixed(2)}`,
        ...(dropped.length > 0 && { 'x-tollgate-dropped': headerSafe(dropped.join(', ')) }),
        ...(metered && {
          'x-tollgate-cost-usd': metered.cost === undefined ? 'unknown' : formatUsd(metered.cost),
        }),
        ...headers,
      };
    },
  };
}

/** Header values are Latin-1 at most: a model's name from a caller is percent-encoded where it is not. */
function headerSafe(text: string): string {
  return /^[\x20-\x7e]*$/.test(text) ? text : encodeURIComponent(text);
}

const RATE_LIMIT = /^x-ratelimit-(limit|remaining|reset)-(requests|tokens)$/;

/** Numbers (`12`, `1.5`), spans (`6m0s`, `20ms`) and times (`2026-01-01T00:00:00Z`): nothing else is a limit, and words may be secrets. */
const RATE_VALUE =
  /^(?:-?\d{1,15}(?:\.\d{1,9})?|(?:\d{1,9}(?:\.\d{1,9})?(?:ms|us|µs|ns|d|h|m|s))+|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d))$/;

/** A vendor's own limits as `x-ratelimit-*`. Values that are none are left out. */
function readRateLimits(endpoint: Endpoint, headers: ResponseHeaders): Readonly<Record<string, string>> {
  const told = endpoint.rateLimits?.(headers) ?? headers;
  return Object.fromEntries(
    Object.entries(told).filter(
      (entry): entry is [string, string] => RATE_LIMIT.test(entry[0]) && RATE_VALUE.test(entry[1] ?? ''),
    ),
  );
}
