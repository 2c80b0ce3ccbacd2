import { expect } from 'chai';
import { type ChatMessage, type ChatRequest, readObject } from '../../../contract/index.ts';
import { createResponsesCodec } from '../../../plugins/formats/openai-responses/read-stream.ts';
import { writeItems, writeResponsesRequest } from '../../../plugins/formats/openai-responses/write-request.ts';
import azure from '../../../plugins/providers/azure.ts';
import openai from '../../../plugins/providers/openai.ts';
import { classifyError } from '../../../plugins/providers/openai-compatible.ts';
import xai from '../../../plugins/providers/xai.ts';
import { setUpProvider } from '../../conformance/provider-subject.ts';
import { codecCall, decode } from '../../support/formats/codec.ts';
import { translate } from '../../support/formats/translate.ts';
import { responsesBody, responsesEvents } from '../../support/vendors/responses-wire.ts';

const PIXEL = 'data:image/png;base64,iVBORw0KGgo=';
const NOW = { type: 'function', function: { name: 'now' } } as const;
const SCHEMA = { type: 'object', properties: { city: { type: 'string' } } };
const text = (type: 'input_text' | 'output_text', words: string) => [{ type, text: words }];
const reasoning = (kind: 'summary' | 'encrypted', words: string, id: string) => ({
  ...{ kind, format: 'responses', id, ...(kind === 'encrypted' ? { data: words } : { text: words }) },
});
const call = (id: string) => ({ id, type: 'function' as const, function: { name: 'now', arguments: '{}' } });

