import { expect } from 'chai';
import { type ChatRequest, isGatewayError, type Plugin } from '../../../contract/index.ts';
import anthropic from '../../../plugins/providers/anthropic.ts';
import gemini from '../../../plugins/providers/gemini.ts';
import groq from '../../../plugins/providers/groq.ts';
import mistral from '../../../plugins/providers/mistral.ts';
import ollama from '../../../plugins/providers/ollama.ts';
import openai from '../../../plugins/providers/openai.ts';
import compatible from '../../../plugins/providers/openai-compatible.ts';
import xai from '../../../plugins/providers/xai.ts';
import { setUpProvider } from '../../conformance/provider-subject.ts';
import { chatRequest, codecCall, collect, decode, readSse } from '../../support/formats/codec.ts';
import { messagesOf, translate } from '../../support/formats/translate.ts';

const LOCAL = { baseUrl: 'http://127.0.0.1:8000/v1' };
const configOf = (plugin: Plugin): Readonly<Record<string, unknown>> => (plugin === compatible ? LOCAL : {});
const FUNCTION = { name: 'get_weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } };

/** Response in OpenAI's format with tool calls. */
function calling(...names: readonly string[]): object {
  const tool_calls = names.map((name, at) => ({
    id: `call_${at}`,
    type: 'function',
    function: { name, arguments: '{"city":"Rome"}' },
  }));
  const message = { role: 'assistant', content: null, tool_calls };
  return { id: 'c', created: 1, model: 'm', choices: [{ index: 0, message, finish_reason: 'tool_calls' }] };
}

function responseTo(plugin: Plugin, request: ChatRequest, body: object) {
  const { chat } = setUpProvider(plugin, configOf(plugin));
  return (chat ?? expect.fail()).response(body, codecCall({ request })).choices[0];
}

function streamTo(plugin: Plugin, request: ChatRequest, events: readonly object[]) {
  const { chat } = setUpProvider(plugin, configOf(plugin));
  const text = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
  return decode((chat ?? expect.fail()).stream(codecCall({ request, stream: true })), readSse(Buffer.from(text)));
}

describe('known deviations of clients', () => {
  for (const [plugin, field] of [
    [compatible, 'max_tokens'],
    [ollama, 'max_tokens'],
    [compatible, 'max_completion_tokens'],
  ] as const) {
    for (const value of [0, -1]) {
      it(`D27: ${field}: ${value} means no limit at ${plugin.name}`, () => {
        const { body, dropped } = translate(plugin, { [field]: value }, configOf(plugin));
        expect(body).to.not.have.any.keys('max_tokens', 'max_completion_tokens');
        expect(dropped).to.deep.equal([]);
      });
    }
  }

  for (const plugin of [openai, anthropic, gemini, mistral]) {
    it(`D27: max_tokens: -1 is refused by name at ${plugin.name}`, () => {
      expect(() => translate(plugin, { max_tokens: -1 }))
        .to.throw()
        .that.satisfies((error: unknown) => isGatewayError(error) && error.param === 'max_tokens');
    });
  }

  for (const plugin of [openai, groq, xai, mistral, anthropic, gemini]) {
    it(`D2: ${plugin.name} gets one limit of output, the larger`, () => {
      const { body } = translate(plugin, { max_tokens: 1000, max_completion_tokens: 1 });
      const sent = JSON.stringify(body);
      expect(sent)
        .to.include('1000')
        .and.not.match(/"max\w*":1[,}]/i);
    });

    it(`D27: ${plugin.name} gets no nulls, and omitted types are added`, () => {
      const called = { id: 'call_1', function: { name: 'f', arguments: '{}' } };
      const tool = { function: { name: 'f', description: null, parameters: null, strict: null } };
      const messages = [
        { role: 'user', content: 'Hi', name: null },
        { role: 'assistant', content: null, tool_calls: [called], function_call: null, refusal: null },
        { role: 'tool', tool_call_id: 'call_1', content: null },
        { role: 'user', content: [{ type: 'text', text: 'x', cache_control: null }], tool_calls: null },
      ];
      const fields = {
        messages,
        tools: [tool],
        logit_bias: {},
        stream_options: { include_usage: null },
        tool_choice: null,
      };
      const { body, dropped } = translate(plugin, fields);
      expect(dropped).to.deep.equal([]);
      const sent = JSON.stringify(body);
      expect(sent.replaceAll('"content":null', '')).to.not.include('null').and.not.include('logit_bias');
      if (plugin !== gemini && plugin !== anthropic)
        expect(body['tools']).to.deep.equal([{ type: 'function', function: { name: 'f' } }]);
    });

    it(`D27: functions become tools at ${plugin.name}, in the second turn too`, () => {
      const messages = [
        { role: 'user', content: 'Weather?' },
        { role: 'assistant', content: null, function_call: { name: 'get_weather', arguments: '{"city":"Rome"}' } },
        { role: 'function', name: 'get_weather', content: 'SUNNY' },
      ];
      const fields = { messages, functions: [FUNCTION], function_call: { name: 'get_weather' } };
      const { body, dropped } = translate(plugin, fields);
      const sent = JSON.stringify(body);
      expect(sent).to.include('SUNNY').and.not.include('function_call"').and.not.include('"functions"');
      expect(dropped).to.deep.equal([]);
      const ids = [...sent.matchAll(/"(?:id|tool_call_id|tool_use_id)":"([^"]+)"/g)].map((match) => match[1]);
      expect(ids).to.have.length(2);
      expect(ids[0]).to.equal(ids[1]);
    });
  }

  it('D27: a legacy request gets its response with function_call', () => {
    const request = chatRequest({ functions: [FUNCTION] });
    const choice = responseTo(mistral, request, calling('get_weather', 'get_weather'));
    expect(choice?.finish_reason).to.equal('function_call');
    expect(choice?.message).to.not.have.property('tool_calls');
    expect(choice?.message['function_call']).to.deep.equal({ name: 'get_weather', arguments: '{"city":"Rome"}' });
  });

  it('D27: a legacy request gets its stream with function_call', () => {
    const tool = (index: number, more: object) => ({
      choices: [{ index: 0, delta: { tool_calls: [{ index, ...more }] } }],
    });
    const { chunks } = streamTo(openai, chatRequest({ functions: [FUNCTION] }), [
      { choices: [{ index: 0, delta: { role: 'assistant', content: null } }] },
      tool(0, { id: 'a', type: 'function', function: { name: 'get_weather', arguments: '' } }),
      tool(0, { function: { arguments: '{"city":' } }),
      tool(0, { function: { arguments: '"Rome"}' } }),
      tool(1, { id: 'b', type: 'function', function: { name: 'get_weather', arguments: '{}' } }),
      { choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] },
    ]);
    const deltas = chunks.flatMap(({ choices }) => choices.map(({ delta }) => delta));
    expect(deltas.some((delta) => delta.tool_calls)).to.equal(false);
    expect(deltas.flatMap((delta) => delta['function_call'] ?? [])).to.deep.equal([
      { name: 'get_weather', arguments: '' },
      { arguments: '{"city":' },
      { arguments: '"Rome"}' },
    ]);
    expect(collect(chunks).finish).to.deep.equal(['function_call']);
  });

  it('D27: the result of a function that was never called is refused by its place', () => {
    expect(() => translate(mistral, { messages: [{ role: 'function', name: 'f', content: 'x' }] }))
      .to.throw()
      .that.satisfies((error: unknown) => isGatewayError(error) && error.param === 'messages[0]');
  });
});

