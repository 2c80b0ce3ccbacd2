import { expect } from 'chai';
import { isGatewayError } from '../../../../contract/index.ts';
import { type Creator, narrow } from '../../../../plugins/auth/api-key/key-limits.ts';
import type { KeyLimits } from '../../../../plugins/auth/api-key/records.ts';

interface Case {
  readonly title: string;
  readonly requested: Partial<KeyLimits>;
  readonly own: Creator;
  readonly gets?: Partial<KeyLimits>;
  readonly refuses?: string;
}

const CASES: readonly Case[] = [
  { title: 'sets no limit when neither side has one', requested: {}, own: {}, gets: {} },
  {
    title: 'inherits every limit of the creator',
    requested: {},
    own: { plan: 'pro', models: ['gpt-5'], providers: ['openai'], rpm: 5, tpm: 6, budget: 7 },
    gets: { plan: 'pro', models: ['gpt-5'], providers: ['openai'], rpm: 5, tpm: 6, budget: 7 },
  },
  {
    title: 'takes lower numbers',
    requested: { rpm: 1, tpm: 2, budget: 0 },
    own: { rpm: 5, tpm: 6, budget: 7 },
    gets: { rpm: 1, tpm: 2, budget: 0 },
  },
  { title: 'takes equal numbers', requested: { rpm: 5 }, own: { rpm: 5 }, gets: { rpm: 5 } },
  { title: 'refuses more requests', requested: { rpm: 6 }, own: { rpm: 5 }, refuses: 'rpm' },
  { title: 'refuses more tokens', requested: { tpm: 6 }, own: { tpm: 5 }, refuses: 'tpm' },
  { title: 'refuses a greater budget', requested: { budget: 6 }, own: { budget: 5 }, refuses: 'budget_usd' },
  { title: 'takes the own plan', requested: { plan: 'pro' }, own: { plan: 'pro' }, gets: { plan: 'pro' } },
  { title: 'refuses another plan', requested: { plan: 'pro' }, own: { plan: 'free' }, refuses: 'plan' },
  { title: 'refuses a plan to a token that names none', requested: { plan: 'pro' }, own: {}, refuses: 'plan' },
  {
    title: 'takes an own model',
    requested: { models: ['gpt-5'] },
    own: { models: ['gpt-5', 'claude'] },
    gets: { models: ['gpt-5'] },
  },
  {
    title: 'takes an own alias',
    requested: { models: ['fast'] },
    own: { models: ['fast'] },
    gets: { models: ['fast'] },
  },
  {
    title: 'takes anything of a token that has all models',
    requested: { models: ['gpt-5', 'openai/*'] },
    own: { models: ['*'] },
    gets: { models: ['gpt-5', 'openai/*'] },
  },
  {
    title: 'refuses all models to a token that has some',
    requested: { models: ['*'] },
    own: { models: ['gpt-5', 'openai/*'] },
    refuses: 'models[0]',
  },
  {
    title: 'refuses a sibling whose name begins with an own one',
    requested: { models: ['gpt-5-pro'] },
    own: { models: ['gpt-5'] },
    refuses: 'models[0]',
  },
  {
    title: 'inherits the server tools of the creator',
    requested: {},
    own: { serverTools: ['web_search'] },
    gets: { serverTools: ['web_search'] },
  },
  {
    title: 'takes one of the own server tools',
    requested: { serverTools: ['mcp'] },
    own: { serverTools: ['web_search', 'mcp'] },
    gets: { serverTools: ['mcp'] },
  },
  {
    title: 'refuses server tools to a token that names none, unlike models',
    requested: { serverTools: ['web_search'] },
    own: {},
    refuses: 'server_tools[0]',
  },
  { title: 'refuses a shorter name', requested: { models: ['gpt'] }, own: { models: ['gpt-5'] }, refuses: 'models[0]' },
  {
    title: 'refuses the second of two models',
    requested: { models: ['gpt-5', 'claude'] },
    own: { models: ['gpt-5'] },
    refuses: 'models[1]',
  },
  {
    title: 'refuses openai/gpt-5 to a token with openai/*, since another provider may have a model of that name',
    requested: { models: ['openai/gpt-5'] },
    own: { models: ['openai/*'] },
    refuses: 'models[0]',
  },
  {
    title: 'takes openai/gpt-5 of a token with openai/* for a key of that provider',
    requested: { models: ['openai/gpt-5'], providers: ['openai'] },
    own: { models: ['openai/*'] },
    gets: { models: ['openai/gpt-5'], providers: ['openai'] },
  },
  {
    title: 'refuses it for a key of two providers',
    requested: { models: ['openai/gpt-5'], providers: ['openai', 'openrouter'] },
    own: { models: ['openai/*'] },
    refuses: 'models[0]',
  },
  {
    title: 'refuses it for a key of another provider',
    requested: { models: ['openai/gpt-5'], providers: ['openrouter'] },
    own: { models: ['openai/*'] },
    refuses: 'models[0]',
  },
  {
    title: 'refuses gpt-5 to a token with openai/gpt-5, since an alias may have that name',
    requested: { models: ['gpt-5'], providers: ['openai'] },
    own: { models: ['openai/gpt-5'] },
    refuses: 'models[0]',
  },
  {
    title: 'refuses gpt-5 to a token with openai/gpt-5',
    requested: { models: ['gpt-5'] },
    own: { models: ['openai/gpt-5'] },
    refuses: 'models[0]',
  },
  {
    title: 'takes openai/gpt-5 of a token with gpt-5 for a key of that provider',
    requested: { models: ['openai/gpt-5'], providers: ['openai'] },
    own: { models: ['gpt-5'] },
    gets: { models: ['openai/gpt-5'], providers: ['openai'] },
  },
  {
    title: 'binds models to the provider that the token itself is bound to',
    requested: { models: ['openai/gpt-5'] },
    own: { models: ['gpt-5'], providers: ['openai'] },
    gets: { models: ['openai/gpt-5'], providers: ['openai'] },
  },
  {
    title: 'refuses any model to a token that has none',
    requested: { models: ['gpt-5'] },
    own: { models: [] },
    refuses: 'models[0]',
  },
  {
    title: 'takes an own provider',
    requested: { providers: ['openai'] },
    own: { providers: ['openai', 'gemini'] },
    gets: { providers: ['openai'] },
  },
  {
    title: 'refuses a provider whose name begins with an own one',
    requested: { providers: ['openai-eu'] },
    own: { providers: ['openai'] },
    refuses: 'providers[0]',
  },
];

describe('the inheritance of a key from its creator', () => {
  for (const { title, requested, own, gets, refuses } of CASES) {
    it(title, () => {
      const run = () => narrow({ name: 'k', ...requested }, own);
      if (refuses === undefined) {
        expect(run()).to.deep.equal({ name: 'k', ...gets });
        return;
      }
      try {
        run();
      } catch (error) {
        if (!isGatewayError(error)) throw error;
        expect([error.code, error.param]).to.deep.equal(['permission_denied', refuses]);
        return;
      }
      expect.fail('it was let through');
    });
  }
});
