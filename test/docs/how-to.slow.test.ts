import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { makeFolder, removeFolders } from '../support/folders.ts';
import { putOnPath } from '../support/processes/cli.ts';
import { freePort } from '../support/processes/server-process.ts';
import { isShown, learnIds, openShell, readCommands, readFiles, type Shell } from './page-shell.ts';

const CLONE = fileURLToPath(new URL('../..', import.meta.url));
/** Reference pages with commands, in addition to the how-to pages. */
const REFERENCES = ['docs/keys.md', 'docs/money.md'];
const PAGES = [...readdirSync(path.join(CLONE, 'docs/how-to')).map((name) => `docs/how-to/${name}`), ...REFERENCES];
const PORTS = ['8787', '9001', '9002'] as const;

/** Configuration of docs/first-day.md, which the pages use. */
const CONFIG = readFiles(readFileSync(path.join(CLONE, 'docs/first-day.md'), 'utf8')).get('tollgate.config.yaml') ?? '';

/** Makes the keys of two vendors, an operator and a user, once for all pages. */
const MAKE_KEYS = [
  'umask 077; echo north-secret-1 > north.key; echo south-secret-1 > south.key',
  'tollgate keys create --admin --user operator > admin.key; tollgate keys create --user ann --tag team=search > ann.key',
];

/** Starts a gateway with two vendors and makes three calls; the last call fails. */
const SET_UP = [
  'node $CLONE/examples/vendors.mjs 9001 9002 > vendors.log 2>&1 &',
  'umask 077',
  'tollgate start > gateway.log 2> start.log &',
  'curl -s --retry 60 --retry-delay 1 --retry-connrefused http://127.0.0.1:8787/readyz',
  'PREFIX=$(cut -c 1-15 ann.key)',
  `ask() { curl -sS http://127.0.0.1:8787/v1/chat/completions -H "authorization: Bearer $(cat ann.key)" -H 'content-type: application/json' -d '{"model":"north/north-1","max_tokens":500,"messages":[{"role":"user","content":"Hello"}]}'; }`,
  'ask; ask; curl -sS -X POST http://127.0.0.1:9001/die; ask; curl -sS -X POST http://127.0.0.1:9001/live',
  // Records are written after the responses.
  'for n in $(seq 50); do curl -s http://127.0.0.1:8787/api/core/admin/calls -H "authorization: Bearer $(cat admin.key)" | grep -q provider_unavailable && break; sleep 0.2; done',
];

describe('the how-to and reference pages', () => {
  const pages = PAGES.map((name) => ({
    name,
    commands: readCommands(readFileSync(path.join(CLONE, name), 'utf8')),
  })).filter(({ commands }) => commands.length > 0);

  /** Folder with the configuration, the keys and their store, of which each page gets a copy. */
  let prepared = '';
  const openAt = (home: string): Shell => {
    const PATH = `${path.join(home, 'bin')}:${process.env['PATH'] ?? ''}`;
    return openShell(home, { PATH, HOME: home, CLONE, NO_COLOR: '1' });
  };

  before(async () => {
    prepared = makeFolder({ 'tollgate.config.yaml': CONFIG });
    putOnPath(path.join(prepared, 'bin'));
    const shell = openAt(prepared);
    for (const command of MAKE_KEYS) await shell.run(command);
    await shell.close();
  });
  after(removeFolders);

  for (const { name, commands } of pages)
    describe(name, () => {
      let shell: Shell;
      let place: (text: string) => string;
      let isBroken = false;
      /** Ids of this run by those of the page. */
      const ids = new Map<string, string>();

      before(async () => {
        const ports = new Map<string, string>();
        for (const port of PORTS) ports.set(port, String(await freePort()));
        place = (text) =>
          text
            .replaceAll(new RegExp(`\\b(?:${PORTS.join('|')})\\b`, 'g'), (port) => ports.get(port) ?? port)
            .replaceAll(/\btg_\w{12}\b/g, (id) => ids.get(id) ?? id);
        const home = makeFolder();
        cpSync(prepared, home, { recursive: true });
        writeFileSync(path.join(home, 'tollgate.config.yaml'), place(CONFIG));
        shell = openAt(home);
        for (const command of SET_UP) await shell.run(place(command));
      });
      afterEach(function () {
        isBroken ||= this.currentTest?.state === 'failed';
      });
      after(() => shell.close());

      for (const { line, command, shown } of commands)
        it(`line ${line} shows what "${command.split('\n')[0]}" prints`, async function () {
          // Later commands of a page build on earlier ones.
          if (isBroken) this.skip();
          const text = await shell.run(place(command));
          learnIds(ids, text, shown);
          expect(isShown(text, shown.map(place)), text).to.equal(true);
        });
    });

  it('have commands to run', () => expect(pages.length).to.be.greaterThan(12));
});
