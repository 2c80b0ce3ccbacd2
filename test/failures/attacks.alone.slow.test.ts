/**
 * One caller attacks a gateway of 256 MB in each way of E25 to E34. The calls of others succeed, and the gateway stays
 * live and ready.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import type { CallFacts } from '../../contract/index.ts';
import { createKey } from '../../plugins/auth/api-key/format.ts';
import { closeDatabase, openDatabase } from '../../plugins/stores/sqlite/index.ts';
import { openSqliteLedger } from '../../plugins/stores/sqlite/ledger.ts';
import { Writer } from '../../plugins/stores/sqlite/writer.ts';
import { connectTo } from '../support/clients/raw-socket.ts';
import { frameOf, OPCODE, RawWebSocket } from '../support/clients/raw-websocket.ts';
import { type GatewayProcess, type Installation, installGateway } from '../support/gateways/gateway-process.ts';
import { pluginFile } from '../support/plugins/plugin-file.ts';
import { openAiVendor } from '../support/vendors/openai-vendor.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';

const MB = 1_000_000;
const CHAT = '/v1/chat/completions';
/** Calls of others during the attack. */
const CALLS = 30;
const RECORDS = 100_000;

/** Other callers: sequential chats, and the probes. Prints the results as JSON. */
const OTHERS = `(async () => {
  const [url, key, count] = process.argv.slice(1);
  const body = JSON.stringify({ model: 'echo/echo', messages: [{ role: 'user', content: 'hi' }] });
  const headers = { authorization: 'Bearer ' + key, 'content-type': 'application/json', connection: 'close' };
  const made = [];
  const send = async (path, init) => {
    const began = performance.now();
    const came = await fetch(url + path, init).then(async (r) => ({ text: await r.text(), status: r.status }), (e) => ({ text: String(e), status: 0 }));
    made.push({ path, ...came, ms: performance.now() - began, ...(came.status === 200 && { text: '' }) });
  };
  for (let at = 0; at < Number(count); at += 1) {
    await send('${CHAT}', { method: 'POST', headers, body });
    if (at % 10 === 0) for (const probe of ['/livez', '/readyz']) await send(probe);
  }
  console.log(JSON.stringify(made));
})()`;

interface Rig {
  readonly gateway: GatewayProcess;
  readonly installation: Installation;
  /** The attacker's key. */
  readonly greedy: string;
  /** Posts JSON, with the attacker's key by default. Resolves with the status, or 0 if the connection was cut. */
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<number>;
  get(path: string, key?: string): Promise<number>;
}

interface Attack {
  readonly title: string;
  readonly config?: Record<string, unknown>;
  readonly files?: Readonly<Record<string, string>>;
  /** Number of concurrent attackers. Each repeats `strike` until the others have made their calls. */
  readonly lanes: number;
  strike(rig: Rig, lane: number): Promise<unknown>;
  /** Allowed statuses of the attacker's requests. */
  readonly reported: readonly number[];
  /** Runs before the gateway starts. */
  prepare?(installation: Installation): Promise<void>;
  /** Checks after the attack. */
  after?(rig: Rig): Promise<void>;
}

const chat = (content: unknown, model = 'echo/echo') => ({ model, messages: [{ role: 'user', content }] });

/** 10,000 tool calls and their results: 1.7 MB. */
function toolTurns(): string {
  const messages = Array.from({ length: 10_000 }, (_, at) => [
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: `c${at}`, type: 'function', function: { name: 'look', arguments: '{"at":1}' } }],
    },
    { role: 'tool', tool_call_id: `c${at}`, content: 'found' },
  ]).flat();
  return JSON.stringify({ model: 'echo/echo', messages: [{ role: 'user', content: 'go' }, ...messages] });
}

/** Call records of other users, written like the ledger's. */
async function fillCalls({ folder }: Installation): Promise<void> {
  const database = await openDatabase({ folder: path.join(folder, 'data') });
  const writer = new Writer(database, 'tollgate.db');
  const { journal } = openSqliteLedger(database, writer);
  const from = Date.now() - 20 * 86_400_000;
  await writer.write('test.fill', () => {
    for (let n = 0; n < RECORDS; n += 1) {
      const startedAt = from + n * 5000;
      const userId = `user-${n % 50}`;
      const facts: CallFacts = {
        ...{ requestId: `req_${n}`, userId, key: `key${n % 80}`, operation: 'chat', provider: 'openai', model: 'm' },
        ...{ tags: [], stream: false, outcome: 'ok', attempts: [], startedAt, durationMs: 9, firstByteMs: 3 },
        ...{ units: { prompt_tokens: 9 }, estimated: false, priced: true, session: `s${n % 5000}` },
      };
      const keys = { account: userId, name: userId, kind: 'charge', ref: `call_${n}` } as const;
      journal.add(keys, undefined, { facts, cost: 1, at: startedAt, countedAt: startedAt });
    }
  });
  await journal.close();
  await writer.close();
  closeDatabase(database);
}

