import { expect } from 'chai';
import type { ChatMessage, ChatRequest } from '../../../../core/index.ts';
import { geminiRequest, modelPath } from '../../../../plugins/providers/gemini/request.ts';
import type { GeminiRequest } from '../../../../plugins/providers/gemini/types.ts';
import { chatRequest, codecCall } from '../../../support/codec.ts';

const MODEL = 'gemini-3.8-flash';
const OLD_MODEL = 'gemini-2.5-flash';

function translate(fields: Partial<ChatRequest>, model = MODEL, stream = false): GeminiRequest {
  return geminiRequest(chatRequest(fields), codecCall({ model, stream })).body as GeminiRequest;
}

function contents(messages: readonly ChatMessage[], model = MODEL): unknown {
  return translate({ messages }, model).contents;
}

function dropped(fields: Partial<ChatRequest>, model = MODEL): readonly string[] {
  return geminiRequest(chatRequest(fields), codecCall({ model })).dropped ?? [];
}

const user = (content: ChatMessage['content']): ChatMessage => ({ role: 'user', content: content ?? null });
const called = (...ids: string[]): ChatMessage => ({
  role: 'assistant',
  content: null,
  tool_calls: ids.map((id) => ({ id, type: 'function', function: { name: `do_${id}`, arguments: '{"a":1}' } })),
});
const result = (id: string, content: ChatMessage['content']): ChatMessage => ({
  role: 'tool',
  tool_call_id: id,
  content: content ?? null,
});

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

  describe('messages', () => {
    it('gathers system and developer messages into systemInstruction, in order', () => {
      const body = translate({
        messages: [
          { role: 'system', content: 'A' },
          user('Hi'),
          { role: 'developer', content: [{ type: 'text', text: 'B' }] },
        ],
      });
      expect(body.systemInstruction).to.deep.equal({ parts: [{ text: 'A' }, { text: 'B' }] });
      expect(body.contents).to.deep.equal([{ role: 'user', parts: [{ text: 'Hi' }] }]);
    });

    it('gives Gemma, which has no systemInstruction, the system text as the user’s', () => {
      const body = translate({ messages: [{ role: 'system', content: 'A' }, user('Hi')] }, 'gemma-3-27b-it');
      expect(body).to.not.have.property('systemInstruction');
      expect(body.contents).to.deep.equal([{ role: 'user', parts: [{ text: 'A' }, { text: 'Hi' }] }]);
    });

    it('takes a request of system messages alone for a user’s', () => {
      expect(contents([{ role: 'system', content: 'A' }])).to.deep.equal([{ role: 'user', parts: [{ text: 'A' }] }]);
    });

    it('merges messages of one role and drops empty text', () => {
      expect(
        contents([
          user('a'),
          user(''),
          user('b'),
          { role: 'assistant', content: '' },
          user([{ type: 'text', text: 'c' }]),
        ]),
      ).to.deep.equal([{ role: 'user', parts: [{ text: 'a' }, { text: 'b' }, { text: 'c' }] }]);
    });

    it('puts a user’s turn before an assistant who speaks first and after one who speaks last', () => {
      const roles = translate({ messages: [{ role: 'assistant', content: 'Welcome' }] }).contents.map(
        ({ role }) => role,
      );
      expect(roles).to.deep.equal(['user', 'model', 'user']);
    });

    it('refuses messages without any content', () => {
      expect(() => contents([user('')]))
        .to.throw('content')
        .with.property('code', 'invalid_request');
    });

    it('names the function of each result by its call’s id, and answers in the order of the calls', () => {
      const turns = contents([user('x'), called('a', 'b'), result('b', 'B'), result('a', 'A')]) as {
        parts: unknown[];
      }[];
      expect(turns[2]).to.deep.equal({
        role: 'user',
        parts: [
          { functionResponse: { id: 'a', name: 'do_a', response: { output: 'A' } } },
          { functionResponse: { id: 'b', name: 'do_b', response: { output: 'B' } } },
        ],
      });
    });

    it('keeps a result’s text byte for byte, also where it is JSON with long numbers', () => {
      const text = '{"id": 12345678901234567890}';
      expect(JSON.stringify(contents([user('x'), called('a'), result('a', text)]))).to.include(JSON.stringify(text));
    });

    it('keeps results apart from the user’s words after them, as the vendor counts their parts', () => {
      const turns = contents([user('x'), called('a'), result('a', 'A'), user('and?')]) as { parts: unknown[] }[];
      expect(turns.slice(2).map(({ parts }) => parts.length)).to.deep.equal([1, 1]);
    });

    it('wraps arguments that are not a JSON object instead of losing them', () => {
      const message: ChatMessage = {
        role: 'assistant',
        tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{"cut' } }],
      };
      expect(JSON.stringify(contents([user('x'), message, result('a', 'A')]))).to.include(
        '"args":{"arguments":"{\\"cut"}',
      );
    });

    for (const [title, messages, param] of [
      ['a call without its result', [user('x'), called('a', 'b'), result('a', 'A')], 'messages[1].tool_calls[1].id'],
      ['a result without its call', [user('x'), result('a', 'A')], 'messages[1]'],
      ['a result of another call', [user('x'), called('a'), result('z', 'A')], 'messages[2].tool_call_id'],
      [
        'two results of one call',
        [user('x'), called('a'), result('a', '1'), result('a', '2')],
        'messages[3].tool_call_id',
      ],
      ['two calls with one id', [user('x'), called('a', 'a'), result('a', '1')], 'messages[1].tool_calls[1].id'],
    ] as const) {
      it(`refuses ${title}`, () => {
        expect(() => contents(messages))
          .to.throw()
          .with.property('param', param);
      });
    }
  });

  describe('parts', () => {
    const PNG = 'data:image/png;base64,iVBORw0KGgo=';
    for (const [title, part, expected] of [
      [
        'a data: image',
        { type: 'image_url', image_url: { url: PNG } },
        { inlineData: { mimeType: 'image/png', data: 'iVBORw0KGgo=' } },
      ],
      [
        'an image behind a URL',
        { type: 'image_url', image_url: { url: 'https://x.test/a.JPG?x=1' } },
        { fileData: { mimeType: 'image/jpeg', fileUri: 'https://x.test/a.JPG?x=1' } },
      ],
      [
        'a file of unknown type behind a URL',
        { type: 'image_url', image_url: { url: 'https://youtu.be/x' } },
        { fileData: { fileUri: 'https://youtu.be/x' } },
      ],
      [
        'sound',
        { type: 'input_audio', input_audio: { data: 'UklGRg==', format: 'wav' } },
        { inlineData: { mimeType: 'audio/wav', data: 'UklGRg==' } },
      ],
      [
        'a PDF',
        { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0=' } },
        { inlineData: { mimeType: 'application/pdf', data: 'JVBERi0=' } },
      ],
    ] as const) {
      it(`sends ${title}`, () => {
        expect(contents([user([part])])).to.deep.equal([{ role: 'user', parts: [expected] }]);
      });
    }

    for (const [title, part, param] of [
      [
        'plain http',
        { type: 'image_url', image_url: { url: 'http://x.test/a.png' } },
        'messages[0].content[0].image_url.url',
      ],
      [
        'a data: URL that is not base64',
        { type: 'image_url', image_url: { url: 'data:image/png,abc' } },
        'messages[0].content[0].image_url.url',
      ],
      [
        'an unknown kind of sound',
        { type: 'input_audio', input_audio: { data: 'AA==', format: 'midi' } },
        'messages[0].content[0].input_audio.format',
      ],
      ['a file of OpenAI’s', { type: 'file', file: { file_id: 'file-1' } }, 'messages[0].content[0].file'],
      ['an unknown part', { type: 'hologram' }, 'messages[0].content[0].type'],
    ] as const) {
      it(`refuses ${title}`, () => {
        expect(() => contents([user([part])]))
          .to.throw()
          .with.property('param', param);
      });
    }

    it('puts the images of a result inside it for Gemini 3, and beside it before', () => {
      const messages = [user('x'), called('a'), result('a', [{ type: 'image_url', image_url: { url: PNG } }])];
      const newer = contents(messages) as { parts: { functionResponse: { parts?: unknown[] } }[] }[];
      const older = contents(messages, OLD_MODEL) as { parts: unknown[] }[];
      expect(newer[2]?.parts[0]?.functionResponse.parts).to.have.length(1);
      expect(older[2]?.parts).to.have.length(2);
    });
  });

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
      expect(translate({ temperature: null, n: 1, stop: null, logprobs: false, user: undefined })).to.have.all.keys(
        'contents',
      );
    });

    it('drops penalties for Gemini 2.5, which answers 400 to them', () => {
      const fields = { frequency_penalty: 1, presence_penalty: 1 };
      expect(translate(fields, OLD_MODEL)).to.not.have.property('generationConfig');
      expect(dropped(fields, OLD_MODEL)).to.deep.equal(['frequency_penalty', 'presence_penalty']);
    });

    it('tells which fields it leaves out, but none whose value asks for nothing', () => {
      expect(dropped({ user: 'u', logit_bias: { 1: 2 }, unheard_of: 1 })).to.have.members([
        'user',
        'logit_bias',
        'unheard_of',
      ]);
      expect(dropped({ logit_bias: {}, store: false, parallel_tool_calls: true, service_tier: 'auto' })).to.deep.equal(
        [],
      );
    });

    for (const [field, value] of [
      ['n', 9],
      ['stop', ['a', 'b', 'c', 'd', 'e', 'f']],
      ['modalities', ['text', 'audio']],
      ['audio', { voice: 'x' }],
      ['web_search_options', {}],
      ['functions', [{ name: 'f' }]],
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
      ['gemini-5-neon', 'minimal', { thinkingLevel: 'minimal', includeThoughts: true }],
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
