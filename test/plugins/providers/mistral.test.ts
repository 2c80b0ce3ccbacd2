import { expect } from 'chai';
import mistral from '../../../plugins/providers/mistral.ts';
import { setUpProvider } from '../../conformance/provider-subject.ts';
import { messagesOf, translate } from '../../support/formats/translate.ts';

/** Closed list of fields in Mistral's request schema. */
const BODY =
  `model messages temperature top_p max_tokens stream stop random_seed metadata response_format tools tool_choice
presence_penalty frequency_penalty n prediction parallel_tool_calls prompt_mode reasoning_effort guardrails
prompt_cache_key safe_prompt`.split(/\s+/);

describe('mistral', () => {
  it('sends no field that its closed schema does not have', () => {
    const { body } = translate(mistral, {
      max_completion_tokens: 5,
      seed: 1,
      user: 'u',
      logprobs: true,
      store: true,
      stream: true,
      stream_options: { include_usage: true },
      shiny: 1,
      safe_prompt: true,
      service_tier: 'flex',
    });
    expect(Object.keys(body).filter((field) => !BODY.includes(field))).to.deep.equal([]);
    expect(body).to.include({ max_tokens: 5, random_seed: 1, safe_prompt: true, stream: true });
  });

  it('sends no message field that its closed schemas do not have', () => {
    const messages = messagesOf(mistral, [
      { role: 'system', content: 's', name: 'n' },
      { role: 'user', content: 'u', name: 'n' },
      { role: 'assistant', content: 'a', refusal: null, name: 'n' },
      { role: 'user', content: 'u' },
    ]);
    expect(messages).to.deep.equal([
      { role: 'system', content: 's' },
      { role: 'user', content: 'u' },
      { role: 'assistant', content: 'a' },
      { role: 'user', content: 'u' },
    ]);
  });

  it('marks an answer that is begun for the model', () => {
    expect(
      messagesOf(mistral, [
        { role: 'user', content: 'u' },
        { role: 'assistant', content: 'a' },
      ])[1],
    ).to.deep.equal({
      role: 'assistant',
      content: 'a',
      prefix: true,
    });
  });

  it('gives tool calls ids of nine letters and digits, the same in call and result', () => {
    const [turn, result] = messagesOf(mistral, [
      {
        role: 'assistant',
        tool_calls: [{ id: 'call_long_1', type: 'function', function: { name: 'f', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 'call_long_1', content: 'x' },
    ]);
    expect(result?.['tool_call_id']).to.match(/^[a-zA-Z0-9]{9}$/);
    expect(turn?.['tool_calls']).to.deep.include.members([
      { id: result?.['tool_call_id'], type: 'function', function: { name: 'f', arguments: '{}' } },
    ]);
  });

  for (const [given, sent] of [
    ['minimal', 'none'],
    ['medium', 'high'],
    ['none', 'none'],
  ] as const) {
    it(`sends the effort ${sent} for ${given}`, () => {
      const model = 'mistral-small-latest';
      expect(translate(mistral, { model, reasoning_effort: given }).body).to.include({ reasoning_effort: sent });
    });
  }

  it('sends an effort to models that are known to take one only (E14)', () => {
    for (const model of ['mistral-large-2512', 'codestral-2508', 'a-new-model']) {
      const { body, dropped } = translate(mistral, { model, reasoning_effort: 'high' });
      expect([body['reasoning_effort'], dropped], model).to.deep.equal([undefined, ['reasoning_effort']]);
    }
  });

  it('names the dimensions of embeddings its own way', () => {
    const request = setUpProvider(mistral, {}).embed?.request(
      { model: 'mistral-embed', input: 'x', dimensions: 256, user: 'u' },
      { model: 'mistral-embed', stream: false, created: 1, id: 'x' },
    );
    expect(request?.body).to.deep.equal({ model: 'mistral-embed', input: 'x', output_dimension: 256 });
    expect(request?.dropped).to.deep.equal(['user']);
  });
});