/** Hangs for a certain user, and throws before every route for a certain header. */
const GUARD = pluginFile({
  name: 'guard',
  setup: `
    api.hook('admit', (call) => call.request.user === 'hang' ? new Promise(() => {}) : undefined);
    api.use((ctx, next) => { if (ctx.get('x-throw')) throw new TypeError('a bug'); return next(); });`,
});

const large = toolTurns();
const body6 = JSON.stringify(chat('x'.repeat(6 * MB)));
const WORDS = 'every word of it is said again. '.repeat(20_000);
const open: { destroy(): void }[] = [];

const ATTACKS: readonly Attack[] = [
  {
    title: 'E25: bodies that announce 10 MB and hardly come',
    ...{ lanes: 12, reported: [408] },
    async strike({ gateway, greedy }) {
      const socket = await connectTo(gateway.url);
      open.push(socket);
      const head = `POST ${CHAT} HTTP/1.1\r\nhost: x\r\nx-api-key: ${greedy}\r\ncontent-type: application/json\r\n`;
      socket.write(`${head}content-length: ${10 * MB}\r\n\r\n${'{"a":"'.padEnd(600, 'x')}`);
      return new Promise((resolve) =>
        socket.once('data', (bytes) => resolve(Number(String(bytes).split(' ')[1]))).once('close', () => resolve(408)),
      );
    },
  },
  {
    title: 'E25: bodies of 6 MB, sent as fast as they go',
    ...{ lanes: 4, reported: [0, 200, 413, 429, 503] },
    strike: ({ post }) => post(CHAT, body6),
  },
  {
    title: 'E26: websockets full of fragments and of messages that wait',
    ...{ lanes: 16, reported: [1] },
    async strike({ gateway, greedy }, lane) {
      const peer = await RawWebSocket.open(gateway.url, '/v1/responses', greedy);
      open.push(peer.socket);
      if (lane % 2 === 0) {
        peer.send('"', { isFinal: false });
        const piece = frameOf('x'.repeat(MB), { opcode: OPCODE.continuation, isFinal: false });
        for (let at = 0; at < 20; at += 1) peer.socket.write(piece);
      } else {
        const message = { type: 'response.create', model: 'echo/echo', input: 'x'.repeat(4 * MB) };
        for (let at = 0; at < 6; at += 1) peer.socket.write(frameOf(JSON.stringify(message)));
      }
      await new Promise((resolve) => {
        peer.socket.once('close', resolve);
        setTimeout(resolve, 1000);
      });
      peer.socket.destroy();
      return 1;
    },
  },
  {
    title: `E27: lists and reports of calls that find nothing among ${RECORDS} records`,
    ...{ lanes: 6, reported: [200, 429] },
    prepare: fillCalls,
    strike: ({ get }, lane) =>
      get(
        ['/api/core/calls', '/api/core/calls?model=none&limit=1000', '/api/core/usage?by=session,user&last=30d'][
          lane % 3
        ] ?? '',
      ),
  },
  {
    title: 'E28: answers of a vendor of 31 MB in small values and in levels',
    ...{ lanes: 4, reported: [503, 429] },
    strike: ({ post }, lane) => post(CHAT, chat('hi', lane % 2 ? 'wide/m' : 'deep/m')),
  },
  {
    title: 'E29: idempotency keys with answers of 640 KB',
    ...{ lanes: 3, reported: [200, 429] },
    strike: ({ post }, lane) =>
      post(CHAT, chat(WORDS), { 'idempotency-key': `${lane}-${randomBytes(6).toString('hex')}` }),
    async after({ installation }) {
      const { kept_bytes: kept } = await installation.command('accounts', 'show', 'greedy');
      expect(kept).to.be.within(1, 34 * MB);
    },
  },
  {
    title: 'E30: bodies of 10,000 tool calls',
    ...{ lanes: 4, reported: [200, 429] },
    strike: ({ post }) => post(CHAT, large),
  },
  {
    title: 'E31: bodies for the medical agent while other processes have both cores',
    config: { policies: { overload: {} }, agents: { medical: { model: 'echo/echo', country: 'AU' } } },
    ...{ lanes: 3, reported: [200, 400, 413, 429, 503] },
    strike: ({ post }) => post('/api/core/agent/medical', { message: 'my head hurts '.repeat(200) }),
  },
  {
    title: 'E32: calls for which a plugin hangs, and requests for which one throws',
    config: { policies: { overload: false, guard: { plugin: './guard.mjs', timeout: '300ms' } } },
    files: { 'guard.mjs': GUARD },
    ...{ lanes: 12, reported: [500] },
    strike: ({ post }, lane) =>
      lane % 3 === 0
        ? post('/livez', {}, { 'x-throw': '1' }).then((status) => (status === 404 || status === 405 ? 500 : status))
        : post(CHAT, { ...chat('hi'), user: 'hang' }),
  },
  {
    title: 'E33: one idempotency key, sent again without end by a key of 20 requests a minute',
    ...{ lanes: 4, reported: [200, 409, 429] },
    async prepare({ command }) {
      const { data } = await command('keys', 'list', '--user', 'greedy');
      await command('keys', 'update', data[0].prefix, '--rpm', '20');
    },
    strike: ({ post }) => post(CHAT, chat('hi'), { 'idempotency-key': 'always-the-same' }),
    async after({ post }) {
      expect(await post(CHAT, chat('hi'), { 'idempotency-key': 'always-the-same' })).to.equal(429);
    },
  },
  {
    title: 'E34: made-up keys of the right shape, from the address of the others',
    config: { server: { port: 0, drainTimeout: '5s', failedCredentials: 30 } },
    ...{ lanes: 8, reported: [401, 429] },
    strike: ({ get }) => get('/v1/models', createKey(randomBytes).text),
  },
];

