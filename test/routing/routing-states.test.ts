import { expect } from 'chai';
import type { TargetReport } from '../../contract/index.ts';
import { mergeStates } from '../../contract/target-rows.ts';

const report = (model: string, more: Partial<TargetReport> = {}): TargetReport => ({
  ...{ provider: 'a', model, state: 'closed', errorRate: 0, attempts: 10 },
  ...more,
});
const retries = { live: 4, running: 1, allowed: 3, refused: 2 };
const merge = (...targets: readonly (readonly TargetReport[])[]) =>
  mergeStates(targets.map((each) => ({ targets: each, retries, drained: [] })));

describe('the combined state of targets in several processes', () => {
  it('has the targets of all of them, and the sums of their retries', () => {
    const merged = merge([report('x')], [report('y')], []);
    expect(merged.targets).to.deep.equal([report('x'), report('y')]);
    expect(merged.retries).to.deep.equal({ live: 12, running: 3, allowed: 9, refused: 6 });
  });

  it('has the worst state with its cause, of two open ones the one that stays open longer', () => {
    const limited = report('x', { state: 'open', cause: 'rate_limit', openUntil: 900 });
    const failed = report('x', { state: 'open', cause: 'failures', openUntil: 500 });
    const tested = report('x', { state: 'half-open', cause: 'failures', openUntil: 5_000 });
    for (const order of [
      [limited, failed, tested, report('x')],
      [report('x'), tested, failed, limited],
    ])
      expect(merge(...order.map((each) => [each])).targets[0]).to.include({
        ...{ state: 'open', cause: 'rate_limit', openUntil: 900 },
      });
  });

  it('weights errors and latency by attempts, and has the latest error', () => {
    const one = report('x', { attempts: 30, errorRate: 0.1, wholeMs: 100, lastError: { at: 1, message: 'old' } });
    const other = report('x', { attempts: 10, errorRate: 0.5, wholeMs: 300, lastError: { at: 2, message: 'new' } });
    const [merged] = merge([one], [other]).targets;
    expect(merged?.errorRate).to.be.closeTo(0.2, 1e-9);
    expect(merged).to.deep.include({ attempts: 40, wholeMs: 150, lastError: { at: 2, message: 'new' } });
    expect(merged).not.to.have.property('firstTokenMs');
  });
});
