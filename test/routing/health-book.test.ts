import { expect } from 'chai';
import { HealthBook } from '../../routing/health-book.ts';

const failure = { kind: 'failure', cause: 'rate_limit', error: { message: 'no' }, retryAfterMs: 60_000 } as const;
const success = { kind: 'success', durationMs: 1, stream: false } as const;
const target = (model: string) => ({ provider: 'a', model });

describe('the remembered targets', () => {
  it('E58: keep their entries despite made-up names, if they are configured or have responded', () => {
    const health = new HealthBook(() => 1000);
    health.useTargets(({ model }) => model === 'configured');
    health.report(target('answered'), success);
    health.report(target('answered'), failure);
    health.report(target('configured'), failure);
    for (let n = 0; n < 3_000; n++) health.report(target(`made-up-${n}`), failure);
    expect(health.mayTry(target('answered'))).to.equal(false);
    expect(health.mayTry(target('configured'))).to.equal(false);
    expect(health.reports().length, 'made-up names have few places of their own').to.equal(102);
  });

  it('E58: do not include models that a vendor reported as unknown', () => {
    const health = new HealthBook(() => 1000);
    for (let n = 0; n < 10; n++) {
      const attempt = health.begin(target(`made-up-${n}`));
      health.report(attempt.target, { kind: 'alive' }, 'model', attempt);
    }
    expect(health.reports()).to.deep.equal([]);
  });

  it('E58: are at most a thousand, and the configured ones are evicted last', () => {
    const health = new HealthBook(() => 1000);
    health.useTargets(({ model }) => model === 'configured');
    health.report(target('configured'), failure);
    for (let n = 0; n < 1_500; n++) health.report(target(`real-${n}`), success);
    // The provider takes one entry.
    expect(health.reports().length).to.equal(999);
    expect(health.mayTry(target('configured'))).to.equal(false);
  });

  it('are tried again with their provider when it responds at all, after failed connections', () => {
    let now = 1000;
    const health = new HealthBook(() => now);
    const unreachable = { kind: 'failure', cause: 'failures', error: { message: 'refused' } } as const;
    for (let n = 0; n < 3; n++) health.report(target('x'), unreachable, 'provider', health.begin(target('x')));
    expect(health.mayTry(target('y'))).to.equal(false);
    now += 5_000;
    const test = health.begin(target('y'));
    health.report(test.target, { kind: 'alive' }, 'model', test);
    expect(health.reportOf(target('x')).state).to.equal('closed');
  });

  it('stay open as long as this process determined, whatever others report', () => {
    const health = new HealthBook(() => 1000);
    health.report(target('x'), failure);
    health.learn('a/x', 2_000);
    expect(health.reportOf(target('x'))).to.include({ cause: 'rate_limit', openUntil: 61_000 });
  });

  it('E54: are probed by one call at a time, at any of the models of a provider', () => {
    let now = 1000;
    const health = new HealthBook(() => now);
    health.report(
      target('x'),
      { ...failure, cause: 'credential', retryAfterMs: 1_000 },
      'provider',
      health.begin(target('x')),
    );
    expect(health.mayTry(target('y'))).to.equal(false);
    now += 1_000;
    const test = health.begin(target('y'));
    expect(health.mayTry(target('x')), 'while one tests').to.equal(false);
    health.leave(health.begin(target('z')));
    expect(health.mayTry(target('x')), 'after another one was left').to.equal(false);
    health.leave(test);
    expect(health.mayTry(target('x')), 'after the test was left').to.equal(true);
  });
});
