import { expect } from 'chai';
import type { ChatRequest } from '../../../../core/index.ts';
import type { GeminiRequest } from '../../../../plugins/formats/google/types.ts';
import { geminiRequest, modelPath } from '../../../../plugins/formats/google/write-request.ts';
import { chatRequest, codecCall } from '../../../support/formats/codec.ts';

const MODEL = 'gemini-3.8-flash';
const OLD_MODEL = 'gemini-2.5-flash';

function translate(fields: Partial<ChatRequest>, model = MODEL, stream = false): GeminiRequest {
  return geminiRequest(chatRequest(fields), codecCall({ model, stream })).body as GeminiRequest;
}

function dropped(fields: Partial<ChatRequest>, model = MODEL): readonly string[] {
  return geminiRequest(chatRequest(fields), codecCall({ model })).dropped ?? [];
}

describe('gemini requests', () => {
  it('asks for a stream of server-sent events, which the vendor sends only with alt=sse', () => {
    const { path } = geminiRequest(chatRequest(), codecCall({ model: MODEL, stream: true }));
    expect(path).to.equal('/models/gemini-3.8-flash:streamGenerateContent?alt=sse');
  });

  for (const [model, path] of [
    ['gemini-2.5-pro', '/models/gemini-2.5-pro'],
    ['models/gemini-2.5-pro', '/models/gemini-2.5-pro'],
    ['tunedModels/mine-1', '/tunedModels/mine-1'],
    ['a b?x=1#y:z', '/models/a%20b%3Fx%3D1%23y%3Az'],
  ] as const) {
    it(`writes the model "${model}" into the path as ${path}`, () => {
      expect(modelPath(model)).to.equal(path);
    });
  }

  for (const model of ['../v1/files', 'models/../x', 'a//b', './x']) {
    it(`refuses the model name "${model}", which would leave its place in the path`, () => {
      expect(() => modelPath(model))
        .to.throw('model')
        .with.property('param', 'model');
    });
  }

  describe('fields', () => {
    it('renames what the vendor spells differently', () => {
      const body = translate({
        max_tokens: 5,
        max_completion_tokens: 7,
        temperature: 0.5,
        top_p: 0.9,
        top_k: 3,
        seed: 11,
        stop: 'END',
        frequency_penalty: 0.1,
        presence_penalty: -0.2,
        n: 2,
        logprobs: true,
        top_logprobs: 4,
        safety_settings: [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'OFF' }],
      });
      expect(body.generationConfig).to.deep.equal({
        maxOutputTokens: 7,
        temperature: 0.5,
        topP: 0.9,
        topK: 3,
        seed: 11,
        stopSequences: ['END'],
        frequencyPenalty: 0.1,
        presencePenalty: -0.2,
        candidateCount: 2,
        responseLogprobs: true,
        logprobs: 4,
      });
      expect(body.safetySettings).to.have.length(1);
    });

    it('sends nothing that was not asked for', () => {
      expect(
        translate({
          temperature: null,
          n: 1,
          stop: null,
          logprobs: false,
          user: undefined,
        } as unknown as Partial<ChatRequest>),
      ).to.have.all.keys('contents');
    });

    it('drops penalties for Gemini 2.5, which answers 400 to them', () => {
      const fields = { frequency_penalty: 1, presence_penalty: 1 };
      expect(translate(fields, OLD_MODEL)).to.not.have.property('generationConfig');
      expect(dropped(fields, OLD_MODEL)).to.deep.equal(['frequency_penalty', 'presence_penalty']);
    });

    for (const model of [
      'gemini-4-argon',
      'gemini-4-neon',
      'gemini-9',
      'models/gemini-3.9-flash',
      'tunedModels/mine',
    ]) {
      it(`E14: sends ${model}, which no table knows, no penalties, one candidate and no minimal thinking`, () => {
        const fields = { frequency_penalty: 1, presence_penalty: 1, n: 2, reasoning_effort: 'minimal' };
        const config = translate(fields, model).generationConfig ?? {};
        expect(config).to.not.have.any.keys('frequencyPenalty', 'presencePenalty', 'candidateCount');
        expect(JSON.stringify(config)).to.not.include('minimal');
        expect(dropped(fields, model)).to.include.members(['frequency_penalty', 'presence_penalty', 'n']);
      });
    }

    it('tells which fields it leaves out, but none whose value asks for nothing', () => {
      expect(dropped({ user: 'u', seed: null, metadata: { a: 'b' }, unheard_of: 1 })).to.have.members([
        'user',
        'metadata',
        'unheard_of',
      ]);
      expect(dropped({ logit_bias: {}, store: false, parallel_tool_calls: true, service_tier: 'auto' })).to.deep.equal(
        [],
      );
    });

    for (const [field, value] of [
      ['n', 9],
      ['logit_bias', { 1: 1 }],
      ['stop', ['a', 'b', 'c', 'd', 'e', 'f']],
      ['modalities', ['text', 'audio']],
      ['audio', { voice: 'x' }],
      ['web_search_options', {}],
      ['reasoning_effort', 'heroic'],
      ['response_format', { type: 'xml' }],
    ] as const) {
      it(`refuses ${field} = ${JSON.stringify(value)}`, () => {
        expect(() => translate({ [field]: value }))
          .to.throw()
          .with.property('param')
          .that.matches(new RegExp(`^${field}`));
      });
    }
  });

  describe('thinking', () => {
    for (const [model, effort, expected] of [
      ['gemini-2.5-flash', 'none', { thinkingBudget: 0, includeThoughts: false }],
      ['gemini-2.5-flash', 'low', { thinkingBudget: 1024, includeThoughts: true }],
      ['gemini-2.5-flash', 'max', { thinkingBudget: 24_576, includeThoughts: true }],
      ['gemini-2.5-pro', 'none', { thinkingBudget: 128, includeThoughts: false }],
      ['gemini-2.5-pro', 'max', { thinkingBudget: 32_768, includeThoughts: true }],
      ['gemini-3-flash-preview', 'none', { thinkingLevel: 'minimal', includeThoughts: false }],
      ['gemini-3-flash-preview', 'medium', { thinkingLevel: 'medium', includeThoughts: true }],
      ['gemini-3.1-pro-preview', 'minimal', { thinkingLevel: 'low', includeThoughts: true }],
      ['gemini-3.5-flash-lite', 'minimal', { thinkingLevel: 'minimal', includeThoughts: true }],
      ['gemini-3.7-flash', 'minimal', { thinkingLevel: 'low', includeThoughts: true }],
      ['gemini-flash-latest', 'none', { thinkingLevel: 'low', includeThoughts: false }],
      ['gemini-3.8-flash', 'xhigh', { thinkingLevel: 'high', includeThoughts: true }],
      ['gemini-4-hydrogen', 'xhigh', { thinkingLevel: 'xhigh', includeThoughts: true }],
      ['gemini-5-neon', 'minimal', { thinkingLevel: 'low', includeThoughts: true }],
    ] as const) {
      it(`maps effort ${effort} for ${model}`, () => {
        const body = translate({ reasoning_effort: effort }, model);
        expect(body.generationConfig).to.deep.equal({ thinkingConfig: expected });
      });
    }

    it('drops an effort that a model without thinking cannot make', () => {
      expect(dropped({ reasoning_effort: 'high' }, 'gemma-3-27b-it')).to.deep.equal(['reasoning_effort']);
    });

    it('takes the vendor’s own thinking_config where Google’s OpenAI endpoint takes it', () => {
      const body = translate({
        extra_body: { google: { thinking_config: { thinking_budget: 99, include_thoughts: true } } },
      });
      expect(body.generationConfig).to.deep.equal({ thinkingConfig: { thinkingBudget: 99, includeThoughts: true } });
    });
  });
});
