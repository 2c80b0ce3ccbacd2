import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { useTempFolder } from '../support/folders.ts';
import { readChapter } from '../support/pages/read-blocks.ts';
import { putOnPath } from '../support/processes/cli.ts';
import { freePort } from '../support/processes/server-process.ts';
import { isShown, openShell, readCommands, readFiles, type Shell } from './page-shell.ts';

const CLONE = fileURLToPath(new URL('../..', import.meta.url));
const PORTS = ['8787', '9001', '9002'] as const;

/** Read-only commands may be repeated: log lines appear within 100 ms, and calls are recorded after their response. */
const READS =
  /^(?:grep|awk|tollgate (?:targets|calls|usage|audit|budgets list|accounts list|keys list)|curl -sS "?\$BASE\/api\/core\/(?:balance|admin\/(?:targets|calls|audit)))/;
const MAX_TRIES = 20;

describe('docs/first-day.md', () => {
  const folder = useTempFolder('operate');
  const chapter = readChapter('docs/first-day.md', '# A first day');
  const commands = readCommands(chapter);
  let shell: Shell;
  let isBroken = false;
  /** Only difference to the page: free ports of this machine. */
  let place: (text: string) => string;

  before(async () => {
    const ports = new Map<string, string>();
    for (const port of PORTS) ports.set(port, String(await freePort()));
    place = (text) =>
      text.replaceAll(new RegExp(`\\b(?:${PORTS.join('|')})\\b`, 'g'), (port) => ports.get(port) ?? port);

    const bin = path.join(folder, 'bin');
    putOnPath(bin);
    const home = path.join(folder, 'gateway');
    mkdirSync(home);
    for (const [name, text] of readFiles(chapter)) writeFileSync(path.join(home, name), place(text));
    shell = openShell(home, { PATH: `${bin}:${process.env['PATH'] ?? ''}`, HOME: home, CLONE, NO_COLOR: '1' });
  });
  afterEach(function () {
    isBroken ||= this.currentTest?.state === 'failed';
  });
  after(() => shell.close());

  for (const { line, command, shown } of commands)
    it(`line ${line} shows what "${command.split('\n')[0]}" prints`, async function () {
      // Later commands build on earlier ones.
      if (isBroken) this.skip();
      let text = await shell.run(place(command));
      for (let tries = 1; !isShown(text, shown.map(place)) && READS.test(command) && tries < MAX_TRIES; tries += 1)
        text = await shell.run(`sleep 0.2; ${place(command)}`);
      expect(isShown(text, shown.map(place)), text).to.equal(true);
    });
});
