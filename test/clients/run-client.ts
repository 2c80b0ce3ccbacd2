import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { createSelfSigned } from '../support/identity/self-signed.ts';
import { AFTER, AGENTS, type AgentRow, BEFORE, FINISHED, moveOf, NOTE } from './agents.ts';
import { type Finished, folderOf, programsOf, runProgram } from './install.ts';
import { startOpenaiVendor } from './openai-vendor.ts';
import { type OperationsVendor, startOperationsVendor } from './operations-vendor.ts';
import { type Move, type ScriptedVendor, startScriptedVendor, type VendorRequest } from './scripted-vendor.ts';
import { createSdkMoves } from './sdk-moves.ts';
import { applySetUp } from './set-up.ts';
import {
  BUDGET_USD,
  type ClientRow,
  type ClientRun,
  DEAR_MODELS,
  type DearModel,
  type OperationsRun,
  TEMPLATE_MODELS,
  type TemplateModel,
} from './table.ts';

/** Result of one behaviour; without a problem it works. */
export interface Outcome {
  readonly behaviour: string;
  readonly problem?: string;
}

/** Route to the vendor: its format differs from the client's, or is the same. */
type Lane = 'translated' | 'native';

/** OpenAI model, at a vendor that rejects what OpenAI rejects. */
interface OpenaiModel {
  readonly openai: string;
}

/** Expensive model of a vendor with its own format, for users with {@link BUDGET_USD} a day. */
interface OnBudget {
  readonly dear: DearModel;
}

/** Self-hosted model behind a server that enforces its chat template. */
interface OnTemplate {
  readonly selfHosted: TemplateModel;
}

type Stage = Lane | OpenaiModel | OnBudget | OnTemplate;

const SDK_FOLDER = path.join(import.meta.dirname, 'sdk');
const SET_UP_MS = 180_000;
const LOOP_MS = 300_000;
const SDK_MS = 300_000;
const HELLO = 'Hello there, friend.';
const MODEL_OF = Object.freeze({
  chat: 'gpt-5.5',
  responses: 'gpt-5.5',
  messages: 'claude-opus-5-5',
  gemini: 'gemini-3.8-flash',
  interactions: 'gemini-3.8-flash',
  ollama: 'gpt-5.5',
  cohere: 'gpt-5.5',
});

/** Working environment of a client. */
interface ClientHome {
  readonly home: string;
  readonly project: string;
  readonly env: NodeJS.ProcessEnv;
  remove(): void;
}

interface Rig extends Omit<ClientHome, 'remove'> {
  readonly gateway: TestGateway;
  readonly provider: string;
  readonly vendor: ScriptedVendor;
  /** Sets the model's next responses. */
  follow(choose: (request: VendorRequest) => Move): void;
  stop(): Promise<void>;
}

/** Gateways between a client and the vendor, and the model's name at the first one. */
interface Gateways {
  readonly gateway: TestGateway;
  /** Prefix of model names in an SDK. */
  readonly provider: string;
  stop(): Promise<void>;
}

const ALIASES = ['gpt-5.5', 'gpt-6-sol', 'claude-opus-5-5', 'gemini-3.8-flash'];
const aliasesOf = (model: string) => Object.fromEntries(ALIASES.map((name) => [name, model]));

/** The vendor supports only chat completions: every other format is translated. */
async function startTranslated(baseUrl: string, names: readonly string[] = []): Promise<Gateways> {
  const scripted = { plugin: 'openai-compatible', baseUrl, apiKey: 'k', models: ['*'] };
  const own = Object.fromEntries(names.map((name) => [name, 'scripted/m']));
  const gateway = await startGateway({ providers: { scripted }, models: { ...aliasesOf('scripted/m'), ...own } });
  return { gateway, provider: 'scripted', stop: () => gateway.stop() };
}

