import { expect } from 'chai';
import type { ChatMessage, ChatRequest } from '../../../../contract/index.ts';
import { geminiResponse } from '../../../../plugins/formats/google/read-response.ts';
import { geminiStream } from '../../../../plugins/formats/google/read-stream.ts';
import plugin from '../../../../plugins/providers/gemini.ts';
import { setUpProvider } from '../../../conformance/provider-subject.ts';
import { codecCall, decode } from '../../../support/formats/codec.ts';
import { translate } from '../../../support/formats/translate.ts';

const model = 'gemini-3.8-flash';
const send = (fields: Partial<ChatRequest>, config = {}) => translate(plugin, { model, ...fields }, config);
const user: ChatMessage = { role: 'user', content: 'Hi' };
const opaque = (value: unknown, dialect = 'gemini') => ({ type: 'opaque' as const, dialect, value });
const contentsOf = (messages: readonly ChatMessage[]) => send({ messages }).body['contents'];

describe('gemini’s extension fields', () => {
  it('are sent back as opaque blocks of its own format; those of others as text or not at all', () => {
    const code = { executableCode: { code: 'print(1)' } };
    const content = [
      opaque(code),
      { ...opaque({ x: 1 }, 'messages'), text: 'searched' },
      opaque({ y: 1 }, 'responses'),
    ];
    const [, said] = contentsOf([user, { role: 'assistant', content }, user]) as { parts: object[] }[];
    expect(said?.parts).to.deep.equal([code, { text: 'searched' }]);
  });

  it('cannot name a file or a cache of the operator’s account, unless the operator allows it', () => {
    const part = opaque({ file_data: { file_uri: 'files/1' } });
    const cached = { dialect_fields: { gemini: { cached_content: 'cachedContents/1' } } };
    expect(() => send({ messages: [{ role: 'user', content: [part] }] })).to.throw(/cachedContent/);
    expect(() => send(cached))
      .to.throw()
      .with.property('param', 'cached_content');
    const allowed = send({ ...cached, messages: [{ role: 'user', content: [part] }] }, { cachedContent: true }).body;
    expect(allowed).to.include({ cachedContent: 'cachedContents/1' });
    expect(JSON.stringify(allowed)).to.include('files/1');
  });

  it('pass its own fields, and never a second name of a checked and priced one', () => {
    const gemini = {
      ...{ safetySettings: [{ category: 'A', threshold: 'B' }], brandNew: 1, contents: [], labels: { a: 'b' } },
      generationConfig: { max_output_tokens: 9999, MaxOutputTokens: 9999, candidateCount: 8, newField: true },
    };
    const { body } = send({ max_completion_tokens: 5, dialect_fields: { gemini, messages: { speed: 'fast' } } });
    expect(body['generationConfig']).to.deep.equal({ newField: true, maxOutputTokens: 5 });
    expect(body).to.include({ brandNew: 1 }).and.not.have.any.keys('labels', 'speed');
    expect(body['contents']).to.have.length(1);
  });

  it('keep the exact thinking that a caller wrote until a hook sets another effort', () => {
    const dialect_fields = {
      gemini: { generationConfig: { thinkingConfig: { thinkingBudget: 3000, includeThoughts: true } } },
    };
    const thinkingOf = (reasoning_effort: string) =>
      (send({ dialect_fields, reasoning_effort }).body['generationConfig'] as Record<string, unknown>)[
        'thinkingConfig'
      ];
    expect(thinkingOf('medium')).to.deep.equal({ thinkingBudget: 3000, includeThoughts: true });
    expect(thinkingOf('low')).to.deep.equal({ thinkingLevel: 'low', includeThoughts: true });
  });

  it('drop tools of other formats, and refuse Gemini’s server tools', () => {
    const foreign = [opaque({ type: 'web_search' }, 'messages')] as never[];
    expect(send({ tools: foreign }).dropped).to.include('tools');
    const own = [opaque({ googleSearch: {} })] as never[];
    expect(() => send({ tools: own }))
      .to.throw()
      .with.property('param', 'tools[0]');
  });

  const candidate = {
    content: {
      parts: [
        { functionCall: { name: 'f', args: {} } },
        { text: 'hm', thought: true, thoughtSignature: 'c2ln' },
        { text: 'So' },
      ],
    },
    finishReason: 'RECITATION',
  };
  const details = [{ kind: 'text', text: 'hm', signature: 'c2ln', format: 'gemini' }];

  it('include in a response: signed thinking, order, and Google’s own reason', () => {
    const [choice] = geminiResponse({ candidates: [candidate] }, codecCall()).choices;
    expect(choice?.message).to.deep.include({
      reasoning_details: details,
      order: ['tool:0', 'reasoning:0', 'content:0'],
    });
    expect(choice).to.deep.include({ finish_reason: 'content_filter', finish: { native: 'RECITATION' } });
  });

  it('include in a stream: calls before the text after them', () => {
    const { chunks } = decode(geminiStream(codecCall()), [{ data: JSON.stringify({ candidates: [candidate] }) }]);
    const choices = chunks.flatMap((each) => each.choices);
    expect(choices.find(({ delta }) => delta.reasoning_details)?.delta.reasoning_details).to.deep.equal(details);
    const at = (find: (delta: object) => boolean) => choices.findIndex(({ delta }) => find(delta));
    expect(at((delta) => 'tool_calls' in delta)).to.be.lessThan(
      at((delta) => 'content' in delta && delta.content === 'So'),
    );
    expect(choices.at(-1)?.finish).to.deep.equal({ native: 'RECITATION' });
  });

  it('are passed through natively for every model, with and without a stream and for counts, unless disabled', () => {
    const { native } = setUpProvider(plugin, {});
    expect(native?.('gemini-2.5-pro', false)['gemini']?.path).to.equal('/models/gemini-2.5-pro:generateContent');
    const row = native?.('gemini-2.5-pro', true)['gemini'];
    expect(row?.path).to.equal('/models/gemini-2.5-pro:streamGenerateContent?alt=sse');
    expect(row?.count?.path).to.equal('/models/gemini-2.5-pro:countTokens');
    expect(row?.count?.response({ totalTokens: 7 })).to.equal(7);
    expect(row?.count?.response({})).to.equal(undefined);
    expect(setUpProvider(plugin, { native: false }).native).to.equal(undefined);
  });
});
