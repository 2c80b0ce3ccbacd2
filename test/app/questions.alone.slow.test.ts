import { existsSync, readFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { expect } from 'chai';
import { type Browser, type BrowserContext, chromium, type Locator, type Page } from 'playwright-core';
import { buildProgram } from '../../config/build.ts';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { installGateway } from '../support/gateways/gateway-process.ts';
import { NODES, type Person, startThreeGateways, type ThreeGateways } from '../support/gateways/three-gateways.ts';
import { runCli } from '../support/processes/cli.ts';
import { EXAMPLE_PROXIES } from '../support/processes/example-proxies.ts';
import { describeWith } from '../support/processes/server-process.ts';
import { INITDB, POSTGRES, startPostgresServer } from '../support/stores/postgres-server.ts';
import { eventually } from '../support/wait.ts';

const CHROMIUM = process.env['CHROMIUM'] ?? '/usr/bin/chromium';
const ARGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--disable-background-networking', '--no-first-run'];
const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
const MOST_CLICKS = 2;

interface AxeResult {
  readonly violations: readonly { readonly id: string; readonly nodes: readonly { readonly html: string }[] }[];
}

/** Pages of the console, and some of one object. */
const PAGES: readonly string[] = [
  '',
  ...['calls', 'usage', 'usage?by=key&and=model&compare=previous', 'keys', 'users', 'users?id=bea', 'teams'],
  ...['teams?team=team%3Dsearch', 'accounts', 'accounts?id=bea', 'budgets', 'models', 'targets', 'playground'],
  ...['plugins', 'configuration', 'drafts', 'audit'],
];

/** Rows of the table of questions: question, command or page, console. */
const TABLE: readonly (readonly [question: string, command: string, console: string])[] = (() => {
  const page = readFileSync(path.join(PACKAGE_ROOT, 'docs/operate.md'), 'utf8');
  const [, table = ''] = /\n## Questions\n[\s\S]*?\n\|---\|---\|---\|\n((?:\|.*\n)+)/.exec(page) ?? [];
  return table.split('\n').flatMap((line) => {
    const [question, command = '', inConsole = ''] = line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim());
    return question === undefined ? [] : [[question, command, inConsole] as const];
  });
})();

/** Page with a limited number of clicks since the first page. */
interface Visit {
  readonly page: Page;
  /** Clicks a link or a button. */
  click(what: Locator): Promise<void>;
  /** Chooses an option of a field: one click. */
  choose(what: Locator, value: string): Promise<void>;
  /** Types into the search of the console: one click. */
  search(text: string): Promise<void>;
  /** Clicks a link that saves a file; returns its text. */
  download(what: Locator): Promise<string>;
}

/** Answer of a question: by a command, in the console, or on a page of the docs. */
interface Trial {
  /** Replaces words in capitals of the command in the table. */
  readonly words?: Readonly<Record<string, () => string>>;
  /** The command is run by `command`, in an installation without running gateways. */
  readonly isWithoutGateways?: boolean;
  /** Checks the output of the table's command. */
  readonly command?: (stdout: string) => unknown;
  /** What a person does before the command. */
  readonly before?: () => Promise<void>;
  readonly console?: (visit: Visit) => Promise<void>;
  /** Person who signs in; by default an operator. */
  readonly who?: Person;
  /** Text of the docs page that the table links. */
  readonly docs?: RegExp;
}

