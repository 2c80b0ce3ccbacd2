import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import Koa from 'koa';
import { build } from 'vite';
import { isGatewayError, type RouteContext } from '../../../contract/index.ts';
import { pageRoutes } from '../../../plugins/console/pages.ts';

const APP = path.join(import.meta.dirname, '../../../plugins/console/app');

describe('the pages of the console', () => {
  let folder: string;
  let files: readonly string[];
  const servers: Server[] = [];

  before(async () => {
    folder = await mkdtemp(path.join(os.tmpdir(), 'tollgate-console-'));
    await build({
      configFile: path.join(APP, 'vite.config.ts'),
      build: { outDir: folder, emptyOutDir: true },
      logLevel: 'error',
    });
    files = (await readdir(path.join(folder, 'assets'))).map((name) => `assets/${name}`);
  });
  after(async () => {
    for (const server of servers) server.close();
    await rm(folder, { recursive: true, force: true });
  });

  /** Serves the routes as core does, on their own port. */
  const serve = async (isOpen: boolean, from = folder): Promise<string> => {
    const [page, file] = pageRoutes(isOpen, '', from);
    const koa = new Koa<object, { params: Record<string, string> }>();
    koa.use(async (ctx) => {
      const [, name] = /^\/console\/assets\/(.+)$/.exec(ctx.path) ?? [];
      ctx.params = { file: decodeURIComponent(name ?? '') };
      try {
        await (name === undefined ? page : file)?.handler(ctx as RouteContext);
      } catch (error) {
        if (!isGatewayError(error)) throw error;
        ctx.status = error.status;
        ctx.body = { error: { code: error.code } };
      }
    });
    const server = koa.listen(0, '127.0.0.1');
    servers.push(server);
    await new Promise((resolve) => server.once('listening', resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  };

  const zipped = async (name: string): Promise<number> => gzipSync(await readFile(path.join(folder, name))).length;

  it('take at most 70 KB at first load and 140 KB in all, gzipped', async () => {
    const page = await readFile(path.join(folder, 'index.html'), 'utf8');
    const first = files.filter((name) => page.includes(name));
    expect(first).to.have.length.of.at.least(2);
    const sum = async (names: readonly string[]): Promise<number> =>
      (await Promise.all(['index.html', ...names].map(zipped))).reduce((total, size) => total + size, 0);
    expect(await sum(first)).to.be.at.most(70_000);
    expect(await sum(files)).to.be.at.most(140_000);
  });

  it('have no code or style within the page, and name no other host', async () => {
    const page = await readFile(path.join(folder, 'index.html'), 'utf8');
    expect(page).not.to.match(/<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=/);
    for (const name of ['index.html', ...files]) {
      const text = await readFile(path.join(folder, name), 'utf8');
      const hosts = [...text.matchAll(/https?:\/\/[a-z0-9.-]+/gi)].map(([url]) => url);
      expect(hosts.filter((url) => !/^http:\/\/www\.w3\.org$/.test(url))).to.deep.equal([]);
    }
  });

  it('are sent with a strict policy, and files for good', async () => {
    const url = await serve(false);
    const page = await fetch(`${url}/console`);
    expect(page.status).to.equal(200);
    expect(page.headers.get('content-type')).to.equal('text/html; charset=utf-8');
    expect(page.headers.get('cache-control')).to.equal('no-cache');
    const policy = page.headers.get('content-security-policy') ?? '';
    expect(policy)
      .to.include("default-src 'none'")
      .and.include("script-src 'self'")
      .and.include("frame-ancestors 'none'");
    expect(policy).not.to.match(/unsafe|https?:|\*/);
    const script = files.find((name) => name.endsWith('.js'));
    const sent = await fetch(`${url}/console/${script}`);
    expect(sent.headers.get('cache-control')).to.equal('public, max-age=31536000, immutable');
    expect(sent.headers.get('content-type')).to.equal('text/javascript; charset=utf-8');
    expect(await sent.text()).to.equal(await readFile(path.join(folder, String(script)), 'utf8'));
  });

  it('are gzipped if accepted', async () => {
    const url = await serve(false);
    const { headers } = await fetch(`${url}/console`, { headers: { 'accept-encoding': 'gzip' } });
    expect(headers.get('content-encoding')).to.equal('gzip');
    const plain = await fetch(`${url}/console`, { headers: { 'accept-encoding': 'identity' } });
    expect(plain.headers.get('content-encoding')).to.equal(null);
  });

  it('lead to no other file', async () => {
    const url = await serve(false);
    for (const name of ['..%2findex.html', '%2e%2e%2f%2e%2e%2fpackage.json', 'nothing.js'])
      expect((await fetch(`${url}/console/assets/${name}`)).status, name).to.equal(404);
  });

  it('are shown only on this machine by default', async () => {
    const [local, open] = [await serve(false), await serve(true)];
    const forwarded = { 'x-forwarded-for': '203.0.113.7' };
    expect((await fetch(`${local}/console`, { headers: forwarded })).status).to.equal(403);
    expect((await fetch(`${open}/console`, { headers: forwarded })).status).to.equal(200);
  });

  it('explain what to do if they are not built', async () => {
    const url = await serve(false, '');
    expect((await fetch(`${url}/console`)).status).to.equal(503);
  });
});
