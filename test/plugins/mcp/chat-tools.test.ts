import Anthropic from '@anthropic-ai/sdk';
import { expect } from 'chai';
import OpenAI from 'openai';
import { openResponses } from '../../support/clients/responses-client.ts';
import { findDisorder } from '../../support/formats/responses-grammar.ts';
import { type IngressRig, MODEL_OF, startIngressRig, type Wire } from '../../support/gateways/ingress-rig.ts';
import { pluginFile, routeText } from '../../support/plugins/plugin-file.ts';
import { sayAnywhere } from '../../support/vendors/responses-wire.ts';
import type { Piece, ScriptedOutput } from '../../support/vendors/vendor-wires.ts';
import { until } from '../../support/wait.ts';
import { createServers, startMcp } from './mcp-rig.ts';

interface CallRow {
  readonly operation: string;
  readonly model: string;
  readonly outcome: string;
  readonly request_id: string;
  readonly cost_usd: string | null;
  readonly error_code: string | null;
}

const WEATHER = {
  type: 'function',
  function: { name: 'weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } },
} as const;
const SERVER = { type: 'mcp', server: 's' };
const usage = { prompt: 20, completion: 5 };
const turn = (...pieces: readonly Piece[]): ScriptedOutput => ({ pieces, usage });
let ids = 0;
function call(name: string, args: object = {}): Piece {
  ids += 1;
  return { call: name, id: `toolu_${ids}`, arguments: JSON.stringify(args) };
}
const LOOK = () => turn({ text: 'I look.' }, call('s__echo', { city: 'Rome' }));
const DONE = turn({ text: 'It is Rome.' });

/** What a caller got of a chat completion, whole or joined from its stream. */
interface Got {
  readonly status: number;
  readonly content: string;
  readonly finish: string | null;
  readonly steps: readonly Record<string, unknown>[];
  readonly calls: readonly { readonly name: string; readonly arguments: string }[];
  readonly usage: Record<string, unknown> | undefined;
  readonly error: { readonly code?: string; readonly message?: string } | undefined;
}

function readStream(text: string): Got {
  const calls: { name: string; arguments: string }[] = [];
  const steps: Record<string, unknown>[] = [];
  let [content, finish, usage, error]: [string, string | null, Got['usage'], Got['error']] = [
    '',
    null,
    undefined,
    undefined,
  ];
  for (const line of text.split('\n')) {
    if (!line.startsWith('data: {')) continue;
    const chunk = JSON.parse(line.slice(6));
    usage = chunk.usage ?? usage;
    error = chunk.error ?? error;
    const choice = chunk.choices?.[0];
    content += choice?.delta?.content ?? '';
    finish = choice?.finish_reason ?? finish;
    steps.push(...(choice?.delta?.mcp_calls ?? []));
    for (const each of choice?.delta?.tool_calls ?? []) {
      calls[each.index] ??= { name: each.function.name, arguments: '' };
      (calls[each.index] as { arguments: string }).arguments += each.function.arguments ?? '';
    }
  }
  return { status: 200, content, finish, steps, calls, usage, error };
}

describe('tools of MCP servers in a chat', () => {
  let rig: IngressRig;
  let servers: Awaited<ReturnType<typeof createServers>>;

  before(async () => {
    servers = await createServers();
    const s = await servers.serve(['echo', 'fail', 'hang', 'calls'], { timeout: '300ms', prices: { echo: 0.01 } });
    const other = await servers.serve(['echo']);
    rig = await startIngressRig({
      billing: 'track',
      plans: {
        all: { serverTools: ['mcp:s', 'mcp:other/echo'] },
        none: {},
        one: { serverTools: ['mcp:s/echo'] },
        always: { serverTools: ['mcp:s'], chatTools: ['mcp:s/echo', 'mcp:other'] },
      },
      defaultPlan: 'all',
      mcp: { servers: { s: s.options, other: other.options }, chat: { maxTurns: 4 } },
    });
  });
  after(async () => {
    await rig?.stop();
    await servers?.remove();
  });

  const create = async (...options: readonly string[]): Promise<string> =>
    (await rig.gateway.command<{ api_key: string }>('keys', 'create', '--user', 'u', ...options)).api_key;

  const chat = async (fields: object, key = rig.gateway.key): Promise<Got> => {
    const body = {
      model: MODEL_OF.openai,
      messages: [{ role: 'user', content: 'Where?' }],
      tools: [SERVER],
      ...fields,
    };
    const response = await rig.gateway.post('/v1/chat/completions', body, { authorization: `Bearer ${key}` });
    const text = await response.text();
    if ('stream' in body && body.stream && response.status === 200) return readStream(text);
    const { choices: [choice] = [], usage, error } = JSON.parse(text);
    return {
      status: response.status,
      content: choice?.message.content ?? '',
      finish: choice?.finish_reason ?? null,
      steps: choice?.message.mcp_calls ?? [],
      calls: (choice?.message.tool_calls ?? []).map((each: { function: object }) => each.function),
      usage,
      error,
    };
  };

  const rows = async (count: number): Promise<readonly CallRow[]> =>
    (await rig.gateway.command<{ data: readonly CallRow[] }>('calls', '--limit', String(count))).data;

  const forms = [{}, { stream: true, stream_options: { include_usage: true } }] as const;
  for (const form of forms) {
    const way = 'stream' in form ? 'streamed' : 'whole';
    for (const wire of ['openai', 'anthropic', 'gemini'] satisfies Wire[])
      it(`are called for the model of ${wire}, with each turn and tool in the records (${way})`, async () => {
        rig.say(wire, [LOOK(), DONE]);
        const got = await chat({ ...form, model: MODEL_OF[wire] });
        expect(got.content).to.equal('I look.\n\nIt is Rome.');
        expect(got.finish).to.equal('stop');
        expect(got.steps).to.have.length(1);
        expect(got.steps[0]).to.include({ server: 's', name: 'echo', output: '{"city":"Rome"}' });
        expect(got.usage).to.include({ prompt_tokens: 40, completion_tokens: 10, total_tokens: 50 });
        const [last, tool, first] = await rows(3);
        expect([last?.operation, tool?.operation, first?.operation]).to.deep.equal(['chat', 'mcp', 'chat']);
        expect(tool).to.include({ model: 's/echo', cost_usd: '0.01', outcome: 'ok' });
        expect(new Set([last?.request_id, tool?.request_id, first?.request_id]).size).to.equal(1);
        expect(JSON.stringify(rig.lastBody(wire)))
          .to.include('{\\"city\\":\\"Rome\\"}')
          .and.include('s__echo');
      });

    it(`hand over calls of the caller’s own functions, and those of servers wait (${way})`, async () => {
      rig.say('openai', [LOOK(), turn(call('s__echo', { b: 1 }), call('weather', { city: 'Rome' }))]);
      const got = await chat({ ...form, tools: [WEATHER, SERVER] });
      expect(got.finish).to.equal('tool_calls');
      expect(got.calls).to.deep.equal([{ name: 'weather', arguments: '{"city":"Rome"}' }]);
      expect(got.steps.map(({ arguments: args }) => args)).to.deep.equal(['{"city":"Rome"}']);
    });

    it(`give the model failures as texts (${way})`, async () => {
      for (const [name, text] of [
        ['s__fail', 'it failed'],
        ['s__hang', 'within 0.3 s'],
      ] as const) {
        rig.say('openai', [turn(call(name)), DONE]);
        const got = await chat(form);
        expect(got.content).to.equal('It is Rome.');
        expect(got.steps[0]?.['output']).to.include(text);
        expect(got.steps[0]?.['is_error']).to.equal(true);
      }
    });

    it(`end a chat that calls them without end (${way})`, async () => {
      rig.say('openai', [LOOK()]);
      const before = rig.sent('openai').length;
      const got = await chat(form);
      expect(got.finish).to.equal('length');
      expect(got.steps).to.have.length(3);
      expect(got.calls).to.deep.equal([]);
      expect(rig.sent('openai').length - before).to.equal(4);
    });

    it(`end a chat whose budget ends midway, with 402 and every call in the books (${way})`, async () => {
      const key = await create('--budget', '0.015', '--plan', 'all');
      rig.say('openai', [LOOK()]);
      const got = await chat({ ...form, max_tokens: 10 }, key);
      expect(got.status).to.equal('stream' in form ? 200 : 402);
      expect(got.error?.code).to.equal('insufficient_balance');
      const done = await rows(4);
      expect(done.map(({ operation, outcome }) => `${operation} ${outcome}`)).to.include.members(['mcp ok', 'chat ok']);
    });
  }

  it('keep their order when the caller continues with `mcp_calls`', async () => {
    rig.say('anthropic', [DONE]);
    const step = { id: 'c1', server: 's', name: 'echo', arguments: '{"city":"Rome"}', output: 'Rome!' };
    const messages = [
      { role: 'user', content: 'Where?' },
      { role: 'assistant', content: 'In Rome.', mcp_calls: [step] },
      { role: 'user', content: 'Sure?' },
    ];
    await chat({ model: MODEL_OF.anthropic, messages });
    const sent = rig.lastBody<{ messages: { role: string; content: { type: string }[] }[] }>('anthropic').messages;
    expect(sent.map(({ role, content }) => [role, ...content.map(({ type }) => type)])).to.deep.equal([
      ['user', 'text'],
      ['assistant', 'tool_use'],
      ['user', 'tool_result'],
      ['assistant', 'text'],
      ['user', 'text'],
    ]);
  });

  it('are refused to a key that may use none, and limited for one that may use some', async () => {
    const { status, error } = await chat({}, await create('--plan', 'none'));
    expect(status).to.equal(403);
    expect(error?.message).to.include('MCP server "s"').and.include('serverTools');
    rig.say('openai', [DONE]);
    await chat({}, await create('--plan', 'one'));
    const { tools } = rig.lastBody<{ tools: { function?: { name: string }; name?: string }[] }>('openai');
    expect(tools.map((tool) => tool.function?.name ?? tool.name)).to.deep.equal(['s__echo']);
  });

  it('are only those of `allowed_tools`, and an unknown server is refused', async () => {
    rig.say('openai', [DONE]);
    await chat({ tools: [{ ...SERVER, allowed_tools: ['calls'] }] });
    const { tools } = rig.lastBody<{ tools: { function?: { name: string }; name?: string }[] }>('openai');
    expect(tools.map((tool) => tool.function?.name ?? tool.name)).to.deep.equal(['s__calls']);
    const { status, error } = await chat({ tools: [{ type: 'mcp', server: 'none' }] });
    expect(status).to.equal(400);
    expect(error?.message).to.include('`tools[0].server`');
  });

  it('of a plan are in each chat without a word of the caller', async () => {
    rig.say('openai', [LOOK(), DONE]);
    const got = await chat({ tools: undefined }, await create('--plan', 'always'));
    expect(got.steps).to.have.length(1);
    expect(got.content).to.equal('I look.\n\nIt is Rome.');
  });

  it('of a plan are left out of a request for several responses; named ones are refused there', async () => {
    rig.say('openai', [DONE]);
    expect((await chat({ tools: undefined, n: 2 }, await create('--plan', 'always'))).content).to.equal('It is Rome.');
    const { status, error } = await chat({ n: 2 });
    expect([status, error?.message]).to.deep.equal([400, '`n` must be 1 for a chat with tools of MCP servers.']);
  });

  it('of a plan give way to a function of the caller with the same name; named ones are refused there', async () => {
    const own = { type: 'function', function: { name: 's__echo' } };
    rig.say('openai', [LOOK()]);
    const got = await chat({ tools: [own] }, await create('--plan', 'always'));
    expect(got.calls).to.have.length(1);
    expect((await chat({ tools: [own, SERVER] })).error?.message).to.include('`tools[0]` has the name of a tool');
  });

  it('are required in the first turn alone, in each format', async () => {
    const messages = [{ role: 'user', content: 'Where?' }];
    const ways: readonly (readonly [string, object])[] = [
      ['/v1/chat/completions', { messages, tools: [SERVER], tool_choice: 'required' }],
      ['/v1/responses', { input: 'Where?', tools: [{ type: 'mcp', server_label: 's' }], tool_choice: 'required' }],
      ['/v1/messages', { messages, max_tokens: 100, mcp_servers: [{ name: 's' }], tool_choice: { type: 'any' } }],
    ];
    for (const [path, body] of ways) {
      rig.say('deepseek', [LOOK(), DONE]);
      const before = rig.sent('deepseek').length;
      const response = await rig.gateway.post(path, { model: MODEL_OF.deepseek, ...body });
      expect(response.status, await response.text()).to.equal(200);
      const sent = rig.sent('deepseek').slice(before);
      const choices = sent.map((each) => (each.json() as { tool_choice?: unknown }).tool_choice);
      expect(choices, path).to.deep.equal(['required', undefined]);
    }
  });

  it('add no texts of earlier turns to JSON', async () => {
    rig.say('openai', [LOOK(), turn({ text: '{"city":"Rome"}' })]);
    const got = await chat({ response_format: { type: 'json_object' } });
    expect([got.content, got.steps.length]).to.deep.equal(['{"city":"Rome"}', 1]);
  });

  it('do not run for a call that the output limit cut off', async () => {
    rig.say('openai', [{ ...LOOK(), finish: 'length' }]);
    const got = await chat({});
    expect([got.finish, got.steps.length, got.calls.length]).to.deep.equal(['length', 0, 0]);
  });

  it('are items of a response in OpenAI’s own client, and its next request may refer to them', async () => {
    const client = new OpenAI({ apiKey: rig.gateway.key, baseURL: `${rig.gateway.url}/v1`, maxRetries: 0 });
    const tools = [
      { type: 'mcp', server_label: 's', server_url: 'https://attacker.example', require_approval: 'never' },
    ] as const;
    rig.say('gemini', [LOOK(), DONE]);
    const whole = await client.responses.create({ model: MODEL_OF.gemini, input: 'Where?', tools: [...tools] });
    expect(whole.output.map(({ type }) => type)).to.deep.equal(['mcp_call', 'message']);
    expect(whole.output[0]).to.include({ server_label: 's', name: 'echo', output: '{"city":"Rome"}' });
    expect(whole.usage?.total_tokens).to.equal(50);
    rig.say('gemini', [LOOK(), DONE]);
    const types: string[] = [];
    const stream = await client.responses.create({
      model: MODEL_OF.gemini,
      input: 'And now?',
      previous_response_id: whole.id,
      tools: [...tools],
      stream: true,
    });
    for await (const event of stream) types.push(event.type);
    expect(types).to.include.members([
      'response.mcp_call.in_progress',
      'response.mcp_call.completed',
      'response.completed',
    ]);
    expect(JSON.stringify(rig.lastBody('gemini')))
      .to.include('s__echo')
      .and.not.include('attacker');
  });

  it('are items in the order of the format on a websocket, which continues an unstored response', async () => {
    for (const wire of ['openai', 'deepseek'] satisfies Wire[]) {
      const client = await openResponses(rig.gateway);
      try {
        const tools = [{ type: 'mcp', server_label: 's', allowed_tools: { tool_names: ['echo'] } }];
        const request = { model: MODEL_OF[wire], store: false, tools };
        sayAnywhere(rig, wire, [LOOK(), DONE]);
        const events = await client.create({ ...request, input: 'Where?' });
        expect(findDisorder(events), wire).to.deep.equal([]);
        const last = events.at(-1) as unknown as { response: { id: string; output: { type: string }[] } };
        expect(last.response.output.map(({ type }) => type)).to.deep.equal(['message', 'mcp_call', 'message']);
        sayAnywhere(rig, wire, DONE);
        await client.create({ ...request, input: 'Sure?', previous_response_id: last.response.id });
        expect(JSON.stringify(rig.lastBody(wire)))
          .to.include('s__echo')
          .and.not.include('mcp_call');
      } finally {
        client.socket.close();
      }
    }
  });

  it('are blocks of a message in Anthropic’s own client, at Anthropic itself too', async () => {
    const client = new Anthropic({ apiKey: rig.gateway.key, baseURL: rig.gateway.url, maxRetries: 0 });
    for (const wire of ['anthropic', 'openai'] satisfies Wire[]) {
      rig.say(wire, [LOOK(), DONE]);
      const body: Anthropic.Beta.MessageCreateParamsNonStreaming = {
        model: MODEL_OF[wire],
        max_tokens: 1000,
        messages: [{ role: 'user', content: 'Where?' }],
        mcp_servers: [{ type: 'url', name: 's', url: 'https://attacker.example' }],
        betas: ['mcp-client-2025-04-04'],
      };
      const message = await client.beta.messages.create(body);
      expect(message.content.map(({ type }) => type)).to.deep.equal(['mcp_tool_use', 'mcp_tool_result', 'text']);
      expect(message.stop_reason).to.equal('end_turn');
      expect(message.usage).to.include({ input_tokens: 40, output_tokens: 10 });
      rig.say(wire, [LOOK(), DONE]);
      const messages = [
        ...body.messages,
        { role: 'assistant' as const, content: message.content },
        { role: 'user' as const, content: 'Sure?' },
      ];
      const streamed = await client.beta.messages.stream({ ...body, messages }).finalMessage();
      expect(streamed.content.map(({ type }) => type)).to.deep.equal([
        'text',
        'mcp_tool_use',
        'mcp_tool_result',
        'text',
      ]);
      expect(JSON.stringify(rig.lastBody(wire)))
        .to.not.include('mcp_tool')
        .and.not.include('attacker');
    }
  });

  it('let a model that thinks get its own signed thoughts back between the turns', async () => {
    for (const stream of [false, true]) {
      rig.say('anthropic', [
        turn({ reasoning: 'I should look.', signature: 'c2lnbmVk' }, call('s__echo', { city: 'Rome' })),
        DONE,
      ]);
      const thinking = { type: 'enabled', budget_tokens: 1024 };
      const messages = [{ role: 'user', content: 'Where?' }];
      const tools = [{ type: 'mcp_toolset', mcp_server_name: 's' }];
      const own = { future_field: { a: 1 } };
      const body = { model: MODEL_OF.anthropic, max_tokens: 4000, thinking, messages, tools, stream, ...own };
      expect(await (await rig.gateway.post('/v1/messages', body)).text()).to.include('It');
      const last = rig.lastBody<{ messages: { content: object[] }[] }>('anthropic');
      expect(last, 'the caller’s own body in each turn').to.deep.include(own);
      const sent = last.messages;
      expect(sent.map(({ content }) => (Array.isArray(content) ? content.length : 1))).to.deep.equal([1, 2, 1]);
      expect(sent[1]?.content[0]).to.deep.equal({
        type: 'thinking',
        thinking: 'I should look.',
        signature: 'c2lnbmVk',
      });
    }
  });

  it('end with the call of the caller that left: no further turn is sent', async () => {
    rig.say('openai', [turn(call('s__hang')), DONE]);
    const before = rig.sent('openai').length;
    const leaving = new AbortController();
    const body = { model: MODEL_OF.openai, messages: [{ role: 'user', content: 'Where?' }], tools: [SERVER] };
    const sent = fetch(`${rig.gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${rig.gateway.key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal: leaving.signal,
    }).catch(() => undefined);
    await until('the model is asked', () => rig.sent('openai').length > before);
    leaving.abort();
    await sent;
    await until('the tool has ended', async () => (await rows(1))[0]?.outcome === 'aborted');
    expect(rig.sent('openai').length).to.equal(before + 1);
  });

  it('count among the input tokens of a request', async () => {
    const count = async (tools: object[]): Promise<number> => {
      const body = { model: 'echo/echo', messages: [{ role: 'user', content: 'Where?' }], tools };
      const response = await rig.gateway.post('/v1/messages/count_tokens', body);
      return ((await response.json()) as { input_tokens: number }).input_tokens;
    };
    expect(await count([{ type: 'mcp_toolset', mcp_server_name: 's' }])).to.be.greaterThan((await count([])) + 20);
  });

  it('leave a server of the vendor to the vendor', async () => {
    const { status, error } = await chat({
      tools: [{ type: 'mcp', server_label: 'github', server_url: 'https://x.example' }],
    });
    expect(status).to.equal(403);
    expect(error?.message).to.include('operator');
  });

  it('are used by Gemini’s format under `mcpServers`', async () => {
    rig.say('openai', [LOOK(), DONE]);
    const response = await rig.gateway.post(`/v1beta/models/${MODEL_OF.openai}:generateContent`, {
      contents: [{ role: 'user', parts: [{ text: 'Where?' }] }],
      tools: [{ mcpServers: [{ name: 's', streamableHttpTransport: { url: 'https://attacker.example' } }] }],
    });
    const { candidates, usageMetadata } = (await response.json()) as {
      candidates: { content: { parts: { text?: string }[] } }[];
      usageMetadata: { totalTokenCount: number };
    };
    expect(candidates[0]?.content.parts.map(({ text }) => text).join('')).to.equal('I look.\n\nIt is Rome.');
    expect(usageMetadata.totalTokenCount).to.equal(50);
  });
});

describe('a chat with tools of MCP servers', () => {
  for (const [limit, value, steps] of [
    ['maxCost', 0.005, 1],
    ['maxTime', '1ms', 0],
  ] as const)
    it(`runs no tool after its ${limit}`, async () => {
      const servers = await createServers();
      const s = await servers.serve(['echo'], { prices: { echo: 0.01 } });
      const rig = await startIngressRig({
        billing: 'track',
        plans: { all: { serverTools: ['mcp:s'] } },
        defaultPlan: 'all',
        mcp: { servers: { s: s.options }, chat: { [limit]: value } },
      });
      try {
        rig.say('openai', [LOOK()]);
        const body = { model: MODEL_OF.openai, messages: [{ role: 'user', content: 'Where?' }], tools: [SERVER] };
        const response = await rig.gateway.post('/v1/chat/completions', body);
        const { choices } = (await response.json()) as {
          choices: { finish_reason: string; message: { mcp_calls?: object[] } }[];
        };
        expect(choices[0]?.finish_reason).to.equal('length');
        expect(choices[0]?.message.mcp_calls ?? []).to.have.length(steps);
      } finally {
        await rig.stop();
        await servers.remove();
      }
    });
});

/** Route that sends its body as a chat of a plugin, and returns the response, or the chunks of its stream. */
const PLUGIN_CHAT = routeText(
  '/probe/chat',
  `const { principal, requestId, signal, onOutcome } = ctx.state;
   const { request, servers } = await new Response(ctx.req).json();
   const given = await api.chat(request, { principal, requestId, signal, onOutcome, servers });
   const chunks = [];
   if (request.stream) for await (const chunk of given) chunks.push(chunk);
   ctx.body = request.stream ? chunks : given;`,
  `['key']`,
);

describe('a chat of a plugin with tools of MCP servers', () => {
  for (const stream of [false, true])
    it(`runs them for its caller, who counts one request (${stream ? 'streamed' : 'whole'})`, async () => {
      const servers = await createServers();
      const s = await servers.serve(['echo']);
      const rig = await startIngressRig(
        {
          plans: { all: { serverTools: ['mcp:s'], rpm: 1 } },
          defaultPlan: 'all',
          mcp: { servers: { s: s.options } },
          policies: { probe: { plugin: './probe.mjs' } },
        },
        { files: { 'probe.mjs': pluginFile({ setup: PLUGIN_CHAT }) } },
      );
      try {
        rig.say('openai', [LOOK(), DONE]);
        const messages = [{ role: 'user', content: 'Where?' }];
        const stream_options = { include_usage: true };
        const request = { model: MODEL_OF.openai, messages, ...(stream && { stream, stream_options }) };
        const response = await rig.gateway.post('/probe/chat', {
          request,
          servers: [{ server: 's', param: 'tools[0]' }],
        });
        const given = await response.json();
        const got = stream
          ? readStream((given as object[]).map((chunk) => `data: ${JSON.stringify(chunk)}`).join('\n'))
          : (given as { choices: [{ message: { content: string } }]; usage: object });
        const content = 'choices' in got ? got.choices[0].message.content : got.content;
        expect(content, JSON.stringify(given)).to.equal('I look.\n\nIt is Rome.');
        expect(got.usage).to.include({ prompt_tokens: 40, completion_tokens: 10, total_tokens: 50 });
        const { data } = await rig.gateway.command<{ data: readonly CallRow[] }>('calls');
        expect(data.map(({ operation, outcome }) => `${operation} ${outcome}`)).to.deep.equal([
          'chat ok',
          'mcp ok',
          'chat ok',
        ]);
      } finally {
        await rig.stop();
        await servers.remove();
      }
    });
});

describe('the tools of a plan’s chats', () => {
  it('must be of a configured server', async () => {
    const servers = await createServers();
    try {
      const s = await servers.serve(['echo']);
      const plans = { all: { chatTools: ['mcp:s/echo', 'mcp:git'] } };
      const error = await startMcp({ s: s.options }, { plans }).catch((thrown: Error) => thrown);
      expect(String(error)).to.include('no "git", which "chatTools" of the plan "all" names');
    } finally {
      await servers.remove();
    }
  });
});
