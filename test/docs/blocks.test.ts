import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { trySetUp } from '../../cli/check-config.ts';
import { resolveWords } from '../../cli/places.ts';
import { COMMANDS } from '../../cli/program.ts';
import { loadConfig } from '../../config/load-config.ts';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { listEntries } from '../meta/api-report.ts';
import { readSources } from '../meta/source-tree.ts';
import { makeFolder, removeFolders } from '../support/folders.ts';
import { createSilentLog } from '../support/log.ts';
import { type Block, readAllBlocks } from '../support/pages/read-blocks.ts';

const run = promisify(execFile);
const read = (file: string): string => readFileSync(path.join(PACKAGE_ROOT, file), 'utf8');

const PLUGIN_PAGES =
  /^docs\/plugins\/(?:1-provider|3-guardrail|6-auth|8-agent|9-store|10-operation|11-dialect|secrets)\.md$/;
const IMPORTS_A_FILE = /from '\.\.?\//;

/** Blocks that another test runs, or compares with what the program prints or reads. */
const ELSEWHERE: readonly (readonly [test: string, isChecked: (block: Block) => boolean])[] = [
  ['test/meta/docs.test.ts', ({ language, file }) => language === 'yaml' && file === ''],
  [
    'test/meta/docs.slow.test.ts',
    ({ language, file, text }) => language === 'ts' && file === '' && !IMPORTS_A_FILE.test(text),
  ],
  ['test/meta/docs.test.ts', ({ language, text }) => language === 'sh' && text.startsWith('curl $TOLLGATE_URL')],
  [
    'test/docs/first-day.slow.test.ts',
    ({ page, language, file }) => page === 'docs/first-day.md' && (language === 'console' || file !== ''),
  ],
  [
    'test/docs/how-to.slow.test.ts',
    ({ page, language }) => /^docs\/(?:how-to\/.*|keys|money)\.md$/.test(page) && language === 'console',
  ],
  [
    'test/docs/mcp.slow.test.ts',
    ({ page, language, file }) =>
      page === 'docs/mcp.md' && (language === 'console' || language === 'sh' || file !== ''),
  ],
  [
    'test/docs/first-provider.slow.test.ts',
    ({ page, language, file }) => PLUGIN_PAGES.test(page) && (language === 'sh' || file !== ''),
  ],
  ['test/docs/add-a-provider.slow.test.ts', ({ page, file }) => page === 'docs/plugins/2-codec.md' && file !== ''],
  [
    'test/docs/add-a-dialect.test.ts',
    ({ page, language }) => page === 'docs/plugins/11-dialect.md' && language === 'json',
  ],
  ['test/docs/tts.test.ts', ({ page, language }) => page === 'docs/plugins/tts.md' && language === 'bash'],
  ['test/meta/clients.test.ts', ({ page }) => page === 'docs/clients.md'],
  [
    'test/plugins/guardrails/http-hook.test.ts',
    ({ page, language }) => page === 'docs/plugins/guardrails.md' && language === 'python',
  ],
  [
    'test/plugins/policies/reconcile/reconcile.test.ts',
    ({ page, text }) => page === 'docs/money.md' && text.startsWith('$ tollgate usage reconcile'),
  ],
  [
    'test/plugins/auth/api-key/format.test.ts',
    ({ page, text }) => page === 'docs/keys.md' && text.startsWith('\\btg_'),
  ],
];

