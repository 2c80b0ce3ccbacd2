import type { Units } from './call.ts';

/**
 * What is known of a call; the store makes one durable record of it, in the same transaction as its charge. Texts are kept up to
 * 256 characters: a longer or ill-formed one is told shortened, with a hash of the whole behind a `~`; filters take either.
 */
export interface CallFacts {
  /** The id of the HTTP request; one request may make several calls. */
  readonly requestId: string;
  readonly userId: string;
  /** The public id of the API key, or `-`. */
  readonly key: string;
  /** `name=value`; the order does not matter. */
  readonly tags: readonly string[];
  readonly session?: string;
  readonly operation: string;
  readonly provider: string;
  readonly model: string;
  /** The model as the request named it, where that is an alias or a route. */
  readonly requested?: string;
  readonly stream: boolean;
  /** `unknown` before a call has ended, `expired` when the sweeper charged it because nobody told its end. */
  readonly outcome: 'ok' | 'error' | 'aborted' | 'expired' | 'unknown';
  readonly errorCode?: string;
  readonly attempts: number;
  /** How the request went upstream: `native`, as the client wrote it, `translated`, or `mixed`. */
  readonly lane?: string;
  readonly startedAt: number;
  readonly durationMs: number;
  readonly firstByteMs?: number;
  /** What was used: those of {@link ReportUnits}, and others by the operation. */
  readonly units: Units;
  /** Whether the units are an estimate, because the provider told none. */
  readonly estimated: boolean;
  /** False when the price of the model is not known, so that the call is charged nothing. */
  readonly priced: boolean;
  /** Micro-dollars that a kept response has saved; present for every call that got one. */
  readonly saved?: number;
}

/** The record of one call. */
export interface CallRow extends CallFacts {
  /** The call's id, which is the `requestId` of its reservation. */
  readonly id: string;
  readonly account: string;
  /** Micro-dollars that it was charged. */
  readonly cost: number;
  /** When it was settled; reports count it there. A correction changes the record and leaves this as it is. */
  readonly at: number;
}

/**
 * Which calls; what is absent does not matter. All of it must hold. By account, user, key, session and request a store has an index:
 * how many calls others made does not matter there. The rest is looked for among what the index gives, page by page.
 */
export interface CallFilter {
  readonly account?: string;
  /** The id of the HTTP request that it was made for. */
  readonly requestId?: string;
  readonly userId?: string;
  readonly key?: string;
  /** One of its tags, `name=value`. */
  readonly tag?: string;
  readonly provider?: string;
  readonly model?: string;
  readonly operation?: string;
  readonly session?: string;
  readonly outcome?: CallFacts['outcome'];
}

/** A page of calls: those settled from `from` (inclusive) to `to` (exclusive). */
export interface CallQuery extends CallFilter {
  readonly from?: number;
  readonly to?: number;
  readonly limit: number;
  /** The `next` of the page before. */
  readonly after?: string;
}

/**
 * Newest first. A page looks at a few thousand records at most, and keeps the event loop for some 10 ms at most: it may hold fewer
 * calls than were asked for, or none. There may be more exactly while `next` is told.
 */
export interface CallPage {
  readonly calls: readonly CallRow[];
  readonly next?: string;
}

export type ReportDimension = 'account' | 'user' | 'key' | 'tags' | 'provider' | 'model' | 'operation' | 'session';

/** Sums of what calls did, by interval of time and dimension. */
export interface ReportQuery extends CallFilter {
  /** 2 to 1,001 ascending instants; interval `i` is from `edges[i]` (inclusive) to `edges[i + 1]` (exclusive). */
  readonly edges: readonly number[];
  readonly by: readonly ReportDimension[];
}

/** The units that reports sum. */
export interface ReportUnits {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly cached_tokens: number;
  readonly reasoning_tokens: number;
  readonly characters: number;
}

/** One group of one interval; groups without a call are left out. */
export interface ReportRow extends Readonly<Partial<Record<ReportDimension, string>>> {
  /** The number of its interval, from 0. */
  readonly interval: number;
  readonly requests: number;
  /** Calls with the outcome `error`. */
  readonly errors: number;
  /** Calls whose units are estimated. */
  readonly estimated: number;
  /** Calls whose price is not known. */
  readonly unpriced: number;
  readonly units: ReportUnits;
  /** Micro-dollars. */
  readonly cost: number;
  readonly saved: number;
}
