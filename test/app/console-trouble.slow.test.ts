import { existsSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { buildProgram } from '../../config/build.ts';
import { loadConfig } from '../../config/load-config.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { pluginFile } from '../support/plugins/plugin-file.ts';
import { REDIS_SERVER, startRedisServer } from '../support/stores/redis-server.ts';
import { startTcpProxy, type TcpProxy } from '../support/stores/tcp-proxy.ts';
import { eventually } from '../support/wait.ts';

const CHROMIUM = process.env['CHROMIUM'] ?? '/usr/bin/chromium';
const HOSTILE = '<img src=x onerror="document.title=\'taken\'">';

/** Third-party plugin whose file name contains markup. */
const HOSTILE_PLUGIN = pluginFile({ name: 'odd', kind: 'policy', setup: `api.hook('admit', () => undefined);` });

describe('the console after errors', function () {
  this.timeout(300_000);
  let gateway: TestGateway;
  let redis: Awaited<ReturnType<typeof startRedisServer>>;
  let wire: TcpProxy;
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;

  before(async function () {
    if (!existsSync(CHROMIUM) || REDIS_SERVER === undefined) return this.skip();
    await buildProgram();
    redis = await startRedisServer();
    wire = await startTcpProxy(redis.port);
    gateway = await startGateway(
      {
        store: `redis://127.0.0.1:${wire.port}`,
        providers: { echo: {} },
        policies: { odd: { plugin: `./${HOSTILE}.mjs` } },
      },
      { files: { [`${HOSTILE}.mjs`]: HOSTILE_PLUGIN } },
    );
    browser = await chromium.launch({
      executablePath: CHROMIUM,
      args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--disable-background-networking', '--no-first-run'],
    });
  });
  after(async () => {
    await browser?.close();
    wire?.heal();
    await gateway?.stop();
    await wire?.close();
    await redis?.close();
  });
  beforeEach(async () => {
    context = await browser.newContext({ viewport: { width: 1280, height: 860 } });
    context.setDefaultTimeout(20_000);
    page = await context.newPage();
  });
  afterEach(() => context?.close());

  const link = async (): Promise<string> =>
    (await gateway.command<{ url: string }>('console', '--user', 'ann', '--url', gateway.url)).url;
  const signIn = async (): Promise<void> => {
    await page.goto(await link());
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
  };
  const show = (where: string) => page.goto(`${gateway.url}/console#/${where}`);
  const typeKey = async (name: string): Promise<void> => {
    await show('keys');
    await page.getByRole('button', { name: 'New key' }).click();
    await page.getByRole('textbox', { name: /^Name/ }).fill(name);
  };
  const typed = (): Promise<string> => page.getByRole('textbox', { name: /^Name/ }).inputValue();

  it('shows a new key, which is shown only once, although the page is still loading', async () => {
    let release = (): void => undefined;
    const isReleased = new Promise<void>((resolve) => {
      release = resolve;
    });
    await page.route(/\/calls\?limit=1$/, (route) => isReleased.then(() => route.continue()));
    await signIn();
    await page.getByRole('button', { name: 'Create a key for me' }).click();
    await page.getByText('is shown only once').waitFor();
    release();
    await page.getByRole('heading', { name: 'Make the first call' }).waitFor();
    expect(await page.getByText('is shown only once').count()).to.equal(1);
  });

  it('reports a link older than two minutes', async () => {
    const url = await link();
    const { now } = Date;
    Date.now = () => now() + 121_000;
    try {
      await page.goto(url);
      await page.getByText('This link was used already, or is older than two minutes').waitFor();
      expect(page.url(), 'the token is gone from the address').to.equal(`${gateway.url}/console#/`);
    } finally {
      Date.now = now;
    }
  });

  it('reports that the key of a session was deleted, preserves the input, and continues with another', async () => {
    const make = (): Promise<{ api_key: string; id: string }> =>
      gateway.command('keys', 'create', '--admin', '--user', 'kim');
    const [own, other] = [await make(), await make()];
    await page.goto(`${gateway.url}/console`);
    await page.getByRole('textbox', { name: /^Admin key/ }).fill(own.api_key);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await typeKey('for the robot');
    await gateway.command('keys', 'revoke', own.api_key.split('_').slice(0, 2).join('_'));
    const { now } = Date;
    // A session checks its key every five seconds.
    Date.now = () => now() + 6_000;
    try {
      await page.getByRole('button', { name: 'Create the key' }).click();
      await page.getByRole('heading', { name: 'Your session has ended' }).waitFor();
    } finally {
      Date.now = now;
    }
    await page.getByText('What you typed stays').waitFor();
    await page.getByRole('textbox', { name: /^Admin key/ }).fill(other.api_key);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.getByRole('heading', { name: 'Your session has ended' }).waitFor({ state: 'detached' });
    expect(await typed()).to.equal('for the robot');
    await page.getByRole('button', { name: 'Create the key' }).click();
    await page.getByText('it cannot be shown again').waitFor();
  });

  it('reports that the rights of a session were narrowed, and preserves the input', async () => {
    const { api_key: key } = await gateway.command<{ api_key: string }>('keys', 'create', '--admin', '--user', 'kim');
    const narrow = async (addresses: readonly string[] | null): Promise<void> => {
      const { api_key: other } = await gateway.command<{ api_key: string }>(
        'keys',
        'create',
        '--admin',
        '--user',
        'eve',
      );
      const id = /^tg_([0-9A-Za-z]{12})/.exec(key)?.[1];
      const response = await fetch(`${gateway.url}/api/core/admin/keys/${id}`, {
        method: 'PATCH',
        headers: { authorization: `Bearer ${other}`, 'content-type': 'application/json' },
        body: JSON.stringify({ addresses }),
      });
      expect(response.status, await response.text()).to.equal(200);
    };
    await page.goto(`${gateway.url}/console`);
    await page.getByRole('textbox', { name: /^Admin key/ }).fill(key);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await typeKey('from the office');
    await narrow(['10.9.8.0/24']);
    await eventually(async () => {
      await page.getByRole('button', { name: 'Create the key' }).click({ timeout: 2_000 });
      await page
        .getByRole('dialog')
        .getByRole('alert')
        .getByText(/address/)
        .waitFor({ timeout: 2_000 });
    });
    expect(await typed()).to.equal('from the office');
    await narrow(null);
    await eventually(async () => {
      await page.getByRole('button', { name: 'Create the key' }).click({ timeout: 2_000 });
      await page.getByText('it cannot be shown again').waitFor({ timeout: 4_000 });
    });
  });

  it('explains a name of 10,000 characters, also with marks for right-to-left text, and preserves it', async () => {
    await signIn();
    for (const name of ['x'.repeat(10_000), 'abc\u202Egnp.exe'.repeat(900)]) {
      await typeKey(name);
      await page.getByRole('button', { name: 'Create the key' }).click();
      await page.getByRole('dialog').getByRole('alert').getByText(/name/i).waitFor();
      expect(await typed()).to.equal(name);
      expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).to.equal(0);
      await page.keyboard.press('Escape');
      await page.getByRole('button', { name: 'Discard' }).click();
    }
  });

  it('reports an unavailable store in an open form, preserves the input, and saves it when the store is back', async () => {
    await signIn();
    await typeKey('for the night');
    wire.dropReplies();
    try {
      await page.getByRole('button', { name: 'Create the key' }).click();
      await page.getByRole('alert').getByText(/store/i).first().waitFor();
      expect(await typed()).to.equal('for the night');
    } finally {
      wire.heal();
    }
    // The gateway uses the store again after it has reconnected.
    await eventually(async () => {
      await page.getByRole('button', { name: 'Create the key' }).click({ timeout: 2_000 });
      await page.getByText('it cannot be shown again').waitFor({ timeout: 4_000 });
    });
  });

  it('reports a wrong clock of the computer on each page', async () => {
    await page.clock.setFixedTime(Date.now() - 3 * 3_600_000);
    await signIn();
    await page.getByText('The clock of this computer is 180 min behind that of the gateway').waitFor();
    await show('budgets');
    await page.getByRole('heading', { name: 'Budgets' }).waitFor();
    await page.getByText('180 min behind').waitFor();
  });

  it('shows no warning if the clocks agree', async () => {
    await signIn();
    expect(await page.getByText('The clock of this computer').count()).to.equal(0);
  });

  it('preserves the input of one tab while the person signs out and in again in another', async () => {
    await signIn();
    await typeKey('half done');
    const second = await context.newPage();
    await second.goto(`${gateway.url}/console`);
    await second.getByRole('button', { name: 'Sign out' }).click();
    await second.getByText('You are signed out.').waitFor();
    await page.getByRole('button', { name: 'Create the key' }).click();
    await page.getByRole('heading', { name: 'Your session has ended' }).waitFor();
    await second.goto('about:blank');
    await second.goto(await link());
    await second.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.getByRole('button', { name: 'I signed in by a link in another tab' }).click();
    await page.getByRole('heading', { name: 'Your session has ended' }).waitFor({ state: 'detached' });
    expect(await typed()).to.equal('half done');
    await page.getByRole('button', { name: 'Create the key' }).click();
    await page.getByText('it cannot be shown again').waitFor();
  });

  it('preserves an open form across a reload of the configuration', async () => {
    await signIn();
    await typeKey('over a reload');
    const configPath = path.join(gateway.folder, 'tollgate.config.json');
    await gateway.use(await loadConfig({ cwd: gateway.folder, env: {}, configPath }));
    expect(await typed()).to.equal('over a reload');
    await page.getByRole('button', { name: 'Create the key' }).click();
    await page.getByText('it cannot be shown again').waitFor();
  });

  it('preserves a partly filled form after the back button', async () => {
    await signIn();
    await show('budgets');
    await page.getByRole('heading', { name: 'Budgets' }).waitFor();
    await typeKey('went away');
    await page.goBack();
    await page.getByRole('heading', { name: 'Budgets' }).waitFor();
    await page.goForward();
    await page.getByRole('button', { name: 'New key' }).click();
    expect(await typed()).to.equal('went away');
  });

  it('shows the markup in a plugin’s texts as text', async () => {
    await signIn();
    for (const [where, words] of [
      ['plugins', HOSTILE],
      ['configuration', 'odd'],
    ] as const) {
      await show(where);
      await page.getByText(words).first().waitFor();
      expect(await page.locator('main img').count()).to.equal(0);
      expect(await page.title()).not.to.equal('taken');
    }
  });
});
