import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { commandsBelow, FORMER_COMMANDS, FORMER_VERBS, GROUPS, isFirstLevel, placeOf } from '../../cli/places.ts';
import { COMMANDS } from '../../cli/program.ts';
import { composeSchema } from '../../config/compose-schema.ts';
import { listBuiltins } from '../../config/import-plugin.ts';
import { loadConfig, readBuiltinSchemas } from '../../config/load-config.ts';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { ERRORS } from '../../contract/errors.ts';
import { HOOKS } from '../../contract/hooks.ts';
import type { Plugin } from '../../contract/plugin.ts';
import { NOTICES } from '../../plugins/policies/kit/notices.ts';
import { makeFolder, removeFolders } from '../support/folders.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { createSelfSigned } from '../support/identity/self-signed.ts';
import { readBlocks, readChapter } from '../support/pages/read-blocks.ts';
import { LAYERS } from './layers.ts';
import { readSources } from './source-tree.ts';

const run = promisify(execFile);
const read = (file: string): string => readFileSync(path.join(PACKAGE_ROOT, file), 'utf8');
const blocks = readBlocks();

/** Cells of the rows in a chapter whose first cell matches. */
function rowsOf(page: string, heading: string, first: RegExp): readonly (readonly string[])[] {
  const lines = readChapter(page, heading).split('\n');
  const rows = lines.filter((line) => line.startsWith('| ')).map((line) => line.slice(2, -2).split(' | '));
  return rows.filter(([cell = '']) => first.test(cell));
}

/** Commands of built-in plugins. */
async function commandsOfPlugins(): Promise<readonly { readonly name: string; readonly summary: string }[]> {
  const own = listBuiltins().filter(({ kind }) => ['auth', 'agent', 'operation', 'dialect', 'policy'].includes(kind));
  const rows = await Promise.all(
    own.map(async ({ url }) => ((await import(url)) as { readonly default: Plugin }).default.commands ?? []),
  );
  return rows.flat();
}

