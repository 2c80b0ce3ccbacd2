import { expect } from 'chai';
import type { Call, Plan, Principal } from '../../../../../contract/index.ts';
import {
  type CountedRequest,
  hashName,
  limitsOf,
  sourcesOf,
} from '../../../../../plugins/policies/accounts/holds/limits.ts';

const ANN: Principal = { credential: 'key', userId: 'ann', account: 'ann', keyId: 'k' };
/** Input of 4 tokens for the message and 1 for its text. */
const REQUEST = { model: 'm', max_tokens: 10, messages: [{ role: 'user', content: 'four' }] };

function callOf(more: object = {}): Call {
  const target = { provider: 'one', model: 'm' };
  return {
    operation: 'chat',
    principal: ANN,
    request: REQUEST,
    targets: [target],
    skip: new Set(),
    ...more,
  } as unknown as Call;
}

/** Stores have no names in their counters. */
const OF_ANN = hashName('ann');
const named = (plan: Plan) => ({ name: 'small', plan });
const counted = (call: Call, plan: Plan | undefined, units: Record<string, number> = { prompt_tokens: 5 }) =>
  ({ call, plan: plan && named(plan), estimate: () => ({ units, cost: 0 }) }) satisfies CountedRequest;
const collectLimits = (request: CountedRequest, half: 'requests' | 'tokens') =>
  limitsOf(request, half, sourcesOf(request.call.principal, request.plan), request.call.targets[0]?.provider);
/** Both halves: requests at the start of a call, tokens once its request is final. */
const amountsOf = (call: Call, plan: Plan, units?: Record<string, number>) =>
  (['requests', 'tokens'] as const).flatMap((half) =>
    collectLimits(counted(call, plan, units), half).windows.map(({ key, amount }) => [key, amount]),
  );

describe('the limits of a call', () => {
  it('are those of its key, of its plan, and of its provider in the plan, in this order', () => {
    const plan: Plan = { rpm: 2, concurrency: 3, providers: { one: { rpm: 1, concurrency: 1 }, two: { rpm: 9 } } };
    const call = callOf({ principal: { ...ANN, rpm: 5 } });
    const { windows, slots } = collectLimits(counted(call, plan), 'requests');
    expect(windows.map(({ key, limit }) => [key, limit])).to.deep.equal([
      ['rpm:key:k', 5],
      [`rpm:user:${OF_ANN}`, 2],
      [`rpm:provider:one:${OF_ANN}`, 1],
    ]);
    expect(slots.map(({ key, limit }) => [key, limit])).to.deep.equal([
      [`calls:user:${OF_ANN}`, 3],
      [`calls:provider:one:${OF_ANN}`, 1],
    ]);
    expect(limitsOf(counted(call, plan), 'requests', [], 'two').windows.map(({ key }) => key)).to.deep.equal([
      `rpm:provider:two:${OF_ANN}`,
    ]);
  });

  it('count its input and maximum output as tokens', () => {
    expect(amountsOf(callOf(), { tpm: 1000 })).to.deep.equal([[`tpm:user:${OF_ANN}`, 15]]);
    const newer = callOf({ request: { ...REQUEST, max_completion_tokens: 30 } });
    expect(amountsOf(newer, { tpm: 1000 })).to.deep.equal([[`tpm:user:${OF_ANN}`, 35]]);
  });

  it('count a call that is larger than a limit as all of it', () => {
    expect(amountsOf(callOf(), { tpm: 8, providers: { one: { tpm: 12 } } })).to.deep.equal([
      [`tpm:user:${OF_ANN}`, 8],
      [`tpm:provider:one:${OF_ANN}`, 12],
    ]);
  });

  it('count no tokens for an operation without any', () => {
    expect(amountsOf(callOf({ request: { model: 'm', input: 'four' } }), { rpm: 5, tpm: 8 }, {})).to.deep.equal([
      [`rpm:user:${OF_ANN}`, 1],
    ]);
  });

  it('omit limits that a parent call already counts', () => {
    const call = callOf({ skip: new Set(['rpm', 'concurrency']) });
    expect(amountsOf(call, { rpm: 5, tpm: 8 })).to.deep.equal([[`tpm:user:${OF_ANN}`, 8]]);
    expect(collectLimits(counted(call, { concurrency: 1 }), 'requests').slots).to.deep.equal([]);
  });

  it('are empty without a plan and rates of the key', () => {
    expect(collectLimits(counted(callOf(), undefined), 'requests')).to.include.deep.equal({ windows: [], slots: [] });
  });
});
