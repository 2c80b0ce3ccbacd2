import { expect } from 'chai';
import fc from 'fast-check';
import { AggregatorRegistry, Counter, Histogram, Registry } from 'prom-client';
import { createCounter, createHistogram } from '../../../../plugins/policies/metrics/series.ts';

const BUCKETS = [0.005, 0.1, 1, 30];
const label = fc.constantFrom('a', 'b', '', 'a:b', 'with "quotes", \\ and\nlines');
const EVENTS = fc.array(
  fc.record({
    labels: fc.record({ provider: label, model: label }),
    value: fc.oneof(fc.constantFrom(0, 0.005, 0.1, 1, 30, 31), fc.double({ min: 0, max: 1e9, noNaN: true })),
  }),
  { maxLength: 40 },
);

type Event = { readonly labels: { readonly provider: string; readonly model: string }; readonly value: number };

/** What prom-client counts and writes by itself. */
function countWithClient(events: readonly Event[]): Registry {
  const registers = [new Registry()];
  const labelNames = ['provider', 'model'];
  const counter = new Counter({ name: 'c_total', help: 'Counts.', labelNames, registers });
  const histogram = new Histogram({ name: 'h_seconds', help: 'Times.', labelNames, buckets: BUCKETS, registers });
  for (const { labels, value } of events) {
    counter.inc({ ...labels }, value);
    histogram.observe({ ...labels }, value);
  }
  return registers[0] as Registry;
}

function countHere(events: readonly Event[]): Registry {
  const registry = new Registry();
  const counter = createCounter(registry, { name: 'c_total', help: 'Counts.' });
  const histogram = createHistogram(registry, { name: 'h_seconds', help: 'Times.', buckets: BUCKETS });
  for (const { labels, value } of events) {
    counter(labels).add(value);
    histogram(labels).observe(value);
  }
  return registry;
}

/** As the primary process gets it from a worker. */
const sent = async (registry: Registry) => JSON.parse(JSON.stringify(await registry.getMetricsAsJSON())) as object[];

describe('series of metrics', () => {
  it('are written as prom-client writes its own', () =>
    fc.assert(
      fc.asyncProperty(EVENTS, async (events) => {
        expect(await countHere(events).metrics()).to.equal(await countWithClient(events).metrics());
      }),
    ));

  it('are added over workers as prom-client adds its own', () =>
    fc.assert(
      fc.asyncProperty(EVENTS, EVENTS, async (one, other) => {
        const [here, client] = await Promise.all(
          [countHere, countWithClient].map(async (count) =>
            AggregatorRegistry.aggregate(
              await Promise.all([one, other].map((events) => sent(count(events)))),
            ).metrics(),
          ),
        );
        expect(here).to.equal(client);
      }),
    ));

  for (const value of [-1, Number.NaN, Number.POSITIVE_INFINITY])
    it(`refuse to count ${value}, which would spoil every later scrape`, () => {
      const registry = new Registry();
      const counter = createCounter(registry, { name: 'c_total', help: 'Counts.' });
      const histogram = createHistogram(registry, { name: 'h_seconds', help: 'Times.', buckets: BUCKETS });
      expect(() => counter({}).add(value)).to.throw(RangeError);
      expect(() => histogram({}).observe(value)).to.throw(RangeError);
    });
});
