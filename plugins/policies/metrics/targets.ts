import { Counter, Gauge, type Registry } from 'prom-client';
import type { AttemptReport, Call, RoutingState, Target, TargetState } from '../../../core/index.ts';
import { boundedLabel } from './series.ts';

/** Counts attempts, and shows what is known of targets. */
export interface TargetMetrics {
  countAttempt(call: Call, attempt: AttemptReport): void;
  /** Reads the state of targets from now on with this; another generation brings another one. */
  watch(watched: Watched): void;
}

/** What the metrics of targets are read from. */
export interface Watched {
  read(): RoutingState;
  isListed(target: Target): boolean;
  /** The aliases of the configuration, each with its targets as `provider/model`. */
  readonly aliases: readonly (readonly [alias: string, targets: readonly string[]])[];
}

const NOTHING: Watched = Object.freeze({
  read: () => ({ targets: [], retries: { running: 0, allowed: 0, refused: 0 } }),
  isListed: () => false,
  aliases: [],
});

/** By severity, so that of several workers the worst one shows. */
const STATE: Readonly<Record<TargetState, number>> = Object.freeze({ closed: 0, 'half-open': 1, open: 2 });

const TARGET = ['provider', 'model'] as const;

/** The metrics of targets. A model's name is a label when a list knows it or it has responded, as for calls. */
export function countTargets(registry: Registry): TargetMetrics {
  const registers = [registry];
  const modelLabel = boundedLabel();
  let watched = NOTHING;
  const labelsOf = (target: Target, hasWorked: boolean) => ({
    provider: target.provider,
    model: modelLabel(target.model, () => (watched.isListed(target) ? 'listed' : hasWorked ? 'worked' : 'unknown')),
  });
  const nameOf = (target: Target, hasWorked = false): string => {
    const { provider, model } = labelsOf(target, hasWorked);
    return `${provider}/${model}`;
  };

  const failures = new Counter({
    name: 'tollgate_target_failures_total',
    help: 'Attempts that failed, by class of failure.',
    labelNames: [...TARGET, 'class'],
    registers,
  });
  const fallbacks = new Counter({
    name: 'tollgate_fallbacks_total',
    help: 'Calls that went on to another target, by the one that failed and the one that was tried then.',
    labelNames: ['from', 'to'],
    registers,
  });
  const retries = new Counter({
    name: 'tollgate_retries_total',
    help: 'Requests that were sent to the same target once more.',
    labelNames: TARGET,
    registers,
  });
  const hedges = new Counter({
    name: 'tollgate_hedges_total',
    help: 'Second targets that were asked beside one that took long, by what came of it.',
    labelNames: [...TARGET, 'result'],
    registers,
  });
  showState(registers, () => watched.read(), labelsOf);
  showAliases(registers, () => watched);

  return {
    countAttempt(_call, { target, failure, next, nextTarget, isSecond }) {
      const hasResponded = next === 'respond';
      if (isSecond) {
        const result = hasResponded ? 'won' : failure ? 'failed' : 'left';
        hedges.inc({ ...labelsOf(target, hasResponded), result });
      }
      if (!failure) {
        labelsOf(target, hasResponded);
        return;
      }
      failures.inc({ ...labelsOf(target, false), class: failure.class ?? 'none' });
      if (next === 'retry') retries.inc(labelsOf(target, false));
      if (next === 'next target' && nextTarget) fallbacks.inc({ from: nameOf(target), to: nameOf(nextTarget) });
    },
    watch(next) {
      watched = next;
    },
  };
}

/** How many targets of each alias are not left alone, by what this process knows: those that nobody tried count. */
function showAliases(registers: Registry[], watched: () => Watched): void {
  new Gauge({
    name: 'tollgate_alias_targets_available',
    help: 'Targets of an alias that calls go to; of several workers the fewest.',
    labelNames: ['alias'],
    ...{ registers, aggregator: 'min' as const },
    collect() {
      this.reset();
      const { aliases, read } = watched();
      const open = new Set(
        read().targets.flatMap(({ state, provider, model }) => (state === 'open' ? [`${provider}/${model}`] : [])),
      );
      for (const [alias, targets] of aliases) this.set({ alias }, targets.filter((each) => !open.has(each)).length);
    },
  });
}

/** What is true when somebody looks. */
function showState(
  registers: Registry[],
  read: () => RoutingState,
  labelsOf: (target: Target, hasWorked: boolean) => { readonly provider: string; readonly model: string },
): void {
  const gauge = <L extends string>(
    name: string,
    help: string,
    labelNames: readonly L[],
    show: (gauge: Gauge<L>) => void,
    aggregator: 'max' | 'average' | 'sum' = 'max',
  ) =>
    new Gauge<L>({
      ...{ name, help, labelNames, registers, aggregator },
      collect() {
        this.reset();
        show(this);
      },
    });
  gauge('tollgate_target_state', '0 closed, 1 half open, 2 open.', TARGET, (shown) => {
    for (const { state, attempts, ...target } of read().targets)
      shown.set(labelsOf(target, attempts > 0 && state === 'closed'), STATE[state]);
  });
  gauge(
    'tollgate_target_error_ratio',
    'The share of the latest attempts that failed.',
    TARGET,
    (shown) => {
      for (const { errorRate, ...target } of read().targets) shown.set(labelsOf(target, false), errorRate);
    },
    'average',
  );
  gauge(
    'tollgate_target_latency_seconds',
    'What a target takes lately: to a whole response, to the first token of a stream.',
    [...TARGET, 'stream'],
    (shown) => {
      for (const { wholeMs, firstTokenMs, ...target } of read().targets) {
        if (wholeMs !== undefined) shown.set({ ...labelsOf(target, true), stream: 'false' }, wholeMs / 1000);
        if (firstTokenMs !== undefined) shown.set({ ...labelsOf(target, true), stream: 'true' }, firstTokenMs / 1000);
      }
    },
    'average',
  );
  gauge('tollgate_retries_running', 'Retries that run now.', [], (shown) => shown.set(read().retries.running), 'sum');
  gauge(
    'tollgate_retries_allowed',
    'Retries that may run now.',
    [],
    (shown) => shown.set(read().retries.allowed),
    'sum',
  );
  gauge(
    'tollgate_retries_refused',
    'Retries that were not made because too many ran, since the start.',
    [],
    (shown) => shown.set(read().retries.refused),
    'sum',
  );
}
