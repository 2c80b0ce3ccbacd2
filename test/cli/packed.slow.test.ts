import { copyFileSync, mkdirSync } from 'node:fs';
import type { Server } from 'node:http';
import path from 'node:path';
import { expect } from 'chai';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { useTempFolder } from '../support/folders.ts';
import { type Running, startProgram } from '../support/processes/cli.ts';
import { startRegistry } from '../support/processes/npm-registry.ts';
import { usePackedTollgate } from '../support/processes/packed-tollgate.ts';

describe('the packed program', function () {
  this.timeout(600_000);
  const { tarball } = usePackedTollgate();
  const root = useTempFolder('npx');
  let registry: Server | undefined;
  let gateway: Running | undefined;
  after(async () => {
    // The whole group: npx runs the gateway in a shell.
    if (gateway?.child.pid !== undefined) process.kill(-gateway.child.pid, 'SIGTERM');
    await gateway?.finished;
    registry?.close();
  });

  it('starts with npx in an empty folder and responds to a chat', async () => {
    const folder = path.join(root, 'empty');
    mkdirSync(folder);
    copyFileSync(tarball, path.join(folder, 'tollgate-0.2.0.tgz'));
    // Serves the dependencies that are installed here.
    const { url: registryUrl, server } = await startRegistry({
      manifest: path.join(PACKAGE_ROOT, 'package.json'),
      tarball,
    });
    registry = server;
    const program = ['npx', '--yes', './tollgate-0.2.0.tgz'];
    const env = {
      npm_config_registry: registryUrl,
      npm_config_cache: path.join(root, 'cache'),
      npm_config_update_notifier: 'false',
    };
    gateway = startProgram([...program, 'start', '--port', '0'], folder, env, true);
    const [, url = ''] = await gateway.seen(/Tollgate listens on (http:\/\/127\.0\.0\.1:\d+)/);
    const [, key = ''] = await gateway.seen(/(tg_[0-9A-Za-z]{12}_[0-9A-Za-z]+)/);
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'echo/echo-1', messages: [{ role: 'user', content: 'hello' }] }),
    });
    expect(response.status).to.equal(200);
    expect(await response.json()).to.have.nested.property('choices[0].message.content', 'hello');
  });
});