/** The vendor is another gateway, which supports the client's format. */
async function startNative(baseUrl: string, format: ClientRun['format']): Promise<Gateways> {
  const inner = await startTranslated(baseUrl);
  const native = NATIVE[format];
  if (!native) throw new Error(`there is no vendor of the format ${format}`);
  const { plugin, path: below, models = 'scripted' } = native;
  const { url, key: apiKey } = inner.gateway;
  const outer = await startGateway({
    providers: { vendor: { plugin, baseUrl: url + below, apiKey, models: ['*'] } },
    models: aliasesOf(`vendor/${models}/m`),
  });
  return {
    ...{ gateway: outer, provider: `vendor/${models}` },
    async stop() {
      await outer.stop();
      await inner.stop();
    },
  };
}

const NATIVE: Readonly<
  Partial<Record<ClientRun['format'], { readonly plugin: string; readonly path: string; readonly models?: string }>>
> = Object.freeze({
  chat: { plugin: 'openai', path: '/v1' },
  responses: { plugin: 'openai', path: '/v1' },
  messages: { plugin: 'anthropic', path: '' },
  gemini: { plugin: 'gemini', path: '/v1beta', models: 'models/scripted' },
  cohere: { plugin: 'cohere', path: '' },
});

/** Routes to the vendor: translated, and native if a provider has the format. */
export function lanesOf({ format }: ClientRun): readonly Lane[] {
  return NATIVE[format] ? ['translated', 'native'] : ['translated'];
}

async function startOpenai(baseUrl: string, model: string, more: object = {}): Promise<Gateways> {
  const providers = { openai: { baseUrl, apiKey: 'k', models: ['*'] } };
  const gateway = await startGateway({ providers, models: aliasesOf(`openai/${model}`), ...more });
  return { gateway, provider: 'openai', stop: () => gateway.stop() };
}

const SMALL_PLAN = Object.freeze({
  plans: { small: { budgets: [{ amount_usd: BUDGET_USD, every: 'day' }] } },
  defaultPlan: 'small',
});

/** For Anthropic's format, a gateway translates to the scripted vendor. The vendor itself has OpenAI's format. */
async function startOnBudget(baseUrl: string, dear: DearModel): Promise<Gateways> {
  const [vendor = '', model = ''] = dear.split('/');
  if (vendor === 'openai') return startOpenai(baseUrl, model, SMALL_PLAN);
  const inner = await startTranslated(baseUrl, [model]);
  const { url, key: apiKey } = inner.gateway;
  const providers = { anthropic: { baseUrl: url, apiKey } };
  const gateway = await startGateway({ providers, models: aliasesOf(dear), ...SMALL_PLAN });
  return {
    ...{ gateway, provider: vendor },
    async stop() {
      await gateway.stop();
      await inner.stop();
    },
  };
}

function startGateways(baseUrl: string, format: ClientRun['format'], stage: Stage): Promise<Gateways> {
  if (stage === 'native') return startNative(baseUrl, format);
  if (stage === 'translated') return startTranslated(baseUrl);
  if ('selfHosted' in stage) return startSelfHosted(baseUrl, stage.selfHosted);
  return 'dear' in stage ? startOnBudget(baseUrl, stage.dear) : startOpenai(baseUrl, stage.openai);
}

async function startSelfHosted(baseUrl: string, name: TemplateModel): Promise<Gateways> {
  const [plugin = ''] = name.split('/');
  const providers = { [plugin]: { plugin, baseUrl, apiKey: 'k', models: ['*'] } };
  const gateway = await startGateway({ providers, models: aliasesOf(name) });
  return { gateway, provider: plugin, stop: () => gateway.stop() };
}

function startVendor(stage: Stage, choose: (request: VendorRequest) => Move): Promise<ScriptedVendor> {
  if (typeof stage === 'string') return startScriptedVendor(choose);
  if ('selfHosted' in stage) return startScriptedVendor(choose, TEMPLATE_MODELS[stage.selfHosted]);
  const keepsOpenaiRules = 'openai' in stage || stage.dear.startsWith('openai/');
  return keepsOpenaiRules ? startOpenaiVendor(choose) : startScriptedVendor(choose);
}

