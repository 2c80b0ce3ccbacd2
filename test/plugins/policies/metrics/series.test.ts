import { expect } from 'chai';
import { AggregatorRegistry, Registry } from 'prom-client';
import type { Call, Outcome } from '../../../../contract/index.ts';
import { countCalls } from '../../../../plugins/policies/metrics/series.ts';

type Counted = { readonly model?: string; readonly status?: Outcome['status'] };

/** Registry that counted these calls; the model list contains only `listed`. */
function countAll(calls: readonly Counted[]): Registry {
  const registry = new Registry();
  const count = countCalls(registry);
  for (const { model = 'm', status = 'ok' } of calls) {
    const outcome: Outcome = {
      status,
      target: { provider: 'p', model },
      attempts: [
        { target: 'q/m', status: 500, ms: 1 },
        { target: 'p/m', status: 500, ms: 1 },
        { target: 'p/m', status: 200, ms: 1 },
      ],
      usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7, prompt_tokens_details: { cached_tokens: 1 } },
      estimated: false,
      cost: 2_500_000_000,
      sent: true,
      durationMs: 1500,
      firstByteMs: 20,
      upstreamMs: 1499,
    };
    count({ operation: 'chat', stream: false } as Call, outcome, (target) => target.model === 'listed');
  }
  return registry;
}

const modelsOf = async (registry: Registry) =>
  [...(await registry.metrics()).matchAll(/^tollgate_calls_total\{.*model="([^"]*)".*\} (\d+)$/gm)].map(
    ([, model, count]) => `${model} ${count}`,
  );

describe('metrics of calls', () => {
  it('have the names, labels and units that dashboards are made for, and count attempts for the provider of each (E45)', async () => {
    const text = await countAll([{}]).metrics();
    for (const line of [
      'tollgate_calls_total{operation="chat",provider="p",model="m",status="ok",error="none",stream="false"} 1',
      'tollgate_call_duration_seconds_bucket{le="1",operation="chat",provider="p",stream="false"} 0',
      'tollgate_call_duration_seconds_bucket{le="2.5",operation="chat",provider="p",stream="false"} 1',
      'tollgate_call_duration_seconds_bucket{le="900",operation="chat",provider="p",stream="false"} 1',
      'tollgate_call_duration_seconds_sum{operation="chat",provider="p",stream="false"} 1.5',
      'tollgate_time_to_first_byte_seconds_sum{operation="chat",provider="p"} 0.02',
      'tollgate_overhead_seconds_bucket{le="0.0005",operation="chat"} 0',
      'tollgate_overhead_seconds_bucket{le="0.001",operation="chat"} 1',
      'tollgate_upstream_attempts_total{provider="p"} 2',
      'tollgate_upstream_attempts_total{provider="q"} 1',
      'tollgate_tokens_total{provider="p",model="m",type="input"} 3',
      'tollgate_tokens_total{provider="p",model="m",type="output"} 4',
      'tollgate_tokens_total{provider="p",model="m",type="cached_input"} 1',
      'tollgate_cost_usd_total{provider="p",model="m"} 2.5',
    ])
      expect(text.split('\n')).to.include(line);
  });

  it('are added up over workers', async () => {
    const sent = async (calls: readonly Counted[]) =>
      JSON.parse(JSON.stringify(await countAll(calls).getMetricsAsJSON())) as object[];
    const whole = AggregatorRegistry.aggregate([await sent([{}, {}]), await sent([{}])]);
    expect(await whole.metrics())
      .to.match(/^tollgate_calls_total\{.*\} 3$/m)
      .and.match(/^tollgate_call_duration_seconds_count\{.*\} 3$/m);
  });

  it('name a model that responded or that is listed, and no made-up one', async () => {
    const calls: Counted[] = [
      { model: 'junk-1', status: 'error' },
      { model: 'junk-2', status: 'error' },
      { model: 'listed', status: 'error' },
      { model: 'answered', status: 'ok' },
      { model: 'answered', status: 'error' },
    ];
    expect(await modelsOf(countAll(calls))).to.have.members(['_other 2', 'listed 1', 'answered 1', 'answered 1']);
  });

  it('name at most a hundred unlisted models, in addition to the listed ones', async () => {
    const junk = Array.from({ length: 300 }, (_, at) => ({ model: `m${at}` }));
    const models = await modelsOf(countAll([...junk, { model: 'listed' }]));
    expect(models).to.have.length(102).and.include.members(['_other 200', 'listed 1']);
  });
});
