import { expect } from 'chai';
import { isGatewayError } from '../../../contract/index.ts';
import { imagesCodec } from '../../../plugins/formats/openai-operations.ts';
import anthropic from '../../../plugins/providers/anthropic.ts';
import azure from '../../../plugins/providers/azure.ts';
import deepseek from '../../../plugins/providers/deepseek.ts';
import gemini from '../../../plugins/providers/gemini.ts';
import hyperbolic from '../../../plugins/providers/hyperbolic.ts';
import mistral from '../../../plugins/providers/mistral.ts';
import openai from '../../../plugins/providers/openai.ts';
import compatible from '../../../plugins/providers/openai-compatible.ts';
import openrouter from '../../../plugins/providers/openrouter.ts';
import together from '../../../plugins/providers/together.ts';
import { setUpProvider } from '../../conformance/provider-subject.ts';
import { codecCall } from '../../support/formats/codec.ts';
import { translate } from '../../support/formats/translate.ts';

const LOCAL = { baseUrl: 'http://127.0.0.1:8000/v1' };
const CLAUDE = { model: 'claude-sonnet-4-6' };
const GEMINI = { model: 'gemini-3.8-flash' };

describe('fields that go to vendors', () => {
  for (const plugin of [hyperbolic, mistral]) {
    it(`D20: presence_penalty reaches ${plugin.name}`, () => {
      const { body, dropped } = translate(plugin, { presence_penalty: 0.5 });
      expect(body).to.include({ presence_penalty: 0.5 });
      expect(dropped).to.deep.equal([]);
    });
  }

  it('G5: Anthropic gets at most four cache marks, and none of an hour after one of five minutes', () => {
    const mark = { type: 'ephemeral' };
    const parts = Array.from({ length: 6 }, (_, at) => ({ type: 'text', text: `part ${at}`, cache_control: mark }));
    const marksIn = (fields: object): readonly string[] =>
      JSON.stringify(translate(anthropic, { ...CLAUDE, ...fields }).body).match(/"cache_control":\{[^}]*\}/g) ?? [];
    expect(marksIn({ messages: [{ role: 'user', content: parts }] })).to.have.length(4);
    const dropped = translate(anthropic, { ...CLAUDE, messages: [{ role: 'user', content: parts }] }).dropped;
    expect(dropped).to.deep.equal(['cache_control']);
    const own = Array.from({ length: 6 }, () => ({ role: 'user', content: 'Hi', cache_control: mark }));
    expect(marksIn({ messages: own })).to.have.length(4);
    const messages = [
      { role: 'system', content: [{ type: 'text', text: 's', cache_control: { ...mark, ttl: '5m' } }] },
      { role: 'user', content: [{ type: 'text', text: 'u', cache_control: { ...mark, ttl: '1h' } }] },
    ];
    const marks = marksIn({ messages });
    expect(marks).to.have.length(2);
    expect(marks[1]).to.not.include('1h');
  });

  it('G8: GPT image models get no fields of DALL·E, and other models do', () => {
    const codec = imagesCodec({});
    const sent = (model: string, fields: object) =>
      codec.request({ model, prompt: 'A dot', ...fields }, [], codecCall({ model }));
    const fields = { response_format: 'b64_json', style: 'vivid', quality: 'hd', size: '1024x1024' };
    for (const model of ['gpt-image-1.5', 'gpt-image-2']) {
      const { body, dropped } = sent(model, fields);
      expect(body).to.deep.equal({ model, prompt: 'A dot', size: '1024x1024' });
      expect(dropped).to.have.members(['response_format', 'style', 'quality']);
      expect(sent(model, { quality: 'high' }).body).to.include({ quality: 'high' });
    }
    expect(sent('dall-e-3', fields).body).to.include(fields);
  });

  it('D25: Anthropic gets its own fields, betas as a header', () => {
    const context_management = { edits: [{ type: 'clear_tool_uses_20250919' }] };
    const fields = {
      ...CLAUDE,
      context_management,
      output_config: { effort: 'low' },
      stop: 'A',
      stop_sequences: ['B'],
    };
    const { body, dropped } = translate(anthropic, fields);
    expect(body).to.deep.include({ context_management, output_config: { effort: 'low' }, stop_sequences: ['A', 'B'] });
    expect(dropped).to.deep.equal([]);
    const { chat } = setUpProvider(anthropic, {});
    const request = { ...CLAUDE, messages: [{ role: 'user', content: 'Hi' }], betas: ['a-1', 'b-2'] } as const;
    expect(chat?.request(request, codecCall(CLAUDE)).headers).to.deep.equal({ 'anthropic-beta': 'a-1,b-2' });
  });

  it('D25: a beta whose name is no plain word is refused: it would be written into a header', () => {
    expect(() => translate(anthropic, { ...CLAUDE, betas: ['a\r\nx-api-key: k'] }))
      .to.throw()
      .that.satisfies((error: unknown) => isGatewayError(error) && error.param === 'betas');
  });

  it('D25: features of Anthropic with their own price are reported', () => {
    const fields = { ...CLAUDE, speed: 'fast', container: 'c', mcp_servers: [] };
    expect(translate(anthropic, fields).dropped).to.have.members(['speed', 'container', 'mcp_servers']);
  });

  it('D25: Gemini gets its own fields, at the top and in extra_body.google', () => {
    const own = { media_resolution: 'MEDIA_RESOLUTION_LOW', thinking_config: { thinking_budget: 0 } };
    const config = { mediaResolution: 'MEDIA_RESOLUTION_LOW', thinkingConfig: { thinkingBudget: 0 } };
    for (const fields of [own, { extra_body: { google: own } }, { extra_body: own }]) {
      const { body, dropped } = translate(gemini, { ...GEMINI, ...fields });
      expect(body).to.deep.include({ generationConfig: config });
      expect(dropped).to.deep.equal([]);
    }
  });

  it('G29: Gemini gets its own fields in camelCase as well', () => {
    const config = {
      mediaResolution: 'MEDIA_RESOLUTION_LOW',
      thinkingConfig: { thinkingBudget: 0, includeThoughts: true },
    };
    const thinking = { thinkingBudget: 0, includeThoughts: true };
    const own = { mediaResolution: 'MEDIA_RESOLUTION_LOW', thinkingConfig: thinking };
    const mixed = { media_resolution: 'MEDIA_RESOLUTION_LOW', thinking_config: thinking };
    for (const fields of [own, mixed, { extra_body: { google: own } }, { extra_body: own }]) {
      const { body, dropped } = translate(gemini, { ...GEMINI, ...fields });
      expect(body).to.deep.include({ generationConfig: config });
      expect(dropped).to.deep.equal([]);
    }
    expect(() => translate(gemini, { ...GEMINI, cachedContent: 'cachedContents/a' })).to.throw('cached_content');
  });

  for (const model of ['gemini-4-hydrogen', 'gemini-4-hydrogen-preview', 'gemini-4-argon'])
    it(`G29: ${model} gets no penalties`, () => {
      const { body, dropped } = translate(gemini, { ...GEMINI, model, frequency_penalty: 1, presence_penalty: 1 });
      expect(JSON.stringify(body)).not.to.include('Penalty');
      expect(dropped).to.have.members(['frequency_penalty', 'presence_penalty']);
    });

  it('D25: further members of Gemini’s extra_body are reported', () => {
    const extra_body = { google: { thinking_config: { thinking_budget: 0 }, other: 1 }, more: 2 };
    expect(translate(gemini, { ...GEMINI, extra_body }).dropped).to.have.members([
      'extra_body.other',
      'extra_body.more',
    ]);
  });

  it('D25: a search with a fee is reported, cached content needs the operator’s permission', () => {
    expect(translate(gemini, { ...GEMINI, google_search: {} }).dropped).to.deep.equal(['google_search']);
    const cached = { ...GEMINI, cached_content: 'cachedContents/a' };
    expect(() => translate(gemini, cached)).to.throw('cached_content');
    expect(translate(gemini, cached, { cachedContent: true }).body).to.include({ cachedContent: 'cachedContents/a' });
  });

  it('D25: extra_body is merged if the vendor has the field, and otherwise reported', () => {
    const extra_body = { top_k: 5, max_tokens: 9000, model: 'dear', made_up: 1 };
    const merged = translate(together, { extra_body, max_tokens: 5 });
    expect(merged.body).to.include({ top_k: 5, max_tokens: 5, model: 'm' }).and.not.have.property('made_up');
    expect(merged.dropped).to.deep.equal(['extra_body.max_tokens', 'extra_body.model', 'extra_body.made_up']);
    const closed = translate(mistral, { extra_body: { safe_prompt: true, made_up: 1 } });
    expect(closed.body).to.include({ safe_prompt: true }).and.not.have.property('made_up');
    expect(closed.dropped).to.deep.equal(['extra_body.made_up']);
  });

  it('D1: a field in the guise of a known one does not reach a vendor, nor does extra_body bring one', () => {
    const guise = { Model: 'dear', MAX_TOKENS: 9000, me\u017f\u017fages: [], Models: ['dear'] };
    for (const plugin of [compatible, openrouter]) {
      const { body } = translate(plugin, { ...guise, extra_body: { ...guise } }, plugin === compatible ? LOCAL : {});

      expect(body).to.have.all.keys('model', 'messages', ...(plugin === compatible ? ['Models'] : []));
    }
  });

  const EFFORTS: readonly (readonly [model: string, given: string, sent: string | undefined])[] = [
    ['gpt-5', 'none', 'minimal'],
    ['gpt-5', 'xhigh', 'high'],
    ['gpt-5.1', 'minimal', 'none'],
    ['gpt-5.4', 'max', 'xhigh'],
    ['gpt-5.6-sol', 'max', 'max'],
    ['gpt-6-astra', 'none', 'low'],
    ['gpt-6-sol', 'none', 'none'],
    ['o4-mini', 'minimal', 'low'],
    ['ft:o4-mini:acme::a1', 'max', 'high'],
    ['gpt-4o', 'low', undefined],
  ];
  for (const [model, given, sent] of EFFORTS) {
    it(`D26: OpenAI’s ${model} gets the effort ${sent ?? 'not'} for ${given}`, () => {
      const { body, dropped } = translate(openai, { model, reasoning_effort: given });
      expect(body['reasoning_effort']).to.equal(sent);
      expect(dropped).to.deep.equal(sent === undefined ? ['reasoning_effort'] : []);
    });
  }

  it('D26: efforts are those of the model behind a deployment of Azure', () => {
    const config = { resource: 'acme', deployments: { prod: 'gpt-5' } };
    expect(translate(azure, { model: 'prod', reasoning_effort: 'max' }, config).body).to.include({
      reasoning_effort: 'high',
    });
  });

  it('D26: together disables reasoning for the effort none', () => {
    const { body } = translate(together, { reasoning_effort: 'none' });
    expect(body)
      .to.deep.include({ reasoning: { enabled: false } })
      .and.not.have.property('reasoning_effort');
  });

  it('D26: deepseek gets strict tools on its beta base only', () => {
    const tools = [{ type: 'function', function: { name: 'f', strict: true } }];
    const plain = translate(deepseek, { tools });
    expect(plain.body).to.deep.include({ tools: [{ type: 'function', function: { name: 'f' } }] });
    expect(plain.dropped).to.deep.equal(['tools.strict']);
    const beta = translate(deepseek, { tools }, { baseUrl: 'https://api.deepseek.com/beta' });
    expect(beta.body).to.deep.include({ tools });
  });
});