async function startRig(row: ClientRow, { format }: ClientRun, stage: Stage): Promise<Rig> {
  let choose = createSdkMoves();
  const vendor = await startVendor(stage, (request) => choose(request));
  const gateways = await startGateways(vendor.url, format, stage);
  const { remove, ...place } = createPlace(row);
  return {
    ...{ gateway: gateways.gateway, provider: gateways.provider, vendor, ...place },
    follow(next) {
      choose = next;
    },
    async stop() {
      await gateways.stop();
      await vendor.close();
      remove();
    },
  };
}

function createPlace(row: ClientRow): ClientHome {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'tollgate-client-'));
  const [home, project] = ['home', 'project'].map((name) => path.join(folder, name)) as [string, string];
  for (const one of [home, project]) mkdirSync(one);
  return {
    ...{ home, project, remove: () => rmSync(folder, { recursive: true, force: true }) },
    env: {
      ...{ PATH: `${programsOf('node')}:${programsOf(row.id)}:${process.env['PATH']}`, HOME: home, TERM: 'dumb' },
      // No request of a client may leave the loopback.
      ...{ CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', DISABLE_AUTOUPDATER: '1', NO_COLOR: '1', CI: '1' },
      ...{ HTTPS_PROXY: 'http://127.0.0.1:9', NO_PROXY: '127.0.0.1,localhost' },
      // Avoids the process that Cline otherwise leaves running for all sessions of a machine.
      CLINE_SESSION_BACKEND_MODE: 'local',
    },
  };
}

/** Runs one row of the matrix. */
export async function runClient(row: ClientRow, run: ClientRun, lane: Lane): Promise<readonly Outcome[]> {
  const rig = await startRig(row, run, lane);
  try {
    const agent = run.agent === undefined ? undefined : AGENTS[run.agent];
    const model = agent?.model ?? MODEL_OF[run.format];
    if (agent) rig.follow(() => ({ reasoning: 'A greeting.', text: HELLO }));
    const setUp = await runSetUp(rig, row, run, model, agent?.edit);
    return [
      { behaviour: 'set-up', ...setUp },
      ...(agent ? await runAgent(rig, run, agent) : await runScript(rig, row, run)),
    ];
  } finally {
    await rig.stop();
  }
}

/** Runs one tool loop on an OpenAI model; returns the problem. */
export async function runToolLoop(row: ClientRow, run: ClientRun, model: string): Promise<string | undefined> {
  const rig = await startRig(row, run, { openai: model });
  try {
    return await loopOn(rig, row, run, `openai/${model}`);
  } finally {
    await rig.stop();
  }
}

/** Runs one tool loop on a self-hosted model with an enforced chat template; returns the problem. */
export async function runOnTemplate(row: ClientRow, run: ClientRun, model: TemplateModel): Promise<string | undefined> {
  const rig = await startRig(row, run, { selfHosted: model });
  try {
    return await loopOn(rig, row, run, model);
  } finally {
    await rig.stop();
  }
}

/** Runs one tool loop on an expensive model with a small budget, which no request may exceed; returns the problem. */
export async function runOnBudget(row: ClientRow, run: ClientRun, dear: DearModel): Promise<string | undefined> {
  const rig = await startRig(row, run, { dear });
  try {
    const problem = await loopOn(rig, row, run, dear);
    if (problem !== undefined) return problem;
    const most = (BUDGET_USD * 1e6) / DEAR_MODELS[dear];
    const limits = rig.vendor.requests.map(({ max_completion_tokens: limit, max_tokens = limit }) => max_tokens);
    const wrong = limits.filter((limit) => limit === undefined || limit > most);
    return wrong.length === 0 ? undefined : `limits of ${wrong.join(', ')} were sent; ${most} tokens are affordable`;
  } finally {
    await rig.stop();
  }
}

