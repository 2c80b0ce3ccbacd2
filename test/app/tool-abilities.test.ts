import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { CHAT, GEMINI, type Json, MESSAGES, RESPONSES, type Wire } from '../support/vendors/bill-wires.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';

const contents = [{ role: 'user', parts: [{ text: 'hello there' }] }];
const server = { type: 'url', url: 'https://mcp.example.com', name: 'm' };

/** Requests for tools of vendors, with the ability that allows each; undefined for a tool that needs none. */
const REQUESTS: readonly (readonly [title: string, ability: string | undefined, Wire, path: string, body: Json])[] = [
  [
    'web_search_20250305 of Claude',
    ...(['search', MESSAGES, '/v1/messages'] as const),
    { model: 'anthropic/claude-opus-5', tools: [{ type: 'web_search_20250305', name: 'web_search' }] },
  ],
  [
    'web_fetch_20250910 of Claude',
    ...(['fetch', MESSAGES, '/v1/messages'] as const),
    { model: 'anthropic/claude-opus-5', tools: [{ type: 'web_fetch_20250910', name: 'web_fetch' }] },
  ],
  [
    'code_execution_20250825 of Claude',
    ...(['code', MESSAGES, '/v1/messages'] as const),
    { model: 'anthropic/claude-opus-5', tools: [{ type: 'code_execution_20250825', name: 'code_execution' }] },
  ],
  [
    'mcp_toolset and mcp_servers of Claude',
    ...(['mcp', MESSAGES, '/v1/messages'] as const),
    {
      model: 'anthropic/claude-opus-5',
      mcp_servers: [server],
      tools: [{ type: 'mcp_toolset', mcp_server_name: 'm' }],
    },
  ],
  [
    'tool_search_tool_regex_20251119 of Claude',
    ...([undefined, MESSAGES, '/v1/messages'] as const),
    {
      model: 'anthropic/claude-opus-5',
      tools: [{ type: 'tool_search_tool_regex_20251119', name: 'tool_search_tool_regex' }],
    },
  ],
  ...(
    [
      ['googleSearch', 'search'],
      ['googleSearchRetrieval', 'search'],
      ['urlContext', 'fetch'],
      ['codeExecution', 'code'],
    ] as const
  ).map(
    ([tool, ability]) =>
      [
        `${tool} of Gemini`,
        ...([ability, GEMINI, '/v1beta/models/gemini/gemini-2.5-flash:generateContent'] as const),
        { contents, tools: [{ [tool]: {} }] },
      ] as const,
  ),
  [
    'googleMaps of Gemini',
    ...(['search', GEMINI, '/v1beta/models/gemini/gemini-2.5-flash:generateContent'] as const),
    { contents, tools: [{ googleMaps: {} }] },
  ],
  [
    'image_generation of the Responses API',
    ...(['images', RESPONSES, '/v1/responses'] as const),
    { model: 'openai/gpt-5.5', tools: [{ type: 'image_generation' }] },
  ],
  [
    'advisor_20260301 of Claude',
    ...(['models', MESSAGES, '/v1/messages'] as const),
    {
      model: 'anthropic/claude-opus-5',
      tools: [{ type: 'advisor_20260301', name: 'advisor', model: 'anthropic/claude-opus-5' }],
    },
  ],
  [
    'web_search_options of chat completions',
    ...(['search', CHAT, '/v1/chat/completions'] as const),
    { model: 'openai/gpt-4o-search-preview', web_search_options: {} },
  ],
  [
    'web_search_preview of the Responses API',
    ...(['search', RESPONSES, '/v1/responses'] as const),
    { model: 'openai/gpt-5.5', tools: [{ type: 'web_search_preview' }] },
  ],
];

describe('G22: abilities in `server_tools` of a key and `serverTools` of a plan', () => {
  let upstream: ScriptedUpstream;
  let gateway: TestGateway;
  const keys = new Map<string, string>();

  before(async () => {
    upstream = await startScriptedUpstream();
    const at = { baseUrl: upstream.url, apiKey: 'k' };
    gateway = await startGateway({
      providers: { openai: at, anthropic: { ...at, native: { references: 'allow' } }, gemini: at },
      plans: Object.fromEntries(
        ['search', 'fetch', 'code', 'images', 'models', 'mcp'].map((ability) => [
          `plan-${ability}`,
          { serverTools: [ability] },
        ]),
      ),
    });
    const create = async (...options: readonly string[]) =>
      (await gateway.command<{ api_key: string }>('keys', 'create', '--user', 'u', ...options)).api_key;
    for (const ability of ['search', 'fetch', 'code', 'images', 'models', 'mcp', 'computer'])
      keys.set(ability, await create('--server-tools', ability));
    for (const ability of ['search', 'fetch', 'code', 'images', 'models', 'mcp'])
      keys.set(`plan-${ability}`, await create('--plan', `plan-${ability}`));
  });
  after(async () => {
    await gateway?.stop();
    await upstream?.close();
  });

  for (const [title, ability, wire, path, body] of REQUESTS)
    it(`G22: allow ${title} ${ability === undefined ? 'without any' : `by \`${ability}\` alone`}`, async () => {
      upstream.script(respondWith(200, wire.whole({})));
      const statuses: Record<string, number> = {};
      for (const [name, key] of keys) {
        const response = await gateway.post(
          path,
          { ...(wire === GEMINI ? {} : wire.request), ...body },
          { authorization: `Bearer ${key}` },
        );
        statuses[name] = response.status;
        // A tool of the Responses API is optional, so it is left out instead.
        const isSent = (upstream.requests.at(-1)?.body.toString() ?? '').includes('"tools":[{');
        if (wire === RESPONSES && !isSent) statuses[name] = 403;
        await response.text();
      }
      const allowed = Object.keys(statuses).filter((name) => statuses[name] === 200);
      expect(allowed, JSON.stringify(statuses)).to.deep.equal(
        ability === undefined ? [...keys.keys()] : [ability, `plan-${ability}`],
      );
    });
});
