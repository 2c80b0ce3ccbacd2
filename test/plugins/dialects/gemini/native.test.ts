import { expect } from 'chai';
import type { ChatRequest, Tool } from '../../../../contract/index.ts';
import plugin from '../../../../plugins/dialects/gemini.ts';
import { contextOf, dialectOf, inputOf } from './given.ts';

const dialect = dialectOf(plugin);
const CONTENTS = [{ role: 'user', parts: [{ text: 'Hi' }] }];

/** Body for Google after hooks applied `change` to the request. */
function patch(
  body: object,
  change: (request: ChatRequest) => ChatRequest = (request) => request,
  method = ':generateContent',
) {
  const input = inputOf(dialect, body, { method });
  const before = dialect.read(input).request;
  return dialect.native?.patch(body, {
    ...{ before, after: change(before), model: 'gemini-2.5-pro', stream: false },
    open: () => undefined,
    scope: (text) => text,
  });
}

describe('the native lane of the gemini dialect', () => {
  it('sends the very fields of the caller, in their order and spelling, unknown ones too', () => {
    const body = {
      ...{ labels: { a: 'b' }, contents: CONTENTS, tools: [{ googleSearch: {}, newTool: { x: 1 } }], brand_new: [1] },
      generation_config: { max_output_tokens: 5, other: { deep: true } },
    };
    expect(JSON.stringify(patch(body)?.body)).to.equal(JSON.stringify(body));
  });

  it('writes hooks’ changes at the caller’s place', () => {
    const body = {
      contents: CONTENTS,
      generation_config: { max_output_tokens: 50, thinking_config: { include_thoughts: true } },
    };
    const sent = patch(body, (request) => ({
      ...request,
      max_tokens: 9,
      temperature: 0,
      stop: 'x',
      reasoning_effort: 'low',
    }));
    expect(sent?.body).to.deep.equal({
      contents: CONTENTS,
      generation_config: {
        max_output_tokens: 9,
        thinking_config: { includeThoughts: true, thinkingBudget: 1024 },
        temperature: 0,
        stopSequences: ['x'],
      },
    });
  });

  it('adds messages and tools of hooks at either end, and rejects others', () => {
    const body = { system_instruction: { parts: [{ text: 'Own' }] }, contents: CONTENTS };
    const tool: Tool = { type: 'function', function: { name: 'a', parameters: { type: 'object' } } };
    const sent = patch(body, (request) => ({
      ...request,
      messages: [{ role: 'system', content: 'First' }, ...request.messages, { role: 'user', content: 'Last' }],
      tools: [tool],
    }));
    expect(sent?.body).to.deep.equal({
      system_instruction: { parts: [{ text: 'First' }, { text: 'Own' }] },
      contents: [...CONTENTS, { role: 'user', parts: [{ text: 'Last' }] }],
      tools: [{ functionDeclarations: [{ name: 'a', parametersJsonSchema: { type: 'object' } }] }],
    });
    const pictured = {
      role: 'user' as const,
      content: [{ type: 'image_url', image_url: { url: 'https://x.test/a.png' } }],
    };
    expect(patch(body, (request) => ({ ...request, messages: [...request.messages, pictured] }))).to.equal(undefined);
  });

  it('leaves out thinking of other formats, and makes ids of calls valid in both places', () => {
    const foreign = Buffer.from('tollgate:{"kind":"text","format":"anthropic","signature":"s"}').toString('base64');
    const id = 'functions.read:0';
    const contents = [
      ...CONTENTS,
      {
        role: 'model',
        parts: [{ text: 'hm', thought: true, thoughtSignature: foreign }, { functionCall: { id, name: 'read' } }],
      },
      { role: 'user', parts: [{ functionResponse: { id, name: 'read', response: {} } }] },
    ];
    const sent = patch({ contents });
    const { contents: written } = (sent?.body ?? {}) as { contents: { parts: Record<string, { id: string }>[] }[] };
    expect(sent?.dropped).to.deep.equal(['reasoning']);
    expect(written[1]?.parts).to.have.length(1);
    expect(written[1]?.parts[0]?.['functionCall']?.id).to.match(/^[\w-]{1,64}$/);
    expect(written[2]?.parts[0]?.['functionResponse']?.id).to.equal(written[1]?.parts[0]?.['functionCall']?.id);
  });

  it('names the provider’s model inside of a count', () => {
    const body = { generateContentRequest: { model: 'models/openai/gpt-5', contents: CONTENTS } };
    expect(patch(body, undefined, 'countTokens')?.body).to.deep.equal({
      generateContentRequest: { model: 'models/gemini-2.5-pro', contents: CONTENTS },
    });
  });

  it('passes every event on unchanged, as events or as one array', () => {
    for (const query of [{ alt: 'sse' }, {}] as Record<string, string>[]) {
      const input = inputOf(dialect, { contents: CONTENTS }, { method: 'streamGenerateContent', query });
      const stream = dialect.native?.stream(contextOf(input, dialect.read(input).request));
      const events = [{ candidates: [], newField: 1 }, { usageMetadata: { x: 2 } }];
      const text = events.map((event) => stream?.push({ data: JSON.stringify(event) })).join('') + stream?.end();
      const values =
        'alt' in query
          ? text
              .split('\n\n')
              .filter(Boolean)
              .map((each) => JSON.parse(each.slice(6)))
          : JSON.parse(text);
      expect(values).to.deep.equal(events);
    }
  });
});
