import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { expect } from 'chai';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { buildProgram } from '../../config/build.ts';
import { type DraftsRig, editFile, startDraftsRig } from '../support/gateways/drafts-rig.ts';

const CHROMIUM = process.env['CHROMIUM'] ?? '/usr/bin/chromium';
const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

const fileWith = (write: boolean): string => `# The team's gateway
server: { port: 0, console: { write: ${write} } }
store: 'memory:'
auth:
  api-key: { bootstrap: true }
providers:
  echo: {}
  north: { plugin: openai-compatible, baseUrl: 'http://127.0.0.1:9', apiKey: sk-never-shown-0123, models: [m] }
models:
  fast: echo/echo # for chats
plans:
  free: # everyone
    rpm: \${RPM}
    providers:
      north: { rpm: 5 }
budgets:
  - name: all
    amount_usd: 10
    every: day
policies:
  overload: false
  words:
    words: [secret project]
`;

describe('the page of drafts', function () {
  this.timeout(600_000);
  let rig: DraftsRig;
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;
  let problems: string[];

  before(async function () {
    if (!existsSync(CHROMIUM)) return this.skip();
    await buildProgram();
    rig = await startDraftsRig();
    browser = await chromium.launch({
      executablePath: CHROMIUM,
      args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--disable-background-networking', '--no-first-run'],
    });
  });
  after(async () => {
    await browser?.close();
    await rig?.stop();
  });
  beforeEach(() => {
    problems = [];
  });
  afterEach(async () => {
    await context?.close();
    expect(problems).to.deep.equal([]);
  });

  /** Signs in, and shows the page. */
  const open = async (write = true, options: Parameters<Browser['newContext']>[0] = {}): Promise<void> => {
    await rig.begin(fileWith(write));
    context = await browser.newContext({ viewport: { width: 1280, height: 860 }, ...options });
    context.setDefaultTimeout(20_000);
    page = await context.newPage();
    page.on('pageerror', (error) => problems.push(error.message));
    const { url } = await rig.gateway.command<{ url: string }>('console', '--user', 'ann', '--url', rig.gateway.url);
    await page.goto(url);
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.goto(`${rig.gateway.url}/console#/drafts`);
    await page.getByRole('heading', { name: 'Guardrails' }).waitFor();
  };
  const dialog = () => page.getByRole('dialog');
  const press = (name: string | RegExp) => page.getByRole('button', { name, exact: typeof name === 'string' }).click();
  const fill = (label: string | RegExp, text: string) => dialog().getByLabel(label).first().fill(text);
  const check = async (text: string | RegExp = /^Valid:/): Promise<void> => {
    await press('Check');
    await dialog().getByText(text).waitFor();
  };
  const write = async (): Promise<void> => {
    await press(/^Write to tollgate\.yaml/);
    await page.getByText('Written to tollgate.yaml, and in use.').waitFor();
  };

  it('lists what the file has as YAML, without secrets', async () => {
    await open();
    const text = await page.locator('main').textContent();
    expect(text).to.match(
      /Aliases[\s\S]*fast: echo\/echo[\s\S]*Model lists[\s\S]*north[\s\S]*Plans[\s\S]*rpm: \$\{RPM\}/,
    );
    expect(text).to.match(/Budgets[\s\S]*amount_usd: 10[\s\S]*Guardrails[\s\S]*secret project/);
    expect(await page.content()).not.to.include('sk-never');
  });

  it('composes an alias by the keyboard alone, checks it, writes it, and shows it', async () => {
    await open();
    const before = await rig.text();
    await page.getByRole('button', { name: 'New alias' }).focus();
    await page.keyboard.press('Enter');
    await dialog().waitFor();
    await page.keyboard.type('cheap');
    await page.keyboard.press('Tab');
    await page.keyboard.type('echo/echo');
    await page.keyboard.press('Enter');
    await dialog()
      .getByText(/^Valid:/)
      .waitFor();
    expect(await dialog().textContent()).to.match(
      /models:\s+cheap: echo\/echo[\s\S]*\+models:\s*\+\s+cheap: echo\/echo/,
    );
    await dialog()
      .getByRole('button', { name: /^Write to/ })
      .focus();
    await page.keyboard.press('Enter');
    await page.getByText('Written to tollgate.yaml, and in use.').waitFor();
    expect(await rig.text()).to.equal(before.replace('# for chats\n', '# for chats\n  cheap: echo/echo\n'));
    await page.getByRole('button', { name: 'Edit the alias cheap' }).waitFor();
  });

  it('changes one field of a plan, and keeps references, numbers and comments of the others', async () => {
    await open();
    const before = await rig.text();
    await press('Edit the plan free');
    await fill('Tokens per minute', '5000');
    await check();
    await write();
    expect(await rig.text()).to.equal(
      before.replace('      north: { rpm: 5 }\n', '      north: { rpm: 5 }\n    tpm: 5000\n'),
    );
  });

  it('composes budgets, model lists and guardrails, and removes an entry', async () => {
    await open();
    await press('Edit the budget all');
    await fill('US dollars', '25');
    await check();
    await write();
    await press('Edit the model list north');
    await fill(/^Models/, 'm, n');
    await check();
    await write();
    await press('New guardrail');
    await dialog().getByLabel('Name').first().selectOption('max-cost');
    await fill('Usd', '1');
    await check();
    await write();
    await press('Edit the alias fast');
    await press('Remove …');
    await dialog()
      .getByText(/^Valid:/)
      .waitFor();
    await write();
    const text = await rig.text();
    expect(text)
      .to.include('amount_usd: 25')
      .and.include("baseUrl: 'http://127.0.0.1:9'")
      .and.include('models: [ m, n ]')
      .and.include('  max-cost:\n    usd: 1\n');
    expect(text).not.to.include('fast');
  });

  it('says what is wrong with a draft, and offers to write none', async () => {
    await open();
    await press('Edit the alias fast');
    await fill('To', 'nort/m');
    await check(/A start would refuse/);
    await dialog()
      .getByText(/models\.fast.*provider/)
      .waitFor();
    expect(
      await dialog()
        .getByRole('button', { name: /^Write/ })
        .count(),
    ).to.equal(0);
    await fill('To', 'north/m');
    await check();
    await dialog()
      .getByRole('button', { name: /^Write/ })
      .waitFor();
    await fill('To', 'echo/other');
    await dialog().getByText('The fields have changed. Check them again to write them.').waitFor();
  });

  it('shows a change of someone else, overwrites nothing, and keeps the input', async () => {
    await open();
    await press('Edit the plan free');
    await fill('Tokens per minute', '5000');
    await check();
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a reference of the configuration.
    await editFile(rig.file(), (text) => text.replace('rpm: ${RPM}', 'rpm: 7'));
    await press(/^Write to tollgate\.yaml/);
    await dialog().getByText('Someone else changed it in the meantime.').waitFor();
    await dialog()
      .getByText(/RPM\} → 7/)
      .waitFor();
    expect(await rig.text())
      .to.include('rpm: 7')
      .and.not.include('5000');
    await press('Reload and keep my input');
    await dialog().getByText('Someone else changed it').waitFor({ state: 'detached' });
    await check();
    await write();
    expect(await rig.text())
      .to.include('rpm: 7')
      .and.include('tpm: 5000');
  });

  it('says why a reload failed, and that the former file is back', async () => {
    await open();
    const before = await rig.text();
    rig.failReloads(new Error('no more memory'));
    await press('Edit the alias fast');
    await fill('To', 'north/m');
    await check();
    await press(/^Write to tollgate\.yaml/);
    await dialog()
      .getByText(/no more memory.*The file has its former content/)
      .waitFor();
    expect(await rig.text()).to.equal(before);
  });

  it('discards typed text only after a question, and puts the focus on the first field', async () => {
    await open();
    await press('New plan');
    await dialog().waitFor();
    expect(await page.evaluate('document.activeElement.labels?.[0]?.textContent')).to.match(/^Name/);
    await page.keyboard.type('pro');
    await page.keyboard.press('Escape');
    await dialog().getByText('Discard what you typed?').waitFor();
    await press('Keep editing');
    expect(await dialog().getByLabel('Name').first().inputValue()).to.equal('pro');
    await page.keyboard.press('Escape');
    await press('Discard');
    await dialog().waitFor({ state: 'detached' });
  });

  it('keeps what was typed while the session ends, until the person is back', async () => {
    await open();
    await press('New plan');
    await fill('Name', 'pro');
    await fill('Requests per minute', '50');
    await context.clearCookies();
    await press('Check');
    await page.getByText('Your session has ended').first().waitFor();
    expect(await page.getByRole('textbox', { name: 'Name' }).first().inputValue()).to.equal('pro');
    expect(await page.getByLabel('Requests per minute').first().inputValue()).to.equal('50');
  });

  it('composes and checks where the file cannot be written, with the reason', async () => {
    await open(false);
    await page.getByText(/console: \{ write: true \}/).waitFor();
    await press('New alias');
    await fill('Name', 'cheap');
    await fill('To', 'echo/echo');
    await check();
    expect(await dialog().textContent()).to.include('cheap: echo/echo');
    expect(
      await dialog()
        .getByRole('button', { name: /^Write/ })
        .count(),
    ).to.equal(0);
    expect(await dialog().getByRole('button', { name: 'Copy' }).count()).to.be.above(0);
  });

  it('is accessible with and without a form, in light and dark, at 1,280 and 360 px', async () => {
    await open(true, { bypassCSP: true });
    const expectAccessible = async (label: string): Promise<void> => {
      await page.addScriptTag({ path: AXE });
      const { violations } = (await page.evaluate('axe.run()')) as {
        violations: readonly { id: string; nodes: readonly { html: string }[] }[];
      };
      expect(violations.map(({ id, nodes }) => `${label}: ${id} ${nodes[0]?.html}`)).to.deep.equal([]);
      expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth'), label).to.equal(0);
      const cut =
        "[...document.querySelectorAll('.frame .table')].filter((each) => each.scrollWidth > each.clientWidth)";
      expect(await page.evaluate(`${cut}.map((each) => each.ariaLabel)`), label).to.deep.equal([]);
    };
    for (const colorScheme of ['light', 'dark'] as const)
      for (const width of [1280, 360]) {
        const label = `${colorScheme} ${width}`;
        await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
        await page.setViewportSize({ width, height: 860 });
        await expectAccessible(label);
        await press('Edit the plan free');
        await check();
        await expectAccessible(`${label}, a form`);
        const shots = process.env['SCREENSHOTS'];
        if (shots !== undefined) await page.screenshot({ path: path.join(shots, `drafts-${label}.png`) });
        await press('Close');
      }
  });
});
