import { spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect } from 'chai';
import { useTempFolder } from '../support/folders.ts';
import { type Running, runCli, shellLineOf, startCli } from '../support/processes/cli.ts';
import { completion, delta } from '../support/vendors/openai-vendor.ts';
import {
  chunk,
  heldSse,
  respondWith,
  type ScriptedUpstream,
  SSE_HEAD,
  startScriptedUpstream,
} from '../support/vendors/scripted-upstream.ts';
import { eventually, until } from '../support/wait.ts';

describe('a running gateway whose configuration changes', function () {
  this.timeout(900_000);
  const folder = useTempFolder('reload');
  let own = '';
  let runs = 0;
  let upstream: ScriptedUpstream;
  let running: Running;
  let url = '';
  let key = '';

  const configOf = (more: Record<string, unknown> = {}) => ({
    server: { port: 0, drainTimeout: '5s', ...(more['server'] as object | undefined) },
    store: 'sqlite:./data',
    auth: { 'api-key': { bootstrap: true } },
    providers: {
      echo: {},
      // biome-ignore lint/suspicious/noTemplateCurlyInString: a reference of the configuration.
      one: { plugin: 'openai-compatible', baseUrl: upstream.url, apiKey: '${file:./secret}', models: ['*'] },
    },
    policies: { overload: { maxLag: '1m' } },
    models: (more['models'] as object | undefined) ?? {},
  });
  const file = () => path.join(own, 'tollgate.config.json');
  const write = (more?: Record<string, unknown>) => writeFile(file(), JSON.stringify(configOf(more), null, 2));
  const start = async (more?: Record<string, unknown>): Promise<void> => {
    await write(more);
    running = startCli(['start'], own, {}, '', true);
    [, url = ''] = await running.seen(/listens on (http:\S+)/);
    [, key = ''] = await running.seen(/(tg_\w+)/);
  };
  const send = (body: object) =>
    fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ messages: [{ role: 'user', content: 'x' }], ...body }),
    });
  const statusOf = async (model: string): Promise<number> => {
    const response = await send({ model });
    await response.text();
    return response.status;
  };
  const lines = (msg: string) =>
    running
      .stdout()
      .split('\n')
      .filter((line) => line.includes(msg));
  const reloads = (count: number) =>
    eventually(async () => expect(lines('the configuration was reloaded')).to.have.lengthOf(count));
  const sockets = () => readdirSync(path.join(own, 'data')).filter((name) => name.startsWith('control-'));
  const ready = async () =>
    (await (await fetch(`${url}/readyz`)).json()) as { status: string; checks: { reload?: string } };

  beforeEach(async () => {
    runs += 1;
    own = path.join(folder, String(runs));
    await mkdir(own, { recursive: true });
    await writeFile(path.join(own, 'secret'), 'sk-first');
    upstream = await startScriptedUpstream(respondWith(200, completion()));
  });
  afterEach(async () => {
    running.child.kill('SIGKILL');
    await running.finished;
    await upstream.close();
  });

  for (const workers of [1, 3])
    it(`loses none of 200 calls a second while ${workers} worker(s) reload five times, and a bad file changes nothing`, async () => {
      upstream.script(async (wire) => {
        const { stream } = wire.request.json() as { stream?: boolean };
        await wire.pause(20 + Math.random() * 200);
        if (!stream) return wire.send(respondWith(200, completion('whole')));
        await wire.send(SSE_HEAD);
        await wire.send(chunk(`data: ${delta('pieces')}\n\n`));
        await wire.pause(Math.random() * 300);
        await wire.send(chunk(`data: ${delta('', 'stop')}\n\n`));
        await wire.send(chunk('data: [DONE]\n\n'));
        await wire.send('0\r\n\r\n');
      });
      await start({ server: { workers } });
      const problems: string[] = [];
      const call = async (n: number): Promise<void> => {
        try {
          const response = await send({ model: 'one/m', stream: n % 2 === 0 });
          const text = await response.text();
          const isWhole = response.status === 200 && text.includes(n % 2 === 0 ? '[DONE]' : 'whole');
          if (!isWhole) problems.push(`${response.status} ${text.slice(0, 200)}`);
        } catch (error) {
          problems.push(String((error as Error).cause ?? error));
        }
      };
      const calls: Promise<void>[] = [];
      const load = setInterval(() => {
        for (let each = 0; each < 10; each += 1) calls.push(call(calls.length));
      }, 50);
      try {
        for (let round = 1; round <= 5; round += 1) {
          await until('calls are under way', () => calls.length > 50 * round);
          await write({ server: { workers }, models: { [`alias-${round}`]: 'echo/echo' } });
          running.child.kill('SIGHUP');
          await reloads(round);
        }
        await writeFile(file(), '{ "providers": { "echo": {');
        running.child.kill('SIGHUP');
        await eventually(async () => expect(lines('was not reloaded')).to.have.lengthOf(1));
      } finally {
        clearInterval(load);
      }
      await Promise.all(calls);
      expect(problems).to.deep.equal([]);
      expect(calls.length).to.be.above(200);
      for (let n = 0; n < 2 * workers; n += 1) expect(await statusOf('alias-5')).to.equal(200);
      expect(await statusOf('alias-4')).to.equal(404);
      const { status, checks } = await ready();
      expect(status).to.equal('ready');
      expect(checks.reload).to.include('the previous one stays active: tollgate.config.json:1');
    });

  for (const workers of [1, 3])
    it(`shows its targets to an operator and reloads on request, across all of ${workers} worker(s)`, async () => {
      await start({ server: { workers } });
      upstream.script(respondWith(429, { error: { message: 'no way' } }, { 'retry-after': '120' }));
      for (let n = 0; n < 3 * workers; n += 1) expect(await statusOf('one/m')).to.equal(429);
      upstream.script(respondWith(200, completion()));
      const made = await runCli(['keys', 'create', '--user', 'root', '--admin', '--json'], own);
      const admin = (JSON.parse(made.stdout) as { data: { api_key: string } }).data.api_key;
      const headers = { authorization: `Bearer ${admin}`, 'content-type': 'application/json' };
      const target = { target: 'one/m', state: 'open', cause: 'rate_limit', error_ratio: 1 };
      const listed = await runCli(['targets', '--json'], own);
      const [reply] = (JSON.parse(listed.stdout) as { data: { targets: Record<string, unknown>[] }[] }).data;
      expect(reply?.targets[0], listed.stdout).to.deep.include(target);
      expect(reply?.targets[0]?.['attempts']).to.be.at.least(3);
      const shown = await runCli(['targets'], own);
      expect(shown.stdout).to.match(/TARGET +STATE +WHY +RETRY IN S +ERRORS %/);
      expect(shown.stdout).to.match(/one\/m +open +rate_limit +\d+ +100\.0 .* 429 no way/);
      const { data } = (await (await fetch(`${url}/api/core/admin/targets`, { headers })).json()) as { data: object[] };
      expect(data[0]).to.deep.include(target);
      await write({ server: { workers }, models: { quick: 'echo/echo' } });
      const body = JSON.stringify({ diff: false });
      const response = await fetch(`${url}/api/core/admin/reload`, { method: 'POST', headers, body });
      expect(await response.json()).to.deep.include({ object: 'reload', reloaded: true });
      for (let n = 0; n < 3 * workers; n += 1) expect(await statusOf('quick')).to.equal(200);
    });

  for (const workers of [1, 2])
    it(`writes each reload to the audit log once, whatever caused it, with ${workers} worker(s) (E47)`, async () => {
      await start({ server: { workers } });
      await write({ server: { workers }, models: { one: 'echo/echo' } });
      running.child.kill('SIGHUP');
      await reloads(1);
      await write({ server: { workers }, models: { two: 'echo/echo' } });
      expect((await runCli(['reload'], own)).code).to.equal(0);
      const entries = await eventually(async () => {
        const { stdout } = await runCli(['audit', '--action', 'configuration', '--json'], own);
        const { data } = (JSON.parse(stdout) as { data: { data: Record<string, unknown>[] } }).data;
        expect(data).to.have.lengthOf(2);
        return data;
      });
      const [byCommand, bySignal] = entries;
      expect(bySignal).to.deep.include({ action: 'configuration.reload', subject: 'tollgate.config.json' });
      expect(bySignal?.['actor']).to.include({ via: 'file', user_id: null });
      const changed = { path: 'models.one', after: '"echo/echo"', needs_restart: false };
      expect(bySignal?.['after']).to.deep.equal({ cause: 'SIGHUP', changes: [changed] });
      expect(byCommand?.['actor']).to.include({ via: 'cli' }).and.have.property('user_id').that.is.a('string');
    });

  it('shows the changes with tollgate reload --diff, without secrets, and applies them with tollgate reload', async () => {
    await start();
    await writeFile(path.join(own, 'secret'), 'sk-second');
    await write({ server: { host: '127.0.0.2' }, models: { quick: 'echo/echo' } });
    const trial = await runCli(['reload', '--diff'], own);
    expect(trial.code, trial.stderr).to.equal(0);
    expect(trial.stdout)
      .to.include('would change 3 places')
      .and.include('+ models.quick: "echo/echo"')
      .and.include('~ providers.one.apiKey: changed secret')
      .and.include('~ server.host: "127.0.0.1" → "127.0.0.2"  (after a restart)')
      .and.not.include('sk-');
    expect(await statusOf('quick')).to.equal(404);
    const done = await runCli(['reload', '--json'], own);
    expect(JSON.parse(done.stdout)).to.have.nested.property('data[0].isReloaded', true);
    expect(await statusOf('quick')).to.equal(200);
    expect(await statusOf('one/m')).to.equal(200);
    expect(upstream.requests.at(-1)?.headers['authorization']).to.equal('Bearer sk-second');
    await eventually(async () =>
      expect(lines('configuration changes that need a restart').join()).to.include('server.host'),
    );
    expect(running.stdout() + running.stderr()).not.to.include('sk-second');
  });

  it('reports the place of an error with tollgate reload (exit code 3), and that no gateway runs (69)', async () => {
    await start();
    await write({ models: { quick: 'missing/m' } });
    const bad = await runCli(['reload'], own);
    expect(bad.code).to.equal(3);
    expect(bad.stderr).to.match(/tollgate\.config\.json:\d+:\d+ models\.quick/);
    await write();
    running.child.kill('SIGTERM');
    expect((await running.finished).code).to.equal(0);
    expect(sockets()).to.deep.equal([]);
    expect((await runCli(['reload'], own)).code).to.equal(69);
  });

  it('continues unchanged when one plugin fails to set up, which the command, the log and /readyz report', async () => {
    await start({ server: { workers: 2 } });
    const plugin = `export default { name: 'half', kind: 'policy', apiVersion: 1, setup() { if (process.env.TOLLGATE_WORKER === '2') throw new Error('not in worker 2'); } };`;
    await writeFile(path.join(own, 'half.mjs'), plugin);
    await writeFile(
      file(),
      JSON.stringify({
        ...configOf({ server: { workers: 2 }, models: { quick: 'echo/echo' } }),
        plugins: ['./half.mjs'],
      }),
    );
    const refused = await runCli(['reload'], own);
    expect(refused.code).to.equal(3);
    expect(refused.stderr).to.include('plugin "./half.mjs": setup failed: not in worker 2');
    for (let n = 0; n < 4; n += 1) expect(await statusOf('quick')).to.equal(404);
    expect((await ready()).checks.reload).to.include('not in worker 2');
    await write({ server: { workers: 2 }, models: { quick: 'echo/echo' } });
    expect((await runCli(['reload'], own)).code).to.equal(0);
    for (let n = 0; n < 4; n += 1) expect(await statusOf('quick')).to.equal(200);
    await eventually(async () => expect((await ready()).checks).not.to.have.property('reload'));
  });

  it('starts a replacement worker with the configuration of the others, not with the changed file', async () => {
    await start({ server: { workers: 2 }, models: { quick: 'echo/echo' } });
    await write({ server: { workers: 2 }, models: { other: 'echo/echo' } });
    running.child.kill('SIGHUP');
    await reloads(1);
    await writeFile(file(), '{');
    const pids = await new Promise<string>((resolve) => {
      const ps = spawn('pgrep', ['-P', String(running.child.pid)]);
      ps.stdout.on('data', (bytes) => resolve(String(bytes)));
    });
    const [victim = ''] = pids.trim().split('\n');
    process.kill(Number(victim), 'SIGKILL');
    await eventually(async () => expect(lines('worker exited; starting a new one')).to.have.lengthOf(1));
    for (let n = 0; n < 20; n += 1) expect(await statusOf('other').catch(() => 200)).to.equal(200);
  });

  it('reloads it with server.watch when the file, its .env or a secret changes, once for simultaneous changes', async () => {
    await start({ server: { watch: true } });
    await writeFile(path.join(own, 'secret'), 'sk-second');
    await reloads(1);
    await statusOf('one/m');
    expect(upstream.requests.at(-1)?.headers['authorization']).to.equal('Bearer sk-second');
    await writeFile(path.join(own, '.env'), 'TARGET=echo/echo');
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a reference of the configuration.
    await write({ server: { watch: true }, models: { quick: '${TARGET}' } });
    await reloads(2);
    expect(await statusOf('quick')).to.equal(200);
    await rm(file());
    await eventually(async () => expect(lines('was not reloaded')).to.have.lengthOf.at.least(1));
    expect(await statusOf('quick')).to.equal(200);
  });

  it('preserves the usage of a key’s limits', async () => {
    await start();
    await writeFile(file(), JSON.stringify({ ...configOf(), plans: { tight: { rpm: 2 } }, defaultPlan: 'tight' }));
    running.child.kill('SIGHUP');
    await reloads(1);
    expect(await statusOf('echo/echo')).to.equal(200);
    running.child.kill('SIGHUP');
    await reloads(2);
    expect(await statusOf('echo/echo')).to.equal(200);
    expect(await statusOf('echo/echo')).to.equal(429);
  });

  it('drains at the SIGHUP of a closed terminal, and its stream completes', async () => {
    await write();
    const held = heldSse(delta('one'), delta('', 'stop'), '[DONE]');
    upstream.script(held.script);
    const node = `echo "PID $$"; exec ${shellLineOf('start')}`;
    const child = spawn('script', ['-qefc', node, '/dev/null'], { cwd: own, env: { ...process.env, NO_COLOR: '1' } });
    let text = '';
    child.stdout.on('data', (bytes) => {
      text += String(bytes);
    });
    const finished = new Promise<number | null>((resolve) => child.once('close', resolve));
    running = {
      child,
      finished: finished.then((code) => ({ code, stdout: text, stderr: '' })),
      stderr: () => text,
      stdout: () => text,
      seen: () => Promise.reject(new Error('not used')),
    };
    await eventually(async () => expect(text).to.match(/listens on[\s\S]*tg_\w+/));
    url = /listens on (http:\S+)/.exec(text)?.[1] ?? '';
    key = /(tg_\w+)/.exec(text)?.[1] ?? '';
    const response = await send({ model: 'one/m', stream: true });
    process.kill(Number(/PID (\d+)/.exec(text)?.[1]), 'SIGHUP');
    await eventually(async () => expect(text).to.include('SIGHUP: draining'));
    held.finish();
    expect(await response.text()).to.include('[DONE]');
    expect(await finished).to.equal(0);
  });
});