async function loopOn(rig: Rig, row: ClientRow, run: ClientRun, model: string): Promise<string | undefined> {
  const agent = run.agent === undefined ? undefined : AGENTS[run.agent];
  if (agent) return (await runLoop(rig, run, agent)).problem;
  const [outcome] = await runScript(rig, row, run, { ONLY: 'tools', MODEL: model });
  return outcome ? outcome.problem : 'it reported nothing';
}

/** Runs the lines of the documentation unchanged. */
async function runSetUp(rig: Rig, row: ClientRow, run: ClientRun, model: string, edit?: AgentRow['edit']) {
  const { language, lines } = applySetUp(run.setup, valuesOf(rig, model), rig, edit);
  if (language === 'sh') return reported(await runShell(rig, lines, SET_UP_MS), HELLO);
  const [program, name] = language === 'python' ? ['python3', 'set-up.py'] : ['node', 'set-up.mjs'];
  mkdirSync(folderOf(row.id), { recursive: true });
  const file = path.join(folderOf(row.id), name);
  writeFileSync(file, `${lines.join('\n')}\n`);
  const env = rig.env;
  return reported(await runProgram([program, file], { cwd: rig.project, env, withinMs: SET_UP_MS }), HELLO);
}

async function runAgent(rig: Rig, run: ClientRun, agent: AgentRow): Promise<readonly Outcome[]> {
  const tools = await runLoop(rig, run, agent);
  const isStreamed = rig.vendor.requests.some(({ stream, tools: offered = [] }) => stream && offered.length > 0);
  const streamed =
    tools.problem === undefined && !isStreamed ? { problem: 'no request with tools was streamed' } : tools;
  const errors = await runErrors(rig, run, agent);
  return [
    { behaviour: 'tools', ...tools },
    { behaviour: 'tools, streamed', ...streamed },
    { behaviour: 'errors', ...errors },
  ];
}

/** An interrupted response, then a 429: the agent must retry and finish. */
async function runErrors(rig: Rig, run: ClientRun, agent: AgentRow): Promise<Omit<Outcome, 'behaviour'>> {
  const moves: Move[] = [
    { text: 'One two three ', breaksOff: true },
    { error: { status: 429, headers: { 'retry-after': '1' } } },
  ];
  rig.follow(({ tools = [] }) => (tools.length > 0 ? moves.shift() : undefined) ?? { text: HELLO });
  const { lines } = applySetUp(run.setup, valuesOf(rig, agent.model), rig, agent.edit);
  const finished = await runShell(rig, lines, LOOP_MS);
  return moves.length === 0 ? reported(finished, HELLO) : { problem: `it did not try again; ${lastWords(finished)}` };
}

async function runLoop(rig: Rig, run: ClientRun, agent: AgentRow): Promise<Omit<Outcome, 'behaviour'>> {
  const note = path.join(rig.project, NOTE);
  writeFileSync(note, BEFORE);
  rig.follow((request) => moveOf(agent, rig.project, request));
  const { lines } = applySetUp(run.setup, valuesOf(rig, agent.model), rig, agent.edit);
  const finished = await runShell(rig, [...lines.slice(0, -1), agent.command], LOOP_MS);
  if (readFileSync(note, 'utf8') !== AFTER) return { problem: `the file was not changed; ${lastWords(finished)}` };
  const last = rig.vendor.requests.findLast(({ tools = [] }) => tools.length > 0);
  const results = last?.messages.filter(({ role }) => role === 'tool') ?? [];
  if (!JSON.stringify(results.at(-1)?.content).includes('colour: blue'))
    return { problem: 'what the command printed did not reach the model' };
  if (agent.logs !== undefined && !rig.gateway.logText().includes(agent.logs))
    return { problem: `the gateway did not log "${agent.logs}"` };
  return reported(finished, FINISHED);
}

