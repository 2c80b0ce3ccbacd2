import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { PACKAGE_ROOT } from '../../../../config/package-root.ts';
import { useTempFolder } from '../../../support/folders.ts';
import { fileOf, KEY } from './rig.ts';

const run = promisify(execFile);

/** Starts a gateway in a process of its own, completes a chat with `echo`, and prints the modules that were loaded. */
const CODE = `import { createGateway } from ${JSON.stringify(`${PACKAGE_ROOT}/core/gateway.ts`)};
const { providers, cwd } = JSON.parse(process.env.CASE);
const config = { providers, auth: { 'api-key': { bootstrap: true } }, logging: { level: 'silent' } };
const gateway = await createGateway({ config, listen: false, cwd, env: {} });
const key = gateway.announcements.find(({ use }) => use === 'key').value;
const body = JSON.stringify({ model: 'echo/echo', messages: [{ role: 'user', content: 'Hi' }] });
const headers = { authorization: 'Bearer ' + key, 'content-type': 'application/json' };
const response = await gateway.inject(new Request('http://localhost/v1/chat/completions', { method: 'POST', headers, body }));
console.log(response.status);
await gateway.close();`;

describe('a gateway without the provider ai-sdk', function () {
  this.timeout(120_000);
  const folder = useTempFolder('ai-sdk-unloaded');

  async function filesOf(providers: object): Promise<readonly string[]> {
    const args = ['--import', 'tsx/esm', '--input-type=module', '--eval', CODE];
    const env = { ...process.env, NODE_DEBUG: 'esm', CASE: JSON.stringify({ providers, cwd: folder }) };
    const { stdout, stderr } = await run(process.execPath, args, { cwd: PACKAGE_ROOT, env, maxBuffer: 2 ** 28 });
    expect(stdout).to.match(/^200$/m);
    return [...new Set(stderr.match(/(?:plugins\/providers\/(?:ai-sdk|echo)|node_modules\/@ai-sdk)[\w/.-]*/g) ?? [])];
  }

  it('44: loads no file of it, and none of the AI SDK', async () => {
    const without = await filesOf({ echo: {} });
    expect(without.join()).to.include('plugins/providers/echo');
    expect(without.filter((file) => file.includes('ai-sdk'))).to.deep.equal([]);
    const name = '@ai-sdk/openai-compatible';
    const acme = { plugin: 'ai-sdk', package: fileOf(name), options: { name: 'acme' }, apiKey: KEY };
    const all = await filesOf({ echo: {}, acme: { ...acme, baseUrl: 'http://127.0.0.1:9', models: ['m'] } });
    expect(all.join()).to.include('plugins/providers/ai-sdk').and.include('node_modules/@ai-sdk');
  });
});
