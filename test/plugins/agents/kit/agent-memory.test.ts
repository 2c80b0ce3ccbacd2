import { expect } from 'chai';
import type { Principal, Store } from '../../../../contract/index.ts';
import { createAgentMemory, personalMemories } from '../../../../plugins/agents/kit/agent-memory.ts';
import type { MemoryLimits } from '../../../../plugins/agents/kit/session-store.ts';
import { withStored } from '../../../../plugins/stores/kit/kept.ts';
import { openMemory } from '../../../../plugins/stores/memory/index.ts';

const LIMITS: MemoryLimits = { turns: 4, bytes: 10_000, sessions: 3, ttlMs: 60_000 };
const ann: Principal = { credential: 'key', userId: 'ann', account: 'acme' };
const bob: Principal = { credential: 'key', userId: 'bob', account: 'acme' };
const otherAnn: Principal = { credential: 'key', userId: 'ann', account: 'zeta' };
const turn = (n: number | string) => ({ message: `message ${n}`, content: `content ${n}` });

describe('agents/kit/agent-memory', () => {
  let store: Store;
  let clock = 0;

  beforeEach(async () => {
    store = await openMemory();
    clock = 0;
  });
  afterEach(() => store.close());

  const create = (limits: Partial<MemoryLimits> = {}, instance = 'team') =>
    createAgentMemory(
      { instance, stores: { ...store, stored: store.stored(instance) } },
      { ...LIMITS, ...limits },
      () => ++clock,
    );
  const say = async (memory: ReturnType<typeof create>, who: Principal, session: string, n: number | string) =>
    (await memory.open(who, session)).remember(turn(n));
  const messages = async (memory: ReturnType<typeof create>, who: Principal, session: string) =>
    (await memory.open(who, session)).turns.map(({ message }) => message);

  it('shows a session’s turns, oldest first', async () => {
    const memory = create();
    await say(memory, ann, 's', 1);
    await say(memory, ann, 's', 2);
    expect((await memory.open(ann, 's')).turns).to.deep.equal([1, 2].map((n) => ({ ...turn(n), at: n })));
  });

  const STRANGERS: readonly { readonly title: string; readonly who: Principal; readonly session: string }[] = [
    { title: 'another user of the same account', who: bob, session: 's' },
    { title: 'a user of the same name in another account', who: otherAnn, session: 's' },
    { title: 'another session', who: ann, session: 't' },
    { title: 'a session whose name looks like a key', who: bob, session: '../ann.s' },
  ];
  for (const { title, who, session } of STRANGERS) {
    it(`hides it from ${title}, who cannot delete it`, async () => {
      const memory = create();
      await say(memory, ann, 's', 'secret');
      expect(await messages(memory, who, session)).to.deep.equal([]);
      expect(await memory.wipe(who, session)).to.equal(0);
      expect(await messages(memory, ann, 's')).to.deep.equal(['message secret']);
    });
  }

  it('is counted and erased with the user, whoever paid, without affecting others (E50)', async () => {
    const memory = create();
    for (const [who, session] of [
      [ann, 's'],
      [ann, 't'],
      [otherAnn, 's'],
      [bob, 's'],
    ] as const)
      await say(memory, who, session, 1);
    const personal = personalMemories(memory);
    const user = { userId: 'ann', accounts: ['ann', 'acme', 'zeta'] };
    expect([await personal.count(user), await personal.erase(user), await personal.count(user)]).to.deep.equal([
      3, 3, 0,
    ]);
    expect(await messages(memory, ann, 's')).to.deep.equal([]);
    expect(await messages(memory, bob, 's')).to.deep.equal(['message 1']);
  });

  it('keeps two plugins’ memories apart', async () => {
    await say(create(), ann, 's', 1);
    expect(await messages(create({}, 'medical'), ann, 's')).to.deep.equal([]);
  });

  it('stores neither names nor sessions in clear', async () => {
    const keys: string[] = [];
    const spied: Store['keyv'] = (namespace) => {
      const real = store.keyv<never>(namespace);
      const set = real.set.bind(real);
      real.set = (key: string, ...rest: unknown[]) => {
        keys.push(key);
        return (set as (...all: unknown[]) => Promise<boolean>)(key, ...rest);
      };
      return real as never;
    };
    const stores = { ...store, stored: withStored({ keyv: spied, sets: store.sets }).stored('team') };
    const memory = createAgentMemory({ instance: 'team', stores }, LIMITS);
    await (await memory.open(ann, 'my-diary')).remember(turn(1));
    expect(new Set(keys)).to.have.property('size', 1);
    expect(keys[0]).to.not.match(/ann|acme|diary/);
  });

  it('loses no turn of twenty parallel calls', async () => {
    const memory = create({ turns: 20 });
    const sessions = await Promise.all(Array.from({ length: 20 }, () => memory.open(ann, 's')));
    await Promise.all(sessions.map((session, n) => session.remember(turn(n))));
    expect(await messages(memory, ann, 's')).to.have.length(20);
  });

  it('shows the newest turns that fit, and returns the older ones for a summary', async () => {
    const memory = create();
    for (let n = 1; n <= 5; n += 1) await say(memory, ann, 's', n);
    const session = await memory.open(ann, 's');
    expect(session.turns.map(({ message }) => message)).to.deep.equal([2, 3, 4, 5].map((n) => `message ${n}`));
    expect(session.excess.map(({ message }) => message)).to.deep.equal([1, 2, 3].map((n) => `message ${n}`));
    await session.compact('they said one to three');
    const next = await memory.open(ann, 's');
    expect(next.summary).to.equal('they said one to three');
    expect(next.turns.map(({ message }) => message)).to.deep.equal(['message 4', 'message 5']);
    expect(next.excess).to.deep.equal([]);
  });

  it('drops older turns, and keeps the previous summary without a new one', async () => {
    const memory = create();
    for (let n = 1; n <= 5; n += 1) await say(memory, ann, 's', n);
    await (await memory.open(ann, 's')).compact('early');
    for (let n = 6; n <= 8; n += 1) await say(memory, ann, 's', n);
    await (await memory.open(ann, 's')).compact(undefined);
    const { summary, turns } = await memory.open(ann, 's');
    expect(summary).to.equal('early');
    expect(turns.map(({ message }) => message)).to.deep.equal(['message 7', 'message 8']);
  });

  it('keeps a limited number of turns also without summaries', async () => {
    const memory = create();
    for (let n = 1; n <= 30; n += 1) await say(memory, ann, 's', n);
    const { turns, excess } = await memory.open(ann, 's');
    expect(turns).to.have.length(4);
    expect(excess.length).to.be.at.most(12);
  });

  it('shows no more bytes than its limit', async () => {
    const memory = create({ bytes: 5000 });
    for (let n = 1; n <= 3; n += 1)
      await (await memory.open(ann, 's')).remember({ message: 'x'.repeat(3000), content: '' });
    expect((await memory.open(ann, 's')).turns).to.have.length(1);
  });

  it('cuts a very long message', async () => {
    const memory = create();
    await (await memory.open(ann, 's')).remember({ message: 'x'.repeat(50_000), content: 'y'.repeat(50_000) });
    const [only] = (await memory.open(ann, 's')).turns;
    expect(`${only?.message}${only?.content}`.length).to.be.lessThan(9000);
  });

  it('forgets a turn after its time', async () => {
    const memory = create({ ttlMs: 1 });
    await say(memory, ann, 's', 1);
    let left = 1;
    for (let tries = 0; left > 0 && tries < 1000; tries += 1) {
      await new Promise(setImmediate);
      left = (await messages(memory, ann, 's')).length;
    }
    expect(left).to.equal(0);
    expect(await memory.wipe(ann)).to.equal(0);
  });

  it('makes room for a new session by forgetting the one that was silent longest', async () => {
    const memory = create();
    for (const session of ['a', 'b', 'c']) await say(memory, ann, session, session);
    await say(memory, ann, 'a', 'again');
    await say(memory, ann, 'd', 'd');
    expect(await messages(memory, ann, 'b')).to.deep.equal([]);
  });

  it('deletes one session and reports it', async () => {
    const memory = create();
    await say(memory, ann, 'a', 1);
    await say(memory, ann, 'b', 2);
    expect(await memory.wipe(ann, 'a')).to.equal(1);
    expect(await memory.wipe(ann, 'a')).to.equal(0);
    expect(await messages(memory, ann, 'a')).to.deep.equal([]);
    expect(await messages(memory, ann, 'b')).to.deep.equal(['message 2']);
  });

  it('deletes all sessions of the user, and of no other', async () => {
    const memory = create();
    await say(memory, ann, 'a', 1);
    await say(memory, ann, 'b', 2);
    await say(memory, bob, 'a', 3);
    expect(await memory.wipe(ann)).to.equal(2);
    expect(await messages(memory, ann, 'a')).to.deep.equal([]);
    expect(await messages(memory, bob, 'a')).to.deep.equal(['message 3']);
  });

  it('leaves no document behind a wipe', async () => {
    const memory = create();
    for (let n = 1; n <= 9; n += 1) await say(memory, ann, 'a', n);
    await (await memory.open(ann, 'a')).compact('summary');
    const count = async () => {
      let documents = 0;
      for await (const _ of store.keyv('kept').iterator?.(undefined) ?? []) documents += 1;
      return documents;
    };
    expect(await count()).to.be.greaterThan(0);
    await memory.wipe(ann);
    expect(await count()).to.equal(0);
  });

  for (const scope of ['a', undefined]) {
    it(`gives a deletion of ${scope ? 'the session' : 'everything'} precedence over a running call`, async () => {
      const memory = create();
      await say(memory, ann, 'a', 1);
      const inFlight = await memory.open(ann, 'a');
      await memory.wipe(ann, scope);
      await inFlight.remember(turn('late'));
      await inFlight.compact('late summary');
      expect((await memory.open(ann, 'a')).turns).to.deep.equal([]);
      expect((await memory.open(ann, 'a')).summary).to.equal(undefined);
      expect(await memory.wipe(ann)).to.equal(0);
    });
  }

  it('gives a deletion precedence over the first call of a session', async () => {
    const memory = create();
    const first = await memory.open(ann, 'new');
    await memory.wipe(ann);
    await first.remember(turn('late'));
    expect(await messages(memory, ann, 'new')).to.deep.equal([]);
  });

  it('remembers again after a wipe', async () => {
    const memory = create();
    await say(memory, ann, 'a', 1);
    await memory.wipe(ann);
    await say(memory, ann, 'a', 2);
    expect(await messages(memory, ann, 'a')).to.deep.equal(['message 2']);
    expect(await memory.wipe(ann)).to.equal(1);
  });
});
