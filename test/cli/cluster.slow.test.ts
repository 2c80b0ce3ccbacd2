import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { useTempFolder } from '../support/folders.ts';
import { type Running, runCli, startCli } from '../support/processes/cli.ts';

const START_MS = 300_000;

interface LogLine {
  readonly msg: string;
  readonly worker?: number;
  readonly [field: string]: unknown;
}

function configure(folder: string, name: string, more: object): string {
  const file = path.join(folder, `${name}.json`);
  const config = {
    server: { host: '127.0.0.1', port: 0, workers: 2 },
    store: `sqlite:./${name}`,
    logging: { format: 'json' },
    providers: { echo: {} },
    auth: { 'api-key': { bootstrap: true } },
    ...more,
  };
  writeFileSync(file, JSON.stringify(config));
  return file;
}

/** Process id of the worker that handles the request. */
async function requestWorker(url: string): Promise<string> {
  const response = await fetch(`${url}/test/pid`, { headers: { connection: 'close' } });
  return response.text();
}

const TELLS_PID = `export default { name: 'pid', kind: 'policy', apiVersion: 1, setup(api) {
  api.route({ method: 'GET', path: '/test/pid', summary: 'Process id', auth: 'none', responses: { 200: 'The id.' },
    handler(ctx) { ctx.body = [process.pid, ...process.execArgv].join(' '); } });
} };`;

interface Gateway {
  readonly running: Running;
  readonly url: string;
  chat(): Promise<Response>;
}

async function startGateway(folder: string, file: string): Promise<Gateway> {
  const running = startCli(['start', '--config', file], folder);
  const [, url = ''] = await running.seen(/listens on (\S+)/);
  const [, key = ''] = await running.seen(/\b(tg_\w{62})\b/);
  return {
    running,
    url,
    chat: () =>
      fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', connection: 'close' },
        body: JSON.stringify({ model: 'echo/echo', messages: [{ role: 'user', content: 'hello' }] }),
      }),
  };
}

async function eventually<T>(what: string, send: () => Promise<T | undefined>): Promise<T> {
  const giveUpAt = performance.now() + START_MS;
  for (;;) {
    const response = await send().catch(() => undefined);
    if (response !== undefined) return response;
    if (performance.now() > giveUpAt) throw new Error(`waited in vain until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

function linesOf({ running }: Gateway): readonly LogLine[] {
  return running
    .stdout()
    .split('\n')
    .filter((line) => line.startsWith('{') && line.endsWith('}'))
    .map((line) => JSON.parse(line) as LogLine);
}

/** Sends requests until the log shows both workers. */
async function untilBothResponded(gateway: Gateway): Promise<void> {
  await eventually('both workers answer', async () => {
    await gateway.chat();
    const seen = new Set(linesOf(gateway).flatMap(({ msg, worker }) => (msg === 'request' ? [worker] : [])));
    return seen.size === 2 ? true : undefined;
  });
}

describe('a gateway of several workers', function () {
  this.timeout(2 * START_MS);
  const folder = useTempFolder('cluster');
  writeFileSync(path.join(folder, 'pid.mjs'), TELLS_PID);
  const running: Running[] = [];
  after(() => {
    for (const { child } of running) child.kill('SIGKILL');
  });
  const start = async (name: string, more: object = {}): Promise<Gateway> => {
    const gateway = await startGateway(folder, configure(folder, name, more));
    running.push(gateway.running);
    return gateway;
  };

  it('answers on one port from both, shows its first key once, and ends cleanly on SIGTERM', async () => {
    const gateway = await start('plain');
    await untilBothResponded(gateway);
    gateway.running.child.kill('SIGTERM');
    const { code, stderr } = await gateway.running.finished;
    expect(code).to.equal(0);
    expect(stderr.match(/listens on/g)).to.have.length(1);
    expect(stderr).to.contain('workers    2');
  });

  it('starts workers that keep their compiled code while idle', async () => {
    const gateway = await start('rested', { plugins: ['./pid.mjs'] });
    const reported = await eventually('a worker tells its options of Node', () => requestWorker(gateway.url));
    expect(reported).to.match(/^\d+ .*--no-memory-reducer$/);
  });

  it('replaces a worker that was killed, and continues to respond', async () => {
    const gateway = await start('killed', { plugins: ['./pid.mjs'] });
    await untilBothResponded(gateway);
    const victim = await eventually('a worker tells its process id', async () =>
      Number.parseInt(await requestWorker(gateway.url), 10),
    );
    process.kill(victim, 'SIGKILL');
    await eventually('the death is logged', async () =>
      linesOf(gateway).some(({ msg, signal }) => msg === 'worker exited; starting a new one' && signal === 'SIGKILL')
        ? true
        : undefined,
    );
    const others = new Set<number>();
    await eventually('two workers answer again', async () => {
      others.add(Number.parseInt(await requestWorker(gateway.url), 10));
      return others.size === 2 ? true : undefined;
    });
    expect([...others]).to.not.include(victim);
    expect((await gateway.chat()).status).to.equal(200);
  });

  it('counts requests of all workers against one limit', async () => {
    const gateway = await start('limited', { plans: { small: { rpm: 20 } }, defaultPlan: 'small' });
    const statuses = await Promise.all(Array.from({ length: 60 }, async () => (await gateway.chat()).status));
    expect(statuses.filter((status) => status === 200)).to.have.length(20);
    expect(statuses.filter((status) => status === 429)).to.have.length(40);
  });

  it('returns metrics of all workers from any of them', async () => {
    const gateway = await start('measured', { policies: { metrics: { auth: 'none' } } });
    await untilBothResponded(gateway);
    const requestCount = linesOf(gateway).filter(({ msg }) => msg === 'request').length;
    const count = await eventually('the metrics hold every call', async () => {
      const text = await (await fetch(`${gateway.url}/metrics`, { headers: { connection: 'close' } })).text();
      const sum = [...text.matchAll(/^tollgate_calls_total\{.*\} (\d+)/gm)].reduce((all, [, n]) => all + Number(n), 0);
      return sum >= requestCount ? sum : undefined;
    });
    expect(count).to.be.at.least(requestCount);
  });

  it('is refused on a store that lives in one process', async () => {
    const file = configure(folder, 'memory', { store: 'memory:' });
    const { code, stderr } = await runCli(['start', '--config', file], folder);
    expect(code).to.equal(3);
    expect(stderr).to.contain('server.workers is 2').and.to.contain('docs/stores.md');
  });

  it('exits with the error of its first worker when none can listen', async () => {
    const taken = await start('first');
    const port = Number(new URL(taken.url).port);
    const file = configure(folder, 'second', { server: { host: '127.0.0.1', port, workers: 2 } });
    const { code, stderr } = await runCli(['start', '--config', file], folder);
    expect(code).to.equal(69);
    expect(stderr.match(/cannot listen/g)).to.have.length(1);
  });
});
