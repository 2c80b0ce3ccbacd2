import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { useTempFolder } from '../support/folders.ts';
import { pluginFile } from '../support/plugins/plugin-file.ts';
import { startCli } from '../support/processes/cli.ts';
import { startFailingProcess } from './failing-process.ts';

describe('endless work of a plugin (D52)', function () {
  this.timeout(900_000);
  const folder = useTempFolder('hangs');
  const NEVER = 'new Promise(() => {})';

  for (const [title, setup, named] of [
    ['a finish hook', `api.hook('finish', () => ${NEVER});`, /plugin \\"failing\\", hook \\"finish\\"/],
    ['an attempt hook', `api.hook('attempt', () => ${NEVER});`, /plugin \\"failing\\", hook \\"attempt\\"/],
    ['an onClose function', `api.onClose(() => ${NEVER});`, /plugin \\"failing\\": onClose did not finish/],
    [
      'what it keeps',
      `api.keep('x', () => ({}), () => ${NEVER}); api.onClose(() => ${NEVER}); api.onClose(() => ${NEVER});`,
      /plugin \\"policies.failing\\": onClose did not finish/,
    ],
  ] as const)
    it(`${title} is named, does not keep the process, and the exit code is 0`, async () => {
      const { url, running } = await startFailingProcess(folder, setup);
      const key = /tg_\S+/.exec(running.stderr())?.[0] ?? '';
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'echo/echo', messages: [{ role: 'user', content: 'x' }] }),
      });
      expect(await response.text()).to.include('"x"');
      running.child.kill('SIGTERM');
      const { code, stdout } = await running.finished;
      expect(code, stdout).to.equal(0);
      expect(stdout).to.match(named);
    });

  it('a setup is named after 30 seconds, and the process ends', async () => {
    // It also holds a timer, which must not keep the process running.
    const setup = `setInterval(() => {}, 1000); await ${NEVER};`;
    writeFileSync(path.join(folder, 'slow.mjs'), pluginFile({ name: 'slow', setup }));
    const config = {
      store: 'memory:',
      providers: { echo: {} },
      server: { port: 0 },
      policies: { slow: { plugin: './slow.mjs' } },
    };
    writeFileSync(path.join(folder, 'tollgate.config.json'), JSON.stringify(config));
    const { code, stderr } = await startCli(['start'], folder).finished;
    expect(stderr).to.include('plugin "slow": setup did not finish within 30 s');
    expect(code).to.be.above(0);
  });
});