describe('a caller who attacks a gateway of 256 MB', function () {
  this.timeout(900_000);
  let vendors: { readonly wide: ScriptedUpstream; readonly deep: ScriptedUpstream };
  let installation: Installation;
  const busy: ChildProcess[] = [];

  before(async () => {
    vendors = { wide: await startScriptedUpstream(), deep: await startScriptedUpstream() };
    const json = { 'content-type': 'application/json' };
    vendors.wide.script(respondWith(200, `[${'{},'.repeat((31 * MB) / 3)}{}]`, json));
    vendors.deep.script(respondWith(200, '['.repeat(31 * MB), json));
  });
  afterEach(async () => {
    for (const socket of open.splice(0)) socket.destroy();
    for (const child of busy.splice(0)) child.kill('SIGKILL');
    await installation.remove();
  });
  after(async () => {
    await vendors.wide.close();
    await vendors.deep.close();
  });

  async function fetchStatus(url: string, init: RequestInit): Promise<number> {
    try {
      const response = await fetch(url, init);
      await response.arrayBuffer();
      return response.status;
    } catch {
      return 0;
    }
  }

  /**
   * Makes the calls of the others from their own process; returns the 95th percentile of their latency in milliseconds.
   */
  async function othersGoOn(url: string, key: string, isOver: () => boolean): Promise<number> {
    const { stdout } = await promisify(execFile)(process.execPath, ['-e', OTHERS, url, key, String(CALLS)]);
    const made = JSON.parse(stdout) as readonly {
      readonly path: string;
      readonly status: number;
      readonly ms: number;
    }[];
    expect(made.filter(({ status }) => status !== 200)).to.deep.equal([]);
    expect(isOver(), 'the process has ended').to.equal(false);
    const took = made.filter(({ path: at }) => at === CHAT).map(({ ms }) => ms);
    expect(took.length).to.equal(CALLS);
    return took.sort((one, other) => one - other)[Math.floor(CALLS * 0.95)] ?? 0;
  }

  async function fight({ config, files, prepare, lanes, strike, reported, after: holds, title }: Attack) {
    const { wide, deep } = vendors;
    const providers = { echo: {}, wide: openAiVendor(wide), deep: openAiVendor(deep) };
    installation = await installGateway({ store: 'sqlite:./data', providers, ...config }, files);
    const make = async (user: string): Promise<string> =>
      (await installation.command('keys', 'create', '--user', user)).api_key;
    const [greedy, other] = [await make('greedy'), await make('other')];
    await prepare?.(installation);
    const gateway = await installation.start({ NODE_OPTIONS: '--max-old-space-size=256' });
    let hasEnded = false;
    void gateway.ended.then(() => {
      hasEnded = true;
    });
    const isOver = (): boolean => hasEnded;
    const rig: Rig = {
      ...{ gateway, installation, greedy },
      post: (at, body, headers) =>
        fetchStatus(gateway.url + at, {
          method: 'POST',
          headers: { authorization: `Bearer ${greedy}`, 'content-type': 'application/json', ...headers },
          body: typeof body === 'string' ? body : JSON.stringify(body),
        }),
      get: (at, key = greedy) => fetchStatus(gateway.url + at, { headers: { authorization: `Bearer ${key}` } }),
    };
    const alone = await othersGoOn(gateway.url, other, isOver);
    if (title.startsWith('E31'))
      for (let at = 0; at < 2; at += 1) busy.push(spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }));
    const came = new Map<unknown, number>();
    let isDone = false;
    const attackers = Array.from({ length: lanes }, async (_, lane) => {
      while (!isDone) {
        const what = await strike(rig, lane);
        came.set(what, (came.get(what) ?? 0) + 1);
      }
    });
    const parallel = await othersGoOn(gateway.url, other, isOver);
    isDone = true;
    for (const socket of open.splice(0)) socket.destroy();
    await Promise.all(attackers);
    expect([...came.keys()].filter((status) => !reported.includes(Number(status)))).to.deep.equal([]);
    expect(came.size, 'the attack came').to.be.above(0);
    await othersGoOn(gateway.url, other, isOver);
    await holds?.(rig);
    await gateway.stop();
    if (process.env['ATTACK_FIGURES'])
      process.stdout.write(`| ${title} | ${alone.toFixed(0)} | ${parallel.toFixed(0)} | ${[...came].join(' ')} |\n`);
  }

  for (const attack of ATTACKS) it(`keeps no call of others out by ${attack.title}`, () => fight(attack));
});
