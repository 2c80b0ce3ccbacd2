import { mkdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { expect } from 'chai';
import { useTempFolder } from '../../support/folders.ts';
import { type IngressRig, sayScript, startIngressRig } from '../../support/gateways/ingress-rig.ts';
import { type ScriptedUpstream, startScriptedUpstream } from '../../support/vendors/scripted-upstream.ts';
import type { ScriptedOutput } from '../../support/vendors/vendor-wires.ts';
import { eventually } from '../../support/wait.ts';

const require = createRequire(import.meta.url);
const PACKAGE = path.dirname(require.resolve('@modelcontextprotocol/server-filesystem/package.json'));

// biome-ignore lint/suspicious/noExplicitAny: chunks of every shape
type Loose = any;

const MODELS = ['openai/gpt-5', 'anthropic/claude-sonnet-4-5', 'local/llama'] as const;
/** Of the local model, whose operator counts its power. */
const PRICE = { input: 0.1, output: 0.1 };
const usage = { prompt: 20, completion: 5 };

describe('a streamed chat with a tool of the published filesystem server', () => {
  const folder = useTempFolder('mcp-chat-files');
  const file = path.join(folder, 'shared/hello.txt');
  let rig: IngressRig;
  /** Server of a local model, and what it says next. */
  let local: ScriptedUpstream;
  let said: readonly ScriptedOutput[] = [];
  let calls = 0;

  before(async function () {
    this.timeout(120_000);
    mkdirSync(path.join(folder, 'shared'));
    writeFileSync(file, 'Hello from a file.');
    local = await startScriptedUpstream(async (wire) => {
      const [next, ...later] = said;
      if (later.length > 0) said = later;
      if (next) await sayScript('deepseek', next)(wire);
    });
    rig = await startIngressRig({
      billing: 'track',
      providers: { local: { plugin: 'vllm', baseUrl: `${local.url}/v1`, models: ['llama'], prices: { llama: PRICE } } },
      plans: { all: { serverTools: ['mcp:files'] } },
      defaultPlan: 'all',
      mcp: {
        servers: {
          files: {
            command: process.execPath,
            args: [path.join(PACKAGE, 'dist/index.js'), './shared'],
            cwd: folder,
            prices: { '*': 0.01 },
          },
        },
      },
    });
  });
  after(async () => {
    await rig?.stop();
    await local?.close();
  });

  const say = (model: string, outputs: readonly ScriptedOutput[]): void => {
    if (model.startsWith('local')) said = outputs;
    else rig.say(model.startsWith('openai') ? 'openai' : 'anthropic', outputs);
  };

  const read = (): ScriptedOutput => {
    calls += 1;
    const call = { call: 'files__read_text_file', id: `call_${calls}`, arguments: JSON.stringify({ path: file }) };
    return { pieces: [{ text: 'I read.' }, call], usage };
  };

  const chat = async (model: string, user: string, budget: string) => {
    const { api_key } = await rig.gateway.command<Loose>('keys', 'create', '--user', user, '--budget', budget);
    const response = await rig.gateway.post(
      '/v1/chat/completions',
      {
        model,
        max_tokens: 10,
        stream: true,
        stream_options: { include_usage: true },
        messages: [{ role: 'user', content: 'What does the file say?' }],
        tools: [{ type: 'mcp', server: 'files', allowed_tools: ['read_text_file'] }],
      },
      { authorization: `Bearer ${api_key}` },
    );
    const lines = (await response.text()).split('\n').filter((line) => line.startsWith('data: {'));
    const chunks: Loose[] = lines.map((line) => JSON.parse(line.slice(6)));
    const deltas = chunks.map(({ choices: [choice] = [] }) => choice?.delta ?? {});
    return {
      status: response.status,
      requestId: response.headers.get('x-request-id') ?? '',
      text: deltas.map(({ content = '' }) => content ?? '').join(''),
      outputs: deltas.flatMap(({ mcp_calls: made = [] }) => made.map(({ output }: Loose) => output)),
      error: chunks.find(({ error }) => error)?.error,
      usage: chunks.at(-1)?.usage,
    };
  };

  for (const model of MODELS) {
    const user = model.split('/')[0] ?? '';

    it(`runs it for ${model}`, async () => {
      say(model, [read(), { pieces: [{ text: 'It says hello.' }], usage }]);
      const got = await chat(model, `${user}-whole`, '1');
      expect(got.outputs, JSON.stringify(got)).to.deep.equal(['Hello from a file.']);
      expect(got.text).to.equal('I read.\n\nIt says hello.');
      expect(got.usage).to.include({ prompt_tokens: 40, completion_tokens: 10 });
    });

    it(`ends with 402 for ${model} when its budget ends midway, and nothing is lost`, async () => {
      say(model, [read()]);
      const owner = `${user}-short`;
      const got = await chat(model, owner, '0.025');
      expect(got.status).to.equal(200);
      expect(got.outputs, JSON.stringify(got)).to.deep.equal(['Hello from a file.', 'Hello from a file.']);
      expect(got.error).to.include({ code: 'insufficient_balance' });
      await eventually(async () => {
        const { data } = await rig.gateway.command<Loose>('calls', '--request', got.requestId);
        const ended = data.toReversed().map(({ operation, outcome }: Loose) => `${operation} ${outcome}`);
        expect(ended).to.deep.equal(['chat ok', 'mcp ok', 'chat ok', 'mcp ok', 'chat ok', 'mcp refused']);
        const sum = data.reduce((cost: number, row: Loose) => cost + Number(row.cost_usd), 0);
        const account = await rig.gateway.command<Loose>('accounts', 'show', owner);
        expect(sum).to.be.within(0.02, 0.025);
        expect(Number(account.spent_usd)).to.be.closeTo(sum, 1e-9);
        expect(Number(account.held_usd)).to.equal(0);
      });
    });
  }
});
