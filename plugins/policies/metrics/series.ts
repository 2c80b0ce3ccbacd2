import { Counter, Gauge, type Registry } from 'prom-client';
import {
  type Call,
  CHAT_REQUEST,
  formatUsd,
  type Outcome,
  type PluginApi,
  type RouteState,
} from '../../../contract/index.ts';
import { Buckets, type Observations } from './buckets.ts';

type Target = NonNullable<Outcome['target']>;

/**
 * Returns a function that counts each ended model call. A model name becomes a label if the model has responded or
 * `isListed` knows it. Otherwise names that callers make up could displace real ones.
 */
export function countCalls(
  registry: Registry,
): (call: Call, outcome: Outcome, isListed: (target: Target) => boolean) => void {
  const counts = new CallCounts();
  const metrics = createMetrics(registry, counts);
  const modelLabel = boundedLabel();
  const fieldLabel = boundedLabel();
  const reasonLabel = boundedLabel();
  const countDropped = (provider: string, part: 'request' | 'response', names: readonly string[]): void => {
    for (const name of names) {
      const field = name.replace(/^extra_body\./, '').replace(/[.[].*$/s, '');
      metrics.dropped.inc({ provider, part, field: fieldLabel(field, () => kindOfField(field, part)) });
    }
  };

  return (call, outcome, isListed) => {
    const { operation } = call;
    const { status, target, usage, attempts, durationMs, upstreamMs, firstByteMs, cost } = outcome;
    const stream = String(call.stream);
    const provider = target?.provider ?? 'none';
    const kindOf = (model: Target) => (isListed(model) ? 'listed' : status === 'ok' ? 'worked' : 'unknown');
    const model = target ? modelLabel(target.model, () => kindOf(target)) : 'none';
    const error = outcome.error?.code ?? 'none';

    const row = counts.of(operation, provider, model, status, error, stream);
    row.calls += 1;
    row.seconds ??= metrics.seconds.of({ operation, provider, stream });
    row.seconds.observe(durationMs / 1000);
    row.overheadSeconds ??= metrics.overheadSeconds.of({ operation });
    row.overheadSeconds.observe(Math.max(durationMs - upstreamMs, 0) / 1000);
    for (const { target: to, key, class: failure = 'none' } of attempts) {
      const name = to.slice(0, to.indexOf('/'));
      if (name === provider) row.attempts += 1;
      else metrics.attempts.inc({ provider: name });
      if (key !== undefined) metrics.keyAttempts.inc({ provider: name, key, failure });
    }
    if (outcome.dropped) countDropped(provider, 'request', outcome.dropped);
    if (outcome.omitted) countDropped(provider, 'response', outcome.omitted);
    if (outcome.unmappedFinish !== undefined) {
      const reason = reasonLabel(outcome.unmappedFinish, () => (isWord(outcome.unmappedFinish) ? 'worked' : 'unknown'));
      metrics.unmappedFinishes.inc({ provider, model, reason });
    }
    for (const { plugin, hook, action } of outcome.hooks ?? []) metrics.verdicts.inc({ plugin, hook, action });
    if (firstByteMs !== undefined) {
      row.firstByteSeconds ??= metrics.firstByteSeconds.of({ operation, provider });
      row.firstByteSeconds.observe(firstByteMs / 1000);
    }
    const { firstTokenMs, lastTokenMs } = outcome;
    if (firstTokenMs !== undefined) metrics.firstTokenSeconds.of({ provider, model }).observe(firstTokenMs / 1000);
    const written = (usage?.completion_tokens ?? 0) - (usage?.completion_tokens_details?.reasoning_tokens ?? 0);
    if (firstTokenMs !== undefined && lastTokenMs !== undefined && written > 1)
      metrics.betweenTokensSeconds.of({ provider, model }).observe((lastTokenMs - firstTokenMs) / 1000 / (written - 1));
    if (usage) {
      row.hasTokens = true;
      row.input += usage.prompt_tokens;
      row.output += usage.completion_tokens;
      row.cached += usage.prompt_tokens_details?.cached_tokens ?? 0;
    }
    const meant = outcome.saved === undefined ? undefined : call.targets[0];
    if (meant) {
      // The call was not sent; the intended target counts.
      const saved = { provider: meant.provider, model: modelLabel(meant.model, () => kindOf(meant)) };
      metrics.cacheHits.inc(saved);
      metrics.saved.inc(saved, Number(formatUsd(outcome.saved ?? 0)));
    }
    if (cost !== undefined) {
      row.hasCost = true;
      row.cost += cost;
    } else if (outcome.units) metrics.unpriced.inc({ provider, model });
  };
}

/** Checks that a vendor's stop reason looks like a word. */
function isWord(reason = ''): boolean {
  return /^[\w.:-]{1,64}$/.test(reason);
}

/** Callers can make up request fields; dialects name the fields of responses. */
function kindOfField(field: string, part: 'request' | 'response'): 'listed' | 'worked' {
  return part === 'response' || Object.hasOwn(Object(CHAT_REQUEST['properties']), field) ? 'listed' : 'worked';
}

const VERDICTS = [
  'tollgate_plugin_verdicts_total',
  'Calls by hook and action: changed, refused, answered, routed or failed; in log mode, what it would have done.',
  ['plugin', 'hook', 'action'],
] as const;

const CALL_LABELS = ['operation', 'provider', 'model', 'status', 'error', 'stream'] as const;

/** Counters of calls with the same labels since the last scrape. */
interface CountedCalls {
  readonly labels: Readonly<Record<(typeof CALL_LABELS)[number], string>>;
  calls: number;
  attempts: number;
  hasTokens: boolean;
  input: number;
  output: number;
  cached: number;
  hasCost: boolean;
  /** Nano-dollars. */
  cost: number;
  /** Set at the first observation. */
  seconds: Observations | undefined;
  overheadSeconds: Observations | undefined;
  firstByteSeconds: Observations | undefined;
}

/**
 * Counts calls as plain numbers. prom-client builds a text of all labels at each increment; here that happens once per
 * scrape.
 */
class CallCounts {
  readonly #rows = new Map<string, CountedCalls>();

  of(operation: string, provider: string, model: string, status: string, error: string, stream: string): CountedCalls {
    const key = `${operation} ${provider} ${status} ${error} ${stream} ${model}`;
    let row = this.#rows.get(key);
    if (!row) {
      row = {
        labels: { operation, provider, model, status, error, stream },
        calls: 0,
        attempts: 0,
        hasTokens: false,
        input: 0,
        output: 0,
        cached: 0,
        hasCost: false,
        cost: 0,
        seconds: undefined,
        overheadSeconds: undefined,
        firstByteSeconds: undefined,
      };
      this.#rows.set(key, row);
    }
    return row;
  }

  readonly takeCalls = (counter: Counter<'operation' | 'provider' | 'model' | 'status' | 'error' | 'stream'>): void => {
    for (const row of this.#rows.values()) {
      if (row.calls > 0) counter.inc(row.labels, row.calls);
      row.calls = 0;
    }
  };

  readonly takeAttempts = (counter: Counter<'provider'>): void => {
    for (const row of this.#rows.values()) {
      if (row.attempts > 0) counter.inc({ provider: row.labels.provider }, row.attempts);
      row.attempts = 0;
    }
  };

  readonly takeTokens = (counter: Counter<'provider' | 'model' | 'type'>): void => {
    for (const row of this.#rows.values()) {
      if (!row.hasTokens) continue;
      const { provider, model } = row.labels;
      counter.inc({ provider, model, type: 'input' }, row.input);
      counter.inc({ provider, model, type: 'output' }, row.output);
      if (row.cached > 0) counter.inc({ provider, model, type: 'cached_input' }, row.cached);
      row.hasTokens = false;
      row.input = 0;
      row.output = 0;
      row.cached = 0;
    }
  };

  readonly takeCost = (counter: Counter<'provider' | 'model'>): void => {
    for (const row of this.#rows.values()) {
      const { provider, model } = row.labels;
      if (row.hasCost) counter.inc({ provider, model }, Number(formatUsd(row.cost)));
      row.hasCost = false;
      row.cost = 0;
    }
  };
}

function createMetrics(registry: Registry, counts: CallCounts) {
  const counter = <L extends string>(
    name: string,
    help: string,
    labelNames: readonly L[],
    take?: (counter: Counter<L>) => void,
  ): Counter<L> => {
    const made: Counter<L> = new Counter({
      name,
      help,
      labelNames,
      registers: [registry],
      ...(take && { collect: () => take(made) }),
    });
    return made;
  };
  const histogram = (name: string, help: string, bounds = SECONDS) => new Buckets({ name, help, bounds, registry });
  return {
    calls: counter('tollgate_calls_total', 'Model calls.', CALL_LABELS, counts.takeCalls),
    verdicts: counter(...VERDICTS),
    seconds: histogram('tollgate_call_duration_seconds', 'Duration of model calls, to the last byte.'),
    firstByteSeconds: histogram(
      'tollgate_time_to_first_byte_seconds',
      'Time from the request to the provider’s first byte.',
    ),
    firstTokenSeconds: histogram(
      'tollgate_time_to_first_token_seconds',
      'Time from the request to the first content of a stream.',
      TOKEN_SECONDS.first,
    ),
    betweenTokensSeconds: histogram(
      'tollgate_time_between_tokens_seconds',
      'Mean time between tokens of a stream.',
      TOKEN_SECONDS.next,
    ),
    overheadSeconds: histogram('tollgate_overhead_seconds', 'Time that the gateway adds to a call.', OVERHEAD_SECONDS),
    attempts: counter('tollgate_upstream_attempts_total', 'Requests to providers.', ['provider'], counts.takeAttempts),
    keyAttempts: counter(
      'tollgate_provider_key_attempts_total',
      'Requests to providers with several keys, by key name and class of failure (`none` for success).',
      ['provider', 'key', 'failure'],
    ),
    tokens: counter('tollgate_tokens_total', 'Tokens, by type.', ['provider', 'model', 'type'], counts.takeTokens),
    cost: counter(
      'tollgate_cost_usd_total',
      'Cost in US dollars, by the price table.',
      ['provider', 'model'],
      counts.takeCost,
    ),
    cacheHits: counter('tollgate_cache_hits_total', 'Calls with a cached response.', ['provider', 'model']),
    saved: counter('tollgate_cache_saved_usd_total', 'US dollars saved by cached responses.', ['provider', 'model']),
    dropped: counter(
      'tollgate_dropped_fields_total',
      'Request fields that were not sent to the provider, and response parts that the caller’s format cannot express.',
      ['provider', 'part', 'field'],
    ),
    unmappedFinishes: counter(
      'tollgate_unmapped_finish_reasons_total',
      'Responses accepted as incomplete because their vendor’s stop reason is unknown.',
      ['provider', 'model', 'reason'],
    ),
    unpriced: counter('tollgate_unpriced_calls_total', 'Calls with unknown cost.', ['provider', 'model']),
  };
}

type Middleware = Parameters<PluginApi['use']>[0];
type RequestState = Pick<RouteState, 'onClosed'>;

/** Counts HTTP requests, each after its last byte. */
export function countRequests(registry: Registry): Middleware {
  const registers = [registry];
  let running = 0;
  new Gauge({
    name: 'tollgate_inflight_requests',
    help: 'Requests in flight.',
    registers,
    collect() {
      this.set(running);
    },
  });
  const rows = new Map<string, CountedRequests>();
  new Counter({
    name: 'tollgate_http_requests_total',
    help: 'HTTP requests.',
    labelNames: ['route', 'status'],
    registers,
    collect() {
      for (const row of rows.values()) {
        if (row.count > 0) this.inc({ route: row.route, status: row.status }, row.count);
        row.count = 0;
      }
    },
  });
  const seconds = new Buckets({
    name: 'tollgate_http_request_duration_seconds',
    help: 'Duration of HTTP requests, to the last byte.',
    bounds: SECONDS,
    registry,
  });
  const routeLabel = boundedLabel();
  const rowOf = (route: string, status: string): CountedRequests => {
    const key = `${status} ${route}`;
    let row = rows.get(key);
    if (!row) {
      row = { route, status, count: 0, seconds: seconds.of({ route }) };
      rows.set(key, row);
    }
    return row;
  };

  return (ctx, next) => {
    // Internal request of the gateway on behalf of a caller's request, which is counted.
    if (ctx.state['outer'] !== undefined) return next();
    const { res } = ctx;
    const started = performance.now();
    running += 1;
    (ctx.state as RequestState).onClosed(() => {
      running -= 1;
      const row = rowOf(
        routeLabel(String(ctx.state['route'] ?? 'none'), () => 'listed'),
        String(res.statusCode),
      );
      row.count += 1;
      row.seconds.observe((performance.now() - started) / 1000);
    });
    return next();
  };
}

/** HTTP requests with the same labels since the last scrape. */
interface CountedRequests {
  readonly route: string;
  readonly status: string;
  count: number;
  readonly seconds: Observations;
}

/** Maximum numbers of listed and other names per label, so that callers cannot fill the memory. */
const MAX_LISTED = 1000;
const MAX_OTHERS = 100;

/**
 * Returns the first names of a label unchanged, and `_other` for the rest. Listed names have a separate quota,
 * so that made-up names cannot displace them, even if a provider responds to those.
 */
export function boundedLabel(): (value: string, kindOf: () => 'listed' | 'worked' | 'unknown') => string {
  const listed = new Set<string>();
  const others = new Set<string>();
  return (value, kindOf) => {
    if (listed.has(value) || others.has(value)) return value;
    const kind = kindOf();
    const [known, max] = kind === 'listed' ? [listed, MAX_LISTED] : [others, MAX_OTHERS];
    if (kind === 'unknown' || known.size >= max) return '_other';
    known.add(value);
    return value;
  };
}

/** Duration buckets in seconds. */
const SECONDS: readonly number[] = Object.freeze([
  0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900,
]);

/** Fewer buckets, because these metrics have more labels. */
const TOKEN_SECONDS = Object.freeze({
  first: Object.freeze([0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60]),
  next: Object.freeze([0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1]),
});

/** Buckets of the gateway's own overhead in seconds. */
const OVERHEAD_SECONDS: readonly number[] = Object.freeze([
  0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1,
]);
