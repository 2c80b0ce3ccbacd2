import { expect } from 'chai';
import { type AliasValue, readModelRoute } from '../../config/model-routes.ts';
import { timeoutsFor } from '../../core/calls/failover.ts';
import { type ChoiceFacts, chooseTargets, stickyKeyOf } from '../../routing/choose-targets.ts';

type Health = ChoiceFacts['health'];
const HEALTHY: Health = { mayTry: () => true, latencyMs: () => undefined, shareOf: () => 1 };

const choose = (alias: AliasValue, rest: Partial<ChoiceFacts> = {}): readonly string[] =>
  chooseTargets(readModelRoute(alias), {
    ...{ stream: false, stickyKey: undefined, costAt: () => undefined, random: Math.random },
    health: HEALTHY,
    sticky: { get: () => undefined },
    ...rest,
  }).map(({ provider, model }) => `${provider}/${model}`);

const shareOfFirst = (alias: AliasValue, rest: Partial<ChoiceFacts> = {}): number =>
  Array.from({ length: 4000 }, () => choose(alias, rest)[0]).filter((first) => first === 'a/x').length / 4000;

describe('the targets of an alias', () => {
  it('come in the order of a list', () => {
    expect(choose(['a/x', 'b/y/z'])).to.deep.equal(['a/x', 'b/y/z']);
  });

  it('come group by group', () => {
    const targets = [{ to: 'c/z', order: 2 }, 'a/x', { to: 'b/y', order: 1 }];
    expect(choose({ targets })).to.deep.equal(['a/x', 'b/y', 'c/z']);
  });

  it('come by their weights, with weight 0 last', () => {
    const alias = {
      strategy: 'weighted',
      targets: [{ to: 'z/z', weight: 0 }, { to: 'a/x', weight: 3 }, 'b/y'],
    } as const;
    expect(shareOfFirst(alias)).to.be.within(0.71, 0.79);
    expect(choose(alias).at(-1)).to.equal('z/z');
  });

  it('are the same for all calls of one conversation, and by weight over many conversations', () => {
    const alias = { strategy: 'weighted', targets: [{ to: 'a/x', weight: 3 }, 'b/y'] } as const;
    const firsts = Array.from({ length: 20 }, () => choose(alias, { stickyKey: 'one' })[0]);
    expect(new Set(firsts).size).to.equal(1);
    let n = 0;
    const many = Array.from({ length: 4000 }, () => choose(alias, { stickyKey: `conversation ${n++}` })[0]);
    expect(many.filter((first) => first === 'a/x').length / 4000).to.be.within(0.71, 0.79);
  });

  it('with least-latency are the faster of two at random, so that the slowest is never first', () => {
    const ms: Readonly<Record<string, number>> = { a: 100, b: 900, c: 200 };
    const health: Health = { ...HEALTHY, latencyMs: ({ provider }) => ms[provider] };
    const alias = { strategy: 'least-latency', targets: ['b/y', 'a/x', 'c/z'] } as const;
    const firsts = Array.from({ length: 300 }, () => choose(alias, { health })[0]);
    expect(firsts).to.include('a/x').and.include('c/z').and.not.include('b/y');
  });

  it('with least-latency stay for a conversation while the target is healthy', () => {
    const alias = { strategy: 'least-latency', targets: ['a/x', 'b/y'] } as const;
    const sticky = { get: () => 'b/y' };
    expect(choose(alias, { sticky, stickyKey: 'k' })[0]).to.equal('b/y');
    const health: Health = { ...HEALTHY, mayTry: ({ provider }) => provider === 'a', latencyMs: () => 1 };
    expect(choose(alias, { sticky, stickyKey: 'k', health })[0]).to.equal('a/x');
  });

  it('start with a recovering or slow one only for its share of calls, with any strategy', () => {
    const health: Health = { ...HEALTHY, shareOf: ({ provider }) => (provider === 'a' ? 0.25 : 1) };
    expect(shareOfFirst(['a/x', 'b/y'], { health })).to.be.within(0.21, 0.29);
    const targets = ['a/x', 'b/y'];
    expect(shareOfFirst({ strategy: 'weighted', targets }, { health })).to.be.within(0.09, 0.16);
    expect(shareOfFirst({ strategy: 'least-latency', targets }, { health })).to.be.within(0.09, 0.16);
    const alone: Health = { ...health, mayTry: ({ provider }) => provider === 'a' };
    expect(shareOfFirst(['a/x', 'b/y'], { health: alone })).to.equal(1);
    expect(shareOfFirst(['a/x', 'b/y'], { health: { ...HEALTHY, shareOf: () => 0.25 } })).to.equal(1);
  });

  it('with weights reduce a far slower one to a twentieth of its share', () => {
    const targets = [
      { to: 'a/x', weight: 9 },
      { to: 'b/y', weight: 1 },
    ];
    const slow = (ms: number): Health => ({ ...HEALTHY, latencyMs: ({ provider }) => (provider === 'a' ? ms : 100) });
    expect(shareOfFirst({ strategy: 'weighted', targets }, { health: slow(2_000) })).to.be.within(0.27, 0.35);
    expect(shareOfFirst({ strategy: 'weighted', targets }, { health: slow(700) })).to.be.within(0.88, 0.92);
  });

  it('omit one that is only for cheaper calls', () => {
    const alias = { targets: [{ to: 'a/x', onlyWhenCheaper: true }, 'b/y'] };
    const costs = (a: number | undefined, b: number | undefined) => ({
      costAt: ({ provider }: { provider: string }) => (provider === 'a' ? a : b),
    });
    expect(choose(alias, costs(1, 2))).to.deep.equal(['a/x', 'b/y']);
    expect(choose(alias, costs(2, 2))).to.deep.equal(['b/y']);
    expect(choose(alias, costs(undefined, 2))).to.deep.equal(['b/y']);
  });
});

