import type { Registry } from 'prom-client';
import type { Call, Outcome } from '../../../core/index.ts';
import { boundedLabel } from './labels.ts';
import { type Count, createCounter, createHistogram, type Distribution, SECONDS } from './series.ts';

/** The series of all calls that end alike; those that few calls need are made when one does. */
interface CallSeries {
  readonly calls: Count;
  readonly seconds: Distribution;
  readonly overheadSeconds: Distribution;
  attempts?: Count;
  firstByteSeconds?: Distribution;
  tokensIn?: Count;
  tokensOut?: Count;
  tokensCached?: Count;
  cost?: Count;
  unpriced?: Count;
}

const OVERHEAD_SECONDS = [0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1];

/** Counts model calls: answers what to do with each when it has ended. */
export function countCalls(registry: Registry): (call: Call, outcome: Outcome) => void {
  const families = createFamilies(registry);
  const modelLabel = boundedLabel();
  const known = new Map<string, CallSeries>();

  return (call, outcome) => {
    const { operation } = call;
    const { status, target, usage, attempts, durationMs, upstreamMs, firstByteMs, cost } = outcome;
    const stream = String(call.stream);
    const provider = target?.provider ?? 'none';
    const model = modelLabel(target?.model ?? 'none');
    const error = outcome.error?.code ?? 'none';

    // Names of providers hold no colon, those of models may: they are the last.
    const key = `${operation}:${status}:${error}:${stream}:${provider}:${model}`;
    let series = known.get(key);
    if (!series) {
      series = {
        calls: families.calls({ operation, provider, model, status, error, stream }),
        seconds: families.seconds({ operation, provider, stream }),
        overheadSeconds: families.overheadSeconds({ operation }),
      };
      known.set(key, series);
    }

    series.calls.add(1);
    series.seconds.observe(durationMs / 1000);
    series.overheadSeconds.observe(Math.max(durationMs - upstreamMs, 0) / 1000);
    if (attempts > 0) {
      series.attempts ??= families.attempts({ provider });
      series.attempts.add(attempts);
    }
    if (firstByteMs !== undefined) {
      series.firstByteSeconds ??= families.firstByteSeconds({ operation, provider });
      series.firstByteSeconds.observe(firstByteMs / 1000);
    }
    if (usage) {
      series.tokensIn ??= families.tokens({ provider, model, type: 'input' });
      series.tokensIn.add(usage.prompt_tokens);
      series.tokensOut ??= families.tokens({ provider, model, type: 'output' });
      series.tokensOut.add(usage.completion_tokens);
      const cached = usage.prompt_tokens_details?.cached_tokens ?? 0;
      if (cached > 0) {
        series.tokensCached ??= families.tokens({ provider, model, type: 'cached_input' });
        series.tokensCached.add(cached);
      }
    }
    if (cost !== undefined) {
      series.cost ??= families.cost({ provider, model });
      series.cost.add(cost / 1_000_000);
    } else if (status === 'ok') {
      series.unpriced ??= families.unpriced({ provider, model });
      series.unpriced.add(1);
    }
  };
}

function createFamilies(registry: Registry) {
  const counter = (name: string, help: string) => createCounter(registry, { name, help });
  const histogram = (name: string, help: string, buckets = SECONDS) =>
    createHistogram(registry, { name, help, buckets });
  return {
    calls: counter('tollgate_calls_total', 'Model calls.'),
    seconds: histogram('tollgate_call_duration_seconds', 'Model calls, to the last byte.'),
    firstByteSeconds: histogram(
      'tollgate_time_to_first_byte_seconds',
      'From the request to the provider’s first byte.',
    ),
    overheadSeconds: histogram(
      'tollgate_overhead_seconds',
      'What the gateway itself took of a call.',
      OVERHEAD_SECONDS,
    ),
    attempts: counter('tollgate_upstream_attempts_total', 'Requests to providers.'),
    tokens: counter('tollgate_tokens_total', 'Tokens, by type.'),
    cost: counter('tollgate_cost_usd_total', 'Cost in US dollars by the price table.'),
    unpriced: counter('tollgate_unpriced_calls_total', 'Calls whose model has no known price.'),
  };
}
