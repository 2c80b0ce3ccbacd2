import path from 'node:path';
import { mock } from 'node:test';
import { expect } from 'chai';
import { openSqlite } from '../../plugins/stores/sqlite/index.ts';
import { readBooks, settledBooks } from '../support/clients/books.ts';
import { formsOf } from '../support/gateways/failure-forms.ts';
import { type FailureRig, startFailureRig, USAGE_COST } from '../support/gateways/failure-rig.ts';
import { completion, delta } from '../support/vendors/openai-vendor.ts';
import { chunk, LAST_CHUNK, respondWith, SSE_HEAD } from '../support/vendors/scripted-upstream.ts';
import { eventually } from '../support/wait.ts';
import { recordPassed } from './passed-forms.ts';

const TEN_MINUTES_MS = 600_000;
const DAY_MS = 86_400_000;

/**
 * Time zones, each with one of its midnights later than today's in UTC. Reports read whole hours, and hours divided by
 * a day's end.
 */
const ZONES = [
  ['UTC', 10 * DAY_MS],
  ['Asia/Kathmandu', 20 * DAY_MS - (5 * 60 + 45) * 60_000],
] as const;

describe('a clock that jumps', () => {
  let rig: FailureRig;
  let offsetMs = 0;
  let clock: { mock: { restore(): void } };
  before(async () => {
    rig = await startFailureRig({
      store: 'sqlite:./data',
      plans: { few: { rpm: 1000 } },
      budgets: ZONES.map(([timezone]) => ({ name: timezone.replace('/', '-'), amount_usd: 1, every: 'day', timezone })),
      defaultPlan: 'few',
      // Sweeps run while the clock is wrong.
      policies: { accounts: { sweepEvery: '20ms' } },
    });
    const now = Date.now.bind(Date);
    clock = mock.method(Date, 'now', () => now() + offsetMs);
  });
  after(async () => {
    clock?.mock.restore();
    await rig?.stop();
  });
  beforeEach(() => rig.vendor.script(respondWith(200, completion())));
  afterEach(() => {
    offsetMs = 0;
  });

  for (const [title, ms] of [
    ['forward by ten minutes', TEN_MINUTES_MS],
    ['back by ten minutes', -TEN_MINUTES_MS],
    ['forward by a day', 86_400_000],
  ] as const) {
    it(`P12: a jump ${title} under running calls interrupts none, charges each once, and locks no caller out`, async () => {
      const mark = await rig.mark();
      rig.vendor.script(async (wire) => {
        await wire.send(SSE_HEAD);
        await wire.send(chunk(`data: ${delta('one')}\n\n`));
        offsetMs = ms;
        await wire.pause(150);
        await wire.send(chunk(`data: ${delta('', 'stop', { usage: completion().usage })}\n\ndata: [DONE]\n\n`));
        await wire.send(LAST_CHUNK);
      });
      const heard = await rig.send({ stream: true });
      expect(heard.frames.at(-1)).to.equal('[DONE]');
      rig.vendor.script(respondWith(200, completion()));
      expect((await rig.send()).status).to.equal(200);
      offsetMs = 0;
      expect((await rig.send()).status).to.equal(200);
      await rig.expectOrder(mark, 3, 3 * USAGE_COST);
    });
  }

  it('P12: a jump forward by a day under running calls interrupts none and charges each once, in every format', async () => {
    const mark = await rig.mark();
    const forms = formsOf(undefined);
    for (const form of forms) {
      rig.vendor.script(async (wire) => {
        if (!form.stream) {
          offsetMs = 86_400_000;
          await wire.pause(50);
          return wire.send(respondWith(200, completion('one')));
        }
        await wire.send(SSE_HEAD);
        await wire.send(chunk(`data: ${delta('one')}\n\n`));
        offsetMs = 86_400_000;
        await wire.pause(50);
        await wire.send(chunk(`data: ${delta('', 'stop', { usage: completion().usage })}\n\ndata: [DONE]\n\n`));
        await wire.send(LAST_CHUNK);
      });
      expect(form.text(await rig.sendAs(form)), form.name).to.equal('one');
      offsetMs = 0;
    }
    await rig.expectOrder(mark, forms.length, USAGE_COST * forms.length);
    recordPassed('P12', forms);
  });

  for (const [timezone, afterMs] of ZONES)
    it(`a call over midnight in ${timezone} counts on the day of its start, in a budget and in reports (E48)`, async () => {
      const real = Date.now();
      const midnight = Math.floor(real / DAY_MS) * DAY_MS + afterMs;
      const setClock = (instant: number): void => {
        offsetMs = instant - real;
      };
      rig.vendor.script(async (wire) => {
        setClock(midnight + 60_000);
        await wire.send(respondWith(200, completion()));
      });
      setClock(midnight - 60_000);
      expect((await rig.send()).status).to.equal(200);
      await settledBooks(rig.gateway.url, rig.gateway.key);
      const read = async (path: string) => (await (await rig.gateway.get(path)).json()) as Record<string, object[]>;
      const spentAt = async (instant: number) => {
        setClock(instant);
        const { budgets = [] } = await read('/api/core/balance');
        return (budgets as { timezone: string; spent_usd: string }[]).find((each) => each.timezone === timezone)
          ?.spent_usd;
      };
      expect(await spentAt(midnight + 120_000)).to.equal('0.00');
      const spent = await spentAt(midnight - 60_000);
      expect(spent).to.equal('0.00007');
      const dayOf = (instant: number) => new Date(instant).toLocaleDateString('sv', { timeZone: timezone });
      const [day, end] = [dayOf(midnight - 60_000), dayOf(midnight + DAY_MS)];
      const { data } = await read(`/api/core/usage?by=day&tz=${timezone}&from=${day}&to=${end}`);
      expect(data?.map((row) => [row['day' as never], row['cost_usd' as never]])).to.deep.equal([[day, spent]]);
    });

  it('P12: a running request is not run a second time for its Idempotency-Key', async () => {
    const mark = await rig.mark();
    const headers = { 'idempotency-key': 'while-the-clock-jumps' };
    const seen = rig.vendor.requests.length;
    let second: Awaited<ReturnType<FailureRig['send']>> | undefined;
    rig.vendor.script(
      async (wire) => {
        offsetMs = TEN_MINUTES_MS;
        second = await rig.send({}, headers);
        await wire.send(respondWith(200, completion()));
      },
      respondWith(200, completion()),
    );
    expect((await rig.send({}, headers)).status).to.equal(200);
    expect([second?.status, rig.vendor.requests.length - seen]).to.deep.equal([409, 1]);
    await rig.expectOrder(mark, 1, USAGE_COST);
  });

  it('P12: a call that another node treats as abandoned is charged its cost when it ends', async () => {
    const mark = await rig.mark();
    const folder = path.join(rig.gateway.folder, 'data');
    rig.vendor.script(async (wire) => {
      await wire.send(SSE_HEAD);
      await wire.send(chunk(`data: ${delta('one')}\n\n`));
      const node = await openSqlite({ folder });
      expect(await node.ledger.sweep(Date.now() + 3_600_000)).to.equal(1);
      await node.close();
      await wire.send(chunk(`data: ${delta('', 'stop', { usage: completion().usage })}\n\ndata: [DONE]\n\n`));
      await wire.send(LAST_CHUNK);
    });
    expect((await rig.send({ stream: true })).frames.at(-1)).to.equal('[DONE]');
    await eventually(async () => {
      const { spent, held } = await readBooks(rig.gateway.url, rig.gateway.key);
      expect([spent - mark.books.spent, held]).to.deep.equal([USAGE_COST, 0]);
    });
  });
});