describe('the tables of the docs', () => {
  it('docs/http.md lists every error of contract/errors.ts', () => {
    const expected = Object.entries(ERRORS).map(([code, { status, type, when }]) => [
      String(status),
      `\`${code}\``,
      `\`${type}\``,
      when,
    ]);
    expect(rowsOf('docs/http.md', '## Errors', /^\d{3}$/)).to.deep.equal(expected);
  });

  it('docs/plugins/4-life-of-a-call.md lists every hook with its kind and direction', () => {
    const rows = rowsOf('docs/plugins/4-life-of-a-call.md', '# 4. The life of a call', /^`\w+`$/).map(
      ([name, kind, direction]) => [name, kind, direction],
    );
    expect(rows).to.deep.equal(
      Object.entries(HOOKS).map(([name, { kind, direction }]) => [`\`${name}\``, kind, direction]),
    );
  });

  it('docs/cli.md lists every command by group with its summary', async () => {
    type Row = Pick<(typeof COMMANDS)[number], 'name' | 'summary' | 'args' | 'subcommands'>;
    const all: readonly Row[] = [...COMMANDS, ...(await commandsOfPlugins())];
    const line = ({ name, summary, args = [] }: Row, group = ''): readonly string[] => [
      `\`${[...(group ? [group] : []), name, ...args.map(([arg]) => arg)].join(' ')}\``,
      summary,
    ];
    const expected = GROUPS.flatMap(([, names]) => names).flatMap((name) => {
      const row = all.find((one) => one.name === name);
      expect(row, name).to.not.equal(undefined);
      const moved = commandsBelow(name).map(({ now, summary }) => [`\`${now}\``, summary]);
      return row ? [line(row), ...(row.subcommands ?? []).map((sub) => line(sub, name)), ...moved] : moved;
    });
    const chapter = rowsOf('docs/cli.md', '## Commands', /^`/);
    expect(chapter.slice(0, expected.length)).to.deep.equal(expected);
    const former = FORMER_COMMANDS.filter(({ now, was }) => now !== `${was} list`).map(({ now, was }) => [
      `\`${was}\``,
      `\`${now}\``,
    ]);
    const verbs = FORMER_VERBS.map(({ noun, was, now }) => [
      `\`${placeOf(noun)} ${was}\``,
      `\`${placeOf(noun)} ${now}\``,
    ]);
    expect(chapter.slice(expected.length)).to.deep.equal([...former, ...verbs]);
    const unnamed = all.filter(({ name }) => isFirstLevel(name)).map(({ name }) => name);
    expect(GROUPS.flatMap(([, names]) => names)).to.have.members(unnamed);
  });

  it('tollgate --help lists at most 16 commands at the first level', () => {
    expect(GROUPS.flatMap(([, names]) => names)).to.have.length.of.at.most(16);
  });

  it('docs/architecture.md shows the layers of the tree', () => {
    const expected = LAYERS.toReversed().map(({ name, what, modules }) => [
      name,
      what,
      modules.map((module) => `\`${module}\``).join(' '),
    ]);
    const rows = rowsOf('docs/architecture.md', '## Layers of core', /^(entries|http|calls|routing|plugins|contract)$/);
    expect(rows).to.deep.equal(expected);
  });

  it('the schema of the configuration is current (npm run schema)', async () => {
    const schema = `${JSON.stringify(composeSchema(await readBuiltinSchemas()), null, 1)}\n`;
    expect(schema === read('config/tollgate.schema.json')).to.equal(true);
  });

  it('docs/plugins/notices.md lists every event with a notice to operators', () => {
    const rows = rowsOf('docs/plugins/notices.md', '## Events', /^`/);
    expect(rows).to.deep.equal(Object.entries(NOTICES).map(([type, when]) => [`\`${type}\``, when]));
  });

  it('docs/operate.md names every metric', async () => {
    const gateway = await startGateway();
    const text = await (await gateway.get('/metrics')).text().finally(() => gateway.stop());
    const own = [...text.matchAll(/^# TYPE (tollgate_(?!process_|nodejs_)\w+)/gm)].map(([, name]) => `\`${name}\``);
    expect(rowsOf('docs/operate.md', '### Metrics', /^`tollgate_/).map(([name]) => name)).to.have.members(own);
  });

  it('AGENTS.md has a line for every folder, and names no missing one', () => {
    const agents = read('AGENTS.md');
    for (const folder of readdirSync(path.join(PACKAGE_ROOT, 'core'), { withFileTypes: true }))
      if (folder.isDirectory()) expect(agents, folder.name).to.include(`\`core/${folder.name}/\``);
    const named = [
      ...agents.matchAll(/`((?:core|cli|egress|models|openapi|routing|plugins|test|docs|config|bench)\/[\w/-]*\/)`/g),
    ].map(([, name]) => name);
    expect(named.filter((name) => name && !existsSync(path.join(PACKAGE_ROOT, name)))).to.deep.equal([]);
  });
});

/** Anchors of a page, as GitHub derives them from its headings. */
function anchorsOf(page: string): readonly string[] {
  const headings = read(page)
    .replaceAll(/^```[\s\S]*?^```$/gm, '')
    .matchAll(/^#+ (.+)$/gm);
  return [...headings].map(([, text = '']) =>
    text
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
      .replaceAll(' ', '-'),
  );
}

describe('links in the docs', () => {
  const folder = readdirSync(path.join(PACKAGE_ROOT, 'docs'), { recursive: true, encoding: 'utf8' });
  const pages = [
    ...['README.md', 'AGENTS.md', 'CONTRIBUTING.md', 'CHANGELOG.md'],
    ...folder.filter((name) => name.endsWith('.md')).map((name) => `docs/${name}`),
  ];
  const links = pages.flatMap((page) =>
    [
      ...read(page)
        .replaceAll(/^```[\s\S]*?^```$/gm, '')
        .matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)|(?<= (?:src|srcset)=")([^"]+)(?=")/g),
    ]
      .map(([, link, anchor = '', picture]) => ({ file: link ?? picture ?? '', anchor }))
      .map(({ file, anchor }) => ({
        page,
        target: file === '' ? page : path.join(path.dirname(page), file),
        anchor,
      })),
  );

  it('lead to existing files', () => {
    const broken = links.filter(({ target }) => !existsSync(path.join(PACKAGE_ROOT, target)));
    expect(broken).to.deep.equal([]);
  });

  it('lead to existing headings', () => {
    const broken = links.filter(({ target, anchor }) => anchor !== '' && !anchorsOf(target).includes(anchor));
    expect(broken).to.deep.equal([]);
  });

  it('in messages of the program lead to existing headings', () => {
    const sources = readSources(
      'cli',
      'config',
      'contract',
      'core',
      'egress',
      'models',
      'openapi',
      'plugins',
      'routing',
    );
    const named = sources.flatMap(({ name, text }) =>
      [...text.matchAll(/docs\/([\w/-]+\.md)(?:#([\w-]+))?/g)]
        .filter(([found]) => !/docs\/(?:models|api)\b/.test(found))
        .map(([, file = '', anchor = '']) => ({ name, file: `docs/${file}`, anchor })),
    );
    const broken = named.filter(
      ({ file, anchor }) =>
        !existsSync(path.join(PACKAGE_ROOT, file)) || (anchor !== '' && !anchorsOf(file).includes(anchor)),
    );
    expect(named.length).to.be.greaterThan(20);
    expect(broken).to.deep.equal([]);
  });

  it('of docs/README.md name each page once, under its kind, and the top has at most 20', () => {
    const kinds = ['Start', 'How to', 'Reference', 'Explanation'];
    const chapters = read('docs/README.md').split(/^## /m).slice(1);
    expect(chapters.map((chapter) => chapter.split('\n')[0])).to.deep.equal(kinds);
    const listed = chapters.flatMap((chapter) => [
      ...new Set([...chapter.matchAll(/\]\(([\w./-]+\.md)\)/g)].map(([, file = '']) => path.join('docs', file))),
    ]);
    const wanted = pages.filter((page) => /^docs\/(?:(?:how-to|plugins|dialects)\/)?[^/]+$/.test(page));
    expect(listed).to.have.members([
      ...wanted.filter((page) => page !== 'docs/README.md'),
      ...['README.md', 'CHANGELOG.md', 'docs/providers/matrix.md'],
    ]);
    expect(pages.filter((page) => /^docs\/[^/]+$/.test(page))).to.have.length.of.at.most(20);
  });
});

/** Errors about made-up or incomplete examples: plugins, models of providers, folders. */
const MADE_UP =
  /the package "tollgate-plugin-\w+" is not installed|the built-in provider plugin "acme" does not exist|refers to the provider "\w+", which is not configured\. None are configured|agents\.rag\S* is not a folder/;

describe('configurations in the docs', () => {
  const { cert, key } = createSelfSigned();
  afterEach(removeFolders);
  for (const { page, line, text } of blocks.filter(({ language }) => language === 'yaml')) {
    it(`${page}:${line} is valid`, async () => {
      const env = Object.fromEntries([...text.matchAll(/\$\{(\w+)\}/g)].map(([, name = '']) => [name, 'x'.repeat(40)]));
      const cwd = makeFolder({ 'tollgate.config.yaml': text, 'tls/gateway.crt': cert, 'tls/gateway.key': key });
      const problems = await loadConfig({ cwd, env }).then(
        () => [],
        (error: Error) => error.message.split('\n').slice(0, -1),
      );
      expect(problems.filter((failure) => !MADE_UP.test(failure))).to.deep.equal([]);
    });
  }
});

/** Lines with `$TOLLGATE_URL`, which need no vendor. */
describe('curl lines in the docs', () => {
  let gateway: TestGateway;

  before(async () => {
    gateway = await startGateway();
  });
  after(() => gateway.stop());

  for (const { page, line, text } of blocks.filter(
    ({ language, text: body }) => language === 'sh' && body.startsWith('curl $TOLLGATE_URL'),
  )) {
    it(`${page}:${line} works unchanged`, async () => {
      const env = { PATH: process.env['PATH'], TOLLGATE_URL: gateway.url, TOLLGATE_API_KEY: gateway.key };
      const { stdout } = await run('sh', ['-c', text.replace(/^curl /, 'curl -sS --fail-with-body --max-time 10 ')], {
        env,
      });
      expect(stdout).to.match(/\S/);
    });
  }
});
