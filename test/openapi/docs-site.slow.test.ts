import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { expect } from 'chai';
import { bundleDocs } from '../../cli/generate/bundle-docs.ts';
import { readBuiltinSchemas } from '../../config/load-config.ts';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { createKoa, createRouter } from '../../core/http/koa.ts';
import { Lifecycle } from '../../core/http/lifecycle.ts';
import { createRequestSchemas } from '../../core/plugins/registry.ts';
import { docsRoutes } from '../../openapi/docs-pages.ts';
import { readPages, renderDocsSite, renderPage } from '../../openapi/pages/docs-site.ts';
import { createSilentLog } from '../support/log.ts';

const HOSTILE = '<img src=x onerror="alert(1)">';

interface Section {
  readonly page: string;
  readonly heading: string;
  readonly anchor: string;
  readonly text: string;
}

describe('the docs as pages', () => {
  let folder: string;
  let bundle: Buffer;
  let server: Server;
  let url: string;
  /** All files of the site, rendered once. */
  let site: ReturnType<typeof renderDocsSite>;
  /** Pages by name. */
  let pages: ReadonlyMap<string, string>;

  before(async () => {
    folder = await mkdtemp(path.join(os.tmpdir(), 'tollgate-docs-'));
    bundle = bundleDocs(await readBuiltinSchemas());
    await writeFile(path.join(folder, 'docs.br'), bundle);
    site = renderDocsSite(PACKAGE_ROOT);
    const files = [...site].filter(([name]) => name.endsWith('.html'));
    pages = new Map(files.map(([name, bytes]) => [name, bytes.toString()]));
    const lifecycle = new Lifecycle();
    const router = createRouter({
      routes: docsRoutes(path.join(folder, 'docs.br')).map((value) => ({ owner: 'core', value })),
      requests: createRequestSchemas([]),
      authenticate: async () => undefined,
      lifecycle,
      maxBodyBytes: 1024,
    });
    server = createKoa([router], { lifecycle, log: createSilentLog() }).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    await rm(folder, { recursive: true, force: true });
  });

  it('has one for each page of docs/ except the decisions, with its title', async () => {
    const files = (await readdir(path.join(PACKAGE_ROOT, 'docs'), { recursive: true })).filter(
      (name) => name.endsWith('.md') && path.dirname(name) !== 'decisions',
    );
    const wanted = files.map((name) => (name === 'README.md' ? 'index.html' : name.replace(/\.md$/, '.html')));
    expect([...pages.keys()]).to.have.members([...wanted, 'start.html', 'changes.html']);
    expect(pages.get('money.html')).to.include('<title>Money');
  });

  it('links only to existing pages and headings, and to nothing that is only in the repository', () => {
    const broken: string[] = [];
    let count = 0;
    for (const [page, html] of pages)
      for (const [, href = ''] of html.matchAll(/ href="([^"]+)"/g)) {
        if (/^https?:|\.(css|svg|md)$|(^|\/)\.\.\/(docs|config)$/.test(href)) continue;
        const [name = '', anchor] = href.split('#');
        const target = name === '' ? page : path.posix.join(path.posix.dirname(page), name);
        const found = pages.get(target);
        count += 1;
        if (found === undefined || (anchor !== undefined && !found.includes(` id="${anchor}"`)))
          broken.push(`${page}: ${href}`);
      }
    expect(broken).to.deep.equal([]);
    expect(count).to.be.above(1000);
  });

  it('has no inline code or style, and loads no external resource', () => {
    for (const [page, html] of pages) {
      expect(html, page).not.to.match(/<script(?![^>]*\bsrc=)|<style|<[^>]+\son\w+=|<[^>]+\sstyle=/);
      expect(html, page).not.to.match(/<(script|link|img)[^>]+(src|href)="(https?:)?\/\//);
    }
  });

  it('shows HTML in texts as text', () => {
    const source = {
      file: 'docs/x.md',
      page: 'x.html',
      text: `# A ${HOSTILE}\n\nB ${HOSTILE}\n\n${HOSTILE}\n\n\`${HOSTILE}\`\n`,
    };
    const { html } = renderPage(source, [...readPages(PACKAGE_ROOT), source]);
    expect(html).not.to.include('<img');
    expect(html.split('&lt;img').length).to.be.at.least(5);
  });

  it('is served with a strict policy, and has a small index', async () => {
    const first = await fetch(`${url}/docs/pages`);
    expect(first.url).to.equal(`${url}/docs/pages/index.html`);
    expect(first.headers.get('content-type')).to.equal('text/html; charset=utf-8');
    const policy = first.headers.get('content-security-policy') ?? '';
    expect(policy)
      .to.include("default-src 'none'")
      .and.not.match(/unsafe|https?:|\*/);
    expect(await first.text()).to.equal(pages.get('index.html'));
    const nested = await fetch(`${url}/docs/pages/plugins/tts.html`);
    expect(await nested.text()).to.equal(pages.get(path.join('plugins', 'tts.html')));

    for (const encoding of ['gzip', 'identity']) {
      const response = await fetch(`${url}/docs/pages/search.json`, { headers: { 'accept-encoding': encoding } });
      expect(response.headers.get('content-encoding')).to.equal(encoding === 'gzip' ? 'gzip' : null);
      const sections = (await response.json()) as readonly Section[];
      const found = sections.find(({ page, text }) => page === 'plugins/tts.html' && text.includes('speechCache'));
      expect(found?.heading).to.equal('Hearing the same again');
      expect(pages.get('plugins/tts.html')).to.include(` id="${found?.anchor}"`);
    }
    const markdown = await fetch(`${url}/docs/pages/how-to/see-spending.md`);
    expect(markdown.headers.get('content-type')).to.equal('text/markdown; charset=utf-8');
    expect(await markdown.text()).to.match(/^# See who spent what\n/);
    expect(await (await fetch(`${url}/docs/pages/llms.txt`)).text()).to.include('(how-to/see-spending.md)');
  });

  it('is one small file of the package, with the viewer of the API and the keys of the configuration', async () => {
    expect(bundle.length).to.be.at.most(680_000);
    const keys = await fetch(`${url}/docs/config`);
    expect(keys.headers.get('content-type')).to.equal('text/html; charset=utf-8');
    expect(await keys.text()).to.include('<h1>Configuration</h1>');
    const viewer = await fetch(`${url}/docs/viewer.js`);
    expect(Buffer.from(await viewer.arrayBuffer()).length).to.be.above(500_000);
  });

  it('has the Markdown of each page, whose links lead to existing Markdown', () => {
    const broken: string[] = [];
    for (const page of pages.keys()) {
      const name = page.replace(/\.html$/, '.md');
      const text = String(site.get(name));
      for (const [, link = ''] of text
        .replaceAll(/^```[\s\S]*?^```$/gm, '')
        .matchAll(/\]\((?!https?:)([^)#\s]+\.md)/g)) {
        const target = path.posix.join(path.posix.dirname(name), link);
        if (!pages.has(target.replace(/\.md$/, '.html'))) broken.push(`${name}: ${link}`);
      }
    }
    expect(broken).to.deep.equal([]);
  });

  it('serves no other file', async () => {
    for (const name of [
      '..%2f..%2fpackage.json',
      '%2e%2e/config.html',
      'nothing.html',
      'search.json.gz',
      '..%2fviewer.js',
      'plugins',
      '',
    ])
      expect((await fetch(`${url}/docs/pages/${name}`)).status, name).to.equal(404);
  });

  it('is linked from the page of the API, if it was built', async () => {
    expect(await (await fetch(`${url}/docs`)).text()).to.include('href="docs/pages"');
    const [route] = docsRoutes(path.join(folder, 'nothing'));
    expect(docsRoutes(path.join(folder, 'nothing')).map(({ path: at }) => at)).not.to.include('/docs/pages');
    expect(route?.path).to.equal('/docs');
  });
});
