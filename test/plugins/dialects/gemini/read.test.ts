import { expect } from 'chai';
import plugin from '../../../../plugins/dialects/gemini.ts';
import { dialectOf, read as readWith } from './given.ts';

const dialect = dialectOf(plugin);
const HI = { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] };
const read = (body: object, rest = {}) => readWith(dialect, body, rest);
const requestOf = (body: object) => read({ ...HI, ...body }).request;
const messagesOf = (...contents: object[]) => read({ contents }).request.messages;
const call = (name: string, id?: string) => ({ functionCall: { ...(id && { id }), name, args: { of: id ?? name } } });
const result = (name: string, id?: string, output = `${name} ${id}`) => ({
  functionResponse: { ...(id && { id }), name, response: { output } },
});
const user = (...parts: object[]) => ({ role: 'user', parts });
const model = (...parts: object[]) => ({ role: 'model', parts });

describe('the gemini dialect reads', () => {
  for (const [path, name] of [
    ['gemini-2.5-pro', 'gemini-2.5-pro'],
    ['models/gemini-2.5-pro', 'gemini-2.5-pro'],
    ['tunedModels/mine', 'mine'],
    ['local/llama3:8b', 'local/llama3:8b'],
  ])
    it(`the model ${path} of the path as ${name}`, () => {
      expect(read(HI, { model: path }).request.model).to.equal(name);
    });

  it('a stream from the path only', () => {
    expect(read(HI, { method: 'streamGenerateContent' }).request.stream).to.equal(true);
    expect(read(HI, { method: ':generateContent' }).request).not.to.have.property('stream');
  });

  it('a response schema by each of the names that Google has for it', () => {
    const schema = { type: 'object', properties: { a: { type: 'string' } } };
    for (const name of ['responseJsonSchema', '_responseJsonSchema', 'response_json_schema'])
      expect(
        requestOf({ generationConfig: { responseMimeType: 'application/json', [name]: schema } }).response_format,
        name,
      ).to.have.property('type', 'json_schema');
  });

  it('every field that bounds or raises the cost, in both spellings', () => {
    const wanted = {
      ...{ max_completion_tokens: 9, temperature: 1, top_p: 0.5, top_k: 3, stop: ['x'], n: 2, seed: 7 },
      ...{ frequency_penalty: 0.1, presence_penalty: 0.2, logprobs: true, top_logprobs: 4, reasoning_effort: 'medium' },
    };
    const camel = requestOf({
      generationConfig: {
        ...{ maxOutputTokens: 9, temperature: 1, topP: 0.5, topK: 3, stopSequences: ['x'], candidateCount: 2, seed: 7 },
        ...{ frequencyPenalty: 0.1, presencePenalty: 0.2, responseLogprobs: true, logprobs: 4 },
        thinkingConfig: { thinkingBudget: 8000 },
      },
    });
    const snake = requestOf({
      generation_config: {
        ...{ max_output_tokens: 9, temperature: 1, top_p: 0.5, top_k: 3, stop_sequences: ['x'], candidate_count: 2 },
        ...{ seed: 7, frequency_penalty: 0.1, presence_penalty: 0.2, response_logprobs: true, logprobs: 4 },
        thinking_config: { thinking_budget: 8000 },
      },
    });
    expect(camel).to.include.keys(Object.keys(wanted));
    for (const [name, value] of Object.entries(wanted)) {
      expect(camel[name], name).to.deep.equal(value);
      expect(snake[name], name).to.deep.equal(value);
    }
  });

  it('a thinking level, no thinking, and a budget that the model chooses', () => {
    const effortOf = (thinkingConfig: object) => requestOf({ generationConfig: { thinkingConfig } }).reasoning_effort;
    expect(effortOf({ thinkingLevel: 'HIGH' })).to.equal('high');
    expect(effortOf({ thinkingBudget: 0 })).to.equal('none');
    expect(effortOf({ thinkingBudget: -1 })).to.equal(undefined);
    expect(effortOf({ thinkingBudget: 30_000 })).to.equal('xhigh');
  });

  it('parts of every kind', () => {
    const [message] = messagesOf(
      user(
        { text: 'See' },
        { inlineData: { mimeType: 'image/png', data: 'AAAA' } },
        { inline_data: { mime_type: 'audio/mp3', data: 'AAAA' } },
        { inlineData: { mimeType: 'application/pdf', data: 'AAAA', displayName: 'a.pdf' } },
        { fileData: { mimeType: 'image/jpeg', fileUri: 'https://x.test/a.jpg' } },
        { fileData: { mimeType: 'video/mp4', fileUri: 'https://x.test/a.mp4' }, videoMetadata: { fps: 1 } },
      ),
    );
    expect(message?.content).to.deep.equal([
      { type: 'text', text: 'See' },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
      { type: 'input_audio', input_audio: { data: 'AAAA', format: 'mp3' } },
      { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,AAAA' } },
      { type: 'image_url', image_url: { url: 'https://x.test/a.jpg' } },
      {
        ...{ type: 'video_url', video_url: { url: 'https://x.test/a.mp4' } },
        dialect_fields: { gemini: { videoMetadata: { fps: 1 } } },
      },
    ]);
  });

  it('a system instruction, and single values that Google accepts as a list', () => {
    const { messages } = read({
      system_instruction: { parts: { text: 'Be a cat' } },
      contents: { parts: { text: 'Hi' } },
    }).request;
    expect(messages).to.deep.equal([
      { role: 'system', content: 'Be a cat' },
      { role: 'user', content: 'Hi' },
    ]);
  });

  it('results by id, else by order within a name, else by order', () => {
    const turn = model(call('a', 'x1'), call('a'), call('b'), call('c'));
    const messages = messagesOf(
      user({ text: 'Go' }),
      turn,
      user(
        result('d', undefined, 'for c'),
        result('b', undefined, 'for b'),
        result('a', undefined, 'for a2'),
        result('a', 'x1', 'for a1'),
      ),
    );
    const calls = messages[1]?.tool_calls ?? [];
    const found = Object.fromEntries(messages.slice(2).map((one) => [one.tool_call_id, one.content]));
    expect(calls.map(({ id }) => found[id])).to.deep.equal(['for a1', 'for a2', 'for b', 'for c']);
  });

  it('results before the text next to them, in one turn or several', () => {
    const messages = messagesOf(
      user({ text: 'Go' }),
      model(call('a', '1'), call('a', '2')),
      user({ text: 'here' }, result('a', '1')),
      { role: 'function', parts: [result('a', '2')] },
    );
    expect(messages.map(({ role }) => role)).to.deep.equal(['user', 'assistant', 'tool', 'tool', 'user']);
  });

  it('an error of a function, and an output that is no text', () => {
    const failed = { functionResponse: { id: '1', name: 'a', response: { error: 'no file' } } };
    const other = { functionResponse: { id: '2', name: 'a', response: { rows: [1] } } };
    const messages = messagesOf(user({ text: 'Go' }), model(call('a', '1'), call('a', '2')), user(failed, other));
    expect(messages[2]).to.include({ content: 'no file', is_error: true });
    expect(messages[3]).to.include({ content: '{"rows":[1]}' }).and.not.have.property('is_error');
  });

  it('a turn that a client stored in pieces as one turn', () => {
    const messages = messagesOf(
      user({ text: 'Go' }),
      model({ text: 'thin', thought: true }),
      model({ text: 'king', thought: true }, { text: 'Hel' }),
      model({ text: 'lo' }),
      model(call('a', '1')),
      model({ text: '', thoughtSignature: 'c2ln' }),
      user(result('a', '1')),
    );
    expect(messages).to.have.length(3);
    expect(messages[1]).to.deep.include({
      content: [
        { type: 'text', text: 'Hello' },
        { type: 'text', text: '', extra_content: { google: { thought_signature: 'c2ln' } } },
      ],
    });
    expect(messages[1]?.reasoning_content).to.equal('thinking');
    expect(messages[1]?.order).to.deep.equal(['reasoning:0', 'content:0', 'tool:0', 'content:1']);
  });

  it('signatures of calls, of text and of thinking, each at its place', () => {
    const messages = messagesOf(
      user({ text: 'Go' }),
      model(
        { text: 'hm', thought: true, thoughtSignature: 'dDE=' },
        { text: 'So', thoughtSignature: 'dDI=' },
        { ...call('a', '1'), thought_signature: 'dDM=' },
      ),
      user(result('a', '1')),
    );
    const google = (signature: string) => ({ google: { thought_signature: signature } });
    expect(messages[1]).to.deep.include({ content: 'So', extra_content: google('dDI=') });
    expect(messages[1]?.reasoning_details).to.deep.equal([
      { kind: 'text', text: 'hm', signature: 'dDE=', format: 'gemini' },
    ]);
    expect(messages[1]?.tool_calls?.[0]).to.deep.include({ extra_content: google('dDM=') });
  });

  it('code that Gemini ran as its own block, with text for others', () => {
    const code = { executableCode: { language: 'PYTHON', code: 'print(1)' } };
    const [, said] = messagesOf(user({ text: 'Go' }), model(code));
    expect(said?.content).to.deep.equal([
      { type: 'opaque', dialect: 'gemini', value: code, text: 'Code that was run:\nprint(1)' },
    ]);
  });

  it('functions in both forms of schema, and tools that Google runs as needs', () => {
    const { request, needs } = read({
      ...HI,
      tools: [
        {
          functionDeclarations: [
            {
              name: 'a',
              parameters: {
                type: 'OBJECT',
                propertyOrdering: ['y', 'x'],
                properties: {
                  x: { type: 'STRING', nullable: true },
                  y: { type: 'ARRAY', items: { type: 'INTEGER' }, minItems: '1' },
                },
              },
            },
          ],
        },
        { function_declarations: [{ name: 'b', parametersJsonSchema: { type: 'object' } }], googleSearch: {} },
      ],
      toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['a', 'b'] } },
    });
    expect(JSON.stringify(request.tools?.[0]?.function.parameters)).to.equal(
      '{"type":"object","properties":{"y":{"type":"array","items":{"type":"integer"},"minItems":1},"x":{"type":["string","null"]}}}',
    );
    expect(request.tools?.[1]?.function).to.deep.equal({ name: 'b', parameters: { type: 'object' } });
    expect(request.tools?.[2]).to.deep.include({ type: 'opaque', value: { googleSearch: {} } });
    expect(needs).to.deep.equal([{ kind: 'server tool', name: 'googleSearch', param: 'tools[1].googleSearch' }]);
    expect(request.tool_choice).to.deep.include({ type: 'allowed_tools' });
  });

  it('references to the operator’s account as a need', () => {
    const needsOf = (body: object) => read({ ...HI, ...body }).needs?.map(({ kind, param }) => [kind, param]);
    expect(needsOf({ cached_content: 'cachedContents/1' })).to.deep.equal([['reference', 'cached_content']]);
    for (const fileUri of ['files/abc', 'https://generativelanguage.googleapis.com/v1beta/files/abc'])
      expect(needsOf({ contents: [{ parts: [{ fileData: { fileUri } }] }] })).to.deep.equal([
        ['reference', 'contents[0].parts[0].fileData'],
      ]);
    expect(needsOf({ tools: [{ fileSearch: {} }] })?.map(([kind]) => kind)).to.deep.equal(['server tool', 'reference']);
  });

  it('an answer format with a schema', () => {
    const generationConfig = { responseMimeType: 'application/json', responseSchema: { type: 'OBJECT' } };
    expect(requestOf({ generationConfig }).response_format).to.deep.equal({
      ...{ type: 'json_schema', json_schema: { name: 'response', schema: { type: 'object' } } },
    });
    expect(requestOf({ generationConfig: { responseMimeType: 'application/json' } }).response_format).to.deep.equal({
      type: 'json_object',
    });
  });

  it('unknown fields as Gemini’s own, and reports their loss elsewhere', () => {
    const { request, dropped } = read({ ...HI, labels: { a: 'b' }, generationConfig: { newField: 1 } });
    expect(request.dialect_fields).to.deep.equal({ gemini: { labels: { a: 'b' }, generationConfig: { newField: 1 } } });
    expect(dropped).to.deep.equal(['generationConfig.newField', 'labels']);
  });

  it('a count of contents, or of a complete request with the model of the path', () => {
    const count = { method: 'countTokens', model: 'gemini-2.5-pro' };
    expect(read(HI, count).request.messages).to.have.length(1);
    const generateContentRequest = {
      model: 'models/gemini-2.5-pro',
      ...HI,
      systemInstruction: { parts: [{ text: 'x' }] },
    };
    expect(read({ generateContentRequest }, count).request.messages).to.have.length(2);
    for (const [body, param] of [
      [{ generateContentRequest: { ...HI, model: 'models/other' } }, 'generateContentRequest.model'],
      [{}, 'contents'],
      [{ ...HI, generateContentRequest: HI }, 'contents'],
    ] as const)
      expect(() => read(body, count))
        .to.throw()
        .with.property('param', param);
  });

  it('places of the canonical request back to those of the caller’s body', () => {
    const { place } = read({
      systemInstruction: { parts: [{ text: 'x' }] },
      contents: [user({ text: 'Go' }, { text: 'on' }), model({ text: 'a' }, call('a', '1')), user(result('a', '1'))],
      tools: [{}, { functionDeclarations: [{ name: 'a' }] }],
      generation_config: { max_output_tokens: 1, responseMimeType: 'application/json' },
    });
    for (const [canonical, caller] of [
      ['messages', 'contents'],
      ['messages[0].content', 'systemInstruction'],
      ['messages[1].content[1].text', 'contents[0].parts[1]'],
      ['messages[2].tool_calls[0].id', 'contents[1].parts[1].functionCall'],
      ['messages[3].tool_call_id', 'contents[2].parts[0].functionResponse'],
      ['tools[0].function.name', 'tools[1].functionDeclarations[0]'],
      ['max_completion_tokens', 'generation_config.max_output_tokens'],
      ['response_format.type', 'generation_config.responseMimeType'],
      ['model', 'model'],
    ])
      expect(place?.(canonical ?? ''), canonical).to.equal(caller);
  });
});