async function runScript(
  rig: Rig,
  row: ClientRow,
  { script, client }: ClientRun,
  more: NodeJS.ProcessEnv = {},
): Promise<readonly Outcome[]> {
  if (script === undefined) return [];
  const env = { VENDOR_URL: rig.vendor.url, PROVIDER: rig.provider, ...more };
  return reportOf(row, { script, client }, rig.gateway, { ...rig, env: { ...rig.env, ...env } });
}

/** Parses the report of an SDK's script. */
async function reportOf(
  row: ClientRow,
  { script, client }: { readonly script: string; readonly client: string | undefined },
  { url, key }: Pick<TestGateway, 'url' | 'key'>,
  { env, project }: Pick<ClientHome, 'env' | 'project'>,
): Promise<readonly Outcome[]> {
  const folder = path.join(folderOf(row.id), 'scripts');
  mkdirSync(folder, { recursive: true });
  for (const file of readdirSync(SDK_FOLDER)) copyFileSync(path.join(SDK_FOLDER, file), path.join(folder, file));
  const finished = await runProgram(['node', path.join(folder, script)], {
    ...{ cwd: project, env: { ...env, TOLLGATE_URL: url, TOLLGATE_API_KEY: key, CLIENT: client }, withinMs: SDK_MS },
  });
  const lines = finished.stdout.split('\n').filter((line) => line.startsWith('{"behaviour"'));
  if (lines.length === 0) return [{ behaviour: 'chat', problem: lastWords(finished) }];
  return lines.map((line) => JSON.parse(line) as Outcome);
}

/** Runs an SDK's operations other than chat against a vendor of every operation. */
export async function runOperations(row: ClientRow, run: OperationsRun): Promise<readonly Outcome[]> {
  const vendor = await startOperationsVendor();
  // OpenAI's realtime client requires TLS.
  const { cert, key } = createSelfSigned();
  const gateway = await startGateway(operationsConfig(vendor), { files: { 'tls.crt': cert, 'tls.key': key } });
  const { remove, project, env } = createPlace(row);
  const url = `https://localhost:${new URL(gateway.url).port}`;
  const trusting = { ...env, NODE_EXTRA_CA_CERTS: path.join(gateway.folder, 'tls.crt') };
  try {
    return await reportOf(row, { client: undefined, ...run }, { url, key: gateway.key }, { project, env: trusting });
  } finally {
    await gateway.stop();
    await vendor.close();
    remove();
  }
}

function operationsConfig({ url, realtimeUrl }: OperationsVendor) {
  const at = { apiKey: 'k', baseUrl: `${url}/v1` };
  return {
    server: { port: 0, tls: { cert: 'tls.crt', key: 'tls.key' } },
    providers: {
      ...{ openai: at, mistral: at, anthropic: { ...at, baseUrl: url } },
      gemini: { ...at, baseUrl: `${url}/v1beta` },
      ranker: { ...at, plugin: 'openai-compatible', models: ['*'] },
      realtime: { ...at, plugin: 'openai', baseUrl: `${realtimeUrl}/v1` },
    },
    tts: { openai: at, mistral: at },
  };
}

function valuesOf({ gateway }: Rig, model: string) {
  return { base: gateway.url, key: gateway.key, model };
}

function runShell({ project, env }: Rig, lines: readonly string[], withinMs: number): Promise<Finished> {
  return runProgram(['bash', '-ec', lines.join('\n')], { cwd: project, env, withinMs });
}

function reported(finished: Finished, words: string): Omit<Outcome, 'behaviour'> {
  return finished.stdout.includes(words) ? {} : { problem: lastWords(finished) };
}

function lastWords({ code, stdout, stderr }: Finished): string {
  const said = (stderr.trim() || stdout.trim()).split('\n').filter((line) => /error|fail|not |\d{3}/i.test(line));
  return `it ended with ${code}: ${(said.at(-1) ?? stderr.trim().split('\n').at(-1) ?? '').trim().slice(0, 240)}`;
}
