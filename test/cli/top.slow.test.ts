import { spawn } from 'node:child_process';
import { expect } from 'chai';
import type { TopReport } from '../../cli/top.ts';
import { type GatewayProcess, type Installation, installGateway } from '../support/gateways/gateway-process.ts';
import { runCli, shellLineOf, startCli } from '../support/processes/cli.ts';
import { openAiVendor, tokenPrices } from '../support/vendors/openai-vendor.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';
import { eventually } from '../support/wait.ts';

describe('tollgate top', function () {
  this.timeout(240_000);
  let vendor: ScriptedUpstream;
  let installed: Installation;
  let gateway: GatewayProcess;
  before(async () => {
    vendor = await startScriptedUpstream(respondWith(401, { error: { message: 'no such key' } }));
    installed = await installGateway({
      server: { port: 0, workers: 2, drainTimeout: '1s' },
      store: 'sqlite:./data',
      providers: {
        echo: { prices: { '*': { input: 0, output: 2000 } } },
        dead: openAiVendor(vendor, { prices: tokenPrices(1, 2) }),
      },
      budgets: [{ name: 'all', amount_usd: 100, every: 'month' }],
    });
    gateway = await installed.start();
    await call('echo/echo');
    await call('dead/m');
  });
  const call = async (model: 'dead/m' | 'echo/echo'): Promise<void> => {
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${installed.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model, max_tokens: 50, messages: [{ role: 'user', content: 'hello there' }] }),
    });
    expect(response.status, await response.text()).to.equal(model === 'dead/m' ? 503 : 200);
  };
  after(async () => {
    await installed?.remove();
    await vendor?.close();
  });

  it('prints one report without a terminal: calls, spend, budgets, targets, failures', async () => {
    await eventually(async () => {
      // Repeats the call, so that it is within the last minute on a busy machine.
      await call('dead/m');
      const { code, stdout, stderr } = await runCli(['top'], installed.folder);
      expect(code, stderr).to.equal(0);
      expect(stdout).to.match(/process \d+ \(2 serving, store ok\)/);
      expect(stdout).to.match(/^calls {5}\d+(\.\d)?\/s {3}p50 .* [1-9]\d* of \d+ failed in the last minute$/m);
      expect(stdout).to.match(/^today {5}0\.\d+ USD {3}\d+ calls/m);
      expect(stdout).to.match(/^all +all +0 +0\.\d+ +100\.00 +20\d\d-/m);
      expect(stdout).to.match(/^dead\/m +(open \d+ s|half-open) +credential +\d+ .*401 no such key/m);
      expect(stdout).to.match(/^\d\d:\d\d:\d\d +dead\/m +local +/m);
      expect(stdout).to.not.include('\u001b');
    });
  });

  it('prints a line of JSON each second, and one document with --once', async () => {
    const once = await runCli(['top', '--once', '--json'], installed.folder);
    const { data } = JSON.parse(once.stdout) as { readonly data: TopReport };
    expect(data.targets.map(({ target }) => target)).to.have.members(['dead/m', 'echo/echo']);
    expect(data.in_flight).to.equal(0);
    const { child, stdout, finished } = startCli(['top', '--json'], installed.folder);
    await eventually(async () => expect(stdout().split('\n').length).to.be.above(3));
    child.kill('SIGINT');
    expect((await finished).code).to.equal(0);
    const reports = stdout()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as TopReport);
    const times = reports.map(({ at }) => Date.parse(at));
    for (const [at, time] of times.entries()) if (at > 0) expect(time - (times[at - 1] ?? 0)).to.be.at.least(900);
  });

  for (const [what, key] of [
    ['q', 'q'],
    ['Ctrl-C', '\u0003'],
  ] as const)
    it(`draws in place on a terminal, ends at ${what}, and restores the terminal`, async () => {
      const node = `stty cols 80 rows 24; ${shellLineOf('top')}; echo "CODE $?"; stty -a`;
      const child = spawn('script', ['-qec', node, '/dev/null'], {
        cwd: installed.folder,
        env: { ...process.env, SHELL: '/bin/sh' },
      });
      let text = '';
      child.stdout.on('data', (bytes) => {
        text += String(bytes);
      });
      const closed = new Promise((resolve) => child.once('close', resolve));
      try {
        // Two frames; the second overwrites the first.
        await eventually(async () => expect(text.split('\u001b[H').length).to.be.above(2));
        child.stdin.write(key);
        await eventually(async () => expect(text).to.match(/CODE 0[\s\S]*-?echo\b/));
      } finally {
        child.stdin.end();
        child.kill('SIGTERM');
        await closed;
      }
      const [entered, left] = [text.indexOf('\u001b[?1049h'), text.indexOf('\u001b[?7h\u001b[?25h\u001b[?1049l')];
      expect(entered).to.be.at.least(0);
      expect(left).to.be.above(entered);
      const frame = text.slice(entered, left).split('\u001b[H').at(-1) ?? '';
      expect(frame).to.include('dead/m').and.include('q ends this');
      const lines = frame.replaceAll('\u001b[K', '').replaceAll('\u001b[J', '').replaceAll('\r', '').split('\n');
      expect(lines).to.have.length.of.at.most(24);
      for (const line of lines) expect([...line].length, line).to.be.at.most(80);
      // Output of stty afterwards: canonical mode and echo are on.
      expect(text.slice(left))
        .to.match(/(^|\s)icanon\b/m)
        .and.match(/(^|\s)echo\b/m);
    });

  it('explains what to do when no gateway runs', async () => {
    await gateway.stop();
    const { code, stderr } = await runCli(['top'], installed.folder);
    expect(code).to.equal(69);
    expect(stderr)
      .to.include('no running gateway of this configuration found on')
      .and.include('Run the command as the same user');
  });
});
