import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { DIALECT_FEATURES } from '../support/pages/dialect-features.ts';
import { loadDialects, writeTable } from '../support/pages/dialect-page.ts';
import { type DialectRuns, openDialectRuns } from '../support/pages/dialect-runs.ts';
import { loadProviders } from '../support/plugins/all-providers.ts';

const FOLDER = new URL('../../docs/dialects/', import.meta.url);
const PROVIDERS = await loadProviders();
const DIALECTS = await loadDialects();
const ORDER = ['Set-up', 'Paths', 'Requests', 'Responses', 'Storage', 'Provider support'];
const pageOf = (name: string): string => readFileSync(new URL(`${name}.md`, FOLDER), 'utf8');
const run = promisify(execFile);

describe('docs/dialects', () => {
  let runs: DialectRuns;
  before(async () => {
    runs = await openDialectRuns(PROVIDERS);
  });
  after(() => runs?.close());

  for (const dialect of DIALECTS)
    it(`shows what of ${dialect.name} arrives at each vendor (E22; npm run matrix writes the table)`, async () => {
      const page = pageOf(dialect.name);
      expect(await writeTable(page, dialect, PROVIDERS, runs)).to.equal(page);
    });

  it('has features of every dialect', () => {
    expect(Object.keys(DIALECT_FEATURES).sort()).to.deep.equal(DIALECTS.map(({ name }) => name).sort());
  });

  it('tells native from translated, left out and refused by what arrived (E22)', async () => {
    const say = (name: string, vendor: string, title: string) => {
      const provider = PROVIDERS.find((one) => one.name === vendor);
      const feature = DIALECT_FEATURES[name]?.features.find((one) => one.title === title);
      if (!provider || !feature) throw new Error(`${name}, ${vendor} or ${title} is not there`);
      return runs.cellOf(name, provider, feature);
    };
    expect(await say('messages', 'anthropic', 'server tools (`web_search_…`)')).to.equal('native');
    expect(await say('messages', 'mistral', 'server tools (`web_search_…`)')).to.equal('refused');
    expect(await say('responses', 'mistral', 'server tools (`web_search`)')).to.equal('left out');
    expect(await say('gemini', 'openai', '`functionDeclarations`')).to.equal('translated');
    expect(await say('chat', 'openai', '`reasoning_effort`'), 'a model that reasons').to.equal('native');
  });
});

describe('the page of a way in', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await startGateway({});
  });
  after(() => gateway?.stop());

  for (const { name } of DIALECTS) {
    it(`has the same parts in the same order: ${name}`, () => {
      expect([...pageOf(name).matchAll(/^## (.+)$/gm)].map(([, title]) => title)).to.deep.equal(ORDER);
    });

    it(`has a line for curl that works as it stands: ${name}`, async () => {
      const line = /`(curl \{base\}[^`]+)`/.exec(pageOf(name))?.[1] ?? '';
      const command = line.replace('{base}', gateway.url).replace('tg_…', gateway.key);
      const { stdout } = await run('sh', ['-c', `${command} -s -w '\n%{http_code}'`]);
      const [status, ...body] = stdout.split('\n').reverse();
      expect(status, stdout).to.equal('200');
      expect(body.join('\n')).to.match(/Hi|Once upon/);
    });
  }
});
