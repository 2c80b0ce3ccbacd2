import type { Target } from '../contract/call.ts';
import type { Endpoint, ResponseHeaders } from '../contract/provider.ts';
import { formatUsd } from '../contract/units.ts';
import { type Call, owedBy } from './call.ts';

/** The headers of a response. */
export interface ResponseNotes {
  readonly call: Call;
  /** The headers, as far as the call has come when they are asked for; names in lower case. */
  headers(): Record<string, string>;
}

interface NotesInput {
  /** Request fields that the provider does not have. */
  readonly dropped?: readonly string[];
  /** Whose rate limits are passed on. */
  readonly endpoint?: Endpoint;
  readonly upstream?: ResponseHeaders;
  /** Headers that a plugin adds. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Tells how a response came about (docs/http.md lists the headers). */
export function responseNotes(call: Call, target: Target | undefined, input: NotesInput): ResponseNotes {
  const { dropped = [], endpoint, upstream = {}, headers = {} } = input;
  return {
    call,
    headers() {
      const { attempts, upstreamMs, lane, skipped } = call.record;
      const metered = owedBy(call.record);
      const gatewayMs = Math.max(call.elapsedMs - upstreamMs, 0);
      const told = endpoint ? readRateLimits(endpoint, upstream) : {};
      if (target) {
        told['x-tollgate-provider'] = target.provider;
        told['x-tollgate-model'] = headerSafe(target.model);
      }
      told['x-tollgate-attempts'] = String(attempts.length);
      if (lane) told['x-tollgate-lane'] = lane;
      if (skipped.length > 0) told['x-tollgate-skipped'] = skipped.join(', ');
      told['server-timing'] = `gateway;dur=${gatewayMs.toFixed(2)}, upstream;dur=${upstreamMs.toFixed(2)}`;
      if (dropped.length > 0) told['x-tollgate-dropped'] = headerSafe(dropped.join(', '));
      if (metered) told['x-tollgate-cost-usd'] = metered.cost === undefined ? 'unknown' : formatUsd(metered.cost);
      for (const [name, value] of call.headers) if (HEADER.test(name)) told[name] = headerSafe(value);
      return Object.assign(told, headers);
    },
  };
}

/** What plugins may tell: headers of our own, so that none of HTTP's is replaced. */
const HEADER = /^x-[a-z0-9-]{1,60}$/;

/** Header values are Latin-1 at most: a model's name from a caller is percent-encoded where it is not. */
function headerSafe(text: string): string {
  return /^[\x20-\x7e]*$/.test(text) ? text : encodeURIComponent(text);
}

const RATE_LIMIT = /^x-ratelimit-(limit|remaining|reset)-(requests|tokens)$/;

/** Numbers (`12`, `1.5`), spans (`6m0s`, `20ms`) and times (`2026-01-01T00:00:00Z`): nothing else is a limit, and words may be secrets. */
const RATE_VALUE =
  /^(?:-?\d{1,15}(?:\.\d{1,9})?|(?:\d{1,9}(?:\.\d{1,9})?(?:ms|us|µs|ns|d|h|m|s))+|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d))$/;

/** A vendor's own limits as `x-ratelimit-*`. Values that are none are left out. */
function readRateLimits(endpoint: Endpoint, headers: ResponseHeaders): Record<string, string> {
  const told = endpoint.rateLimits?.(headers) ?? headers;
  const limits: Record<string, string> = {};
  for (const name of Object.keys(told)) {
    const value = told[name];
    if (RATE_LIMIT.test(name) && value !== undefined && RATE_VALUE.test(value)) limits[name] = value;
  }
  return limits;
}