describeWith(
  'the twenty questions of an operator, on three gateways and one Postgres behind nginx',
  { nginx: EXAMPLE_PROXIES.nginx.program, postgres: POSTGRES, initdb: INITDB, chromium: existing(CHROMIUM) },
  () => {
    let rig: ThreeGateways;
    let browser: Browser;
    /** Console errors, failures of scripts and requests to other origins. */
    let problems: string[] = [];
    /** Problems that the current test expects. */
    let expected: RegExp | undefined;
    const made = { failed: '', leaked: '', key: '', robot: '', calls: 0 };

    before(async function () {
      this.timeout(600_000);
      await buildProgram();
      rig = await startThreeGateways();
      await makeWork();
      browser = await chromium.launch({ executablePath: CHROMIUM, args: ARGS });
    });
    after(async () => {
      await browser?.close();
      await rig?.stop();
    });
    beforeEach(() => {
      problems = [];
      expected = undefined;
    });
    afterEach(() => expect(problems.filter((problem) => !expected?.test(problem))).to.deep.equal([]));

    /** Creates 200 keys, and makes calls of users, teams, budgets and models on all nodes. */
    const makeWork = async (): Promise<void> => {
      await rig.admin('PUT', '/teams/team%3Dsearch', {
        owners: { users: ['tess'] },
        budget: { amount_usd: '5', every: 'month' },
      });
      const idle = Array.from(
        { length: 190 },
        (_, at) => () =>
          rig.makeKey({
            user_id: `person-${String(at).padStart(3, '0')}`,
            name: `laptop ${at}`,
            tags: [`team=${at % 2 ? 'ads' : 'search'}`],
          }),
      );
      await inTurn(idle, 8);
      const [bea, max, kim, robot] = await Promise.all([
        rig.makeKey({ user_id: 'bea', name: 'desk', tags: ['team=search'] }),
        rig.makeKey({ user_id: 'max', name: 'script', tags: ['team=ads'] }),
        rig.makeKey({ user_id: 'kim', name: 'phone', budgets: [{ amount_usd: '0.01', every: 'day' }] }),
        rig.makeKey({ user_id: 'robot', name: 'nightly', models: ['north/m'] }),
      ]);
      Object.assign(made, { leaked: max.id, key: bea.key, robot: robot.key });
      const succeed = async (...given: Parameters<ThreeGateways['call']>) => {
        const { status, text } = await rig.call(...given);
        expect(status, text).to.equal(200);
      };
      const calls = [
        ...Array.from({ length: 12 }, () => () => succeed(bea.key, 'north/m', { user: 'customer-7' })),
        ...Array.from({ length: 40 }, () => () => succeed(max.key, 'north/large')),
        ...Array.from({ length: 6 }, () => () => rig.call(kim.key, 'north/m')),
        ...Array.from({ length: 12 }, () => () => succeed(bea.key, 'smart')),
        ...Array.from({ length: 9 }, () => () => rig.call(max.key, 'south/m')),
        () => rig.call(robot.key, 'north/large'),
      ];
      await inTurn(calls, 6);
      // A call of another model than the key's is refused before its reservation.
      made.calls = calls.length - 1;
      const failed = await rig.call(bea.key, 'north/m', { messages: [{ role: 'user', content: 'please fail' }] });
      expect(failed.status).to.equal(503);
      made.failed = failed.id;
      await eventually(async () => {
        const { data } = await rig.admin('GET', `/calls?request=${failed.id}`);
        expect(data).to.have.lengthOf(1);
      });
    };

    /** Signs a person in by the OpenID provider, and returns the first page of the console. */
    const signIn = async (person: Person, width = 1280): Promise<Page> => {
      const context = await browser.newContext({ viewport: { width, height: 860 }, ignoreHTTPSErrors: true });
      context.setDefaultTimeout(30_000);
      const page = await context.newPage();
      rig.people.person = person;
      await page.goto(`${rig.origin}/console`);
      await page.getByRole('link', { name: 'Sign in with your organisation' }).click();
      await page.getByRole('heading', { name: 'Overview' }).waitFor();
      watch(page);
      return page;
    };
    const sessions = new Map<Person, Awaited<ReturnType<BrowserContext['storageState']>>>();
    /** Cookies of a person, who signs in once. */
    const sessionOf = async (person: Person) => {
      const known = sessions.get(person);
      if (known) return known;
      const page = await signIn(person);
      const state = await page.context().storageState();
      sessions.set(person, state);
      await page.context().close();
      return state;
    };
    const watch = (page: Page): void => {
      page.on('console', (message) => {
        if (['error', 'warning'].includes(message.type())) problems.push(`console: ${message.text()}`);
      });
      page.on('pageerror', (error) => problems.push(`error: ${error.message}`));
      page.on('response', (response) => {
        if (response.status() >= 400) problems.push(`${response.status()} ${response.url()}`);
      });
      page.on('request', (request) => {
        const url = request.url();
        if (!url.startsWith(`${rig.origin}/`) && !/^(data|blob):/.test(url)) problems.push(`elsewhere: ${url}`);
      });
    };

    /** First page of the console, signed in as a person; fails at more than {@link MOST_CLICKS} clicks. */
    const visit = async (person: Person): Promise<Visit> => {
      const page = await signIn(person);
      let clicks = 0;
      const count = (): void => {
        clicks += 1;
        expect(clicks, 'clicks since the first page').to.be.at.most(MOST_CLICKS);
      };
      return {
        page,
        async click(what) {
          count();
          await what.click();
        },
        async choose(what, value) {
          count();
          await what.selectOption(value);
        },
        async search(text) {
          count();
          await page.keyboard.press('Control+k');
          await page.getByRole('dialog').getByRole('searchbox').fill(text);
        },
        download: async (what) => {
          count();
          const [download] = await Promise.all([page.waitForEvent('download'), what.click()]);
          return readFile(await download.path(), 'utf8');
        },
      };
    };
    const nav = ({ page }: Visit, name: string): Locator =>
      page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name, exact: true });
    const found = ({ page }: Visit, name: string): Locator =>
      page.getByRole('dialog').getByRole('link', { name, exact: true }).first();
    const row = (page: Page, region: string, text: RegExp | string): Locator =>
      page.getByRole('region', { name: region, exact: true }).getByRole('row').filter({ hasText: text });
    const panel = (page: Page, heading: string): Locator =>
      page.locator('section', { has: page.getByRole('heading', { name: heading, exact: true }) });

    /** Answers by the question in the table. */
    const trials: Readonly<Record<string, Trial>> = {
      'Who spent what last week?': {
        command: (out) => expect(out).to.match(/^lena +1 +200 +500 +0\.0081$/m),
        async console(olga) {
          await olga.click(nav(olga, 'Usage'));
          await olga.choose(olga.page.getByRole('combobox', { name: 'When' }), 'last-week');
          await row(olga.page, 'Usage by user', /lena\s*\$0\.0081\s*1/).waitFor();
        },
      },
      'Why did this call fail?': {
        words: { ID: () => made.failed },
        command: (out) => expect(out).to.include('node 7 is out of memory').and.to.include('provider_unavailable'),
        async console(olga) {
          await olga.search(made.failed);
          await olga.click(found(olga, made.failed));
          const call = olga.page.getByRole('dialog');
          // The vendor's words may quote content, which an operator may not read.
          await call
            .getByText(/north\/m[\s\S]*500/)
            .first()
            .waitFor();
          await call.getByText('does the vendor respond?').waitFor();
        },
      },
      'Which key is leaking?': {
        command: (out) => expect(out.split('\n')[1]).to.match(new RegExp(`^${made.leaked} +49 +9 `)),
        async console(olga) {
          await olga.click(nav(olga, 'Usage'));
          await olga.choose(olga.page.getByRole('combobox', { name: 'By', exact: true }), 'key');
          await row(olga.page, 'Usage by key', made.leaked).waitFor();
          const [first = ''] = await olga.page
            .getByRole('region', { name: 'Usage by key' })
            .locator('tbody tr')
            .allInnerTexts();
          expect(first).to.match(new RegExp(`${made.leaked}\\s*\\$0\\.32\\s*49\\s*9`));
        },
      },
      'What happens when a budget ends, and which one ends next?': {
        command: (out) => expect(out).to.match(/^everyone +all +\d+ +0\.\d+ +4\.\d+ +\S+ +\d/m),
        docs: /402 insufficient_balance/,
        async console({ page }) {
          await panel(page, 'Spend today')
            .getByText(/everyone\s*\$0\.\d\d of \$5\.00, resets in/)
            .waitFor();
          await panel(page, 'Spend today')
            .getByText(/Forecast: \$\d+\.\d\d at the reset/)
            .first()
            .waitFor();
        },
      },
      "Replace a vendor's key": {
        before: () => writeFile(path.join(rig.folder, 'north.key'), 'north-secret-2'),
        async command(out) {
          expect(out.match(/providers\.north\.apiKey: changed secret/g)).to.have.lengthOf(NODES);
          const sent = rig.vendor.requests.length;
          await inTurn(
            Array.from({ length: 9 }, () => () => rig.call(made.key, 'north/m')),
            3,
          );
          for (const { headers } of rig.vendor.requests.slice(sent))
            expect(headers['authorization']).to.equal('Bearer north-secret-2');
        },
      },
      'Add an alias with a fallback': {
        before: () =>
          rig.configure((config) => ({ ...config, models: { ...config['models'], steady: ['south/m', 'north/m'] } })),
        words: { NAME: () => 'steady' },
        command: (out) => expect(out).to.match(/south\/m[\s\S]*north\/m/),
        async console(olga) {
          await olga.click(nav(olga, 'Models'));
          await olga.page
            .getByText(/smart[\s\S]*the first that works[\s\S]*south\/m[\s\S]*north\/m/)
            .first()
            .waitFor();
        },
      },
      'Stop a user': {
        words: { NAME: () => 'robot' },
        async command() {
          await eventually(async () => {
            const statuses = await Promise.all(Array.from({ length: 6 }, () => rig.call(made.robot, 'north/m')));
            expect(statuses.map(({ status }) => status)).to.deep.equal([403, 403, 403, 403, 403, 403]);
          });
        },
        async console(olga) {
          await olga.search('person-001');
          await olga.click(found(olga, 'person-001'));
          await olga.page.getByRole('button', { name: 'Block this user' }).click();
          await olga.page
            .getByRole('dialog')
            .getByRole('textbox', { name: /^Reason/ })
            .fill('left');
          await olga.page.getByRole('dialog').getByRole('button', { name: 'Block this user' }).click();
          await olga.page.getByRole('status').getByText('left').waitFor();
          expect((await rig.admin('GET', '/users/person-001')).blocked).to.equal(true);
        },
      },
      'What does this plugin do, and what does it cost?': {
        command: (out) => {
          const [, runs] = /^accounts +reserve +(\d+) +0 +[\d.]+/m.exec(out) ?? [];
          expect(Number(runs)).to.be.at.least(made.calls);
        },
        async console(olga) {
          await olga.click(nav(olga, 'Plugins'));
          const runs = row(olga.page, 'Runs of hooks', 'accounts reserve');
          await runs.getByText(`${NODES} processes`).waitFor();
          const [name = '', sum = ''] = await runs.getByRole('cell').allInnerTexts();
          expect(Number(sum.replaceAll(',', ''))).to.be.at.least(made.calls);
          expect(name).to.include('reserve');
        },
      },
      Upgrade: { docs: /tollgate check/ },
      'Back up and restore': { docs: /pg_dump/ },
      'Move to Postgres or Redis': { command: moveToPostgres, isWithoutGateways: true, docs: /store export/ },
      'Three replicas behind nginx': { docs: /upstream tollgate/ },
      'Alert when a vendor is down': {
        command: (out) => expect(out.match(/^south\/m +(?:open|half-open) +failures /gm)).to.have.lengthOf(NODES),
        docs: /target\.opened/,
        async console(olga) {
          await panel(olga.page, 'Targets')
            .getByText(/south\/m[\s\S]*could not be reached/)
            .first()
            .waitFor();
          await olga.click(nav(olga, 'Targets'));
          const south = row(olga.page, 'Targets', 'south/m');
          await south
            .getByText(/unhealthy|retrying/)
            .first()
            .waitFor();
          await olga.click(south.getByText(`${NODES} processes`));
          expect(await south.getByRole('listitem').allInnerTexts()).to.have.lengthOf(NODES);
        },
      },
      'Run behind a company proxy': { docs: /HTTPS_PROXY/ },
      'Claude Code for 50 people with company sign-in': { docs: /managed-settings/ },
      'Limit a team': {
        words: { NAME: () => 'search-month' },
        command: (out) => expect(out).to.include('the budget search-month is 500 USD a month'),
        who: 'ada',
        async console(ada) {
          await ada.click(nav(ada, 'Teams'));
          await ada.click(ada.page.getByRole('button', { name: 'Edit team=search' }));
          const amount = ada.page.getByRole('dialog').getByRole('textbox', { name: /^US dollars/ });
          expect(await amount.inputValue()).to.equal('5');
        },
      },
      'CSV for finance': {
        command: (out) =>
          expect(out).to.match(/^day,user,model,[\s\S]*^\d{4}-\d\d-\d\d,max,large,40,0,8000,0,20000,.*,0\.324,/m),
        async console(olga) {
          await olga.click(nav(olga, 'Usage'));
          const csv = await olga.download(olga.page.getByRole('link', { name: 'Download CSV' }));
          expect(csv).to.match(/^day,user,[\s\S]*,max,49,9,.*,0\.324,/m);
        },
      },
      "Delete a person's data": {
        words: { NAME: () => 'person-002' },
        command: (out) => expect(out).to.match(/To be erased of person-002:[\s\S]* 1 {2}keys$[\s\S]*Remaining:/m),
        who: 'ada',
        async console(ada) {
          await ada.search('person-000');
          await ada.click(found(ada, 'person-000'));
          await ada.page.getByRole('button', { name: 'Erase …' }).click();
          const dialog = ada.page.getByRole('dialog');
          await dialog
            .getByRole('region', { name: 'To be erased' })
            .getByText(/keys\s*1/)
            .first()
            .waitFor();
          await dialog.getByRole('region', { name: 'Remaining' }).getByText('backups').waitFor();
          const erase = dialog.getByRole('button', { name: 'Erase', exact: true });
          expect(await erase.isDisabled()).to.equal(true);
          await dialog.getByRole('textbox', { name: /^Name of the user/ }).fill('person-000');
          await erase.click();
          await dialog.getByText(/Sums and records stay under erased-/).waitFor();
          await dialog.getByRole('button', { name: 'Done' }).click();
          await ada.page.getByRole('heading', { name: 'Users', exact: true }).waitFor();
          expect((await rig.admin('GET', '/keys?user=person-000')).data).to.deep.equal([]);
        },
      },
      'Set the price of a new model': {
        before: () =>
          rig.configure(({ providers, ...config }) => {
            const { north } = providers as { readonly north: { readonly prices: object } };
            const prices = { ...north.prices, large: { input: 7, output: 21 } };
            return { ...config, providers: { ...providers, north: { ...north, prices } } };
          }),
        async command(out) {
          expect(out).to.match(/is valid/);
          await rig.run('reload');
        },
        async console(olga) {
          await olga.click(nav(olga, 'Models'));
          await row(olga.page, 'Models', /north\/large[\s\S]*\$7[\s\S]*\$21/).waitFor();
        },
      },
      'Read and export the audit log': {
        command: (out) => {
          const { data } = JSON.parse(out.slice(0, out.lastIndexOf('}') + 1)) as {
            data: { data: { action: string }[] };
          };
          expect(data.data.length).to.be.at.least(50);
        },
        async console(olga) {
          await olga.click(nav(olga, 'Audit'));
          await olga.page.getByRole('region', { name: 'Changes' }).getByRole('row').nth(10).waitFor();
          const csv = await olga.download(olga.page.getByRole('button', { name: 'Download CSV' }));
          expect(csv).to.match(/key\.create/);
        },
      },
    };

    for (const name of PAGES)
      it(`have an accessible page at 1,280 and 360 px, light and dark: ${name || 'overview'}`, async () => {
        const context = await browser.newContext({
          ...{ bypassCSP: true, ignoreHTTPSErrors: true, storageState: await sessionOf('ada') },
        });
        const page = await context.newPage();
        watch(page);
        for (const colorScheme of ['light', 'dark'] as const)
          for (const width of [1280, 360]) {
            await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
            await page.setViewportSize({ width, height: 860 });
            await page.goto('about:blank');
            await page.goto(`${rig.origin}/console#/${name}`, { waitUntil: 'networkidle' });
            await page.locator('h1').waitFor();
            await page.getByText('Loading …').first().waitFor({ state: 'detached' });
            if (process.env['SHOTS'])
              await page.screenshot({
                path: path.join(
                  process.env['SHOTS'],
                  `${name.replace(/\W+/g, '-') || 'home'}-${width}-${colorScheme}.png`,
                ),
                ...{ fullPage: true, clip: { x: 0, y: 0, width, height: 1600 } },
              });
            await page.addScriptTag({ path: AXE });
            const { violations } = (await page.evaluate('axe.run()')) as AxeResult;
            expect(violations.map(({ id, nodes }) => `${id} ${nodes[0]?.html}`)).to.deep.equal([]);
            expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth'), `${width} px`).to.equal(0);
            const cut = await page.evaluate(
              "[...document.querySelectorAll('.frame .table')].filter((each) => each.scrollWidth > each.clientWidth).map((each) => each.ariaLabel)",
            );
            expect(cut, `${width} px: tables are cut off`).to.deep.equal([]);
          }
        await context.close();
      });

    it('are those that are tried here', () => {
      expect(TABLE.map(([question]) => question)).to.deep.equal(Object.keys(trials));
      for (const [question, command, inConsole] of TABLE) {
        const trial = trials[question];
        expect(trial?.command !== undefined, question).to.equal(lineOf(command) !== undefined);
        expect(trial?.console !== undefined, question).to.equal(inConsole !== '');
      }
    });

    for (const [question, cell, inConsole] of TABLE) {
      const {
        words = {},
        command,
        isWithoutGateways,
        before: prepare,
        who = 'olga',
        console: tryConsole,
        docs,
      } = trials[question] ?? {};
      const line = lineOf(cell);
      if (command && line !== undefined)
        it(`${question} One command: ${line}`, async () => {
          if (isWithoutGateways) return command('');
          await prepare?.();
          const given = line.split(' ').map((word) => words[word]?.() ?? word);
          const { code, stdout, stderr } = await rig.run(...given);
          expect(code, stderr).to.equal(0);
          await command(stdout);
        });
      if (tryConsole)
        it(`${question} In the console: ${inConsole}`, async () => {
          const visited = await visit(who);
          await tryConsole(visited);
          await visited.page.context().close();
        });
      if (docs)
        it(`${question} A page of the docs, two clicks from the console`, async () => {
          const visited = await visit('vic');
          const [, file = ''] = /\]\(([^)#]+)\.md\)/.exec(cell) ?? [];
          await visited.click(visited.page.getByRole('link', { name: 'Docs', exact: true }));
          await visited.click(visited.page.locator(`main a[href$="${file}.html"]`).first());
          await visited.page.locator('main').getByText(docs).first().waitFor();
          await visited.page.context().close();
        });
    }

    it('are those of a viewer, too, who sees no button that changes something', async () => {
      const vic = await visit('vic');
      await panel(vic.page, 'Spend today')
        .getByText(/everyone\s*\$0\.\d\d of \$5\.00/)
        .waitFor();
      await vic.search('bea');
      await vic.click(found(vic, 'bea'));
      await vic.page.getByText(/\$0\.\d\d this month/).waitFor();
      await panel(vic.page, 'Latest failures').getByText('provider_unavailable').waitFor();
      const buttons = await vic.page.locator('main').getByRole('button').allTextContents();
      expect(buttons.filter((label) => /Erase|Block|Name|New|Edit/.test(label))).to.deep.equal([]);
      await vic.page.context().close();
    });

    it('are those of the owner of a team, too: what each member spent, and all keys of the team', async () => {
      const tess = await visit('tess');
      await tess.click(nav(tess, 'Teams'));
      await tess.click(tess.page.getByRole('link', { name: 'team=search' }));
      await row(tess.page, 'Usage of team=search by user', /bea\s*\d+\s*\d+\s*\$0\.\d\d/).waitFor();
      const keys = tess.page.getByRole('region', { name: 'Keys of team=search' }).locator('tbody tr');
      await keys.nth(90).waitFor();
      await tess.page.context().close();
    });

    it('survive two people on one form at two gateways: the second sees what the first changed', async () => {
      expected = /412/;
      await rig.admin('PUT', '/budgets/nights', { amount_usd: 3, every: 'day' });
      const pages = [await signIn('ada'), await signIn('ada')];
      for (const [at, page] of pages.entries()) {
        await page.goto(`${rig.origin}/console#/budgets`);
        await page.getByRole('button', { name: 'Edit nights' }).click();
        await page
          .getByRole('dialog')
          .getByRole('textbox', { name: /^US dollars/ })
          .fill(String(at + 7));
      }
      const [first, second] = pages as [Page, Page];
      await first.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
      await first.getByRole('dialog').waitFor({ state: 'detached' });
      await second.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
      await second.getByRole('alert').getByText('Nothing was overwritten').waitFor();
      await second.getByRole('alert').getByRole('listitem').first().waitFor();
      expect(await second.getByRole('alert').getByRole('listitem').allTextContents()).to.deep.equal([
        'amount usd 3.00 → 7.00',
      ]);
      expect(
        await second
          .getByRole('dialog')
          .getByRole('textbox', { name: /^US dollars/ })
          .inputValue(),
      ).to.equal('8');
      expect((await rig.admin('GET', '/budgets/nights')).amount_usd).to.equal('7.00');
      for (const page of pages) await page.context().close();
    });

    it('survive a row that vanished: the page says so, and the list goes on', async () => {
      expected = /404/;
      const { id } = await rig.makeKey({ user_id: 'gone', name: 'short-lived' });
      const page = await signIn('ada');
      await page.goto(`${rig.origin}/console#/keys?user=gone`);
      await row(page, 'Keys', 'short-lived').waitFor();
      await rig.admin('DELETE', '/users/gone?yes=true');
      await page.getByRole('button', { name: /^Edit tg_/ }).click();
      await page
        .getByRole('dialog')
        .getByRole('alert')
        .getByText(/not found/)
        .waitFor();
      await page.keyboard.press('Escape');
      await page.goto(`${rig.origin}/console#/keys?user=gone&edit=${id}`);
      await page
        .getByRole('dialog')
        .getByRole('alert')
        .getByText(/not found/)
        .waitFor();
      await page.goto(`${rig.origin}/console#/calls?id=call_0mx38475a0abcdefghijkl`);
      await page
        .getByRole('dialog')
        .getByRole('alert')
        .getByText(/not found/i)
        .waitFor();
      await page.context().close();
    });

    it('survive Postgres being away while a form is filled: the page says so, and saves it afterwards', async () => {
      expected = /50[0-9]/;
      const page = await signIn('olga');
      const other = await page.context().newPage();
      await other.goto(`${rig.origin}/console#/budgets`);
      await other.getByRole('heading', { name: 'Budgets' }).waitFor();
      await page.goto(`${rig.origin}/console#/keys`);
      await page.getByRole('button', { name: 'New key' }).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByRole('textbox', { name: /^Name/ }).fill('for the night');
      await rig.postgres.kill();
      try {
        await dialog.getByRole('button', { name: 'Create the key' }).click();
        await dialog.getByRole('alert').getByText(/store/).waitFor();
        expect(await dialog.getByRole('textbox', { name: /^Name/ }).inputValue()).to.equal('for the night');
        await other.goto(`${rig.origin}/console#/accounts`);
        await other.getByRole('alert').getByText(/store/).first().waitFor();
        await other.reload();
        await other.getByRole('status').getByText(/store/).waitFor();
      } finally {
        await rig.postgres.start();
      }
      await eventually(async () => {
        await dialog.getByRole('button', { name: 'Create the key' }).click({ timeout: 2_000 });
        await page.getByText('it cannot be shown again').waitFor({ timeout: 4_000 });
      });
      await other.reload();
      await other.getByRole('heading', { name: 'Accounts' }).waitFor();
      await page.context().close();
    });
  },
);

