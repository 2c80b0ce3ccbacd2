import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { type Browser, chromium, type Page } from 'playwright-core';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { useTempFolder } from '../support/folders.ts';

const CHROMIUM = process.env['CHROMIUM'] ?? '/usr/bin/chromium';
const run = promisify(execFile);

describe('the site that npm run docs:site writes', function () {
  this.timeout(120_000);
  const folder = useTempFolder('site');
  let browser: Browser;
  let page: Page;
  const problems: string[] = [];

  before(async function () {
    if (!existsSync(CHROMIUM)) return this.skip();
    const script = path.join(PACKAGE_ROOT, 'openapi/pages/write-site.ts');
    await run(process.execPath, ['--import', import.meta.resolve('tsx/esm'), script, folder], { cwd: PACKAGE_ROOT });
    browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] });
    page = await browser.newPage();
    page.on('request', (request) => {
      if (!/^(?:file|data):/.test(request.url())) problems.push(request.url());
    });
    page.on('pageerror', (error) => problems.push(error.message));
  });
  after(() => browser?.close());

  it('is read and searched from files alone, without a server or a network', async () => {
    await page.goto(pathToFileURL(path.join(folder, 'index.html')).href);
    await page.keyboard.press('/');
    await page.keyboard.type('rotate vendor key');
    await page.locator('#places a').first().waitFor();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.getByText('What can go wrong').waitFor();
    expect(page.url()).to.match(/how-to\/rotate-a-vendor-key\.html/);
    expect(problems).to.deep.equal([]);
  });

  it('has no links to routes of a gateway', async () => {
    await page.goto(pathToFileURL(path.join(folder, 'index.html')).href);
    const links = await page.locator('a').evaluateAll((all) => all.map((link) => link.getAttribute('href') ?? ''));
    expect(links.filter((link) => link.startsWith('../'))).to.deep.equal([]);
    expect(links.length).to.be.greaterThan(50);
  });
});
