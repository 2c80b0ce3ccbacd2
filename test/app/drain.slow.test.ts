import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect } from 'chai';
import { useTempFolder } from '../support/folders.ts';
import { type Running, startCli } from '../support/processes/cli.ts';
import {
  chunk,
  heldSse,
  type ScriptedUpstream,
  SSE_HEAD,
  startScriptedUpstream,
} from '../support/vendors/scripted-upstream.ts';

const part = (delta: object, finish_reason: string | null = null) => ({
  id: 'c',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta, finish_reason }],
});

describe('SIGTERM', () => {
  let upstream: ScriptedUpstream;
  const folder = useTempFolder('drain');
  let running: Running;
  let url: string;
  let key: string;

  beforeEach(async () => {
    upstream = await startScriptedUpstream();
    await start({ drainTimeout: '1s', drainDelay: '0s' });
  });

  const start = async (server: object): Promise<void> => {
    const config = {
      server: { port: 0, ...server },
      store: 'memory:',
      policies: { overload: false },
      auth: { 'api-key': { bootstrap: true } },
      providers: { slow: { plugin: 'openai-compatible', baseUrl: upstream.url, apiKey: 'k', models: ['*'] } },
    };
    await writeFile(path.join(folder, 'tollgate.config.json'), JSON.stringify(config));
    running = startCli(['start'], folder);
    [, url = ''] = await running.seen(/listens on (http:\S+)/);
    [, key = ''] = await running.seen(/(tg_\w+)/);
  };

  afterEach(async () => {
    running.child.kill('SIGKILL');
    await running.finished;
    await upstream.close();
  });

  const open = () =>
    fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'slow/m', stream: true, messages: [{ role: 'user', content: 'x' }] }),
    });

  it('lets running streams finish, accepts nothing new, and ends with exit code 0', async () => {
    const held = heldSse(part({ role: 'assistant', content: 'one' }), part({}, 'stop'));
    upstream.script(held.script);
    const streams = await Promise.all(Array.from({ length: 20 }, open));
    running.child.kill('SIGTERM');
    await running.seen(/draining/);
    held.finish();
    const texts = await Promise.all(streams.map((response) => response.text()));
    for (const text of texts) expect(text).to.match(/"finish_reason":"stop"[\s\S]*\[DONE\]/);
    expect((await running.finished).code).to.equal(0);
    expect(await fetch(`${url}/livez`).catch(() => 'refused')).to.equal('refused');
  });

  it('ends a stream that is longer than the deadline in one error frame, and exits with 0', async () => {
    upstream.script(async (wire) => {
      await wire.send(SSE_HEAD);
      await wire.send(chunk(`data: ${JSON.stringify(part({ role: 'assistant', content: 'one' }))}\n\n`));
      await wire.hang();
    });
    const response = await open();
    running.child.kill('SIGTERM');
    const text = await response.text();
    const frames = text.split('\n\n').filter((each) => each.startsWith('data:'));
    expect(frames.at(-1)).to.include('"code":"shutting_down"');
    expect(text).not.to.include('[DONE]');
    expect((await running.finished).code).to.equal(0);
    await upstream.requests[0]!.closed;
  });

  it('accepts connections for two more seconds while it is not ready, then refuses them (E57)', async () => {
    running.child.kill('SIGKILL');
    await start({});
    running.child.kill('SIGTERM');
    await running.seen(/draining/);
    const beganMs = performance.now();
    const seen: (readonly [status: number, connection: string | null])[] = [];
    for (let refused = false; !refused; ) {
      const responses = await Promise.all(
        ['/readyz', '/livez'].map((path) => fetch(url + path).catch(() => undefined)),
      );
      refused = responses.some((response) => response === undefined);
      for (const response of responses) if (response) seen.push([response.status, response.headers.get('connection')]);
    }
    expect(performance.now() - beganMs).to.be.above(1_800);
    expect(seen.length).to.be.above(20);
    expect([...new Set(seen.map(String))].sort()).to.deep.equal(['200,close', '503,close']);
    expect((await running.finished).code).to.equal(0);
  });

  it('ends at once, with another exit code, on a second signal', async () => {
    upstream.script((wire) => wire.hang());
    const pending = open().catch(() => 'cut');
    await upstream.request(0);
    running.child.kill('SIGTERM');
    await running.seen(/draining/);
    running.child.kill('SIGTERM');
    expect((await running.finished).code).to.equal(143);
    expect(await pending).to.equal('cut');
  });
});
