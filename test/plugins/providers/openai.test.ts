import { expect } from 'chai';
import azure from '../../../plugins/providers/azure.ts';
import openai from '../../../plugins/providers/openai.ts';
import { setUpProvider } from '../../conformance/provider-subject.ts';
import { messagesOf, translate } from '../../support/formats/translate.ts';

const ALL = {
  max_tokens: 9,
  temperature: 0.5,
  top_p: 0.5,
  frequency_penalty: 1,
  presence_penalty: 1,
  logit_bias: { 1: 1 },
  logprobs: true,
  top_logprobs: 1,
  stop: 'x',
};
const TOOLS = [{ type: 'function', function: { name: 'f' } }];
const EVERYTHING = Object.keys(ALL);
const SAMPLING = ['temperature', 'top_p', 'logprobs', 'top_logprobs'];
const PENALTIES = ['frequency_penalty', 'presence_penalty', 'logit_bias'];

describe('openai', () => {
  const MODELS: readonly (readonly [model: string, more: object, dropped: readonly string[]])[] = [
    ['gpt-4o', {}, []],
    ['gpt-4.1-mini', {}, []],
    ['gpt-5-chat-latest', {}, []],
    ['gpt-4o-search-preview', {}, ['temperature']],
    ['gpt-5', {}, [...SAMPLING, ...PENALTIES]],
    ['gpt-5-mini-2026-01-01', {}, [...SAMPLING, ...PENALTIES]],
    ['gpt-6-astra', { reasoning_effort: 'none' }, [...SAMPLING, ...PENALTIES, 'stop']],
    ['gpt-5.2', { reasoning_effort: 'none' }, PENALTIES],
    ['gpt-5.2', { reasoning_effort: 'low' }, [...SAMPLING, ...PENALTIES]],
    ['gpt-5.6-sol', { tools: TOOLS, reasoning_effort: 'none' }, PENALTIES],
    ['gpt-10', {}, [...SAMPLING, ...PENALTIES, 'stop']],
    ['o1', {}, [...SAMPLING, ...PENALTIES]],
    ['o3-mini', {}, [...SAMPLING, ...PENALTIES, 'stop']],
    ['o4-mini', {}, [...SAMPLING, ...PENALTIES, 'stop']],
  ];
  it('sends the narrowest request to a model that no row knows, at OpenAI and Azure alike (E14)', () => {
    const fields = { ...ALL, prediction: { type: 'content', content: 'x' }, verbosity: 'low', max_tokens: 5 };
    for (const plugin of [openai, azure])
      for (const [model, efforts] of [
        ['gpt-7-nova', ['low', 'low', 'high', 'high']],
        ['gpt-6.5-sol', ['low', 'low', 'high', 'high']],
        ['o7', ['low', 'low', 'high', 'high']],
        ['omni-next', [undefined, undefined, undefined, undefined]],
      ] as const) {
        const config = plugin === azure ? { resource: 'acme' } : {};
        const { body } = translate(plugin, { ...fields, model }, config);
        expect(body, model).to.include({ model, max_completion_tokens: 5 });
        expect(body).to.not.have.any.keys(...SAMPLING, ...PENALTIES, 'stop', 'prediction', 'verbosity', 'max_tokens');
        const sent = ['none', 'minimal', 'xhigh', 'max'].map((reasoning_effort) =>
          translate(plugin, { model, reasoning_effort }, config),
        );
        for (const [at, effort] of efforts.entries()) {
          const { reasoning_effort: own, reasoning } = (sent[at]?.body ?? {}) as Record<string, unknown>;
          expect(own ?? (reasoning as { effort?: string } | undefined)?.effort, model).to.equal(effort);
        }
        expect(() => translate(plugin, { model, n: 2 }, config)).to.throw('`n`');
      }
  });

  for (const [model, more, dropped] of MODELS) {
    it(`drops ${dropped.join(', ') || 'nothing'} for ${model} ${JSON.stringify(more)}`, () => {
      const sent = translate(openai, { model, ...ALL, ...more });
      expect([...sent.dropped].sort()).to.deep.equal([...dropped].sort());
      const kept = EVERYTHING.filter((field) => field !== 'max_tokens' && !dropped.includes(field));
      for (const field of kept) expect(sent.body).to.have.property(field);
    });
  }

  it('calls the limit as reasoning models do, and as the others do', () => {
    expect(translate(openai, { model: 'gpt-5', max_tokens: 9 }).body).to.include({ max_completion_tokens: 9 });
    expect(translate(openai, { model: 'gpt-4o', max_tokens: 9 }).body).to.include({ max_tokens: 9 });
  });

  it('E13: sends gpt-5.4 and later by the Responses API for tools with reasoning, with the rules of that API', () => {
    for (const more of [{}, { reasoning_effort: 'high' }]) {
      const { path, body, dropped } = translate(openai, { model: 'gpt-5.6-sol', tools: TOOLS, ...ALL, ...more });
      expect(path).to.equal('/responses');
      expect([...dropped].sort()).to.deep.equal([...SAMPLING, ...PENALTIES, 'stop'].sort());
      expect(body).to.include({ max_output_tokens: 16, store: false });
    }
    expect(translate(openai, { model: 'gpt-5.6-sol' }).path).to.equal('/chat/completions');
    expect(translate(openai, { model: 'gpt-5.6-sol', tools: TOOLS, reasoning_effort: 'none' }).path).to.equal(
      '/chat/completions',
    );
  });

  it('E13: requests summaries of reasoning as configured', () => {
    const reasoningOf = (config: Readonly<Record<string, unknown>>, more: object = {}) =>
      translate(openai, { model: 'gpt-6-sol', tools: TOOLS, ...more }, config).body['reasoning'];
    expect(reasoningOf({})).to.deep.equal({ summary: 'auto' });
    expect(reasoningOf({ reasoningSummary: 'detailed' })).to.deep.equal({ summary: 'detailed' });
    expect(reasoningOf({ reasoningSummary: 'off' }, { reasoning_effort: 'low' })).to.deep.equal({ effort: 'low' });
  });

  it('calls system developer for reasoning models only', () => {
    const list = [{ role: 'system', content: 'x' }];
    expect(messagesOf(openai, list, { model: 'gpt-5' })[0]).to.include({ role: 'developer' });
    expect(messagesOf(openai, list, { model: 'gpt-4o' })[0]).to.include({ role: 'system' });
  });

  it('requests streams without padding', () => {
    const { body } = translate(openai, { stream: true });
    expect(body['stream_options']).to.deep.equal({ include_obfuscation: false, include_usage: true });
  });

  it('sends organization and project as headers', () => {
    const { headers } = setUpProvider(openai, { organization: 'org-1', project: 'proj_1' });
    expect(headers).to.deep.equal({ 'openai-organization': 'org-1', 'openai-project': 'proj_1' });
  });
});
