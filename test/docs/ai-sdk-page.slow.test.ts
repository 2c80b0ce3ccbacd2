import { mkdirSync, readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import path from 'node:path';
import { expect } from 'chai';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { useTempFolder } from '../support/folders.ts';
import { type Running, startProgram } from '../support/processes/cli.ts';
import { startRegistry } from '../support/processes/npm-registry.ts';
import { usePackedTollgate } from '../support/processes/packed-tollgate.ts';
import { freePort } from '../support/processes/server-process.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';

const PAGE = readFileSync(path.join(PACKAGE_ROOT, 'docs/providers/ai-sdk.md'), 'utf8');
const RESPONSE = readFileSync(path.join(PACKAGE_ROOT, 'test/fixtures/cohere/chat.json'), 'utf8');

/** Commands of the page, in order. */
const COMMANDS = Array.from(PAGE.matchAll(/^\d\. (?:in another terminal )?`(.+)`$/gm), ([, command = '']) => command);

describe('the page of the provider ai-sdk', function () {
  this.timeout(600_000);
  const tollgate = usePackedTollgate();
  const folder = useTempFolder('ai-sdk-page');
  let vendor: ScriptedUpstream;
  let registry: Server;
  let gateway: Running | undefined;

  before(async () => {
    vendor = await startScriptedUpstream();
    vendor.script(({ send }) => send(respondWith(200, RESPONSE, { 'content-type': 'application/json' })));
  });

  after(async () => {
    if (gateway?.child.pid !== undefined) process.kill(-gateway.child.pid, 'SIGTERM');
    registry?.close();
    await vendor.close();
  });

  it('44: leads from an empty folder to a response and a bill in five commands', async () => {
    expect(COMMANDS).to.have.length(5);
    const manifest = path.join(tollgate.folder, 'node_modules', 'tollgate', 'package.json');
    const started = await startRegistry({ manifest, tarball: tollgate.tarball });
    registry = started.server;
    const home = path.join(folder, 'home');
    const project = path.join(folder, 'project');
    for (const each of [home, project]) mkdirSync(each);
    const port = await freePort();
    const env = {
      ...{ PATH: process.env['PATH'] ?? '', HOME: home, COHERE_API_KEY: 'co-key' },
      ...{ npm_config_registry: started.url, npm_config_cache: path.join(folder, 'cache') },
      ...{ npm_config_audit: 'false', npm_config_fund: 'false', npm_config_update_notifier: 'false' },
    };
    // The vendor and the port are the test's; everything else is as on the page.
    const toTest = (command: string): string =>
      command
        .replace(
          '{"providers":{"cohere":{',
          `{"server":{"port":${port}},"providers":{"cohere":{"baseUrl":"${vendor.url}/v2",`,
        )
        .replace('COHERE_API_KEY=…', 'COHERE_API_KEY=co-key')
        .replaceAll('8787', String(port));
    const run = async (command: string): Promise<string> => {
      const { code, stdout, stderr } = await startProgram(['bash', '-ec', toTest(command)], project, env).finished;
      expect(code, `${command}\n${stdout}\n${stderr}`).to.equal(0);
      return stdout;
    };
    const [install = '', configure = '', start = '', chat = '', bill = ''] = COMMANDS;
    await run(install);
    await run(configure);
    gateway = startProgram(['bash', '-ec', toTest(start)], project, env, true);
    await gateway.seen(/listens on/);
    const response = JSON.parse(await run(chat)) as { choices: { message: { content: string } }[] };
    expect(response.choices[0]?.message.content).to.be.a('string').and.not.equal('');
    expect(vendor.requests.at(-1)?.headers['authorization']).to.equal('Bearer co-key');
    expect(await run(bill)).to.match(/TOTAL +1 +\d+ +\d+ +0\.0*[1-9]/);
  });
});
