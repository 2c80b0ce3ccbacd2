import { expect } from 'chai';
import type { ChatRequest } from '../../../../core/index.ts';
import type { AnthropicRequest } from '../../../../plugins/formats/anthropic/types.ts';
import { anthropicRequest } from '../../../../plugins/formats/anthropic/write-request.ts';
import { chatRequest, codecCall } from '../../../support/formats/codec.ts';

const SAMPLING = 'claude-sonnet-4-6';
const NEWEST = 'claude-sonnet-5-5';

function translate(fields: Partial<ChatRequest>, model = SAMPLING, stream = false): AnthropicRequest {
  return anthropicRequest(chatRequest(fields), codecCall({ model, stream })).body as AnthropicRequest;
}

function dropped(fields: Partial<ChatRequest>, model = SAMPLING): readonly string[] {
  return anthropicRequest(chatRequest(fields), codecCall({ model })).dropped ?? [];
}

describe('anthropic requests', () => {
  it('hold nothing that was not asked for, beside the max_tokens that the vendor demands', () => {
    expect(translate({ stream: false, n: 1, temperature: null })).to.deep.equal({
      model: SAMPLING,
      max_tokens: 128_000,
      messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }],
    });
  });

  it('ask for a stream when the caller reads one', () => {
    expect(translate({}, SAMPLING, true).stream).to.equal(true);
  });

  for (const [model, limit] of [
    ['claude-3-haiku-20240307', 4096],
    ['claude-3-5-sonnet-20241022', 8192],
    ['claude-3-7-sonnet-20250219', 64_000],
    ['claude-opus-4-20250514', 32_000],
    ['claude-opus-4-1-20250805', 32_000],
    ['claude-sonnet-4-20250514', 64_000],
    ['claude-haiku-4-5-20251001', 64_000],
    ['claude-opus-4-8', 128_000],
    ['claude-fable-5-2', 128_000],
    ['claude-novel-7', 64_000],
    ['kimi-k3', 8192],
  ] as const) {
    it(`asks ${model} for its limit of ${limit} tokens when the caller names none`, () => {
      expect(translate({}, model).max_tokens).to.equal(limit);
    });
  }

  it('prefer max_completion_tokens to max_tokens', () => {
    expect(translate({ max_tokens: 5, max_completion_tokens: 7 }).max_tokens).to.equal(7);
  });

  describe('sampling', () => {
    it('passes to models that have it, a temperature above 1 as 1', () => {
      expect(translate({ temperature: 1.7, top_k: 5 })).to.deep.include({ temperature: 1, top_k: 5 });
      expect(translate({ temperature: 0, top_p: 0.5 }, 'claude-3-haiku-20240307')).to.deep.include({
        temperature: 0,
        top_p: 0.5,
      });
    });

    it('keeps temperature where a model takes only one of it and top_p', () => {
      const fields = { temperature: 0.3, top_p: 0.5 };
      expect(translate(fields)).to.include({ temperature: 0.3 }).and.not.have.property('top_p');
      expect(dropped(fields)).to.deep.equal(['top_p']);
    });

    it('is dropped for models that answer 400 to it, and told unless it asks for the default', () => {
      const body = translate({ temperature: 0.3, top_p: 0.5, top_k: 5 }, 'claude-opus-4-7');
      expect(body).to.not.have.any.keys('temperature', 'top_p', 'top_k');
      expect(dropped({ temperature: 0.3, top_p: 0.5, top_k: 5 }, 'claude-opus-4-7')).to.deep.equal([
        'temperature',
        'top_p',
        'top_k',
      ]);
      expect(dropped({ temperature: 1, top_p: 1 }, 'claude-opus-4-7')).to.deep.equal([]);
    });

    it('is dropped while the model thinks', () => {
      const fields = { temperature: 0.3, reasoning_effort: 'high' };
      expect(translate(fields)).to.not.have.property('temperature');
      expect(dropped(fields)).to.deep.equal(['temperature']);
    });
  });

  describe('other fields', () => {
    it('are renamed, without the white space that the vendor refuses', () => {
      const body = translate({
        stop: ['END', ' \n', ''],
        user: 'u-1',
        cache_control: { type: 'ephemeral', ttl: '1h', x: 1 },
      });
      expect(body).to.deep.include({
        stop_sequences: ['END'],
        metadata: { user_id: 'u-1' },
        cache_control: { type: 'ephemeral', ttl: '1h' },
      });
    });

    it('are told when they are left out', () => {
      expect(dropped({ seed: 1, frequency_penalty: 1, logprobs: true, user: 'u'.repeat(300) })).to.have.members([
        'seed',
        'frequency_penalty',
        'logprobs',
        'user',
      ]);
    });

    for (const [field, value] of [
      ['n', 2],
      ['logit_bias', { 1: 1 }],
      ['modalities', ['text', 'audio']],
      ['web_search_options', {}],
      ['reasoning_effort', 'heroic'],
      ['thinking', 'hard'],
    ] as const) {
      it(`are refused: ${field} = ${JSON.stringify(value)}`, () => {
        expect(() => translate({ [field]: value }))
          .to.throw()
          .with.property('param', field);
      });
    }
  });

  describe('thinking', () => {
    const ADAPTIVE = { type: 'adaptive', display: 'summarized' };
    for (const [model, effort, thinking, config] of [
      ['claude-sonnet-4-6', 'medium', ADAPTIVE, { effort: 'medium' }],
      ['claude-sonnet-4-6', 'xhigh', ADAPTIVE, { effort: 'high' }],
      ['claude-opus-4-7', 'xhigh', ADAPTIVE, { effort: 'xhigh' }],
      ['claude-opus-5-5', 'minimal', ADAPTIVE, { effort: 'low' }],
      ['claude-opus-4-8', 'none', { type: 'disabled' }, undefined],
      ['claude-sonnet-5-5', 'none', { type: 'between_tools' }, undefined],
      ['claude-fable-5', 'none', undefined, { effort: 'low' }],
      ['claude-haiku-4-5', 'none', undefined, undefined],
      ['claude-haiku-4-5', 'high', { type: 'enabled', budget_tokens: 16_384 }, undefined],
      ['claude-3-5-haiku-latest', 'high', undefined, undefined],
    ] as const) {
      it(`of effort ${effort} is asked of ${model} in its own way`, () => {
        const body = translate({ reasoning_effort: effort }, model);
        expect([body.thinking, body.output_config]).to.deep.equal([thinking, config]);
      });
    }

    it('leaves room for the answer within max_tokens, and is dropped where there is none', () => {
      const fields = { reasoning_effort: 'high' };
      expect(translate({ ...fields, max_tokens: 2000 }, 'claude-haiku-4-5').thinking).to.deep.equal({
        type: 'enabled',
        budget_tokens: 1600,
      });
      expect(translate({ ...fields, max_tokens: 1100 }, 'claude-haiku-4-5')).to.not.have.property('thinking');
      expect(dropped({ ...fields, max_tokens: 1100 }, 'claude-haiku-4-5')).to.deep.equal(['reasoning_effort']);
    });

    it('is dropped beside a forced call on models that refuse the two together', () => {
      const tools: ChatRequest['tools'] = [{ type: 'function', function: { name: 'f' } }];
      const fields = { reasoning_effort: 'high', tools, tool_choice: 'required' } as const;
      expect(translate(fields, 'claude-haiku-4-5')).to.not.have.property('thinking');
      expect(translate(fields, 'claude-opus-4-8')).to.have.property('thinking');
    });

    it('goes as the vendor’s own field says where the caller sends one', () => {
      const thinking = { type: 'enabled', budget_tokens: 2048, display: 'summarized' };
      expect(translate({ thinking, reasoning_effort: 'low' }, 'claude-haiku-4-5').thinking).to.deep.equal(thinking);
    });

    for (const [thinking, model, wanted, config] of [
      [{ type: 'enabled', budget_tokens: 4000 }, 'claude-opus-4-8', ADAPTIVE, { effort: 'low' }],
      [{ type: 'enabled', budget_tokens: 4000 }, 'claude-novel-7', { type: 'enabled', budget_tokens: 4000 }, undefined],
      [{ type: 'disabled' }, 'claude-opus-5-5', undefined, { effort: 'low' }],
      [{ type: 'disabled' }, 'claude-sonnet-5-5', { type: 'between_tools' }, undefined],
      [{ type: 'disabled' }, 'claude-3-5-haiku-latest', undefined, undefined],
      [{ type: 'adaptive' }, 'claude-haiku-4-5', { type: 'enabled', budget_tokens: 8192 }, undefined],
    ] as const) {
      it(`E20: of the caller’s own, ${thinking.type}, is fitted to ${model}`, () => {
        const body = translate({ thinking }, model);
        expect([body.thinking, body.output_config]).to.deep.equal([wanted, config]);
      });
    }

    it('takes the newest model’s narrow form for a Claude that nobody knows', () => {
      const body = translate({ temperature: 0.5, reasoning_effort: 'none' }, 'claude-novel-7');
      expect(body).to.not.have.any.keys('temperature', 'thinking');
      expect(body.output_config).to.deep.equal({ effort: 'low' });
    });
  });

  it('carry the model’s name as it is', () => {
    expect(translate({}, NEWEST).model).to.equal(NEWEST);
  });
});
