import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { useTempFolder } from '../support/folders.ts';
import { putOnPath } from '../support/processes/cli.ts';
import { freePort } from '../support/processes/server-process.ts';
import { isShown, openShell, readCommands, readFiles, type Shell } from './page-shell.ts';

const CLONE = fileURLToPath(new URL('../..', import.meta.url));
const MAX_TRIES = 5;

describe('docs/mcp.md', () => {
  const folder = useTempFolder('mcp');
  const page = readFileSync(path.join(CLONE, 'docs/mcp.md'), 'utf8');
  const manifest = JSON.parse(readFileSync(path.join(CLONE, 'package.json'), 'utf8')) as {
    devDependencies: Readonly<Record<string, string>>;
  };
  let shell: Shell;
  let isBroken = false;
  let port = '';
  let modelPort = '';
  /** Only difference to the page: free ports of this machine. */
  const place = (text: string): string => text.replaceAll('8787', port).replaceAll('9100', modelPort);

  before(async () => {
    port = String(await freePort());
    modelPort = String(await freePort());
    const bin = path.join(folder, 'bin');
    putOnPath(bin);
    const home = path.join(folder, 'gateway');
    mkdirSync(home);
    for (const [name, text] of readFiles(page))
      writeFileSync(
        path.join(home, name),
        name.endsWith('.yaml') ? `server: { port: ${port} }\n${place(text)}` : place(text),
      );
    // Installed as the page says, without a registry.
    symlinkSync(path.join(CLONE, 'node_modules'), path.join(home, 'node_modules'));
    shell = openShell(home, { PATH: `${bin}:${process.env['PATH'] ?? ''}`, HOME: home, NO_COLOR: '1' });
  });
  afterEach(function () {
    isBroken ||= this.currentTest?.state === 'failed';
  });
  after(() => shell.close());

  it('installs the versions that are tested', () => {
    const named = [...page.matchAll(/(@modelcontextprotocol\/[\w-]+)@([\d.]+)/g)].map(([, name, version]) => [
      name,
      version,
    ]);
    expect(named).to.have.length(3);
    for (const [name, version] of named) expect(manifest.devDependencies[name ?? ''], name).to.equal(version);
  });

  for (const { line, command, shown } of readCommands(page))
    it(`line ${line} shows what "${command.slice(0, 60)}" prints`, async function () {
      // Later commands build on earlier ones.
      if (isBroken) this.skip();
      let text = await shell.run(place(command));
      // Calls are recorded after their response.
      for (
        let tries = 1;
        !isShown(text, shown.map(place)) && command.startsWith('tollgate calls') && tries < MAX_TRIES;
        tries += 1
      )
        text = await shell.run(`sleep 0.1; ${command}`);
      expect(isShown(text, shown.map(place)), text).to.equal(true);
    });
});