/** Moves a store of sqlite to a new database of Postgres. */
async function moveToPostgres(): Promise<void> {
  const postgres = await startPostgresServer();
  const installation = await installGateway({ store: 'sqlite:./data', providers: { echo: {} } });
  const { folder } = installation;
  try {
    const run = async (...words: readonly string[]): Promise<string> => {
      const { code, stdout, stderr } = await runCli(words, folder);
      expect(code, stderr).to.equal(0);
      return stdout;
    };
    const keys = await run('keys', 'list');
    await run('store', 'export', 'moved.ndjson');
    const file = path.join(folder, 'tollgate.config.json');
    const pepper = (await readFile(path.join(folder, 'data', 'pepper'), 'utf8')).trim();
    const config = {
      ...JSON.parse(await readFile(file, 'utf8')),
      store: postgres.url,
      auth: { 'api-key': { pepper } },
    };
    await writeFile(file, JSON.stringify(config));
    await run('store', 'import', 'moved.ndjson');
    expect(await run('keys', 'list')).to.equal(keys);
  } finally {
    await installation.remove();
    await postgres.close();
  }
}

/** First command line of a cell, without `tollgate`. */
function lineOf(cell: string): string | undefined {
  return /`tollgate ([^`]*)`/.exec(cell)?.[1];
}

function existing(file: string): string | undefined {
  return existsSync(file) ? file : undefined;
}

/** Runs tasks, a number of them at once. */
async function inTurn(tasks: readonly (() => Promise<unknown>)[], atOnce: number): Promise<void> {
  const waiting = tasks.values();
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      for (const task of waiting) await task();
    }),
  );
}
