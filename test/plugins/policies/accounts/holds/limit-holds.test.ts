import { mock } from 'node:test';
import { expect } from 'chai';
import { type Counters, GatewayError, isGatewayError, type Outcome } from '../../../../../contract/index.ts';
import { CallHold } from '../../../../../plugins/policies/accounts/holds/call-hold.ts';
import { Leases } from '../../../../../plugins/policies/accounts/holds/leases.ts';
import { type Limit, MINUTE_MS, type Slot } from '../../../../../plugins/policies/accounts/holds/limit-refusals.ts';
import { endLimits, takeLimits } from '../../../../../plugins/policies/accounts/holds/limits.ts';
import { createLocalCounters } from '../../../../../plugins/policies/kit/index.ts';
import { createWriteQueue } from '../../../../../plugins/policies/kit/write-queue.ts';
import { createSilentLog } from '../../../../support/log.ts';

const LEASE_MS = 60_000;
const outcome = (tokens: number | undefined): Outcome => ({
  status: 'ok',
  attempts: [],
  estimated: false,
  sent: true,
  durationMs: 1,
  upstreamMs: 1,
  ...(tokens !== undefined && { usage: { prompt_tokens: tokens, completion_tokens: 0, total_tokens: tokens } }),
});
const window = { windowMs: MINUTE_MS, provider: undefined };
const requests = (key: string, limit: number): Limit => ({
  ...window,
  key,
  limit,
  amount: 1,
  unit: 'requests',
  plan: key,
});
const tokens = (key: string, limit: number, amount: number): Limit => ({
  ...window,
  key,
  limit,
  amount,
  unit: 'tokens',
  plan: key,
});
const slot = (key: string, limit: number): Slot => ({ key, limit, plan: key, provider: undefined });

describe('reserving limits', () => {
  let counters: Counters;
  const queue = createWriteQueue({ log: createSilentLog(), otherwise: 'nothing' });
  beforeEach(() => {
    counters = createLocalCounters();
  });
  after(() => queue.close());

  const takeFor = async (id: string, windows: readonly Limit[], slots: readonly Slot[] = []): Promise<CallHold> => {
    const hold = new CallHold();
    await takeLimits(hold, new Leases(counters, LEASE_MS), id, { windows, slots });
    return hold;
  };
  const refusalOf = async (work: Promise<unknown>): Promise<GatewayError> => {
    const error = await work.then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    if (!isGatewayError(error)) throw new Error('it was not refused');
    return error;
  };

  it('locks no caller out for longer than a minute when the clock was wrong by a day at the start of a window', async () => {
    const [now, steady] = [Date.now.bind(Date), performance.now.bind(performance)];
    let jumpMs = 86_400_000;
    let passedMs = 0;
    const mocks = [
      mock.method(Date, 'now', () => now() + passedMs + jumpMs),
      mock.method(performance, 'now', () => steady() + passedMs),
    ];
    try {
      await takeFor('first', [requests('key', 1)]);
      jumpMs = 0;
      passedMs = MINUTE_MS + 1_000;
      await takeFor('second', [requests('key', 1)]);
    } finally {
      for (const each of mocks) each.mock.restore();
    }
  });

  it('releases every slot when a window refuses', async () => {
    await takeFor('a', [requests('r', 1)]);
    await refusalOf(takeFor('b', [requests('r', 1)], [slot('p', 1)]));
    await takeFor('c', [], [slot('p', 1)]);
  });

  it('releases the other slots when one is full', async () => {
    await takeFor('a', [], [slot('full', 1)]);
    const error = await refusalOf(takeFor('b', [requests('r', 1)], [slot('free', 1), slot('full', 1)]));
    expect(error.message).to.include('1 calls at once of the plan "full"');
    await takeFor('c', [requests('r', 1)], [slot('free', 1)]);
  });

  it('reserves in no window when one refuses', async () => {
    await takeFor('a', [requests('one', 1)]);
    await refusalOf(takeFor('b', [requests('two', 1), requests('one', 1)]));
    await takeFor('c', [requests('two', 1)]);
  });

  it('has both units in its headers, each with the limit closest to its end', async () => {
    await takeFor('a', [requests('r', 1), tokens('wide', 1000, 50), tokens('tight', 100, 50)]);
    const { headers, retryAfterMs } = await refusalOf(
      takeFor('b', [requests('r', 1), tokens('wide', 1000, 10), tokens('tight', 100, 10)]),
    );
    expect(headers).to.include({
      'x-ratelimit-limit-requests': '1',
      'x-ratelimit-remaining-requests': '0',
      'x-ratelimit-limit-tokens': '100',
      'x-ratelimit-remaining-tokens': '50',
    });
    expect(retryAfterMs).to.be.within(1, MINUTE_MS);
  });

  it('releases unused tokens, and counts tokens beyond the estimate', async () => {
    const taken = await takeFor('a', [tokens('t', 100, 90)]);
    await endLimits(queue, 'a', taken, outcome(10), LEASE_MS);
    const more = await takeFor('b', [tokens('t', 100, 90)]);
    await endLimits(queue, 'b', more, outcome(120), LEASE_MS);
    await refusalOf(takeFor('c', [tokens('t', 100, 1)]));
  });

  it('keeps the estimate of a call without usage', async () => {
    const taken = await takeFor('a', [tokens('t', 100, 90)]);
    await endLimits(queue, 'a', taken, outcome(undefined), LEASE_MS);
    await refusalOf(takeFor('b', [tokens('t', 100, 20)]));
  });

  it('counts the estimate of a resumed call without usage once', async () => {
    const first = await takeFor('a', [tokens('t', 100, 40)]);
    const second = await takeFor('a', [tokens('t', 100, 40)]);
    first.tokens = [...first.tokens, ...second.tokens];
    await endLimits(queue, 'a', first, outcome(undefined), LEASE_MS);
    await takeFor('b', [tokens('t', 100, 60)]);
    await refusalOf(takeFor('c', [tokens('t', 100, 1)]));
  });

  it('releases nothing to a later window', async () => {
    const hold = await takeFor('b', [tokens('t', 100, 100)]);
    hold.tokens = hold.tokens.map((counted) => ({ ...counted, endsAt: counted.endsAt - MINUTE_MS }));
    await endLimits(queue, 'a', hold, outcome(0), LEASE_MS);
    await refusalOf(takeFor('c', [tokens('t', 100, 1)]));
  });

  it('releases the slots of a lease whose response was lost', async () => {
    const inner = counters;
    counters = {
      ...inner,
      lease: async (...given) => {
        await inner.lease(...given);
        throw new GatewayError('store_unavailable', 'The store does not answer.');
      },
    };
    await refusalOf(takeFor('a', [], [slot('p', 1)]));
    counters = inner;
    await takeFor('b', [], [slot('p', 1)]);
  });
});
