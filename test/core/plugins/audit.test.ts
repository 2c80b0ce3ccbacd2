import { expect } from 'chai';
import type { AuditActor } from '../../../contract/index.ts';
import { type AuditLog, createAuditLog } from '../../../core/plugins/audit.ts';
import { openMemory } from '../../../plugins/stores/memory/index.ts';
import { codeOf } from '../../support/errors.ts';
import { createSilentLog } from '../../support/log.ts';

const ANN: AuditActor = { via: 'api', userId: 'ann', keyId: 'AAAAAAAAAAAA', address: '192.0.2.7' };
const BOB: AuditActor = { via: 'cli', userId: 'bob' };

async function openAudit(): Promise<AuditLog> {
  return createAuditLog({ store: await openMemory(), keepForMs: 86_400_000, log: createSilentLog() });
}

describe('the audit log', () => {
  it('lists every change once, newest first, over pages of any size', async () => {
    const audit = await openAudit();
    const count = 120;
    await Promise.all(
      Array.from({ length: count }, (_, n) => audit.add({ actor: BOB, action: 'key.block', subject: `k${n}` })),
    );
    for (const limit of [1, 7, 50, 120, 1000]) {
      const seen: string[] = [];
      const ids: string[] = [];
      for (let after: string | undefined; ; ) {
        const page = await audit.list({ limit, ...(after !== undefined && { after }) });
        expect(page.entries.length).to.be.at.most(limit);
        seen.push(...page.entries.map(({ subject }) => subject));
        ids.push(...page.entries.map(({ id }) => id));
        after = page.next;
        if (after === undefined) break;
      }
      expect(new Set(seen).size, `pages of ${limit}`).to.equal(count);
      expect(seen).to.have.lengthOf(count);
      expect(ids).to.deep.equal(ids.toSorted().toReversed());
    }
  });

  it('finds changes by subject, actor, action and time, half-open', async () => {
    const audit = await openAudit();
    await audit.add({ actor: ANN, action: 'key.block', subject: 'tg_1', before: { a: 1 }, after: { a: 2 } });
    await audit.add({ actor: BOB, action: 'key.create', subject: 'tg_2' });
    await audit.add({ actor: BOB, action: 'keys', subject: 'tg_1' });
    const find = async (query: object) =>
      (await audit.list({ limit: 10, ...query })).entries.map(({ action, subject }) => `${action} ${subject}`);
    expect(await find({ subject: 'tg_1' })).to.deep.equal(['keys tg_1', 'key.block tg_1']);
    expect(await find({ actor: 'bob' })).to.deep.equal(['keys tg_1', 'key.create tg_2']);
    expect(await find({ actor: 'AAAAAAAAAAAA' })).to.deep.equal(['key.block tg_1']);
    expect(await find({ actor: 'cli' })).to.have.lengthOf(2);
    expect(await find({ action: 'key' })).to.deep.equal(['key.create tg_2', 'key.block tg_1']);
    expect(await find({ action: 'key.create' })).to.deep.equal(['key.create tg_2']);
    const [first] = (await audit.list({ limit: 10, subject: 'tg_1', action: 'key.block' })).entries;
    expect(first).to.deep.include({ actor: ANN, before: { a: 1 }, after: { a: 2 } });
    const at = first?.at ?? 0;
    expect(await find({ subject: 'tg_1', action: 'key.block', from: at })).to.have.lengthOf(1);
    expect(await find({ subject: 'tg_1', action: 'key.block', to: at })).to.have.lengthOf(0);
    expect(await find({ from: at + 86_400_000 })).to.have.lengthOf(0);
  });

  for (const [title, spanMs] of [
    ['a long day', 86_400_000],
    ['a day with all entries within three seconds', 3000],
  ] as const)
    it(`reads little more of ${title} than one page, and each entry once over all pages (E27) @slow`, async function () {
      this.timeout(60_000);
      const store = await openMemory();
      const count = 6000;
      const day = '2026-11-20';
      const ids: string[] = [];
      await store.sets.add('audit-days', day);
      for (let at = 0; at < count; at += 1) {
        const time = Date.parse(day) + Math.floor(86_400_000 / 2 + (at - count / 2) * (spanMs / count));
        const id = `${time.toString(36).padStart(9, '0')}-${at.toString(36).padStart(6, '0')}`;
        ids.push(id);
        await store.sets.add(`audit-of.${day}`, id);
        await store.keyv('audit').set(id, { id, at: time, actor: BOB, action: 'key.block', subject: `k${at}` });
      }
      let read = 0;
      const sets: typeof store.sets = {
        ...store.sets,
        async list(set, page) {
          const found = await store.sets.list(set, page);
          read += found.length;
          return found;
        },
      };
      const audit = createAuditLog({ store: { ...store, sets }, keepForMs: 86_400_000, log: createSilentLog() });
      const first = await audit.list({ limit: 50 });
      expect(first.entries.map(({ id }) => id)).to.deep.equal(ids.slice(-50).toReversed());
      expect(read).to.be.below(5000);
      const seen: string[] = [];
      for (let after: string | undefined; ; ) {
        const page = await audit.list({ limit: 1000, ...(after !== undefined && { after }) });
        seen.push(...page.entries.map(({ id }) => id));
        after = page.next;
        if (after === undefined) break;
      }
      expect(seen).to.deep.equal(ids.toReversed());
    });

  it('refuses a page with an invalid cursor', async () => {
    const audit = await openAudit();
    for (const after of ['', '../x', 'x'.repeat(10_000)])
      expect(await codeOf(audit.list({ limit: 1, after }))).to.equal('invalid_request');
  });

  it('marks a change as too large to be shown, instead of storing it', async () => {
    const audit = await openAudit();
    await audit.add({ actor: BOB, action: 'key.update', subject: 'tg_1', after: { name: 'x'.repeat(70_000) } });
    const { entries } = await audit.list({ limit: 1 });
    expect(entries[0]?.after).to.have.all.keys('too_large');
  });

  it('logs the author of a change if the store rejects its entry', async () => {
    const store = await openMemory();
    const counters = { ...store.counters, next: () => Promise.reject(new Error('down')) };
    const audit = createAuditLog({ store: { ...store, counters }, keepForMs: 1000, log: createSilentLog() });
    expect(await codeOf(audit.add({ actor: BOB, action: 'x', subject: 'y' }))).to.equal('store_unavailable');
  });
});
