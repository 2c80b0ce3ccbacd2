import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect } from 'chai';
import { type Browser, chromium, type Page } from 'playwright-core';
import { buildProgram } from '../../config/build.ts';
import { startAccounts } from '../plugins/mcp/account-rig.ts';
import { createServers, namesFor, type ScriptedServer, send, startMcp, textOf, tool } from '../plugins/mcp/mcp-rig.ts';
import type { TestGateway } from '../support/gateways/gateway.ts';
import { until } from '../support/wait.ts';

const CHROMIUM = process.env['CHROMIUM'] ?? '/usr/bin/chromium';
const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
const HOSTILE = '<img src=x onerror="document.title=\'taken\'">';

interface AxeResult {
  readonly violations: readonly { readonly id: string; readonly nodes: readonly { readonly html: string }[] }[];
}

describe('MCP servers and proposed changes in the console', function () {
  this.timeout(300_000);
  let servers: Awaited<ReturnType<typeof createServers>>;
  let gateway: TestGateway;
  let s: ScriptedServer;
  let browser: Browser;
  let page: Page;
  let agent: string;
  let problems: string[];

  before(async function () {
    if (!existsSync(CHROMIUM)) return this.skip();
    await buildProgram();
    servers = await createServers();
    s = await servers.make([tool('echo', 'Repeats.'), tool('fail', 'Fails.')]);
    gateway = await startMcp({ s: s.options, down: { url: 'http://127.0.0.1:9/mcp' } }, { mcp: { admin: true } });
    expect(await namesFor(gateway)).to.deep.equal(['s__echo', 's__fail']);
    const words = ['--role', 'viewer', '--scope', 'changes:propose'];
    agent = (await gateway.command<{ api_key: string }>('keys', 'create', '--user', 'agent', ...words)).api_key;
    await gateway.command('keys', 'create', '--user', 'lena', '--name', 'tools', '--server-tools', 'mcp:s/echo');
    await send(gateway, 'tools/call', { name: 's__echo', arguments: {} });
    await s.setTools([tool('echo', `Repeats. ${HOSTILE}`), tool('fail', 'Fails.')]);
    await changeList();
    await until('it is withheld', async () => (await namesFor(gateway)).join() === 's__fail');
    browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] });
    page = await (await browser.newContext({ viewport: { width: 1280, height: 860 } })).newPage();
    page.setDefaultTimeout(30_000);
    watch(page);
    const { url } = await gateway.command<{ url: string }>('console', '--user', 'ann', '--url', gateway.url);
    await page.goto(url);
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
  });
  after(async () => {
    await browser?.close();
    await gateway?.stop();
    await servers?.remove();
  });
  beforeEach(() => {
    problems = [];
  });
  afterEach(() => expect(problems).to.deep.equal([]));

  const watch = (watched: Page): void => {
    watched.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) problems.push(message.text());
    });
    watched.on('pageerror', (error) => problems.push(error.message));
  };
  /** Tells the gateway that the list of `s` has changed, as a server does. */
  const changeList = async (): Promise<void> => {
    const { api_key: admin } = await gateway.command<{ api_key: string }>(
      'keys',
      'create',
      '--user',
      'root',
      '--admin',
    );
    const response = await gateway.get('/api/core/admin/mcp/s', { authorization: `Bearer ${admin}` });
    const { processes } = (await response.json()) as { processes: readonly { pid: number }[] };
    process.kill(processes[0]?.pid ?? 0, 'SIGUSR2');
  };
  const show = (where: string) => page.goto(`${gateway.url}/console#/${where}`);
  const propose = async (args: object): Promise<string> => {
    const reply = await send(
      gateway,
      'tools/call',
      { name: 'propose_change', arguments: args },
      { key: agent, at: '/mcp-admin' },
    );
    return (JSON.parse(textOf(reply)) as { id: string }).id;
  };

  for (const [where, words] of [
    ['mcp', /withheld[\s\S]*down[\s\S]*failed[\s\S]*mcp:s\/echo/i],
    ['mcp?name=s', /echo/],
    ['changes', /Block a user|block/i],
    ['changes?id=ID', /because/],
  ] as const)
    it(`is accessible: ${where}`, async () => {
      const id = await propose({
        operation: 'post_users_by_id_block',
        parameters: { id: 'lena' },
        reason: `because ${HOSTILE}`,
      });
      const reader = await (
        await browser.newContext({ bypassCSP: true, storageState: await page.context().storageState() })
      ).newPage();
      watch(reader);
      for (const colorScheme of ['light', 'dark'] as const)
        for (const width of [1280, 360]) {
          await reader.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
          await reader.setViewportSize({ width, height: 860 });
          await reader.goto(`${gateway.url}/console#/${where.replace('ID', id)}`);
          await reader.reload();
          await reader.waitForFunction(`${words}.test(document.querySelector('main')?.innerText)`);
          await reader.addScriptTag({ path: AXE });
          const { violations } = (await reader.evaluate('axe.run()')) as AxeResult;
          const label = `${where} ${colorScheme} ${width}`;
          expect(violations.map(({ id: rule, nodes }) => `${label}: ${rule} ${nodes[0]?.html}`)).to.deep.equal([]);
          const beyond = await reader.evaluate('document.documentElement.scrollWidth - innerWidth');
          expect(beyond, `${label} scrolls sideways`).to.equal(0);
          const cut = await reader.evaluate(
            "[...document.querySelectorAll('.frame .table')].filter((each) => each.scrollWidth > each.clientWidth).map((each) => each.ariaLabel)",
          );
          expect(cut, `${label}: tables are cut off`).to.deep.equal([]);
        }
      expect(await reader.title()).not.to.equal('taken');
      await reader.context().close();
    });

  it('shows what a withheld tool says, and approves it by the keyboard alone', async () => {
    await show('mcp');
    await page.getByRole('link', { name: 's', exact: true }).focus();
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog', { name: 's' });
    await dialog.waitFor();
    await dialog.locator('summary').focus();
    await page.keyboard.press('Enter');
    await dialog.getByText('Withheld definition of echo').waitFor();
    await dialog.getByRole('button', { name: 'Approve echo' }).focus();
    await page.keyboard.press('Enter');
    await until('it is approved', async () => (await namesFor(gateway)).join() === 's__echo,s__fail');
    await dialog.getByRole('button', { name: 'Approve echo' }).waitFor({ state: 'detached' });
    await dialog.getByRole('row', { name: /^echo/ }).getByRole('link', { name: 'Calls' }).click();
    await page.getByText('mcp/s/echo').first().waitFor();
  });

  it('confirms a change once, with its differences, and shows one that is out of date', async () => {
    const { id: key } = (
      await gateway.command<{ api_key_info: { id: string } }>('keys', 'create', '--user', 'zoe', '--rpm', '10')
    ).api_key_info;
    const args = { operation: 'patch_keys_by_id', parameters: { id: key }, body: { rpm: 60 } };
    const [first, second] = [await propose(args), await propose(args)];
    await show(`changes?id=${first}`);
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('row', { name: 'rpm 10 60' }).waitFor();
    await dialog.getByRole('button', { name: 'Confirm' }).focus();
    await page.keyboard.press('Enter');
    await dialog.getByText('The change was made').waitFor();
    await dialog.getByText('confirmed').waitFor();
    await page.keyboard.press('Escape');
    await show(`changes?id=${second}`);
    await dialog.getByRole('button', { name: 'Confirm' }).click();
    await dialog
      .getByText(/has changed since/)
      .first()
      .waitFor();
    expect(problems.every((problem) => problem.includes('412'))).to.equal(true);
    problems = [];
  });
});

describe('accounts of users at an MCP server in the console', function () {
  this.timeout(300_000);

  it('are listed, and revoked there', async function () {
    if (!existsSync(CHROMIUM)) return this.skip();
    await buildProgram();
    const rig = await startAccounts(['ann']);
    const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] });
    try {
      await rig.connect('ann');
      const page = await browser.newPage();
      const { url } = await rig.gateway.command<{ url: string }>('console', '--user', 'op', '--url', rig.gateway.url);
      await page.goto(url);
      await page.getByRole('link', { name: 'MCP servers' }).click();
      await page.getByRole('link', { name: 's', exact: true }).click();
      await page.getByRole('button', { name: 'Connect my account' }).click();
      expect(await page.getByRole('link', { name: 'Open the link' }).getAttribute('href')).to.include('/mcp/link/');
      await page.getByRole('button', { name: 'Revoke the account of ann' }).click();
      await page.getByText('No user has connected an account.').waitFor();
      expect((await rig.whoami('ann')).error?.code).to.equal(403);
    } finally {
      await browser.close();
      await rig.stop();
    }
  });
});
