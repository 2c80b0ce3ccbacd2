import { rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect } from 'chai';
import { useTempFolder } from '../support/folders.ts';
import { type Running, runCli, startCli } from '../support/processes/cli.ts';
import { delta } from '../support/vendors/openai-vendor.ts';
import { heldSse, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';
import { eventually } from '../support/wait.ts';

describe('an invalid configuration', () => {
  const folder = useTempFolder('config-failures');
  const file = path.join(folder, 'tollgate.config.yaml');

  for (const [title, text, words] of [
    ['G01: a file that is cut in the middle', 'server: { port: 0 }\nproviders: { echo: {', /tollgate\.config\.yaml:2/],
    [
      'G02: a file that names a provider that does not exist',
      'server: { port: 0 }\nproviders: { opnai: {} }',
      /opnai[\s\S]*openai/,
    ],
    [
      'G02: a file that needs a variable that is not set',
      `server: { port: 0 }\nproviders: { echo: {} }\nstore: \${STORE:?set it}`,
      /STORE[\s\S]*set it/,
    ],
    [
      'G02: a file that has an alias of nothing',
      'server: { port: 0 }\nproviders: { echo: {} }\nmodels: { fast: missing/m }',
      /missing/,
    ],
  ] as const) {
    it(`${title} opens no port, is reported with the place, and ends with exit code 3`, async () => {
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

  describe('under a running gateway', () => {
    let upstream: ScriptedUpstream;
    let running: Running;
    let good = '';
    let url = '';
    let key = '';

    before(async () => {
      upstream = await startScriptedUpstream();
      good = `server: { port: 0 }
store: 'memory:'
auth: { api-key: { bootstrap: true } }
providers: { echo: {}, one: { plugin: openai-compatible, baseUrl: '${upstream.url}', apiKey: '\${file:./secret}', models: ['*'] } }
`;
      await writeFile(path.join(folder, 'secret'), 'sk-first');
      await writeFile(file, good);
      running = startCli(['start'], folder, {}, '', true);
      [, url = ''] = await running.seen(/listens on (http:\S+)/);
      [, key = ''] = await running.seen(/(tg_\w+)/);
    });
    after(async () => {
      running.child.kill('SIGKILL');
      await running.finished;
      await upstream.close();
    });

    const send = () =>
      fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'one/m', stream: true, messages: [{ role: 'user', content: 'x' }] }),
      });
    const reported = (what: string, times: number) =>
      eventually(async () => expect(running.stdout().split(what), running.stdout()).to.have.lengthOf(times + 1));

    it('G01, G03, G04: a broken or missing file at a reload changes nothing, running streams included', async () => {
      const held = heldSse(delta('one'), delta('', 'stop'), '[DONE]');
      upstream.script(held.script);
      const before = await send();
      await writeFile(path.join(folder, 'secret'), 'sk-second');
      await writeFile(file, 'providers: { echo: {');
      running.child.kill('SIGHUP');
      await reported('was not reloaded', 1);
      await rename(file, `${file}.gone`);
      running.child.kill('SIGHUP');
      await reported('was not reloaded', 2);
      const after = await send();
      expect((await fetch(`${url}/readyz`)).status).to.equal(200);
      held.finish();
      for (const response of [before, after]) expect(await response.text()).to.include('[DONE]');
      expect(upstream.requests.map(({ headers }) => headers['authorization'])).to.deep.equal([
        'Bearer sk-first',
        'Bearer sk-first',
      ]);
    });

    it('G05: a rotated secret is read at a reload', async () => {
      await writeFile(file, good);
      running.child.kill('SIGHUP');
      await reported('the configuration was reloaded', 1);
      const held = heldSse(delta('one'), delta('', 'stop'), '[DONE]');
      upstream.script(held.script);
      held.finish();
      expect(await (await send()).text()).to.include('[DONE]');
      expect(upstream.requests.at(-1)?.headers['authorization']).to.equal('Bearer sk-second');
    });
  });
});