/** Parts of shown output and of files of other programs, and where they are in this repository. */
const PARTS: readonly (readonly [page: string, begins: string, source: string, parts: readonly string[]])[] = [
  ['README.md', 'Tollgate listens on', 'cli/', ['listens on', 'API docs: ']],
  ['README.md', 'Tollgate listens on', 'plugins/auth/', ['Your first API key, shown once']],
  ['README.md', 'export ANTHROPIC_BASE_URL', 'config/clients.json', ['ANTHROPIC_BASE_URL', 'ANTHROPIC_API_KEY']],
  [
    'docs/console.md',
    'Console (signs in once',
    'plugins/console/',
    ['Console (signs in once, within two minutes; "tollgate users console" prints another link)', '/console#sign-in='],
  ],
  [
    'docs/money.md',
    '$ curl -i',
    'plugins/policies/accounts/',
    [
      'balance of this account',
      ' does not cover the call',
      'Credit the account, or',
      'credited',
      'the balance is',
      'has the plan',
    ],
  ],
  [
    'docs/money.md',
    '$ tollgate models update',
    'plugins/policies/model-refresh/',
    ['MODEL', 'WHAT', 'BEFORE', 'AFTER', 'price.input', '--accept-dearer would apply it'],
  ],
  [
    'docs/operate.md',
    '2026',
    'cli/top.ts',
    [
      'in flight',
      'calls',
      'p50',
      'failed in the last minute',
      'today',
      'BUDGET',
      'USED %',
      'SPENT',
      'OF USD',
      'RESETS UTC',
      'TARGET',
      'STATE',
      'WHY',
      'ERR %',
      'MS',
      'LAST ERROR',
    ],
  ],
  [
    'docs/plugins/notices.md',
    '$ tollgate config notices test',
    'plugins/policies/notices/',
    ['RECEIVER', 'NOTICE', 'RESPONSE', 'taken', 'rejected'],
  ],
  ['docs/plugins/secrets.md', 'tollgate.config.yaml', 'config/', ['needs the secret', 'is unavailable: ']],
  ['docs/plugins/secrets.md', 'tollgate.config.yaml', 'plugins/secrets/', ['it has no field', 'its fields are']],
  [
    'docs/how-to/run-replicas-behind-nginx.md',
    'upstream tollgate',
    'deploy/nginx/tollgate.conf',
    ['upstream tollgate {', 'zone tollgate 128k;', 'least_conn;', 'max_fails=1 fail_timeout=5s;', 'keepalive 64;'],
  ],
  ['docs/how-to/alert-when-a-vendor-is-down.md', 'rule_files', 'deploy/prometheus/', ['alerts.yaml']],
  [
    'docs/stores.md',
    'SELECT at',
    'plugins/stores/postgres/',
    ['entries', 'account', 'amount', 'reason', 'ref', 'kind'],
  ],
  ['docs/plugins/sign-in.md', 'model = "gpt-5.5"', 'config/clients.json', ['model_provider', 'base_url', 'wire_api']],
];

/** Settings of Claude Code in JSON, as its documentation names them. */
const CLAUDE_CODE_SETTINGS = ['forceLoginMethod', 'forceLoginGatewayUrl', 'apiKeyHelper'];
/** Fields that a caller of the example defines. */
const CALLERS_FIELDS = ['degrees'];

const blocks = readAllBlocks();
const elsewhere = (block: Block): string | undefined => ELSEWHERE.find(([, isChecked]) => isChecked(block))?.[0];
const here = blocks.filter((block) => elsewhere(block) === undefined);
const of = (...languages: readonly string[]): readonly Block[] =>
  here.filter(({ language }) => languages.includes(language));
const partsOf = ({ page, text }: Block) => PARTS.filter(([of, begins]) => of === page && text.startsWith(begins));

/** Layers and steps of docs/architecture.md, by the paths that they name. */
const isMap = ({ page, language }: Block): boolean => page === 'docs/architecture.md' && language === '';
const isErrors = ({ page, text }: Block): boolean =>
  page === 'docs/config.md' && text.startsWith('tollgate.config.yaml:');
const SHELL = ['sh'];
const CODE = ['js', 'ts'];

type Flags = readonly (readonly [flags: string, summary: string] | { readonly flags: string })[];
interface Row {
  readonly name: string;
  readonly args?: readonly unknown[];
  readonly options?: Flags;
  readonly subcommands?: readonly Row[];
}

const GLOBAL_FLAGS = ['-c', '--config', '--json', '--no-color', '--wide', '-h', '--help', '-V', '--version'];

