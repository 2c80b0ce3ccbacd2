import { rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect } from 'chai';
import { type Running, runCli, startCli } from '../support/cli.ts';
import { delta } from '../support/fault-rig.ts';
import { heldSse, type ScriptedUpstream, startScriptedUpstream } from '../support/scripted-upstream.ts';
import { useTempFolder } from '../support/temp-folder.ts';

describe('a configuration at fault', function () {
  this.timeout(60_000);
  const folder = useTempFolder('config-faults');
  const file = path.join(folder, 'tollgate.config.yaml');

  for (const [title, text, words] of [
    ['G01: is cut in the middle', 'server: { port: 0 }\nproviders: { echo: {', /tollgate\.config\.yaml:2/],
    [
      'G02: names a provider that does not exist',
      'server: { port: 0 }\nproviders: { opnai: {} }',
      /opnai[\s\S]*openai/,
    ],
    [
      'G02: needs a variable that is not set',
      `server: { port: 0 }\nproviders: { echo: {} }\nstore: \${STORE:?set it}`,
      /STORE[\s\S]*set it/,
    ],
    [
      'G02: has an alias of nothing',
      'server: { port: 0 }\nproviders: { echo: {} }\nmodels: { fast: nobody/m }',
      /nobody/,
    ],
  ] as const) {
    it(`${title}: nothing listens, the place is named, and the exit code is 3`, async () => {
      await writeFile(file, text);
      for (const command of ['check', 'start']) {
        const { code, stderr } = await runCli([command], folder);
        expect(stderr)
          .to.match(words)
          .and.not.match(/listens|at .*\.ts:/);
        expect(code).to.equal(3);
      }
    });
  }

  describe('beside a running gateway', () => {
    let upstream: ScriptedUpstream;
    let running: Running;

    before(async () => {
      upstream = await startScriptedUpstream();
      const good = `server: { port: 0 }
store: 'memory:'
auth: { api-key: { bootstrap: true } }
providers: { echo: {}, one: { plugin: openai-compatible, baseUrl: '${upstream.url}', apiKey: '\${file:./secret}', models: ['*'] } }
`;
      await writeFile(path.join(folder, 'secret'), 'sk-first');
      await writeFile(file, good);
      running = startCli(['start'], folder);
    });
    after(async () => {
      running.child.kill('SIGKILL');
      await running.finished;
      await upstream.close();
    });

    it('G01, G03, G04, G05: is not read again, whatever happens to its file and its secrets; SIGHUP drains', async () => {
      const [, url = ''] = await running.seen(/listens on (http:\S+)/);
      const [, key = ''] = await running.seen(/(tg_\w+)/);
      const held = heldSse(delta('one'), delta('', 'stop'), '[DONE]');
      upstream.script(held.script);
      const ask = () =>
        fetch(`${url}/v1/chat/completions`, {
          method: 'POST',
          headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
          body: JSON.stringify({ model: 'one/m', stream: true, messages: [{ role: 'user', content: 'x' }] }),
        });
      const before = await ask();
      await writeFile(path.join(folder, 'secret'), 'sk-second');
      await writeFile(file, 'providers: { echo: {');
      await rename(file, `${file}.gone`);
      await rm(`${file}.gone`);
      const after = await ask();
      expect((await fetch(`${url}/readyz`)).status).to.equal(200);
      running.child.kill('SIGHUP');
      await running.seen(/SIGHUP: draining/);
      held.finish();
      for (const response of [before, after]) expect(await response.text()).to.include('[DONE]');
      expect(upstream.requests.map(({ headers }) => headers['authorization'])).to.deep.equal([
        'Bearer sk-first',
        'Bearer sk-first',
      ]);
      expect((await running.finished).code).to.equal(0);
    });
  });
});