/** Canonical messages, and the expected items. */
const MESSAGES: readonly {
  readonly title: string;
  readonly message: ChatMessage;
  readonly items: readonly object[];
}[] = [
  {
    title: 'words of a user',
    message: { role: 'user', content: 'Hi' },
    items: [{ type: 'message', role: 'user', content: text('input_text', 'Hi') }],
  },
  {
    title: 'images and documents',
    message: {
      role: 'user',
      content: [
        { type: 'image_url', image_url: { url: PIXEL, detail: 'low' } },
        { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,AA==' } },
        { type: 'file', file: { filename: 'b.pdf', file_data: 'https://files.example/b.pdf' } },
        { type: 'file', file: { file_id: 'file-1' } },
      ],
    },
    items: [
      {
        type: 'message',
        role: 'user',
        content: [
          { type: 'input_image', image_url: PIXEL, detail: 'low' },
          { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,AA==' },
          { type: 'input_file', file_url: 'https://files.example/b.pdf' },
          { type: 'input_file', file_id: 'file-1' },
        ],
      },
    ],
  },
  {
    title: 'a refusal',
    message: { role: 'assistant', content: null, refusal: 'No.' },
    items: [{ type: 'message', role: 'assistant', content: [{ type: 'refusal', refusal: 'No.' }] }],
  },
  {
    title: 'reasoning, words and calls in the usual order, each item of reasoning put together again',
    message: {
      role: 'assistant',
      content: 'I look.',
      tool_calls: [call('call_1'), call('call_2')],
      reasoning_details: [
        reasoning('summary', 'One.', 'rs_1'),
        reasoning('summary', 'Two.', 'rs_1'),
        reasoning('encrypted', 'AAA', 'rs_1'),
      ],
    },
    items: [
      {
        type: 'reasoning',
        summary: [
          { type: 'summary_text', text: 'One.' },
          { type: 'summary_text', text: 'Two.' },
        ],
        encrypted_content: 'AAA',
      },
      { type: 'message', role: 'assistant', content: text('output_text', 'I look.') },
      { type: 'function_call', call_id: 'call_1', name: 'now', arguments: '{}' },
      { type: 'function_call', call_id: 'call_2', name: 'now', arguments: '{}' },
    ],
  },
  {
    title: 'an order of its own',
    message: {
      role: 'assistant',
      content: 'I look.',
      tool_calls: [call('call_1'), call('call_2')],
      reasoning_details: [reasoning('encrypted', 'AAA', 'rs_1'), reasoning('encrypted', 'BBB', 'rs_2')],
      order: ['reasoning:0', 'tool:0', 'reasoning:1', 'content:0', 'tool:1'],
    },
    items: [
      { type: 'reasoning', summary: [], encrypted_content: 'AAA' },
      { type: 'function_call', call_id: 'call_1', name: 'now', arguments: '{}' },
      { type: 'reasoning', summary: [], encrypted_content: 'BBB' },
      { type: 'message', role: 'assistant', content: text('output_text', 'I look.') },
      { type: 'function_call', call_id: 'call_2', name: 'now', arguments: '{}' },
    ],
  },
  {
    title: 'no reasoning that the vendor would look for, nor that of others, nor any that led to nothing',
    message: {
      role: 'assistant',
      content: 'Done.',
      reasoning_details: [
        reasoning('summary', 'Only words.', 'rs_1'),
        { kind: 'text', text: 'Hm.', signature: 'sig', format: 'anthropic' },
        reasoning('encrypted', 'AAA', 'rs_2'),
      ],
      order: ['reasoning:0', 'reasoning:1', 'content:0', 'reasoning:2'],
    },
    items: [{ type: 'message', role: 'assistant', content: text('output_text', 'Done.') }],
  },
  {
    title: 'the result of a tool, with an image',
    message: {
      role: 'tool',
      tool_call_id: 'call_1',
      content: [
        { type: 'text', text: 'Here.' },
        { type: 'image_url', image_url: { url: PIXEL } },
      ],
    },
    items: [
      {
        type: 'function_call_output',
        call_id: 'call_1',
        output: [...text('input_text', 'Here.'), { type: 'input_image', image_url: PIXEL, detail: 'auto' }],
      },
    ],
  },
];

describe('a chat request for OpenAI’s Responses API', () => {
  for (const { title, message, items } of MESSAGES)
    it(`holds ${title}`, () => {
      expect(writeItems(message, { withReasoning: true })).to.deep.equal(items);
    });

  it('has the fields of chat under the names of the API, and keeps nothing at the vendor', () => {
    const { path, body, dropped } = translate(openai, {
      model: 'gpt-6-sol',
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Hi' },
      ],
      tools: [
        { type: 'function', function: { name: 'now', description: 'The time', parameters: SCHEMA, strict: true } },
        NOW,
      ],
      tool_choice: { type: 'function', function: { name: 'now' } },
      parallel_tool_calls: false,
      max_tokens: 900,
      reasoning_effort: 'minimal',
      response_format: { type: 'json_schema', json_schema: { name: 'time', schema: SCHEMA, strict: true } },
      verbosity: 'low',
      user: 'u',
      metadata: { a: 'b' },
      stream: true,
      stream_options: { include_usage: true },
    });
    expect(path).to.equal('/responses');
    expect(dropped).to.deep.equal([]);
    expect(body).to.deep.equal({
      model: 'gpt-6-sol',
      input: [
        { type: 'message', role: 'developer', content: text('input_text', 'Be brief.') },
        { type: 'message', role: 'user', content: text('input_text', 'Hi') },
      ],
      parallel_tool_calls: false,
      metadata: { a: 'b' },
      user: 'u',
      max_output_tokens: 900,
      tools: [
        { type: 'function', name: 'now', description: 'The time', parameters: SCHEMA, strict: true },
        { type: 'function', name: 'now', parameters: { type: 'object', properties: {} }, strict: false },
      ],
      tool_choice: { type: 'function', name: 'now' },
      text: { format: { type: 'json_schema', name: 'time', schema: SCHEMA, strict: true }, verbosity: 'low' },
      reasoning: { effort: 'none' },
      include: ['reasoning.encrypted_content'],
      store: false,
      stream: true,
      stream_options: { include_obfuscation: false },
    });
  });

  it('gives deep research its search in place of functions, and reports it', () => {
    const { body, dropped } = translate(openai, { model: 'o3-deep-research', tools: [NOW], tool_choice: 'auto' });
    expect(body['tools']).to.deep.equal([{ type: 'web_search_preview' }]);
    expect(body).not.to.have.property('tool_choice');
    expect(dropped).to.deep.equal(['tools', 'tool_choice']);
  });

  it('never brings tools that the vendor would run', () => {
    const hosted = [{ type: 'mcp', server_url: 'https://evil.example' }, NOW];
    const { body, dropped } = translate(openai, { model: 'gpt-5.3-codex', tools: hosted });
    expect(body['tools']).to.have.length(1);
    expect(dropped).to.deep.equal(['tools.mcp']);
  });

  it('reports dropped reasoning of others and dropped names of speakers', () => {
    const details = [{ kind: 'text' as const, text: 'Hm.', signature: 'sig', format: 'anthropic' }];
    const { dropped } = writeResponsesRequest(
      {
        model: 'm',
        messages: [
          { role: 'user', content: 'Hi', name: 'Ann' },
          { role: 'assistant', content: 'Ho', reasoning_details: details },
        ],
      },
      { stream: false },
    );
    expect(dropped).to.deep.equal(['name', 'reasoning']);
  });

  it('names allowed tools, and tools of grammars, as the API does', () => {
    const grammar = { syntax: 'lark', definition: 'start: "a"' };
    const { body } = translate(openai, {
      model: 'gpt-6-sol',
      tools: [NOW, { type: 'custom', custom: { name: 'patch', format: { type: 'grammar', grammar } } }],
      tool_choice: {
        type: 'allowed_tools',
        allowed_tools: { mode: 'auto', tools: [NOW, { type: 'custom', custom: { name: 'patch' } }] },
      },
    });
    expect(body['tools']).to.deep.include({ type: 'custom', name: 'patch', format: { type: 'grammar', ...grammar } });
    expect(body['tool_choice']).to.deep.equal({
      type: 'allowed_tools',
      mode: 'auto',
      tools: [
        { type: 'function', name: 'now' },
        { type: 'custom', name: 'patch' },
      ],
    });
  });

  it('goes to Azure by the model behind a deployment, with the version of the older addresses', () => {
    const config = { resource: 'acme', deployments: { prod: 'gpt-6-astra' }, apiVersion: '2026-10-01' };
    const { path, body } = translate(azure, { model: 'prod', tools: [NOW] }, config);
    expect(path).to.equal('/responses?api-version=2026-10-01');
    expect(body).to.include({ model: 'prod', store: false });
    expect(translate(azure, { model: 'gpt-6-eu', tools: [NOW] }, config).path).to.match(/^\/responses/);
    expect(translate(azure, { model: 'house-model', tools: [NOW] }, config).path).to.match(/^\/deployments/);
  });

  it('goes to xAI for the model that only this API has', () => {
    const { path, body } = translate(xai, { model: 'grok-4.20-multi-agent', parallel_tool_calls: false });
    expect(path).to.equal('/responses');
    expect(body)
      .to.include({ parallel_tool_calls: false, store: false })
      .and.not.have.property('parallel_function_calling');
    expect(translate(xai, { model: 'grok-4.7', tools: [NOW] }).path).to.equal('/chat/completions');
  });
});

describe('a response of the Responses API for a chat request', () => {
  const SAID = {
    pieces: [{ reasoning: 'Let me see.' }, { text: 'I look.' }, { call: 'now', id: 'call_1', arguments: '{}' }],
    encrypted: 'AAA',
  };
  const codec = setUpProvider(openai, {}).chat;
  const request: ChatRequest = { model: 'gpt-6-sol', messages: [], tools: [NOW] };

  it('is sent back to the vendor unchanged, except for the ids of unstored items', () => {
    const message = codec?.response(responsesBody(SAID), codecCall({ request })).choices[0]?.message;
    const sent = writeItems(message as ChatMessage, { withReasoning: true });
    expect(sent).to.deep.equal([
      { type: 'reasoning', summary: [{ type: 'summary_text', text: 'Let me see.' }], encrypted_content: 'AAA' },
      { type: 'message', role: 'assistant', content: text('output_text', 'I look.') },
      { type: 'function_call', call_id: 'call_1', name: 'now', arguments: '{}' },
    ]);
  });

  it('is read by the wire that its request went by', () => {
    const streamed = decode(
      codec?.stream(codecCall({ request, stream: true })) ?? expect.fail(),
      responsesEvents(SAID).map((event) => ({ data: JSON.stringify(event) })),
    );
    expect(streamed.complete).to.equal(true);
    const chat = { choices: [{ index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'stop' }] };
    expect(codec?.response(chat, codecCall()).choices[0]?.message.content).to.equal('x');
  });

  it('has calls of custom tools as chat has them, streamed and at once', () => {
    const said = {
      pieces: [{ call: 'patch', id: 'call_1', arguments: JSON.stringify({ input: 'a "b"\n' }) }],
      custom: ['patch'],
    };
    const calls = codec?.response(responsesBody(said), codecCall({ request })).choices[0]?.message.tool_calls;
    const wanted: unknown = { id: 'call_1', type: 'custom', custom: { name: 'patch', input: 'a "b"\n' } };
    expect(calls).to.deep.equal([wanted]);
    const { chunks } = decode(
      codec?.stream(codecCall({ request, stream: true })) ?? expect.fail(),
      responsesEvents(said).map((event) => ({ data: JSON.stringify(event) })),
    );
    const deltas = chunks.flatMap(({ choices }) => choices.flatMap(({ delta }) => delta.tool_calls ?? []));
    const [first, ...more] = deltas;
    expect(first).to.deep.include({ id: 'call_1', type: 'custom' });
    expect(more.map(({ custom }) => readObject(custom)['input']).join('')).to.equal('a "b"\n');
    const back = writeItems({ role: 'assistant', content: null, tool_calls: calls ?? [] });
    expect(back).to.deep.equal([{ type: 'custom_tool_call', call_id: 'call_1', name: 'patch', input: 'a "b"\n' }]);
  });

  it('keeps the texts of two messages apart, streamed and at once', () => {
    const said = { pieces: [{ text: 'I look.' }, { text: 'It is noon.' }] };
    const words = 'I look.\n\nIt is noon.';
    expect(codec?.response(responsesBody(said), codecCall({ request })).choices[0]?.message.content).to.equal(words);
    const { chunks } = decode(
      codec?.stream(codecCall({ request, stream: true })) ?? expect.fail(),
      responsesEvents(said).map((event) => ({ data: JSON.stringify(event) })),
    );
    const streamed = chunks.flatMap(({ choices }) => choices.map(({ delta }) => delta.content ?? '')).join('');
    expect(streamed).to.equal(words);
  });

  it('is an error while it has not ended', () => {
    const own = createResponsesCodec((body) => classifyError(200, body, {}));
    for (const status of ['queued', 'in_progress', 'cancelled'])
      expect(() => own.response({ ...responsesBody(SAID), status }, codecCall())).to.throw('unfinished response');
  });
});
