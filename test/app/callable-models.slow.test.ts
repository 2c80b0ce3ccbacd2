import { expect } from 'chai';
import { startOperator } from '../support/gateways/operator.ts';
import { completion, openAiVendor } from '../support/vendors/openai-vendor.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';

/** Names that are called: models, aliases and models in no list, in each state of a model. */
const NAMES = [
  ...['priced/m', 'unpriced/m', 'keyless/m', 'echo/echo', 'echo/unlisted'],
  ...['one', 'fallback', 'without-price', 'without-key', 'half-known', 'never'],
];
const ALIASES = {
  one: 'priced/m',
  fallback: ['priced/m', 'echo/echo'],
  'without-price': ['priced/m', 'unpriced/m'],
  'without-key': ['keyless/m', 'priced/m'],
  'half-known': ['echo/unlisted', 'priced/m'],
  never: 'echo/unlisted',
};

const LISTS: readonly object[] = [
  {},
  { models: ['priced/m'] },
  { models: ['fallback', 'unpriced/m'] },
  { models: ['without-price'] },
  { providers: ['echo', 'keyless'] },
  { providers: ['priced'], models: ['priced/*', 'echo/echo'] },
];
const PLANS: readonly (string | undefined)[] = [undefined, 'small', 'limited', 'small-limited'];
const BUDGET = { amount_usd: '5', every: 'day' };
const MONEY: readonly object[] = [{}, { budgets: [BUDGET] }];
const OFF = 'off';

const SMALL = { models: ['priced/m', 'fallback', 'keyless/m'] };

/** Configurations of money. */
const BILLING: Readonly<Record<string, object>> = {
  'without a limit': { billing: 'track' },
  'enforced for all': { billing: 'enforce' },
  'with a budget of one provider': {
    billing: 'track',
    budgets: [{ name: 'of-one', amount_usd: 5, every: 'day', provider: 'unpriced' }],
  },
  'with unknown prices allowed': { billing: 'enforce', policies: { accounts: { unknownPrice: 'allow' } } },
  // Budgets are errors here: nothing counts them.
  [OFF]: {
    billing: 'off',
    plans: { small: SMALL, limited: {}, 'small-limited': { models: ['unpriced/m', 'echo/*', 'without-price'] } },
  },
};

describe('what is reported about a model, and what its call gets (G41)', () => {
  let vendor: ScriptedUpstream;
  before(async () => {
    vendor = await startScriptedUpstream((wire) => wire.send(respondWith(200, completion())));
  });
  after(() => vendor.close());

  for (const [title, config] of Object.entries(BILLING))
    it(`agree for each key, plan and model, with money ${title}`, async () => {
      const provider = (more: object) => openAiVendor({ url: `${vendor.url}/v1` }, { models: ['m'], ...more });
      const { gateway, call } = await startOperator({
        providers: {
          echo: { prices: { '*': { input: 1, output: 1 } } },
          priced: provider({ prices: { m: { input: 1, output: 2 } } }),
          unpriced: provider({}),
          keyless: provider({ plugin: 'openai', apiKey: `\${MISSING_KEY}`, prices: { m: { input: 1, output: 2 } } }),
        },
        models: ALIASES,
        plans: {
          small: SMALL,
          limited: { budgets: [BUDGET] },
          'small-limited': { models: ['unpriced/m', 'echo/*', 'without-price'], budgets: [BUDGET] },
        },
        ...config,
      });
      try {
        const differences: string[] = [];
        let calls = 0;
        for (const [number, [lists, plan, money]] of casesOf(LISTS, PLANS, MONEY).entries()) {
          const user = `user-${number}`;
          if (title !== OFF) await call('POST', `/accounts/${user}/credit`, { amount_usd: 5 });
          const made = await call('POST', '/keys', { user_id: user, ...lists, ...money, ...(plan && { plan }) });
          expect(made.status, JSON.stringify(made.body)).to.equal(200);
          const { api_key: key, api_key_info: info } = made.body;
          const reported = (await call('GET', `/keys/${info.id}`)).body.callable_models;
          const reasons = new Map(
            reported.stopped.map(({ id, problem }: { id: string; problem: string }) => [id, problem]),
          );
          for (const model of NAMES) {
            const body = { model, max_tokens: 10, messages: [{ role: 'user', content: 'Hello' }] };
            const response = await gateway.post('/v1/chat/completions', body, { authorization: `Bearer ${key}` });
            const text = await response.text();
            calls += 1;
            const isCallable = reported.callable.includes(model);
            if (isCallable === (response.status === 200)) continue;
            differences.push(
              `${JSON.stringify({ ...lists, plan, ...money })} ${model}: reported ${isCallable ? 'callable' : reasons.get(model)}, got ${response.status} ${text.slice(0, 200)}`,
            );
          }
        }
        expect(differences).to.deep.equal([]);
        expect(calls).to.equal(LISTS.length * PLANS.length * MONEY.length * NAMES.length);
      } finally {
        await gateway.stop();
      }
    });
});

function casesOf<A, B, C>(ones: readonly A[], twos: readonly B[], threes: readonly C[]): (readonly [A, B, C])[] {
  return ones.flatMap((one) => twos.flatMap((two) => threes.map((three) => [one, two, three] as const)));
}
