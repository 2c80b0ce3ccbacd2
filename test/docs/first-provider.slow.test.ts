import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { Server } from 'node:http';
import path from 'node:path';
import { expect } from 'chai';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { useTempFolder } from '../support/folders.ts';
import { partOf } from '../support/generated-cases.ts';
import { type Running, startProgram } from '../support/processes/cli.ts';
import { startRegistry } from '../support/processes/npm-registry.ts';
import { usePackedTollgate } from '../support/processes/packed-tollgate.ts';
import { freePort } from '../support/processes/server-process.ts';

/** Pages that begin in an empty folder, and the output of their last block. */
const PAGES: Readonly<Record<string, RegExp>> = {
  '1-provider': /^OpenAI: Hello\nAnthropic: Hello\n$/,
  '3-guardrail': /^400\n200\n$/,
  ...Object.fromEntries(
    ['6-auth', '8-agent', '10-operation', '9-store', '11-dialect', 'secrets'].map((page) => [
      page,
      /^installed tollgate-plugin-[\s\S]*^tollgate\.config\.yaml is valid: /m,
    ]),
  ),
};

/** Blocks of a page that are run or written, in order. `file` is the path of a written block. */
const blocksOf = (page: string) =>
  [
    ...readFileSync(path.join(PACKAGE_ROOT, `docs/plugins/${page}.md`), 'utf8').matchAll(
      /^```(?<language>\w+)(?: (?<file>\S+))?\n(?<text>[\s\S]*?)^```$/gm,
    ),
  ]
    .map(({ groups = {} }) => ({ language: groups['language'], file: groups['file'], text: groups['text'] ?? '' }))
    .filter(({ language, file }) => language === 'sh' || file !== undefined);

/** Commands that run until they are stopped, and their output when ready. */
const SERVERS: readonly (readonly [line: RegExp, ready: RegExp | undefined])[] = [
  [/^node dist\/test\/vendor\.js$/m, undefined],
  [/^npm run dev$/m, /Try it/],
  [/^tollgate start /m, /Try it/],
];

describe('the pages for authors of plugins', function () {
  this.timeout(600_000);
  const tollgate = usePackedTollgate();
  const root = useTempFolder('first-plugin');
  const running: Running[] = [];
  /** One for all pages, so that npm reads each package once and then from its cache. */
  let registry: { readonly url: string; readonly server: Server };

  before(async () => {
    const manifest = path.join(tollgate.folder, 'node_modules', 'tollgate', 'package.json');
    registry = await startRegistry({ manifest, tarball: tollgate.tarball });
  });
  afterEach(async () => {
    const programs = running.splice(0);
    for (const { child } of programs) if (child.pid !== undefined) process.kill(-child.pid, 'SIGTERM');
    await Promise.all(programs.map(({ finished }) => finished));
  });
  after(() => registry?.server.close());

  // Each second page; `npm run test:nightly` follows all.
  for (const [page, printed] of partOf(Object.entries(PAGES), 0, 2))
    it(`docs/plugins/${page}.md leads from an empty folder to a gateway with the plugin, block by block as written`, async () => {
      const empty = path.join(root, page);
      mkdirSync(empty);
      const env: Record<string, string> = {
        ...tollgate.env,
        ...{
          npm_config_offline: 'false',
          npm_config_prefer_offline: 'true',
          npm_config_registry: registry.url,
          npm_config_fund: 'false',
          npm_config_audit: 'false',
        },
      };
      // The ports of the page may be in use.
      const ports = Object.fromEntries(
        await Promise.all(['4100', '8787', '8788'].map(async (port) => [port, await freePort()])),
      );
      const move = (text: string): string => text.replaceAll(/\b(4100|8787|8788)\b/g, (port) => String(ports[port]));
      let cwd = empty;
      let said = '';
      for (const { file, text } of blocksOf(page)) {
        if (file !== undefined) {
          const reloaded = running.at(-1)?.seen(/reloaded +src\/index\.ts/);
          writeFileSync(path.join(cwd, file), move(text));
          if (file.startsWith('src/')) await reloaded;
          else void reloaded?.catch(() => undefined);
          continue;
        }
        const server = SERVERS.find(([line]) => line.test(text));
        if (server) {
          const program = startProgram(['sh', '-ec', move(text)], cwd, env, true);
          running.push(program);
          if (server[1]) {
            await program.seen(server[1]);
            env['TOLLGATE_API_KEY'] = /tg_\w+/.exec(program.stderr())?.[0] ?? '';
          }
          continue;
        }
        const { code, stdout, stderr } = await startProgram(['sh', '-ec', `${move(text)}\npwd > "$HOME/where"`], cwd, {
          ...env,
          HOME: empty,
        }).finished;
        expect(code, `${text}\n${stdout}\n${stderr}`).to.equal(0);
        cwd = readFileSync(path.join(empty, 'where'), 'utf8').trim();
        said = stdout;
        // Replaces the ports in files written from the templates.
        if (text.startsWith('tollgate plugins new'))
          for (const name of ['tollgate.config.yaml', 'test/vendor.ts', 'dist/test/vendor.js'])
            if (existsSync(path.join(cwd, name)))
              writeFileSync(path.join(cwd, name), move(readFileSync(path.join(cwd, name), 'utf8')));
      }
      expect(said).to.match(printed);
    });
});