/** Words of each `tollgate` command in a text, up to a pipe, a redirection, a comment or two spaces. */
function commandsIn(text: string): readonly (readonly string[])[] {
  const lines = text.replaceAll(/\\\n\s*/g, ' ').split('\n');
  return lines.flatMap((line) =>
    [
      ...line.matchAll(/(?<![\w./:=-]|install |-t )tollgate +(?!deploy)(?=[a-z])((?:'[^']*'|"[^"]*"|[^|&;>)#'"])*)/g),
    ].map(([, words = '']) => (words.split(/ {2,}/)[0]?.match(/(?:'[^']*'|"[^"]*"|\S)+/g) ?? []).map(String)),
  );
}

/** Problem of a command: its name, its subcommand or an option; undefined without one. */
function findWrongWord(rows: readonly Row[], written: readonly string[]): string | undefined {
  const { args, moved } = resolveWords(written);
  if (moved) return `"${moved.was}" is "${moved.now}" now`;
  const at = args.findIndex((word) => !word.startsWith('-'));
  const [name = '', second = ''] = args.slice(Math.max(at, 0));
  const row = rows.find((one) => one.name === name);
  if (!row) return name.startsWith('<') ? undefined : `no command "${name}"`;
  const sub = row.subcommands?.find((one) => one.name === second);
  if (row.subcommands && !sub && /^[a-z][a-z-]*$/.test(second) && (row.args ?? []).length === 0)
    return `no command "${name} ${second}"`;
  const flags = [
    ...(row.options ?? []),
    ...(sub?.options ?? row.subcommands?.flatMap((one) => one.options ?? []) ?? []),
  ];
  const known = flags.flatMap((flag) => ('flags' in flag ? flag.flags : flag[0]).match(/-[\w-]+/g) ?? []);
  const wrong = args.find(
    (word) => /^--?[a-z]/.test(word) && ![...GLOBAL_FLAGS, ...known].includes(word.split('=')[0] ?? ''),
  );
  return wrong === undefined ? undefined : `"${args.join(' ')}" has no option ${wrong}`;
}

/** Optional policies with commands. */
const WITH_COMMANDS = `providers: { echo: {} }
auth: { api-key: {}, sign-in: { publicUrl: 'https://gateway.example' }, openid: { issuer: 'https://idp.example', clientId: x, clientSecret: '\${SECRET}', publicUrl: 'https://gateway.example' } }
policies:
  notices: { receivers: { ours: { url: 'https://notices.example', format: slack } } }
  mirror: {}
  reconcile: { openai: { adminKey: '\${SECRET}' } }
mcp: { servers: { files: { command: none } } }
`;

async function readRows(): Promise<readonly Row[]> {
  const rows: Row[] = [...COMMANDS];
  const cwd = makeFolder({ 'tollgate.config.yaml': WITH_COMMANDS });
  const loaded = await loadConfig({ cwd, env: { SECRET: 'x'.repeat(40) } });
  await trySetUp(loaded, createSilentLog(), ({ registry }) => {
    rows.push(...[...registry.commands.values()].map(({ value }) => value));
  });
  return rows;
}

/** Names of the values that a module imports from an entry of this package. */
function importsOf(text: string): readonly (readonly [entry: string, name: string])[] {
  return [...text.matchAll(/import (?!type)\{([^}]*)\} from '(tollgate[\w/-]*)'/g)].flatMap(
    ([, names = '', entry = '']) => names.split(',').map((name) => [entry, name.trim().split(' ')[0] ?? ''] as const),
  );
}

describe('code blocks of the docs', () => {
  afterEach(removeFolders);

  it('are each checked by a test', () => {
    const CHECKED = new Set([
      ...of(...SHELL, ...CODE, 'json', 'python'),
      ...here.filter((block) => partsOf(block).length > 0),
    ]);
    const open = here.filter(
      (block) => !CHECKED.has(block) && !isMap(block) && !isErrors(block) && commandsIn(block.text).length === 0,
    );
    expect(open.map(({ page, line, language }) => `${page}:${line} ${language}`)).to.deep.equal([]);
  });

  it('name tests that exist', () => {
    for (const [test] of ELSEWHERE) expect(existsSync(path.join(PACKAGE_ROOT, test)), test).to.equal(true);
  });

  it('and texts write commands of tollgate that exist, with their options and current names', async () => {
    const rows = await readRows();
    const pages = [
      ...new Set([
        ...blocks.map(({ page }) => page),
        ...readdirSync(path.join(PACKAGE_ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
          .filter((name) => name.endsWith('.md'))
          .map((name) => `docs/${name}`),
      ]),
    ];
    const inline = pages.flatMap((page) =>
      [...read(page).matchAll(/`(tollgate [^`\n]+)`/g)].map(([, text = '']) => ({ page, line: 0, text })),
    );
    const wrong = [...blocks, ...inline].flatMap(({ page, line, text }) =>
      commandsIn(text).flatMap((words) => {
        const problem = findWrongWord(rows, words);
        return problem === undefined ? [] : [`${page}:${line} tollgate ${words.join(' ')}: ${problem}`];
      }),
    );
    expect(wrong.join('\n')).to.equal('');
  });

  it('with a wrong command, option or former name of tollgate are found', async () => {
    const rows = await readRows();
    const text =
      'tollgate keys creat --user a\ntollgate keys create --usr a | cat\n$ tollgate top --once\ntollgate chek';
    expect(commandsIn(text).map((words) => findWrongWord(rows, words))).to.deep.equal([
      'no command "keys creat"',
      '"keys create --usr a" has no option --usr',
      '"top" is "calls top" now',
      'no command "chek"',
    ]);
  });

  for (const { page, line, text } of of(...SHELL))
    it(`${page}:${line} is a script with existing files and npm scripts`, async () => {
      await run('bash', ['-n', '-c', text]);
      const { scripts } = JSON.parse(read('package.json')) as { readonly scripts: object };
      for (const [, name = ''] of text.matchAll(/npm run (?:--silent )?([\w:]+)/g))
        if (page !== 'docs/plugins.md') expect(scripts, name).to.have.property(name);
      for (const [, file = ''] of text.matchAll(/(?<![\w/.-])((?:deploy|docs|examples|config)\/[\w./-]+)/g))
        expect(existsSync(path.join(PACKAGE_ROOT, file)), file).to.equal(true);
    });

  for (const { page, line, text } of of(...CODE))
    it(`${page}:${line} is a module, and imports what the package exports`, async () => {
      const folder = makeFolder({ 'block.mjs': text });
      await run(process.execPath, ['--check', path.join(folder, 'block.mjs')]);
      for (const [entry, name] of importsOf(text)) {
        const source = listEntries().find((one) => one.name === entry)?.source ?? entry;
        expect(await import(pathToFileURL(path.join(PACKAGE_ROOT, source)).href)).to.have.property(name);
      }
    });

  for (const { page, line, text } of of('python'))
    it(`${page}:${line} is Python`, () => run('python3', ['-c', 'import ast, sys; ast.parse(sys.argv[1])', text]));

  it('in JSON have names of fields that the code or a client has', () => {
    const code = [
      ...readSources('contract', 'core', 'config', 'cli', 'models', 'routing', 'plugins').map(({ text }) => text),
      read('config/clients.json'),
      read('package.json'),
    ].join('\n');
    const words = new Set([...(code.match(/\w+/g) ?? []), ...CLAUDE_CODE_SETTINGS, ...CALLERS_FIELDS]);
    const unknown = of('json').flatMap(({ page, line, text }) =>
      namesIn(JSON.parse(text)).flatMap((name) =>
        words.has(name.replaceAll(/\W/g, '')) ? [] : [`${page}:${line} ${name}`],
      ),
    );
    expect(unknown).to.deep.equal([]);
  });

  it('and messages that docs/how-to/troubleshoot.md quotes are messages of the program', () => {
    const sources = readSources('cli', 'config', 'contract', 'core', 'models', 'openapi', 'plugins');
    const code = sources.map(({ text }) => text).join('\n');
    const cells = read('docs/how-to/troubleshoot.md')
      .split('\n')
      .flatMap((line) => line.split(' | ').slice(0, 1));
    const quoted = cells.flatMap((cell) => [
      ...[...cell.matchAll(/(?<!`[^`]*)"([^"]+)"/g)].map(([, message = '']) => message),
      ...[...cell.matchAll(/`([^`]* [^`]*)`/g)].map(([, message = '']) => message),
    ]);
    const parts = quoted.flatMap((message) => message.split(/…|"[^"]*"/)).map((part) => part.trim());
    expect(quoted).to.have.length.greaterThan(10);
    expect(parts.filter((part) => !code.includes(part))).to.deep.equal([]);
  });

  it('with output or files of other programs have the parts that this repository has', () => {
    const wrong = PARTS.flatMap(([page, begins, source, parts]) => {
      const block = blocks.find((one) => one.page === page && one.text.startsWith(begins));
      const files = source.includes('.')
        ? [source]
        : readdirSync(path.join(PACKAGE_ROOT, source), { recursive: true, encoding: 'utf8' }).map(
            (name) => `${source}${name}`,
          );
      const own = files
        .filter((name) => /\.\w+$/.test(name))
        .map((name) => `${name}\n${read(name)}`)
        .join('\n');
      return parts.flatMap((part) => [
        ...(block?.text.includes(part) ? [] : [`${page} lacks "${part}"`]),
        ...(own.includes(part) ? [] : [`${source} lacks "${part}"`]),
      ]);
    });
    expect(wrong).to.deep.equal([]);
  });

  for (const { page, line, text } of here.filter(isMap))
    it(`${page}:${line} names existing files and folders`, () => {
      const names = text.match(/(?<![\w/`])(?!dist\/)[a-z-]+\/[\w/-]*/g) ?? [];
      const places = (name: string) =>
        ['', 'core/', 'cli/', 'plugins/', 'plugins/formats/'].flatMap((root) => [root + name, `${root}${name}.ts`]);
      const missing = names.filter((name) => !places(name).some((file) => existsSync(path.join(PACKAGE_ROOT, file))));
      expect(names).to.have.length.greaterThan(3);
      expect(missing).to.deep.equal([]);
    });

  for (const { page, line, text } of here.filter(isErrors))
    it(`${page}:${line} is what tollgate check prints`, async () => {
      const cwd = makeFolder({ 'tollgate.config.yaml': WRONG_CONFIG });
      const message = await loadConfig({ cwd, env: {} }).then(
        () => '',
        (error: Error) => error.message,
      );
      expect(text.trim()).to.equal(message.trim());
    });
});

/** Configuration with the errors that docs/config.md shows. */
const WRONG_CONFIG = `server:
  prot: 8080
providers:
  echo: {}
  acme: { plugin: tollgate-plugin-acme }
models:
  smart: echo/echo
  fast: opnai/gpt-6-luna
`;

/** Names of all fields in a value. */
function namesIn(value: unknown): readonly string[] {
  if (Array.isArray(value)) return value.flatMap(namesIn);
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, field]) => [name, ...namesIn(field)]);
}