describe('the affinity key of a conversation', () => {
  const facts = { account: 'acct', userId: 'u', session: undefined, request: { messages: [] } };
  const long = { role: 'system', content: 'x'.repeat(5000) };
  const turn = (text: string) => ({ messages: [long, { role: 'user', content: text }] });

  it('is the session if there is one', () => {
    const one = stickyKeyOf('session', { ...facts, session: 's1', request: turn('a') });
    expect(one).to.equal(stickyKeyOf('session', { ...facts, session: 's1', request: turn('b') }));
    expect(one).not.to.equal(stickyKeyOf('session', { ...facts, session: 's2', request: turn('a') }));
    expect(one).not.to.equal(stickyKeyOf('session', { ...facts, account: 'other', session: 's1', request: turn('a') }));
  });

  it('is the long beginning of its prompts otherwise', () => {
    const one = stickyKeyOf('session', { ...facts, request: turn('a') });
    expect(one).to.be.a('string');
    expect(one).to.equal(stickyKeyOf('session', { ...facts, request: turn('b') }));
    expect(one).not.to.equal(stickyKeyOf('session', { ...facts, account: 'other', request: turn('a') }));
    expect(
      stickyKeyOf('session', { ...facts, request: { messages: [{ role: 'system', content: 'short' }] } }),
    ).to.equal(undefined);
  });

  it('is the user, or nothing, if the alias configures it', () => {
    expect(stickyKeyOf('user', facts)).to.equal(stickyKeyOf('user', { ...facts, session: 's' }));
    expect(stickyKeyOf('none', { ...facts, session: 's' })).to.equal(undefined);
  });
});

describe('the timeouts of an attempt', () => {
  const facts = { stream: true, request: {}, anotherWaits: false, isSuspect: false };
  const timeouts = (
    provider: Parameters<typeof timeoutsFor>[0],
    alias: Parameters<typeof timeoutsFor>[1],
    { anotherWaits, isSuspect, ...call }: typeof facts,
  ) => timeoutsFor(provider, alias, call, anotherWaits, isSuspect);

  it('give a stream 30 s to its first token, half of it if another target is available, a sixth after a failure', () => {
    expect(timeouts({}, {}, facts).firstTokenMs).to.equal(30_000);
    expect(timeouts({}, {}, { ...facts, anotherWaits: true }).firstTokenMs).to.equal(15_000);
    expect(timeouts({}, {}, { ...facts, anotherWaits: true, isSuspect: true }).firstTokenMs).to.equal(5_000);
    expect(timeouts({}, {}, { ...facts, isSuspect: true }).firstTokenMs).to.equal(30_000);
  });

  it('give a non-streaming response 120 s to start', () => {
    expect(timeouts({}, {}, { ...facts, stream: false })).to.deep.equal({ firstByteMs: 120_000 });
  });

  it('give a thinking model four times as long', () => {
    expect(timeouts({}, {}, { ...facts, request: { reasoning_effort: 'high' } }).firstTokenMs).to.equal(120_000);
  });

  it('are the provider’s, or with precedence the alias’s, for any number of targets', () => {
    const waiting = { ...facts, anotherWaits: true, isSuspect: true };
    expect(timeouts({ firstTokenMs: 7_000 }, {}, waiting).firstTokenMs).to.equal(7_000);
    expect(timeouts({ firstTokenMs: 7_000, idleMs: 1 }, { firstTokenMs: 9_000 }, waiting)).to.include({
      firstTokenMs: 9_000,
      idleMs: 1,
    });
    expect(timeouts({ firstByteMs: 300_000 }, {}, waiting).firstTokenMs).to.equal(300_000);
  });
});
