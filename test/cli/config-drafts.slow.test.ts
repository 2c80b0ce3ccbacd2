import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { replaceFile } from '../../cli/replace-file.ts';
import { makeFolder, removeFolders } from '../support/folders.ts';
import { runCli, startCli } from '../support/processes/cli.ts';

const REPLACE = new URL('../../cli/replace-file.ts', import.meta.url).href;

/** Program that is killed between the temporary file and its renaming. */
const KILLED = `
import fs from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
fs.rename = () => { process.kill(process.pid, 'SIGKILL'); return new Promise(() => {}); };
syncBuiltinESMExports();
const { replaceFile } = await import('${REPLACE}');
await replaceFile(process.argv[1], Buffer.from('new'));
`;

const CONFIG = `server: { port: 0, workers: 2, drainTimeout: 1s, console: { write: true } }
store: sqlite:./data
auth: { api-key: { bootstrap: true } }
providers: { echo: {} }
models:
  fast: echo/echo # for chats
`;

describe('the file of a configuration that is written', function () {
  this.timeout(600_000);
  afterEach(removeFolders);

  it('is the old one after kill -9 before the renaming, and the next write removes the leftover', async () => {
    const folder = makeFolder({ 'tollgate.config.yaml': 'old' });
    const file = path.join(folder, 'tollgate.config.yaml');
    const child = spawn(process.execPath, [
      '--import',
      import.meta.resolve('tsx/esm'),
      '--input-type=module',
      '-e',
      KILLED,
      file,
    ]);
    const [, signal] = await once(child, 'exit');
    expect(signal).to.equal('SIGKILL');
    expect(readFileSync(file, 'utf8')).to.equal('old');
    expect(readdirSync(folder), 'the leftover').to.have.lengthOf(2);
    await replaceFile(file, Buffer.from('new'));
    expect(readdirSync(folder)).to.deep.equal(['tollgate.config.yaml']);
    expect(readFileSync(file, 'utf8')).to.equal('new');
  });

  it('is written once for two workers, which both use the draft', async () => {
    const folder = makeFolder({ 'tollgate.config.yaml': CONFIG });
    const created = await runCli(['keys', 'create', '--user', 'ann', '--admin', '--json'], folder);
    const { data } = JSON.parse(created.stdout) as { data: { api_key: string } };
    const { child, seen, finished } = startCli(['start'], folder);
    try {
      const [, url = ''] = await seen(/listens on (http:\S+)/);
      const headers = {
        authorization: `Bearer ${data.api_key}`,
        'content-type': 'application/json',
        connection: 'close',
      };
      const request = (method: string, where: string, body?: object, etag = '') =>
        fetch(`${url}${where}`, {
          method,
          headers: { ...headers, ...(etag !== '' && { 'if-match': etag }) },
          ...(body && { body: JSON.stringify(body) }),
        });
      const where = '/api/core/admin/configuration/file';
      const draft = { section: 'models', name: 'cheap', value: 'echo/echo' };
      const present = await request('GET', where);
      const etag = present.headers.get('etag') ?? '';
      // Undici's parser of Node 20 throws if a connection ends below a body that is not read.
      await present.text();
      const written = await request('PUT', where, draft, etag);
      expect(await written.json()).to.deep.include({ written: true, other_nodes: [] });
      expect(readFileSync(path.join(folder, 'tollgate.config.yaml'), 'utf8')).to.equal(`${CONFIG}  cheap: echo/echo\n`);
      const chat = { model: 'cheap', messages: [{ role: 'user', content: 'x' }] };
      for (let n = 0; n < 6; n += 1) {
        const response = await request('POST', '/v1/chat/completions', chat);
        expect(response.status, await response.text()).to.equal(200);
      }
      const stale = await request('PUT', where, { ...draft, name: 'other' }, etag);
      expect(stale.status, await stale.text()).to.equal(412);
      const wrong = await request('POST', '/api/core/admin/configuration/drafts', { ...draft, value: 'nort/m' });
      expect(((await wrong.json()) as { problems: string[] }).problems[0]).to.include('models.cheap');
      const foreign = await request('POST', '/api/core/admin/configuration/drafts', {
        ...draft,
        section: 'guardrails',
      });
      expect(foreign.status).to.equal(400);
      expect(await foreign.json()).to.have.nested.property('error.param', 'name');
    } finally {
      child.kill('SIGTERM');
      await finished;
    }
  });
});
