import { existsSync } from 'node:fs';
import { mkdir, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { expect } from 'chai';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { buildProgram } from '../../config/build.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { fixture } from '../support/speech/sound.ts';
import { completion, delta, events, openAiVendor, tokenPrices, usageOf } from '../support/vendors/openai-vendor.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';
import { until } from '../support/wait.ts';

const CHROMIUM = process.env['CHROMIUM'] ?? '/usr/bin/chromium';
const ROOT = path.join(import.meta.dirname, '../..');
const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
const HOSTILE = '<img src=x onerror="document.title=\'taken\'">';
const IMAGES = path.join(ROOT, 'docs/images');

/** Responses of a model as router, specialist and writer of a team. */
const TEAM_SAYS: Readonly<Record<string, object>> = {
  assignments: { agents: [{ agent: 'navigation', instruction: 'look' }] },
  report: { summary: `left, ${HOSTILE}`, confidence: 0.9 },
  result: { answer: `Turn left. ${HOSTILE}` },
};

/** Stream with a tool call in several chunks. */
const CALLS_A_TOOL = [
  { tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'look_up', arguments: '' } }] },
  { tool_calls: [{ index: 0, function: { arguments: '{"word":' } }] },
  { tool_calls: [{ index: 0, function: { arguments: '"toll"}' } }] },
].map((part) =>
  JSON.stringify({ ...JSON.parse(delta('')), choices: [{ index: 0, delta: part, finish_reason: null }] }),
);

/** Pages, each with text that must appear. */
const PAGES: Readonly<Record<string, RegExp>> = {
  '': /Over time[\s\S]*Calls[\s\S]*Targets[\s\S]*healthy[\s\S]*(unhealthy|retrying)[\s\S]*everyone[\s\S]*\$10\.00[\s\S]*Causes of failures[\s\S]*Recent errors[\s\S]*How to connect/,
  calls: /provider_unavailable/,
  'calls?outcome=error': /south\/m/,
  keys: /laptop/,
  users: /lena/,
  'users?id=lena': /this month[\s\S]*Balance[\s\S]*Latest failures[\s\S]*laptop/,
  [`users?id=${'x'.repeat(256)}`]: /Latest failures/,
  accounts: /lena/,
  'accounts?id=lena': /Latest entries[\s\S]*charge/,
  'calls?sort=cost': /the highest of/,
  teams: /team=search[\s\S]*lena[\s\S]*\$5\.00 a month/,
  'teams?team=team%3Dsearch': /Spend by member[\s\S]*The team has no keys yet/,
  usage: /By user[\s\S]*lena/,
  'usage?period=this-week&by=user&and=model&compare=previous': /By user and model[\s\S]*Cost before/,
  budgets: /everyone[\s\S]*from the file/,
  targets: /south\/m[\s\S]*(unhealthy|retrying)[\s\S]*could not be reached[\s\S]*Gateway processes/,
  models: /smart[\s\S]*the first that works[\s\S]*south\/m[\s\S]*north\/m/,
  playground: /Calls are made/,
  speech: /charged as ann[\s\S]*Speak/,
  agents: /Who is in the team[\s\S]*navigation/,
  plugins: /accounts\s+reserve[\s\S]*authenticate \(post\)/,
  configuration: /providers\.north\.baseUrl/,
  audit: /key\.create/,
  drafts: /embedded[\s\S]*Aliases/,
};

/** Selected docs pages: the first one, one with code, one in a folder, and the widest table. */
const DOCS: readonly (readonly [where: string, words: RegExp])[] = [
  ['/docs/pages/index.html', /Documentation/],
  ['/docs/pages/start.html', /npm start/],
  ['/docs/pages/plugins/tts.html', /Hear it/],
  ['/docs/pages/providers/matrix.html', /anthropic/],
];

interface AxeResult {
  readonly violations: readonly { readonly id: string; readonly nodes: readonly { readonly html: string }[] }[];
}

