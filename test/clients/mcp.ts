/** `npm run clients:mcp [-- name…]`: installs MCP clients, and lets each call a tool at the gateway. */
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createServers } from '../plugins/mcp/mcp-rig.ts';
import { startGateway } from '../support/gateways/gateway.ts';
import { folderOf, install, programsOf, runProgram } from './install.ts';
import { type Move, startScriptedVendor, type VendorRequest } from './scripted-vendor.ts';
import { applySetUp } from './set-up.ts';
import { NODE } from './table.ts';

/** Client of MCP. */
interface McpClient {
  readonly id: string;
  readonly packages: readonly string[];
  /** Set-up of the client's model, for a coding agent. */
  readonly setup?: string;
  readonly model?: string;
  /** Script of an SDK. */
  readonly script?: string;
  /** Lines of a shell, with the gateway's address and key in the environment. */
  readonly lines?: readonly string[];
}

const TASK = '"Say where Rome is, with the tool echo."';
const HEADER = '"authorization: Bearer $TOLLGATE_API_KEY"';
const SDKS = ['ai@7.0.173', '@ai-sdk/mcp@2.0.99', '@openai/agents@0.20.0', 'zod@4.6.7'];

const CLIENTS: readonly McpClient[] = [
  {
    ...{ id: 'claude-code', packages: ['@anthropic-ai/claude-code@2.1.330'] },
    ...{ setup: 'claude-code', model: 'claude-opus-5-5' },
    lines: [
      `claude mcp add --transport http gateway $TOLLGATE_URL/mcp --header ${HEADER}`,
      `claude -p ${TASK} --allowedTools mcp__gateway__s__echo`,
    ],
  },
  {
    ...{ id: 'codex', packages: ['@openai/codex@0.169.0'], setup: 'codex', model: 'gpt-5.5' },
    lines: [
      'codex mcp add gateway --url $TOLLGATE_URL/mcp --bearer-token-env-var TOLLGATE_API_KEY',
      `codex exec --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox ${TASK}`,
    ],
  },
  { id: 'ai-sdk', packages: SDKS, script: 'mcp-ai-sdk.mjs' },
  { id: 'openai-agents', packages: SDKS, script: 'mcp-openai-agents.mjs' },
  {
    ...{ id: 'inspector', packages: ['@modelcontextprotocol/inspector@2.12.0'] },
    lines: [
      `mcp-inspector --cli $TOLLGATE_URL/mcp --transport http --header ${HEADER} --method tools/call --tool-name s__echo --tool-arg city=Rome`,
    ],
  },
];

const RUN_MS = 180_000;
const FINISHED = 'The tool said Rome.';

/** Model that calls the tool of the gateway once. Coding agents show tools of servers after a search alone. */
function choose({ messages, tools = [] }: VendorRequest): Move {
  const names = tools.map((tool) => tool.function?.name ?? '');
  const results = messages.filter(({ role }) => role === 'tool');
  const name = names.find((each) => each.endsWith('s__echo'));
  const search = names.find((each) => /^tool_?search$/i.test(each));
  if (results.some(({ content }) => JSON.stringify(content).includes('Rome'))) return { text: FINISHED };
  if (name !== undefined) return { calls: [{ name, input: { city: 'Rome' } }] };
  if (search === undefined || results.length > 0) return { text: 'Hello there, friend.' };
  return { calls: [{ name: search, input: { query: 's__echo', ...(search === 'ToolSearch' && { max_results: 5 }) } }] };
}

/** Runs a client; returns the problem. */
async function run({ id, packages, setup, model = '', script, lines = [] }: McpClient): Promise<string | undefined> {
  const failure = await install(id, packages);
  if (failure !== undefined) return `it does not install: ${failure}`;
  const vendor = await startScriptedVendor(choose);
  const servers = await createServers();
  const s = await servers.make(['echo']);
  const gateway = await startGateway({
    providers: { scripted: { plugin: 'openai-compatible', baseUrl: vendor.url, apiKey: 'k', models: ['*'] } },
    models: model === '' ? {} : { [model]: 'scripted/m' },
    plans: { all: { serverTools: ['mcp:s'] } },
    defaultPlan: 'all',
    mcp: { servers: { s: s.options } },
  });
  const folder = mkdtempSync(path.join(os.tmpdir(), 'tollgate-mcp-client-'));
  const [home, project] = [path.join(folder, 'home'), path.join(folder, 'project')];
  for (const each of [home, project]) mkdirSync(each);
  const env = {
    ...{ PATH: `${programsOf('node')}:${programsOf(id)}:${process.env['PATH']}`, HOME: home, TERM: 'dumb', CI: '1' },
    ...{ CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', DISABLE_AUTOUPDATER: '1', NO_COLOR: '1' },
    // No request of a client may leave the loopback.
    ...{ HTTPS_PROXY: 'http://127.0.0.1:9', NO_PROXY: '127.0.0.1,localhost' },
    ...{ TOLLGATE_URL: gateway.url, TOLLGATE_API_KEY: gateway.key },
  };
  try {
    const options = { cwd: project, env, withinMs: RUN_MS };
    const own =
      setup === undefined ? [] : setUpLines(setup, { base: gateway.url, key: gateway.key, model }, home, project);
    const program =
      script === undefined ? ['bash', '-ec', [...own, ...lines].join('\n')] : ['node', copied(id, script)];
    const { stdout, stderr } = await runProgram(program, options);
    const { data } = await gateway.command<{ data: readonly { model: string; outcome: string }[] }>('calls');
    if (!data.some((call) => call.model === 's/echo' && call.outcome === 'ok'))
      return `it did not call the tool: ${stderr.trim().slice(-300) || stdout.trim().slice(-300)}`;
    return stdout.includes('Rome') ? undefined : `it did not show the result: ${stdout.trim().slice(-300)}`;
  } finally {
    await gateway.stop();
    await servers.remove();
    await vendor.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Lines of a set-up without the last one, which says hello. */
function setUpLines(
  setup: string,
  values: Parameters<typeof applySetUp>[1],
  home: string,
  project: string,
): readonly string[] {
  return applySetUp(setup, values, { home, project }).lines.slice(0, -1);
}

/** Copies a script next to the packages that it imports. */
function copied(id: string, script: string): string {
  const file = path.join(folderOf(id), script);
  copyFileSync(path.join(import.meta.dirname, 'sdk', script), file);
  return file;
}

const wanted = process.argv.slice(2);
const failure = await install('node', [NODE]);
if (failure !== undefined) throw new Error(`${NODE} does not install: ${failure}`);
let red = 0;
for (const client of CLIENTS) {
  if (wanted.length > 0 && !wanted.includes(client.id)) continue;
  const problem = await run(client);
  if (problem !== undefined) red += 1;
  console.log(`${problem === undefined ? 'ok  ' : 'RED '} ${client.id}${problem === undefined ? '' : `: ${problem}`}`);
}
process.exitCode = red > 0 ? 1 : 0;
