import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect } from 'chai';
import { type Browser, chromium, type Page } from 'playwright-core';
import { buildProgram } from '../../config/build.ts';
import { useTempFolder } from '../support/folders.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { type RunningProxy, startProxy } from '../support/processes/proxy-process.ts';
import { findProgram, freePort } from '../support/processes/server-process.ts';
import { eventually } from '../support/wait.ts';

const CHROMIUM = process.env['CHROMIUM'] ?? '/usr/bin/chromium';
const NGINX = findProgram('nginx', ['/usr/sbin', '/usr/local/sbin']);

/** nginx configuration of a company's site, with the gateway below a path and another page at the root. */
const site = (own: number, gateway: string): string => `
  daemon off; pid nginx.pid; user root; events {}
  http {
    access_log off;
    ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path tmp;`).join(' ')}
    server {
      listen 127.0.0.1:${own};
      location / { return 418; }
      location /ai/llm/ {
        proxy_pass ${gateway};
        proxy_http_version 1.1;
        proxy_buffering off;
        proxy_set_header Host $http_host;
        proxy_set_header X-Forwarded-For $remote_addr;
      }
    }
  }`;

(NGINX === undefined || !existsSync(CHROMIUM) ? describe.skip : describe)(
  'a gateway below a base path, in a browser behind nginx',
  function () {
    this.timeout(300_000);
    const folder = useTempFolder('base-path');
    let gateway: TestGateway;
    let proxy: RunningProxy;
    let browser: Browser;
    let page: Page;
    let url: string;
    let key: string;
    const problems: string[] = [];

    before(async () => {
      await buildProgram();
      gateway = await startGateway({
        server: { port: 0, basePath: '/ai/llm', trustProxy: 1, drainTimeout: '2s' },
        console: { remote: true },
      });
      ({ api_key: key } = await gateway.command<{ api_key: string }>('keys', 'create', '--admin', '--user', 'ann'));
      const own = await freePort();
      await writeFile(path.join(folder, 'nginx.conf'), site(own, new URL(gateway.url).origin));
      proxy = startProxy(NGINX ?? 'nginx', ['-p', '.', '-e', 'stderr', '-c', 'nginx.conf'], folder);
      url = `http://127.0.0.1:${own}/ai/llm`;
      await eventually(async () => expect((await fetch(`${url}/livez`)).status, proxy.output()).to.equal(200));
      browser = await chromium.launch({
        executablePath: CHROMIUM,
        args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--disable-background-networking', '--no-first-run'],
      });
      page = await browser.newPage();
      page.setDefaultTimeout(30_000);
      page.on('console', (message) => message.type() === 'error' && problems.push(message.text()));
      page.on('pageerror', (error) => problems.push(error.message));
      page.on('response', (response) => {
        // Every request of the page goes below the base path and succeeds.
        if (!response.url().startsWith(`${url}/`) && !response.url().startsWith('data:')) problems.push(response.url());
        if (response.status() >= 400) problems.push(`${response.status()} ${response.url()}`);
      });
    });
    after(async () => {
      await browser?.close();
      await proxy?.stop();
      await gateway?.stop();
    });
    afterEach(() => expect(problems).to.deep.equal([]));

    it('signs in, connects a client by the printed lines, and shows its call live', async () => {
      await page.goto(`${url}/console`);
      await page.getByRole('textbox', { name: /Admin key/ }).fill(key);
      await page.getByRole('button', { name: 'Sign in', exact: true }).click();
      await page.getByRole('button', { name: 'Create a key for me' }).click();
      await page.getByText('shown only once').waitFor();
      const line = String(await page.locator('pre').textContent());
      expect(line).to.include(`curl ${url}/v1/chat/completions`);
      const made = /tg_\w+/.exec(line)?.[0] ?? '';
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${made}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'echo/echo', messages: [{ role: 'user', content: 'Hello there' }] }),
      });
      expect(response.status).to.equal(200);
      await page.getByText('First call: echo/echo, ok.').waitFor();
    });

    it('reloads every page of the console by its URL', async () => {
      for (const [where, words] of [
        ['calls', 'live'],
        ['keys', 'New key'],
        ['usage', 'By user'],
        ['playground', 'Calls are made and charged as ann'],
        ['plugins', 'authenticate (post)'],
      ] as const) {
        await page.goto(`${url}/console#/${where}`);
        await page.reload();
        await page.getByText(words).first().waitFor();
      }
    });

    it('links to the docs, and tries a route there as the person', async () => {
      await page.getByRole('link', { name: 'Docs' }).click();
      await page.waitForURL(`${url}/docs/pages/index.html`);
      await page.goto(`${url}/docs/pages/start.html`);
      await page.keyboard.press('/');
      await page.keyboard.type('speechCache sounds');
      await page.getByRole('status').getByText(/place/).waitFor();
      await page.goto(`${url}/docs#post-/v1/chat/completions`);
      await page.getByText('You are signed in as ann').waitFor({ timeout: 120_000 });
      await page.getByRole('button', { name: 'TRY', exact: true }).first().click();
      await page.getByText('Response Status: OK:200').waitFor();
    });
  },
);
