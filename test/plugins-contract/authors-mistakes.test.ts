import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { loadConfig } from '../../config/load-config.ts';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { makeFolder, removeFolders } from '../support/folders.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { partOf } from '../support/generated-cases.ts';
import { CHAT, chatOf, pluginFile, startError } from '../support/plugins/plugin-file.ts';
import { until } from '../support/wait.ts';
import { CALLS, FILES, type Mistake, OPTIONS, SET_UPS } from './authors-mistakes.ts';

const SECTION: Readonly<Record<string, string>> = {
  ...{ policy: 'policies', provider: 'providers', auth: 'auth', operation: 'operations', dialect: 'dialects' },
  tts: 'tts',
};

/** Configuration with the plugin of a mistake, and its files. */
function configOf({ kind = 'policy', options, ...mistake }: Mistake) {
  const instance = { plugin: './probe.mjs', ...options };
  const section = SECTION[kind] ?? 'store';
  const members = kind === 'store' ? instance : { ...(kind === 'provider' && { echo: {} }), probe: instance };
  const text = mistake.file ?? pluginFile({ kind, setup: mistake.setup ?? '', more: mistake.more ?? '' });
  return {
    config: { store: 'memory:', [section]: members },
    files: { 'probe.mjs': text, ...mistake.files },
  };
}

/** Output of `tollgate check`, which sets up no plugin. */
function check(mistake: Mistake): Promise<string> {
  const { config, files } = configOf(mistake);
  const whole = { providers: { echo: {} }, ...config };
  const cwd = makeFolder({ ...files, 'tollgate.config.json': JSON.stringify(whole) });
  return loadConfig({ cwd, env: {} }).then(
    () => '',
    (error: Error) => error.message,
  );
}

function start(mistake: Mistake): Promise<TestGateway> {
  const { config, files } = configOf(mistake);
  return startGateway(config, { files });
}

/** All log entries of a call. */
async function callAndRead(gateway: TestGateway, { call, kind, says }: Mistake): Promise<string> {
  const body = chatOf('hi there', { model: kind === 'provider' ? 'probe/m' : 'echo/echo', ...call });
  const isProof = kind === 'auth' ? { authorization: 'Bearer abc' } : {};
  const response =
    call?.path === undefined ? await gateway.post(CHAT, body, isProof) : await gateway.get(call.path, isProof);
  const text = await response.text();
  expect(text, 'callers see nothing of it').not.to.include(says);
  const read = (): string =>
    gateway.logs.map(({ err }) => (err as { readonly message?: string } | undefined)?.message ?? '').join('\n');
  await until('it is in the log', () => read().includes(says));
  return read();
}

describe('a mistake of a plugin’s author', () => {
  afterEach(removeFolders);

  for (const mistake of [...FILES, ...OPTIONS])
    it(`is reported by tollgate check: it ${mistake.what}`, async () => {
      const said = await check(mistake);
      expect(said).to.include(mistake.says);
      if (mistake.says === '') return expect(said).to.equal('');
      expect(said, 'the place in the configuration').to.match(/^tollgate\.config\.json:\d+:\d+ \w+\.probe/);
    });

  for (const mistake of partOf(SET_UPS))
    it(`stops the start: it ${mistake.what}`, async () => {
      const said = await startError(start(mistake));
      expect(said).to.include(mistake.says);
      expect(said, 'the plugin, or the place in the configuration').to.match(/^(plugin "|tollgate\.config\.json:)/);
    });

  for (const mistake of partOf(CALLS))
    it(`is in the log of a call: it ${mistake.what}`, async () => {
      const gateway = await start(mistake);
      try {
        await callAndRead(gateway, mistake);
      } finally {
        await gateway.stop();
      }
    });

  it('is in docs/plugins/mistakes.md: 80 mistakes and more', () => {
    const rows = [...FILES, ...OPTIONS, ...SET_UPS, ...CALLS];
    expect(rows.length).to.be.at.least(80);
    expect(new Set(rows.map(({ what }) => what)).size, 'each once').to.equal(rows.length);
    const file = path.join(PACKAGE_ROOT, 'docs/plugins/mistakes.md');
    const page = readFileSync(file, 'utf8');
    const shown = Object.entries({ file: FILES, options: OPTIONS, 'set-up': SET_UPS, calls: CALLS }).reduce(
      (text, [name, list]) => withTable(text, name, list),
      page,
    );
    if (process.env['UPDATE']) writeFileSync(file, shown);
    else expect(page, 'UPDATE=1 npx mocha test/plugins-contract/authors-mistakes.test.ts').to.equal(shown);
  });
});

/** Page with the rows of a list between `<!-- name -->` and the next comment. */
function withTable(page: string, name: string, list: readonly Mistake[]): string {
  const begin = page.indexOf(`<!-- ${name} -->\n`);
  expect(begin, `the page has <!-- ${name} -->`).to.be.greaterThan(-1);
  const from = begin + `<!-- ${name} -->\n`.length;
  const to = page.indexOf('<!-- end -->', from);
  const rows = list.map(({ what, says }) => {
    const said = says.replace(/ \(probe\.mjs:$/, ' (probe.mjs:3:9)').replaceAll('|', '\\|');
    return `| ${what} | ${says === '' ? 'works' : `\`${said.replaceAll('`', "'")}\``} |`;
  });
  return `${page.slice(0, from)}\n| It … | What is said |\n|---|---|\n${rows.join('\n')}\n\n${page.slice(to)}`;
}