describe('the console in a browser', function () {
  this.timeout(900_000);
  let gateway: TestGateway;
  let vendors: readonly ScriptedUpstream[];
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;
  let adminKey: string;
  /** Forbidden events of all pages: console errors, requests to other origins, dialogs. */
  let problems: string[];
  /** Errors that the current test expects. */
  let expected: RegExp | undefined;

  before(async function () {
    if (!existsSync(CHROMIUM)) return this.skip();
    await buildProgram();
    vendors = [await startVendor(), await startVendor()];
    const [north, south] = vendors;
    if (!north || !south) throw new Error('there are two vendors');
    gateway = await startGateway({
      providers: {
        echo: {},
        north: openAiVendor(north, { models: ['m', '*'], prices: tokenPrices(3, 15) }),
        south: openAiVendor(south, { models: ['m'], prices: tokenPrices(1, 4) }),
      },
      models: { smart: ['south/m', 'north/m'] },
      budgets: [{ name: 'everyone', amount_usd: 10, every: 'day' }],
      tags: { team: ['search'] },
      tts: { openai: { apiKey: 'k', baseUrl: north.url, models: ['tts-1'], prices: { '*': { characters: 1000 } } } },
      agents: { team: { model: 'north/m' } },
    });
    ({ api_key: adminKey } = await gateway.command<{ api_key: string }>('keys', 'create', '--admin', '--user', 'ann'));
    await admin('PUT', '/teams/team%3Dsearch', {
      owners: { users: ['lena', HOSTILE] },
      budget: { amount_usd: '5', every: 'month' },
    });
    browser = await chromium.launch({
      executablePath: CHROMIUM,
      args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--disable-background-networking', '--no-first-run'],
    });
    context = await browser.newContext({ viewport: { width: 1280, height: 860 } });
    context.setDefaultTimeout(15_000);
    page = await context.newPage();
    watch(page);
  });

  after(async () => {
    await browser?.close();
    await gateway?.stop();
    await Promise.all((vendors ?? []).map((vendor) => vendor.close()));
  });

  beforeEach(() => {
    problems = [];
    expected = undefined;
  });
  afterEach(() => {
    expect(problems.filter((problem) => !expected?.test(problem))).to.deep.equal([]);
  });

  /** Starts a vendor that responds with JSON or a stream; `please fail` makes it fail. */
  const startVendor = () =>
    startScriptedUpstream((wire) => {
      const body = wire.request.body.toString();
      if (body.includes('please fail'))
        return wire.send(respondWith(500, { error: { message: `${HOSTILE} engine on fire` } }));
      if (wire.request.path.endsWith('/audio/speech'))
        return wire.send(respondWith(200, fixture('hi.mp3'), { 'content-type': 'audio/mpeg' }));
      const [, question = ''] = /"json_schema":\{"name":"(\w+)"/.exec(body) ?? [];
      if (question in TEAM_SAYS)
        return wire.send(
          respondWith(200, completion(JSON.stringify(TEAM_SAYS[question]), { usage: usageOf(200, 50) })),
        );
      if (!body.includes('"stream":true'))
        return wire.send(respondWith(200, completion('fine', { usage: usageOf(200, 50) })));
      if (body.includes('please call')) return events(CALLS_A_TOOL)(wire);
      const usage = JSON.stringify({ ...JSON.parse(delta('')), choices: [], usage: usageOf(200, 50) });
      return events([delta('It '), delta('works'), delta('', 'stop'), usage])(wire);
    });

  const watch = (watched: Page): void => {
    watched.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) problems.push(`console: ${message.text()}`);
    });
    watched.on('pageerror', (error) => problems.push(`error: ${error.message}`));
    watched.on('dialog', (dialog) => {
      problems.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    watched.on('request', (request) => {
      const url = request.url();
      const isOwn = [gateway.url, `blob:${gateway.url}`].some((base) => url.startsWith(`${base}/`));
      if (!isOwn && !url.startsWith('data:')) problems.push(`elsewhere: ${url}`);
    });
  };

  const admin = async <T>(method: string, where: string, body?: unknown): Promise<T> => {
    const response = await fetch(`${gateway.url}/api/core/admin${where}`, {
      method,
      headers: { authorization: `Bearer ${adminKey}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    return (await response.json()) as T;
  };

  const call = async (key: string, model: string, content = 'Hello there', stream = false): Promise<number> => {
    const body = { model, stream, messages: [{ role: 'user', content }] };
    const response = await gateway.post('/v1/chat/completions', body, { authorization: `Bearer ${key}` });
    await response.text();
    return response.status;
  };

  const show = async (where: string): Promise<void> => {
    await page.goto(`${gateway.url}/console#/${where}`);
  };

  const link = async (): Promise<string> =>
    (await gateway.command<{ url: string }>('console', '--user', 'ann', '--url', gateway.url)).url;

  it('signs in by a link whose token does not stay in the URL, and starts with a line to try', async () => {
    await page.goto(await link());
    await page.getByRole('heading', { name: 'Make the first call' }).waitFor();
    expect(page.url()).to.equal(`${gateway.url}/console#/`);
    await page.getByRole('button', { name: 'Create a key for me' }).click();
    await page.getByText('shown only once').waitFor();
    const line = await page.locator('pre').textContent();
    expect(line).to.match(/authorization: Bearer tg_/);
    const key = /tg_\w+/.exec(String(line))?.[0] ?? '';
    expect(await call(key, 'echo/echo')).to.equal(200);
    await page.getByText('First call: echo/echo, ok.').waitFor();
    // The permanent content of the page appears, and the new key stays visible.
    await page.getByRole('heading', { name: 'Targets' }).waitFor();
    expect(await page.locator('pre').textContent()).to.include(key);
  });

  it('shows a call as soon as it has ended, with the gateway’s filter, and the reason of its outcome', async () => {
    const { api_key: lena } = await admin<{ api_key: string }>('POST', '/keys', { user_id: 'lena', name: 'laptop' });
    const { api_key: hostile } = await admin<{ api_key: string }>('POST', '/keys', { user_id: HOSTILE, name: HOSTILE });
    // Long names, and marks that reverse text: the pages below stay within their width.
    const { api_key: long } = await admin<{ api_key: string }>('POST', '/keys', {
      user_id: 'x'.repeat(256),
      name: 'abc\u202Egnp.exe',
    });
    await call(long, 'north/m');
    await call(long, `north/${'y'.repeat(10_000)}`);
    await show('calls?user=lena');
    await page.getByText('live', { exact: true }).waitFor();
    await call(hostile, 'north/m');
    await call(hostile, `north/${HOSTILE}`);
    await call(lena, 'north/m', 'Hello there', true);
    const rows = page.locator('tbody tr');
    await page.getByText('north/m').waitFor();
    expect(await rows.count()).to.equal(1);

    await call(lena, 'north/m', 'please fail');
    await page.getByText('provider_unavailable').waitFor();
    await rows.first().getByRole('link').first().focus();
    await page.keyboard.press('Enter');
    const drawer = page.getByRole('dialog');
    await drawer.getByText('engine on fire').waitFor();
    expect(await drawer.textContent()).to.include('(500)');
    expect(await drawer.textContent()).to.match(/Trace[0-9a-f]{32}/);
    await page.keyboard.press('Escape');
    await drawer.waitFor({ state: 'detached' });
    expect(page.url()).to.equal(`${gateway.url}/console#/calls?user=lena`);
  });

  it('reports a failed vendor on the overview, with the remedy', async () => {
    await vendors[1]?.close();
    for (let number = 0; number < 8; number += 1) await call(gateway.key, 'smart');
    await call(gateway.key, 'south/m');
    await show('');
    await page.getByText(/of \d+ healthy/).waitFor();
    await page.getByText('could not be reached').first().waitFor();
    const text = await page.locator('main').textContent();
    expect(text).to.include('does the vendor respond?');
  });

  it('shows calls over time and groups failures by cause, with their number', async () => {
    await show('');
    const causes = page.locator('section', { has: page.getByRole('heading', { name: 'Causes of failures' }) });
    const cause = causes.getByRole('link', { name: /provider_unavailable, south\/m, \d+ ×/ });
    await cause.waitFor();
    await page.getByRole('button', { name: 'Last hour' }).click();
    await page.getByText('last hour', { exact: true }).waitFor();
    expect(page.url()).to.include('range=hour');
    await page.getByText('Forecast:').or(page.getByText('Spend today')).first().waitFor();
    await cause.click();
    await page.locator('tbody').getByText('provider_unavailable').first().waitFor();
    expect(page.url()).to.match(/calls\?.*error_code=provider_unavailable.*last=1h/);
  });

  it('finds a request, a user, a key and a page by Ctrl+K', async () => {
    const { data } = await admin<{ data: readonly { request_id: string }[] }>('GET', '/calls?user=lena&limit=1');
    const dialog = page.getByRole('dialog');
    const search = async (word: string) => {
      await page.keyboard.press('Control+k');
      await dialog.getByRole('searchbox').and(page.locator(':focus')).waitFor();
      await page.keyboard.type(word);
    };
    await show('');
    for (const [word, name] of [
      [data[0]?.request_id ?? '', data[0]?.request_id ?? ''],
      ['len', 'lena'],
      ['lapt', 'laptop'],
      ['south', 'south/m'],
      ['configur', 'Configuration'],
    ] as const) {
      await search(word);
      await dialog.getByRole('link', { name, exact: true }).first().waitFor();
      await dialog.getByText('Searching').waitFor({ state: 'detached' });
      await page.keyboard.press('Escape');
      await dialog.waitFor({ state: 'detached' });
    }
    await search('configur');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Configuration' }).waitFor();
  });

  for (const [where, pattern] of [
    ...Object.entries(PAGES).map(([name, words]) => [`/console#/${name}`, words] as const),
    ...DOCS,
  ])
    it(`is accessible: ${where}`, async () => {
      const reader = await (
        await browser.newContext({ bypassCSP: true, storageState: await context.storageState() })
      ).newPage();
      watch(reader);
      for (const colorScheme of ['light', 'dark'] as const)
        for (const width of [1280, 360]) {
          await reader.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
          await reader.setViewportSize({ width, height: 860 });
          await reader.goto(`${gateway.url}${where}`);
          await reader.reload();
          await reader.waitForFunction(`${pattern}.test(document.querySelector('main')?.innerText)`);
          await reader.addScriptTag({ path: AXE });
          const { violations } = (await reader.evaluate('axe.run()')) as AxeResult;
          const label = `${where} ${colorScheme} ${width}`;
          expect(violations.map(({ id, nodes }) => `${label}: ${id} ${nodes[0]?.html}`)).to.deep.equal([]);
          const beyond = await reader.evaluate('document.documentElement.scrollWidth - innerWidth');
          expect(beyond, `${label} scrolls sideways`).to.equal(0);
          // Users do not find cells beyond the edge of a console table. Tables of the docs scroll.
          if (!where.startsWith('/console')) continue;
          const cut = await reader.evaluate(
            "[...document.querySelectorAll('.frame .table')].filter((each) => each.scrollWidth > each.clientWidth).map((each) => each.ariaLabel)",
          );
          expect(cut, `${label}: tables are cut off`).to.deep.equal([]);
        }
      expect(await reader.title()).not.to.equal('taken');
      await reader.context().close();
    });

  it('searches the docs by the keyboard alone, without requests to other origins', async () => {
    await page.goto(`${gateway.url}/docs/pages`);
    await page.keyboard.press('/');
    await page.keyboard.type('<img zebra>');
    await page.getByText('Nothing was found').waitFor();
    await page.keyboard.press('Escape');
    await page.keyboard.type('tollgate --json');
    await page.locator('#places a').first().waitFor();
    await page.keyboard.press('Escape');
    await page.keyboard.type('speechCache sounds');
    await page.getByRole('status').getByText(/place/).waitFor();
    await page.keyboard.press('ArrowDown');
    const place = 'Text to speech: Hearing the same again';
    expect(await page.evaluate('document.activeElement.textContent')).to.equal(place);
    await page.keyboard.press('Enter');
    await page.waitForURL(`${gateway.url}/docs/pages/plugins/tts.html#hearing-the-same-again`);
    await page.getByRole('heading', { name: 'Hearing the same again' }).waitFor();
  });

  it('shows a route in /docs with code and a valid body', async () => {
    await page.goto(`${gateway.url}/docs#post-/v1/chat/completions`);
    // The viewer first reads the whole description.
    const body = page.locator('textarea').first();
    await body.waitFor({ timeout: 120_000 });
    expect(JSON.parse(await body.inputValue())).to.deep.include({ model: 'echo/echo' });
    await page.getByText('openai, chat completions', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'The docs' }).waitFor({ state: 'attached' });
  });

  it('tries a route of callers in /docs as the person who signed in, without a key', async () => {
    await page.getByText('You are signed in as ann: what you try here without a key is sent as you').waitFor();
    await page.getByRole('button', { name: 'TRY', exact: true }).first().click();
    await page.getByText('Response Status: OK:200').waitFor();
    const { data } = await admin<{ data: readonly Record<string, unknown>[] }>('GET', '/calls?session=console&limit=1');
    expect(data[0]).to.include({ user_id: 'ann', model: 'echo', key: '-', outcome: 'ok' });
  });

  it('creates a key with a budget, shows it once, and shows why it is refused when the budget is spent', async () => {
    await show('keys');
    await page.getByRole('button', { name: 'New key' }).click();
    await page.getByRole('dialog').getByRole('combobox', { name: /^User/ }).fill('max');
    await page.getByRole('textbox', { name: /^Name/ }).fill('Claude Code');
    await page.getByRole('button', { name: 'Add' }).click();
    await page.getByRole('textbox', { name: /^US dollars/ }).fill('0.01');
    await page.getByRole('button', { name: 'Create the key' }).click();
    await page.getByText('it cannot be shown again').waitFor();
    const key = String(await page.getByRole('dialog').locator('code').first().textContent()).trim();
    await page.getByRole('button', { name: 'Done' }).click();
    await page.getByText('$0.01 a day').waitFor();
    let status = 200;
    for (let number = 0; status === 200 && number < 20; number += 1) status = await call(key, 'north/m');
    expect(status).to.equal(402);
    await show('calls?user=max&outcome=refused');
    await page.locator('tbody a').first().click();
    await page.getByRole('dialog').getByText('raise it, or wait for its next period').waitFor();
    await page.keyboard.press('Escape');
  });

  it('reports a concurrent change of a key, overwrites nothing, and preserves the input', async () => {
    expected = /412/;
    await show('keys?user=lena');
    await page.locator('tbody tr').nth(1).waitFor({ state: 'detached' });
    await page.getByRole('button', { name: /^Edit tg_/ }).click();
    await page.getByLabel('Requests per minute').fill('7');
    const { data } = await admin<{ data: readonly { id: string }[] }>('GET', '/keys?user=lena');
    const id = data[0]?.id;
    await admin('PATCH', `/keys/${id}`, { tpm: 5000 });
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Nothing was overwritten').waitFor();
    // The form shows the other person's change, and nothing else.
    const changes = page.getByRole('alert').getByRole('listitem');
    await changes.first().waitFor();
    expect(await changes.allTextContents()).to.deep.equal(['tpm – → 5000']);
    expect((await admin<{ rpm: number | null }>('GET', `/keys/${id}`)).rpm).to.equal(null);
    await page.getByRole('button', { name: 'Reload and keep my input' }).click();
    await page.getByText('Nothing was overwritten').waitFor({ state: 'detached' });
    expect(await page.getByLabel('Requests per minute').inputValue()).to.equal('7');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('7 requests a minute · 5000 tokens a minute').waitFor();
  });

  it('puts the focus of a form on its first field, and discards typed text only after a question (G45)', async () => {
    await show('keys');
    await page.getByRole('button', { name: 'New key' }).click();
    const drawer = page.getByRole('dialog');
    await drawer.getByRole('combobox', { name: /^User/ }).and(page.locator(':focus')).waitFor();
    // A space types into the field; it closed the form when the focus was on its button.
    await page.keyboard.type(' x');
    await page.keyboard.press('Escape');
    await drawer.getByText('Discard what you typed?').waitFor();
    // The question has the focus, and then the field again.
    await drawer.getByRole('button', { name: 'Keep editing' }).and(page.locator(':focus')).waitFor();
    await page.keyboard.press('Enter');
    await drawer.getByRole('combobox', { name: /^User/ }).and(page.locator(':focus')).waitFor();
    expect(await drawer.getByRole('combobox', { name: /^User/ }).inputValue()).to.match(/ x$/);
    await page.keyboard.press('Escape');
    await drawer.getByRole('button', { name: 'Discard' }).click();
    await drawer.waitFor({ state: 'detached' });
    // Nothing was typed: Escape closes at once.
    await page.getByRole('button', { name: 'New key' }).click();
    await drawer.getByRole('combobox', { name: /^User/ }).and(page.locator(':focus')).waitFor();
    await page.keyboard.press('Escape');
    await drawer.waitFor({ state: 'detached' });
  });

  it('has every field of the API in the form of a key (G45)', async () => {
    await show('keys');
    await page.getByRole('button', { name: 'New key' }).click();
    const drawer = page.getByRole('dialog');
    await drawer
      .getByText(/more fields/)
      .first()
      .click();
    const description = (await (await fetch(`${gateway.url}/openapi.json`)).json()) as {
      paths: Record<string, { post: { requestBody: { content: Record<string, { schema: { properties: object } }> } } }>;
    };
    const body = description.paths['/api/core/admin/keys']?.post.requestBody.content['application/json']?.schema;
    const fields = Object.keys(body?.properties ?? {});
    expect(fields).to.include.members(['account', 'plan', 'tags', 'providers', 'server_tools', 'scopes']);
    expect(await drawer.locator('form > :is(label, fieldset), form .fields > :is(label, fieldset)').count()).to.equal(
      fields.length,
    );
    await drawer.getByRole('combobox', { name: /^Account/ }).fill('research');
    await drawer.getByRole('combobox', { name: /^Providers/ }).fill('north, echo');
    await drawer.getByRole('combobox', { name: /^Team and tags/ }).fill('team=search');
    await drawer.getByRole('textbox', { name: /^Name/ }).fill('all of it');
    await drawer.getByRole('button', { name: 'Create the key' }).click();
    await page.getByText('it cannot be shown again').waitFor();
    await page.getByRole('button', { name: 'Done' }).click();
    const { data } = await admin<{ data: readonly { name: string; providers: unknown; tags: unknown }[] }>(
      'GET',
      '/keys?name=all',
    );
    expect(data.map(({ providers, tags }) => [providers, tags])).to.deep.equal([[['north', 'echo'], ['team=search']]]);
  });

  it('has every field of the API in the form of a budget, and replaces no other one (G45)', async () => {
    expected = /412/;
    await admin('PUT', '/budgets/nights', { amount_usd: 3, every: 'day' });
    await show('budgets');
    await page.getByRole('button', { name: 'New budget' }).click();
    const drawer = page.getByRole('dialog');
    await drawer.getByRole('textbox', { name: /^Name/ }).and(page.locator(':focus')).waitFor();
    await drawer.getByText(/more fields/).click();
    for (const label of ['Key', 'Plan', 'End user', 'Provider', 'Timezone', 'Starts on'])
      await drawer.getByLabel(new RegExp(`^${label}`)).waitFor();
    await drawer.getByRole('textbox', { name: /^Name/ }).fill('nights');
    await drawer.getByRole('textbox', { name: /^US dollars/ }).fill('7');
    await drawer.getByRole('combobox', { name: /^Each/ }).selectOption('week');
    await drawer.getByLabel(/^End user/).fill('*');
    await drawer.getByLabel(/^Tag/).fill('team=search');
    await drawer.getByRole('button', { name: 'Save' }).click();
    await drawer.getByText('This name is taken').waitFor();
    await drawer.getByRole('textbox', { name: /^Name/ }).fill('customers');
    await drawer.getByRole('button', { name: 'Save' }).click();
    await drawer.waitFor({ state: 'detached' });
    const [nights, customers] = await Promise.all(
      ['nights', 'customers'].map((name) => admin<Record<string, unknown>>('GET', `/budgets/${name}`)),
    );
    expect([nights?.['amount_usd'], nights?.['every']]).to.deep.equal(['3.00', 'day']);
    expect(customers).to.include({ every: 'week', end_user: '*', tag: 'team=search' });
    await page
      .getByRole('row', { name: /customers/ })
      .getByText('end user *')
      .waitFor();
  });

  it('reports that the object of an open form was deleted, and creates it again with the input', async () => {
    expected = /412|404/;
    await show('budgets');
    await page.getByRole('button', { name: 'Edit nights' }).click();
    const drawer = page.getByRole('dialog');
    await drawer.getByRole('textbox', { name: /^US dollars/ }).fill('4');
    await admin('DELETE', '/budgets/nights');
    await drawer.getByRole('button', { name: 'Save' }).click();
    await drawer.getByText('Someone else deleted it').waitFor();
    await drawer.getByRole('button', { name: 'Keep my input for a new one' }).click();
    await drawer.getByRole('button', { name: 'Create it again' }).click();
    await drawer.waitFor({ state: 'detached' });
    expect((await admin<{ amount_usd: string }>('GET', '/budgets/nights')).amount_usd).to.equal('4.00');
  });

  it('raises a budget until a time, adds money to an account, and rotates a key', async () => {
    await show('budgets');
    await page.getByRole('button', { name: 'Raise nights' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('textbox', { name: /^US dollars/ }).fill('2');
    expect(await dialog.getByLabel(/^Until/).inputValue()).to.match(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}$/);
    await dialog.getByRole('button', { name: 'Raise', exact: true }).click();
    await page.getByRole('button', { name: 'End the raises of nights' }).click();
    await page.getByRole('button', { name: 'End the raises of nights' }).waitFor({ state: 'detached' });
    await show('accounts?id=lena');
    await page.getByRole('button', { name: 'Add money' }).click();
    await dialog.getByRole('textbox', { name: /^US dollars/ }).fill('25');
    await dialog.getByRole('textbox', { name: /^Reason/ }).fill('invoice 7');
    await dialog.getByRole('button', { name: 'Add money' }).click();
    await page.getByText('invoice 7').waitFor();
    const made = { user_id: 'kim', name: 'old one' };
    const { api_key_info: key } = await admin<{ api_key_info: { id: string } }>('POST', '/keys', made);
    await show(`keys?edit=${key.id}`);
    await page.getByRole('button', { name: 'Rotate' }).click();
    const rotation = page.getByRole('dialog', { name: /^Rotate/ });
    await rotation.getByLabel(/^Seconds that the old key stays valid/).fill('60');
    // Escape closes the question of the inner form, and not the form below it.
    await page.keyboard.press('Escape');
    await rotation.getByRole('button', { name: 'Keep editing' }).click();
    await rotation.getByRole('button', { name: 'Rotate' }).click();
    await page.getByText('it cannot be shown again').waitFor();
    await page.getByRole('button', { name: 'Done' }).click();
  });

  it('shows all times in one zone, and money in cents with the exact amount in the title (G45)', async () => {
    const zoned = await browser.newContext({
      timezoneId: 'Asia/Tokyo',
      storageState: await context.storageState(),
      viewport: { width: 1280, height: 860 },
    });
    const reader = await zoned.newPage();
    watch(reader);
    await reader.goto(`${gateway.url}/console#/calls?user=lena&outcome=ok`);
    const at = reader.locator('tbody time').first();
    await at.waitFor();
    const iso = String(await at.getAttribute('datetime'));
    const clock = (timeZone: string): string =>
      new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium', timeZone }).format(new Date(iso));
    expect(await at.textContent()).to.include(clock('Asia/Tokyo'));
    await reader.getByRole('button', { name: /^Time zone: local time \(Asia\/Tokyo\)/ }).click();
    expect(await at.textContent()).to.include(clock('UTC'));
    const cost = reader.locator('tbody td', { hasText: '$0.0014' }).first();
    expect(await cost.locator('[title]').getAttribute('title')).to.equal('$0.00135');
    await reader.goto(`${gateway.url}/console#/audit`);
    await reader.reload();
    const made = reader.locator('tbody time').first();
    expect(await made.getAttribute('title')).to.match(/UTC \(/);
    await zoned.close();
  });

  it('sorts, counts, chooses columns, and saves all rows of a list with exact values', async () => {
    await show('calls?user=lena');
    await page.getByRole('button', { name: 'Count all' }).click();
    await page.getByText(/\d+ match/).waitFor();
    await page.getByRole('button', { name: 'Cost', exact: true }).click();
    await page.getByText('the highest of').waitFor();
    expect(page.url()).to.include('sort=cost');
    expect(await page.locator('th[aria-sort=descending]').textContent()).to.match(/^Cost/);
    await page.getByText('Columns', { exact: true }).click();
    await page.getByRole('checkbox', { name: 'Model' }).uncheck();
    await page.getByRole('columnheader', { name: 'Model' }).waitFor({ state: 'detached' });
    await page.getByRole('checkbox', { name: 'Model' }).check();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Download CSV' }).click(),
    ]);
    const csv = await readFile(await download.path(), 'utf8');
    expect(csv)
      .to.match(/^Time,Outcome,Model,User,Key,/)
      .and.to.match(/,0\.00135/);
    await page.getByRole('button', { name: 'Copy as curl' }).waitFor();
  });

  it('lists the calls of a time that is dragged over on a chart', async () => {
    await show('');
    const drag = async (name: RegExp, from: number, to: number): Promise<void> => {
      const chart = page.getByRole('img', { name });
      await chart.scrollIntoViewIfNeeded();
      const { x, y, width, height } = (await chart.boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
      await page.mouse.move(x + width * from, y + height / 2);
      await page.mouse.down();
      await page.mouse.move(x + width * to, y + height / 2, { steps: 4 });
      await page.mouse.up();
    };
    await drag(/^Errors\. /, 0.9, 0.99);
    await page.getByRole('heading', { name: 'Calls', exact: true }).waitFor();
    expect(page.url()).to.match(/outcome=error&from=.*&to=/);
    await page.locator('tbody').getByText('provider_unavailable').first().waitFor();
    await drag(/^Calls of the last/, 0.05, 0.2);
    await page.getByText('No call matches').waitFor();
    // The fields of the filter have the same time, and another range replaces it.
    expect(await page.getByLabel('From', { exact: true }).inputValue()).to.match(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}$/);
    await page.getByRole('combobox', { name: 'Range' }).selectOption('last hour');
    await page.locator('tbody').getByText('provider_unavailable').first().waitFor();
    expect(page.url()).to.match(/outcome=error&last=1h$/);
    // By the keyboard, the steps of the table lead to the same list.
    await show('');
    await page.getByText('As a table').click();
    await page.getByRole('region', { name: 'Calls over time' }).getByRole('link').last().press('Enter');
    await page.getByRole('heading', { name: 'Calls', exact: true }).waitFor();
    expect(page.url()).to.match(/from=.*&to=/);
  });

  it('offers known names in the filters of a list', async () => {
    await show('calls');
    await page.getByRole('button', { name: /^More filters/ }).click();
    for (const [label, typed, value] of [
      ['User', 'len', 'lena'],
      ['Key', 'lapt', undefined],
      ['Model', '', 'm'],
      ['Alias', '', 'smart'],
      ['Provider', '', 'south'],
      ['Team or tag', '', 'team=search'],
      ['Error code', '', 'rate_limited'],
      ['HTTP status', '', '429'],
      ['Address', '', '127.0.0.1'],
      ['Operation', '', 'chat'],
    ] as const) {
      const field = page.getByRole('combobox', { name: label, exact: true });
      await field.focus();
      await field.pressSequentially(typed);
      const list = page.locator(`datalist[id="${await field.getAttribute('list')}"] option`);
      const option =
        value === undefined ? list.and(page.locator('[value^=tg_]')) : list.and(page.locator(`[value="${value}"]`));
      await option.first().waitFor({ state: 'attached' });
      await field.fill('');
    }
  });

  it('reports usage by two groups in an own range, compared with the range before', async () => {
    const today = new Date().toISOString().slice(0, 10);
    await show(`usage?period=range&from=${today}&to=${today}&by=user&and=model&compare=previous`);
    const rows = page.getByRole('region', { name: 'Usage by user and model' }).locator('tbody tr');
    await rows
      .filter({ hasText: /lena\s*m\s*\$0\.00/ })
      .first()
      .waitFor();
    await page.getByRole('columnheader', { name: 'Cost before' }).waitFor();
    await page.getByText(`${today} to ${today}`).waitFor();
  });

  it('lists users and accounts, and shows one of each', async () => {
    await show('users?name=len');
    await page.getByRole('link', { name: 'lena', exact: true }).click();
    await page.getByRole('heading', { name: 'lena', exact: true }).waitFor();
    await page.getByText('provider_unavailable').first().waitFor();
    await page.getByRole('link', { name: 'lena', exact: true }).click();
    await page.getByRole('heading', { name: 'Latest entries' }).waitFor();
  });

  it('offers only models that can be called in the playground (G45)', async () => {
    await show('playground');
    const model = page.getByRole('combobox', { name: /^Model/ });
    await page.locator('datalist#models option').first().waitFor({ state: 'attached' });
    await until('a model is chosen', async () => (await model.inputValue()) !== '');
    const { data } = await admin<{ data: readonly { id: string; is_callable: boolean }[] }>(
      'GET',
      '/catalog?limit=1000',
    );
    const callable = data.filter(({ is_callable }) => is_callable).map(({ id }) => id);
    expect(callable).to.include(await model.inputValue());
    const offered = (await page.evaluate(
      "[...document.querySelectorAll('datalist#models option')].map(({ value }) => value)",
    )) as readonly string[];
    expect(offered).to.deep.equal(callable);
  });

  it('chats in the playground as the person, and shows the cost', async () => {
    await show('playground?model=north/m');
    await page.getByRole('button', { name: 'Add a second model' }).click();
    await page.getByLabel('Second model').fill('echo/echo');
    await page.getByLabel('Prompt', { exact: true }).fill('Say it');
    await page.keyboard.press('Control+Enter');
    await page.getByText('It works').waitFor();
    await page.getByText(/\$0\.0014.*by north\/m/).waitFor();
    await page.getByText('by echo/echo').waitFor();
    const { data } = await admin<{ data: readonly { key: string }[] }>('GET', '/calls?user=ann&session=console');
    // Calls from /docs are listed too.
    expect(data.slice(0, 2).map(({ key }) => key)).to.deep.equal(['-', '-']);
  });

  it('sends pictures and tools from the playground, shows the calls, and shows the request as code', async () => {
    await page.getByLabel('Prompt', { exact: true }).fill('please call');
    const pixel = Buffer.from('R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==', 'base64');
    await page.getByLabel('Images').setInputFiles({ name: 'dot.gif', mimeType: 'image/gif', buffer: pixel });
    await page.getByAltText('Number 1').waitFor();
    await page.getByLabel('Tools, as JSON').fill('[{ "name": ');
    await page.getByRole('button', { name: /^Send/ }).click();
    await page.getByRole('alert').getByText('The tools are not JSON').waitFor();
    await page.getByLabel('Tools, as JSON').fill('[{ "name": "look_up", "parameters": { "type": "object" } }]');
    await page.getByRole('button', { name: /^Send/ }).click();
    await page.getByText('look_up({"word":"toll"})').waitFor();
    const sent = vendors[0]?.requests.at(-1)?.body.toString() ?? '';
    expect(sent).to.include('"name":"look_up"').and.to.include('data:image/gif;base64,R0lGOD');
    await page.getByText('The same in code').click();
    for (const [format, words] of [
      ['curl', /curl -N .*\/v1\/chat\/completions[\s\S]*"look_up"/],
      ['OpenAI SDK', /chat\.completions\.create\([\s\S]*"image_url"/],
      ['Anthropic SDK', /messages\.create\([\s\S]*"input_schema"/],
    ] as const) {
      await page.getByRole('combobox', { name: 'As' }).selectOption(format);
      expect(await page.locator('details pre').textContent()).to.match(words);
    }
  });

  it('says where a long search for calls stopped, and how to narrow it', async () => {
    const reader = await context.newPage();
    watch(reader);
    await reader.clock.install();
    const searched = /\/api\/core\/admin\/calls\?(?!.*follow).*search=nowhere/;
    const json = { object: 'list', data: [], has_more: true, next: 'older', searched_to: '2026-11-12T10:32:00.000Z' };
    let requests = 0;
    await reader.route(searched, async (route) => {
      requests += 1;
      // The page searches for ten seconds. The third request waits until the page closes.
      if (requests === 2) await reader.clock.fastForward('00:11');
      if (requests < 3) await route.fulfill({ json });
    });
    await reader.goto(`${gateway.url}/console#/calls?search=nowhere`);
    await reader.getByText(/The search stopped at .*choose a range, a user, a key/).waitFor();
    expect(requests).to.equal(2);
    await reader.getByRole('button', { name: 'Search older' }).click();
    await reader.getByText(/Searching older calls …/).waitFor();
    await reader.close();
  });

  it('compares three models at once, each with its own cost, first token and error', async () => {
    expected = /503/;
    await show('');
    await show('playground?model=north/m');
    await page.locator('small', { hasText: '$3 in, $15 out per million tokens' }).waitFor();
    const prompt = page.getByLabel('Prompt', { exact: true });
    await prompt.fill('Say it');
    if ((await page.getByRole('button', { name: 'One model' }).count()) > 0)
      await page.getByRole('button', { name: 'One model' }).click();
    await page.getByRole('button', { name: 'Add a second model' }).click();
    await page.getByRole('button', { name: 'Add a third model' }).click();
    await page.getByLabel('Second model').fill('echo/echo');
    await page.getByLabel('Third model').fill('south/m');
    await page.getByLabel('Tools, as JSON').fill('');
    await prompt.press('Control+Enter');
    await page.getByRole('region', { name: 'Response of south/m' }).getByRole('alert').waitFor();
    await page.getByRole('region', { name: 'Response of north/m' }).getByText('It works').waitFor();
    const rows = page.getByRole('region', { name: 'Compared models' }).locator('tbody tr');
    await rows.filter({ hasText: 'north/m' }).getByText('$0.0014').waitFor();
    await rows.filter({ hasText: 'echo/echo' }).getByText('lowest').waitFor();
    expect(await rows.filter({ hasText: 'south/m' }).textContent()).to.match(/south\/m\s*–\s*–/);
  });

  it('continues a conversation with parameters and a schema, and shares it by a link without secrets', async () => {
    await page.getByRole('button', { name: 'One model' }).click();
    await page.getByText('Parameters').click();
    await page.getByLabel('Temperature').fill('0.2');
    await page.getByLabel('Seed').fill('7');
    await page.getByLabel('Schema of the response').fill('[1]');
    await page.getByRole('button', { name: /^Send/ }).click();
    await page.getByRole('alert').getByText('The schema must be an object').waitFor();
    await page.getByLabel('Schema of the response').fill('{ "type": "object" }');
    const region = page.getByRole('region', { name: 'Response of north/m' });
    await page.getByRole('button', { name: /^Send/ }).click();
    await region.getByRole('button', { name: 'Continue from this response' }).click();
    const prompt = page.getByLabel('Prompt', { exact: true });
    await prompt.fill(`and now with ${adminKey}`);
    await page.getByRole('button', { name: /^Send/ }).click();
    await region.getByRole('button', { name: 'Continue from this response' }).waitFor();
    const sent = JSON.parse(vendors[0]?.requests.at(-1)?.body.toString() ?? '') as Record<string, unknown>;
    expect(sent).to.include({ temperature: 0.2, seed: 7 });
    expect(sent['response_format']).to.have.property('type', 'json_schema');
    expect(sent['messages']).to.have.length(3);

    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.getByRole('button', { name: /^Copy link/ }).click();
    await page.getByText('Copied').waitFor();
    const shared = String(await page.evaluate('navigator.clipboard.readText()'));
    expect(new URL(shared).search).to.equal('');
    const other = await context.newPage();
    watch(other);
    await other.goto(shared);
    await other.getByLabel('Prompt 1', { exact: true }).waitFor();
    expect(await other.getByLabel('Prompt', { exact: true }).inputValue()).to.equal('and now with …');
    expect(await other.getByLabel('Response 1', { exact: true }).inputValue()).to.equal('It works');
    expect(await other.getByLabel('Temperature').inputValue()).to.equal('0.2');
    expect(other.url()).to.equal(`${gateway.url}/console#/playground`);
    await other.goto(`${gateway.url}/console#/playground?draft=abc`);
    await other.getByText('The link is incomplete').waitFor();
    await other.close();
    await page.getByRole('button', { name: 'Start a new conversation' }).click();
    await page.getByLabel('Schema of the response').fill('');
    await prompt.fill('please call');
  });

  it('preserves the input when the person visits another page', async () => {
    await page.getByRole('link', { name: 'Models' }).click();
    await page.getByRole('heading', { name: 'Models' }).waitFor();
    await page.goBack();
    await page.getByRole('heading', { name: 'Playground' }).waitFor();
    expect(await page.getByLabel('Prompt', { exact: true }).inputValue()).to.equal('please call');
    await show('keys');
    await page.getByRole('button', { name: 'New key' }).click();
    await page.getByRole('textbox', { name: /^Name/ }).fill('half typed');
    await page.goBack();
    await page.getByRole('heading', { name: 'Playground' }).waitFor();
    await page.goForward();
    await page.getByRole('button', { name: 'New key' }).click();
    expect(await page.getByRole('textbox', { name: /^Name/ }).inputValue()).to.equal('half typed');
    await page.getByRole('button', { name: 'Cancel' }).click();
  });

  it('generates speech as the person, plays it, and shows the cost', async () => {
    await show('speech');
    await page.getByLabel('Text').fill('Hello there');
    await page.keyboard.press('Control+Enter');
    await page.getByText(/mp3, [\d,]+ bytes after .*, 11 characters, \$0\.01/).waitFor();
    // The browser can read the sound: no content security policy blocks it.
    const seconds = await page.evaluate(`new Promise((resolve, reject) => {
      const audio = document.querySelector('audio');
      if (audio.readyState > 0) resolve(audio.duration);
      audio.addEventListener('loadedmetadata', () => resolve(audio.duration));
      audio.addEventListener('error', () => reject(audio.error));
    })`);
    expect(seconds).to.be.above(0);
    await page.getByRole('link', { name: 'The call' }).click();
    await page.locator('tbody').getByText('openai/tts-1').waitFor();
  });

  it('reports the problem of a text that cannot be spoken, and preserves it', async () => {
    expected = /400/;
    await show('speech');
    await page.getByLabel('Voice').fill('missing');
    await page.getByRole('button', { name: /^Speak/ }).click();
    await page.getByRole('alert').getByText('missing').waitFor();
    expect(await page.getByLabel('Voice').inputValue()).to.equal('missing');
  });

  it('shows the agents of a team at work, their times, and their results', async () => {
    await show('agents');
    await page.getByLabel('Message').fill('Where to?');
    await page.getByRole('button', { name: 'Send to the team' }).click();
    await page.getByText('Turn left.').waitFor();
    const steps = page.getByRole('region', { name: 'Steps of the team' }).locator('tbody tr');
    const rows = (await steps.allInnerTexts()).map((text) => text.split(/\s+/).slice(0, 2));
    expect(rows).to.deep.equal([
      ['router', 'ok'],
      ['navigation', 'ok'],
      ['writer', 'ok'],
    ]);
    expect(await page.title()).not.to.equal('taken');
    await page.getByRole('link', { name: 'Its calls' }).click();
    await page.locator('tbody tr').nth(2).waitFor();
    const { data } = await admin<{ data: readonly { user_id: string }[] }>('GET', '/calls?session=console&user=ann');
    expect(data.length).to.be.at.least(3);
  });

  it('lets an owner create keys and budgets within the team, and prevents overwriting a team unseen', async () => {
    await show('teams?team=team%3Dsearch');
    await page.getByRole('button', { name: 'New budget' }).click();
    await page.getByRole('textbox', { name: 'Name' }).fill('batch');
    await page.getByRole('textbox', { name: /^US dollars/ }).fill('2');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('team=search~batch', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'New key' }).click();
    await page.getByRole('textbox', { name: /^Name/ }).fill('nightly');
    await page.getByRole('button', { name: 'Create the key' }).click();
    const key = String(await page.getByRole('dialog').locator('code').first().textContent()).trim();
    await page.getByRole('button', { name: 'Done' }).click();
    await page.getByText('nightly').waitFor();
    expect(await call(key, 'north/m')).to.equal(200);

    expected = /412/;
    await page.getByRole('button', { name: 'Edit team=search' }).click();
    await page.getByLabel('Members').fill('lena');
    await admin('PUT', '/teams/team%3Dsearch', { owners: { users: ['lena'] }, account: 'search' });
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Nothing was overwritten').waitFor();
    const now = await admin<{ members?: unknown; account: string }>('GET', '/teams/team%3Dsearch');
    expect([now.members, now.account]).to.deep.equal([undefined, 'search']);
    expect(await page.getByLabel('Members').inputValue()).to.equal('lena');
    await page.keyboard.press('Escape');
  });

  it('shows all keys of a team and all members with their spend (G45)', async () => {
    for (let number = 0; number < 105; number += 1)
      await admin('POST', '/keys', { user_id: `crew-${number}`, tags: ['team=search'] });
    await show('');
    await show('teams?team=team%3Dsearch');
    const keys = page.getByRole('region', { name: 'Keys of team=search' }).locator('tbody tr');
    await keys.nth(99).waitFor();
    expect(await keys.count()).to.equal(100);
    await page.getByRole('button', { name: 'Show more' }).click();
    await keys.nth(104).waitFor();
    await page.getByText(/\d+ members? with calls/).waitFor();
  });

  it('finds every page by the keyboard alone', async () => {
    await show('');
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.locator('.brand').focus();
    for (const name of ['Search Ctrl K', 'Overview', 'Calls', 'Usage', 'API keys', 'Users']) {
      await page.keyboard.press('Tab');
      expect(await page.evaluate('document.activeElement.textContent')).to.equal(name);
    }
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Users' }).waitFor();
    // Focus is on the heading.
    await page.locator('h1:focus').waitFor();
  });

  it('shows a viewer only permitted pages and buttons (E41)', async () => {
    expected = /401/;
    const words = ['keys', 'create', '--user', 'vic', '--role', 'viewer'];
    const { api_key: key } = await gateway.command<{ api_key: string }>(...words);
    await context.clearCookies();
    await show('keys');
    await page.reload();
    await page.getByRole('textbox', { name: /^Admin key/ }).fill(key);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'API keys' }).waitFor();
    await page.getByRole('link', { name: 'Budgets' }).waitFor();
    for (const name of ['Configuration', 'Audit', 'Playground'])
      expect(await page.getByRole('link', { name, exact: true }).count(), name).to.equal(0);
    expect(await page.getByRole('button', { name: 'New key' }).count()).to.equal(0);
    expect(await page.getByRole('button', { name: /^Edit/ }).count()).to.equal(0);
    await show('configuration');
    await page.getByRole('heading', { name: 'Not for this session' }).waitFor();
    await show('');
    await page.getByRole('heading', { name: 'Targets' }).waitFor();
    expect(await page.getByRole('button', { name: 'Create a key for me' }).count()).to.equal(0);
  });

  it('shows owners of a team that team, without the pages outside their scopes', async () => {
    expected = /401/;
    const words = ['keys', 'create', '--user', 'lena', '--role', 'team'];
    const { api_key: key } = await gateway.command<{ api_key: string }>(...words);
    await context.clearCookies();
    await show('teams');
    await page.reload();
    await page.getByRole('textbox', { name: /^Admin key/ }).fill(key);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('link', { name: 'team=search' }).click();
    await page.getByText('nightly').waitFor();
    for (const name of ['API keys', 'Budgets', 'Speech', 'Agents'])
      expect(await page.getByRole('link', { name, exact: true }).count(), name).to.equal(0);
    expect(await page.getByRole('button', { name: 'Edit team=search' }).count()).to.equal(0);
  });

  it('accepts an admin key, and no other', async () => {
    expected = /401/;
    await context.clearCookies();
    await show('targets');
    await page.reload();
    await page.getByRole('textbox', { name: /^Admin key/ }).fill('tg_nothing');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('alert').waitFor();
    await page.getByRole('textbox', { name: /^Admin key/ }).fill(adminKey);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Targets' }).waitFor();
  });

  it('reports an expired session, and preserves the input until the person is back', async () => {
    expected = /401/;
    await show('keys');
    await page.getByRole('button', { name: 'New key' }).click();
    // The names that the field offers are read with the session; a later request would end it before the click.
    const names = page.waitForResponse(/\/admin\/users\?name=/);
    await page.getByRole('dialog').getByRole('combobox', { name: /^User/ }).fill('kim');
    await names;
    await context.clearCookies();
    await page.getByRole('button', { name: 'Create the key' }).click();
    await page.getByRole('heading', { name: 'Your session has ended' }).waitFor();
    await page.getByRole('textbox', { name: /^Admin key/ }).fill(adminKey);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.getByRole('heading', { name: 'Your session has ended' }).waitFor({ state: 'detached' });
    expect(await page.getByRole('dialog').getByRole('combobox', { name: /^User/ }).inputValue()).to.equal('kim');
    await page.getByRole('button', { name: 'Create the key' }).click();
    await page.getByText('it cannot be shown again').waitFor();
    await page.getByRole('button', { name: 'Done' }).click();
  });

  it('refuses a used link, with an explanation', async () => {
    expected = /401/;
    const used = await link();
    await page.goto('about:blank');
    await page.goto(used);
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByText('You are signed out.').waitFor();
    await page.goto('about:blank');
    await page.goto(used);
    await page.getByText('This link was used already').waitFor();
    await page.goto('about:blank');
    await page.goto(await link());
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
  });

  it('looks as in the README', async function () {
    // `WRITE_IMAGES=1` writes the screenshots, light and dark, from a gateway with realistic names.
    if (process.env['WRITE_IMAGES'] === undefined) return this.skip();
    const [atlas, boreas] = [await startVendor(), await startVendor()];
    const shown = await startGateway({
      providers: {
        atlas: openAiVendor(atlas, {
          baseUrl: `${atlas.url}/v1`,
          models: ['large', 'small'],
          prices: tokenPrices(3, 15),
        }),
        boreas: openAiVendor(boreas, { baseUrl: `${boreas.url}/v1`, models: ['fast'], prices: tokenPrices(1, 4) }),
      },
      models: { smart: ['boreas/fast', 'atlas/large'] },
      budgets: [{ name: 'everyone', amount_usd: 0.1, every: 'day' }],
    });
    try {
      const make = async (user: string, ...more: string[]): Promise<string> =>
        (await shown.command<{ api_key: string }>('keys', 'create', '--user', user, ...more)).api_key;
      const keys = [await make('lena'), await make('research-bot'), await make('max', '--budget', '0.001')];
      const send = async (key: string, model: string): Promise<void> => {
        const body = { model, messages: [{ role: 'user', content: 'Hello there' }] };
        await (await shown.post('/v1/chat/completions', body, { authorization: `Bearer ${key}` })).text();
      };
      for (const model of ['smart', 'atlas/large', 'atlas/small']) for (const key of keys) await send(key, model);
      await boreas.close();
      for (let number = 0; number < 8; number += 1) await send(keys[0] ?? '', 'smart');
      for (let number = 0; number < 2; number += 1) await send(keys[1] ?? '', 'boreas/fast');
      const { url } = await shown.command<{ url: string }>('console', '--user', 'ann', '--url', shown.url);
      const viewer = await (await browser.newContext({ viewport: { width: 1280, height: 760 } })).newPage();
      await viewer.goto(url);
      await mkdir(IMAGES, { recursive: true });
      for (const colorScheme of ['light', 'dark'] as const) {
        const save = (name: string) =>
          viewer.screenshot({ path: path.join(IMAGES, `${name}${colorScheme === 'dark' ? '-dark' : ''}.png`) });
        await viewer.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
        await viewer.setViewportSize({ width: 1280, height: 760 });
        await viewer.goto(`${shown.url}/console#/`);
        await viewer.getByText(/of \d+ healthy/).waitFor();
        await save('console');
        await viewer.setViewportSize({ width: 1280, height: 620 });
        await viewer
          .locator('section', { has: viewer.getByRole('heading', { name: 'Recent errors' }) })
          .getByRole('link', { name: /provider_unavailable/ })
          .first()
          .click();
        await viewer.getByRole('dialog').getByText('Whole call').waitFor();
        await save('console-call');
        await viewer.goto(`${shown.url}/console#/usage?period=today`);
        await viewer.getByText('research-bot').waitFor();
        await viewer.locator('.chart canvas').waitFor();
        await save('console-usage');
      }
      await viewer.context().close();
    } finally {
      await shown.stop();
      await atlas.close();
    }
  });
});
