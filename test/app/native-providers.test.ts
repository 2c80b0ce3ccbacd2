import { expect } from 'chai';
import type OpenAI from 'openai';
import { APIError } from 'openai';
import { fixture, jsonFixture } from '../support/formats/codec.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import {
  chunk,
  LAST_CHUNK,
  respondWith,
  type Script,
  type ScriptedUpstream,
  SSE_HEAD,
  startScriptedUpstream,
} from '../support/vendors/scripted-upstream.ts';

type Message = OpenAI.ChatCompletionMessageParam;

const TOOLS: OpenAI.ChatCompletionTool[] = [
  {
    type: 'function',
    function: { name: 'get_weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } },
  },
  { type: 'function', function: { name: 'get_time', parameters: { type: 'object', properties: {} } } },
];
const QUESTION: Message = { role: 'user', content: 'Weather and time in Paris?' };
/** Vendor stream sent in one piece. */
const stream =
  (path: string): Script =>
  async (wire) => {
    await wire.send(SSE_HEAD);
    await wire.send(chunk(fixture(path)));
    await wire.send(LAST_CHUNK);
  };

/** Reads what most clients store of a streamed turn: text, and id, name and arguments of the tool calls. */
async function streamedTurn(
  client: OpenAI,
  model: string,
  messages: Message[],
): Promise<OpenAI.ChatCompletionAssistantMessageParam> {
  const calls: OpenAI.ChatCompletionMessageFunctionToolCall[] = [];
  let content = '';
  for await (const part of await client.chat.completions.create({ model, messages, tools: TOOLS, stream: true })) {
    const delta = part.choices[0]?.delta;
    content += delta?.content ?? '';
    for (const { index, id, function: called } of delta?.tool_calls ?? []) {
      calls[index] ??= { id: id ?? '', type: 'function', function: { name: '', arguments: '' } };
      calls[index].function.name += called?.name ?? '';
      calls[index].function.arguments += called?.arguments ?? '';
    }
  }
  return { role: 'assistant', content, tool_calls: calls };
}

function results(turn: OpenAI.ChatCompletionAssistantMessageParam): Message[] {
  return (turn.tool_calls ?? []).map(({ id }) => ({ role: 'tool', tool_call_id: id, content: 'sunny' }));
}

describe('the openai client at vendors with their own format', () => {
  let gemini: ScriptedUpstream;
  let anthropic: ScriptedUpstream;
  let gateway: TestGateway;
  let client: OpenAI;

  before(async () => {
    gemini = await startScriptedUpstream();
    anthropic = await startScriptedUpstream();
    gateway = await startGateway({
      providers: {
        gemini: { apiKey: 'gemini-operator-key', baseUrl: `${gemini.url}/v1beta` },
        anthropic: { apiKey: 'anthropic-operator-key', baseUrl: anthropic.url },
      },
    });
    client = gateway.openai();
  });

  after(async () => {
    await gateway.stop();
    await gemini.close();
    await anthropic.close();
  });

  it('preserves Gemini’s thought signature in a streamed tool loop, without knowing it', async () => {
    gemini.script(stream('gemini/stream-tools.sse'), respondWith(200, jsonFixture('gemini/chat.json')));
    const turn = await streamedTurn(client, 'gemini/gemini-3.8-flash', [QUESTION]);
    await client.chat.completions.create({
      model: 'gemini/gemini-3.8-flash',
      messages: [QUESTION, turn, ...results(turn)],
      tools: TOOLS,
    });
    const [first, second] = gemini.requests.slice(-2);
    expect(first?.path).to.equal('/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse');
    expect(first?.headers['x-goog-api-key']).to.equal('gemini-operator-key');
    expect(first?.headers).to.not.have.property('authorization');
    const { contents } = second!.json() as { contents: { parts: object[] }[] };
    expect(contents[1]?.parts).to.deep.equal([
      { text: 'Looking.' },
      {
        functionCall: { id: 'fc_1', name: 'get_weather', args: { city: 'Paris' } },
        thoughtSignature: 'CiQBcsjafG1wX3Fib/rY+0pQk3s=',
      },
      { functionCall: { id: turn.tool_calls?.[1]?.id, name: 'get_time', args: {} } },
    ]);
    expect(contents[2]?.parts).to.have.length(2);
  });

  it('completes a streamed tool loop at Anthropic', async () => {
    anthropic.script(
      stream('anthropic/stream-thinking-and-tools.sse'),
      respondWith(200, jsonFixture('anthropic/chat.json')),
    );
    const turn = await streamedTurn(client, 'anthropic/claude-sonnet-5', [QUESTION]);
    const { data, response } = await client.chat.completions
      .create({
        model: 'anthropic/claude-sonnet-5',
        messages: [QUESTION, turn, ...results(turn)],
        tools: TOOLS,
        seed: 1,
      })
      .withResponse();
    expect(data.usage?.prompt_tokens).to.equal(20);
    expect(response.headers.get('x-tollgate-dropped')).to.equal('seed');
    const [first, second] = anthropic.requests.slice(-2);
    expect(first?.path).to.equal('/v1/messages');
    expect(first?.headers).to.include({ 'x-api-key': 'anthropic-operator-key', 'anthropic-version': '2023-06-01' });
    const { messages } = second!.json() as { messages: { role: string; content: { type: string }[] }[] };
    expect(messages.map(({ role, content }) => [role, ...content.map(({ type }) => type)])).to.deep.equal([
      ['user', 'text'],
      ['assistant', 'text', 'tool_use', 'tool_use'],
      ['user', 'tool_result', 'tool_result'],
    ]);
  });

  for (const [model, cut] of [
    ['gemini/gemini-3.8-flash', 'gemini/cut.sse'],
    ['anthropic/claude-sonnet-5', 'anthropic/cut.sse'],
  ] as const) {
    it(`gets an error when ${model} interrupts a response`, async () => {
      const upstream = model.startsWith('gemini') ? gemini : anthropic;
      upstream.script(stream(cut));
      let text = '';
      let thrown: unknown;
      try {
        for await (const part of await client.chat.completions.create({ model, messages: [QUESTION], stream: true })) {
          text += part.choices[0]?.delta.content ?? '';
        }
      } catch (error) {
        thrown = error;
      }
      expect(text).to.equal('half an ans');
      expect(thrown).to.be.instanceOf(APIError).with.property('code', 'provider_unavailable');
    });
  }

  it('gets a 503 for an invalid key of the operator, with no text of the vendor', async () => {
    const body = {
      error: {
        code: 400,
        status: 'INVALID_ARGUMENT',
        message: 'API key not valid.',
        details: [{ reason: 'API_KEY_INVALID' }],
      },
    };
    gemini.script(respondWith(400, body));
    const failed = await client.chat.completions
      .create({ model: 'gemini/gemini-3.8-flash', messages: [QUESTION] })
      .catch((error: unknown) => error);
    expect(failed).to.be.instanceOf(APIError).with.property('code', 'provider_auth_failed');
    expect((failed as APIError).status).to.equal(503);
    expect(String(failed)).to.not.include('API key not valid');
  });

  it('gets Anthropic’s rate limits under OpenAI’s names', async () => {
    const headers = {
      date: 'Fri, 20 Nov 2026 10:00:00 GMT',
      'anthropic-ratelimit-requests-limit': '50',
      'anthropic-ratelimit-requests-reset': '2026-11-20T10:00:30Z',
    };
    anthropic.script(respondWith(200, jsonFixture('anthropic/chat.json'), headers));
    const { response } = await client.chat.completions
      .create({ model: 'anthropic/claude-sonnet-5', messages: [QUESTION] })
      .withResponse();
    expect(response.headers.get('x-ratelimit-limit-requests')).to.equal('50');
    expect(response.headers.get('x-ratelimit-reset-requests')).to.equal('30s');
  });

  it('gets Gemini’s embeddings as base64, which the client decodes', async () => {
    gemini.script(respondWith(200, { embedding: { values: [3, 4] } }));
    const { data } = await client.embeddings.create({ model: 'gemini/gemini-embedding-001', input: 'Hi' });
    expect(data[0]?.embedding.map((value) => Math.round(value * 10) / 10)).to.deep.equal([0.6, 0.8]);
  });

  it('gets the name of a feature that a vendor lacks, before any request', async () => {
    const before = anthropic.requests.length;
    const failed = await client.chat.completions
      .create({ model: 'anthropic/claude-sonnet-5', messages: [QUESTION], n: 2 })
      .catch((error: unknown) => error);
    expect(failed).to.be.instanceOf(APIError).with.property('param', 'n');
    expect((failed as APIError).status).to.equal(400);
    expect(anthropic.requests).to.have.length(before);
  });
});