describe('names of tools that a vendor refuses', () => {
  const tool = (name: string) => ({ type: 'function', function: { name } }) as const;
  const LONG = 'x'.repeat(80);

  for (const plugin of [openai, groq, mistral, anthropic, gemini]) {
    it(`D27: are changed on the way to ${plugin.name}, the same in tools, choice and history`, () => {
      const messages = [
        { role: 'user', content: 'Hi' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'c1', ...tool('mcp.search/all'), function: { name: 'mcp.search/all', arguments: '{}' } }],
        },
        { role: 'tool', tool_call_id: 'c1', content: 'x' },
      ];
      const tools = [tool('mcp.search/all'), tool('mcp_search_all'), tool(LONG), tool('1st')];
      const { body } = translate(plugin, { messages, tools, tool_choice: tool('mcp.search/all') });
      const sent = JSON.stringify(body);
      expect(sent).to.not.include('mcp.search').and.not.include(LONG);
      const names = [...sent.matchAll(/"name":"([^"]+)"/g)].map((match) => match[1] ?? '');
      expect(names.filter((name) => /^mcp_search_all_[0-9a-f]{8}$/.test(name)).length).to.be.at.least(2);
      for (const name of names) expect(name).to.match(/^[A-Za-z0-9_-]{1,64}$/);
    });
  }

  it('D27: a free plain name is taken', () => {
    const { body } = translate(openai, { tools: [tool('mcp.search')] });
    expect(body['tools']).to.deep.equal([tool('mcp_search')]);
  });

  it('D27: are returned in the caller’s form, without a stream', () => {
    const request = chatRequest({ tools: [tool('mcp.search'), tool('plain')] });
    const choice = responseTo(openai, request, calling('mcp_search', 'plain'));
    expect(choice?.message.tool_calls?.map((call) => call.function.name)).to.deep.equal(['mcp.search', 'plain']);
  });

  it('D27: are returned in the caller’s form, in a stream', () => {
    const { chunks } = streamTo(gemini, chatRequest({ tools: [tool('mcp.search')] }), [
      {
        candidates: [
          { content: { parts: [{ functionCall: { name: 'mcp_search', args: {} } }] }, finishReason: 'STOP' },
        ],
      },
    ]);
    expect(collect(chunks).calls.map(({ name }) => name)).to.deep.equal(['mcp.search']);
  });

  it('D27: stay unchanged if there is nothing to change', () => {
    expect(messagesOf(openai, [{ role: 'user', content: 'Hi' }])).to.deep.equal([{ role: 'user', content: 'Hi' }]);
  });
});
