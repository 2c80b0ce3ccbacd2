import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { CODE_ROOT, IS_SOURCE } from '../config/package-root.ts';
import { GatewayError } from '../contract/errors.ts';
import type { Route } from '../contract/plugin.ts';
import { type Bundle, openBundle } from './docs-bundle.ts';

/** A gateway that runs from source serves the pages of the newest build. */
const BUNDLE = path.join(CODE_ROOT, IS_SOURCE ? 'dist/docs.br' : 'docs.br');

/** Restricted to this origin. The viewer needs inline styles, and `connect-src` for trying requests. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'";

/** Docs pages are separate files without inline code or styles. */
const STRICT_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

const LINKS =
  '<p style="margin:24px 5% 0;font:15px system-ui,sans-serif"><a href="docs/pages">The docs</a>, <a href="docs/config">the keys of the configuration</a></p>';

/** `links` points to the other documentation. */
const apiPage = (links: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Tollgate API</title>
<link rel="icon" href="data:,">
<script type="module" src="docs/try.js"></script>
<script type="module" src="docs/viewer.js"></script>
</head>
<body>
<rapi-doc spec-url="openapi.json" render-style="focused" theme="light" show-header="false" load-fonts="false" allow-server-selection="false" allow-authentication="true">${links}<p id="who" role="status" hidden style="margin:8px 5% 0;font:15px system-ui,sans-serif"></p></rapi-doc>
</body>
</html>
`;

/**
 * Sends requests from the viewer with the console session if no key was entered. They go through a route of the
 * console, named in the route's description. Operator routes accept the session directly.
 */
const TRY_SCRIPT = `const base = new URL('..', import.meta.url).pathname.slice(0, -1);
const operators = '/api/core/admin';
const relay = operators + '/console/try';
const viewer = document.querySelector('rapi-doc');
const who = document.querySelector('#who');
let isSignedIn = false;
const read = (path) => fetch(base + operators + path).then((response) => (response.ok ? response.json() : undefined), () => undefined);
viewer.addEventListener('spec-loaded', async ({ detail: { tags } }) => {
  const known = new Set(tags.flatMap(({ paths }) => paths.map(({ path }) => path)));
  if (!known.has(relay + '/{path}')) return;
  const own = await read('/console');
  const person = own?.user_id ? own : known.has(operators + '/session') ? await read('/session') : undefined;
  isSignedIn = Boolean(person?.scopes?.includes('models:call'));
  who.textContent = isSignedIn
    ? 'You are signed in as ' + person.user_id + ': what you try here without a key is sent as you, and booked under this name.'
    : person?.user_id
      ? 'You are signed in as ' + person.user_id + ', whose role lacks the scope models:call: to try calls of models, set a key.'
      : 'Sign in at the console, and reload this page to try requests without a key.';
  who.hidden = false;
});
viewer.addEventListener('before-try', ({ detail: { request } }) => {
  const url = new URL(request.url, location.href);
  const path = url.pathname.slice(base.length);
  const hasKey = ['authorization', 'x-api-key'].some((name) => request.headers.has(name));
  if (!isSignedIn || hasKey || url.origin !== location.origin || path.startsWith(operators + '/')) return;
  request.url = base + relay + path + url.search;
});
`;

/**
 * `/docs`: the OpenAPI document in RapiDoc, the configuration keys, and the docs pages. All files are served from this
 * origin.
 */
export function docsRoutes(file = BUNDLE): readonly Route[] {
  // Created by the build; may be missing for a gateway that runs from source.
  const bundle = existsSync(file) ? openBundle(file) : undefined;
  const page = (path: string, summary: string, contentType: string, read: () => Promise<string | Buffer>): Route => ({
    method: 'GET',
    path,
    summary,
    auth: 'none',
    responses: { 200: { description: 'OK.', contentType } },
    async handler(ctx) {
      ctx.set({ 'content-security-policy': POLICY, 'x-content-type-options': 'nosniff' });
      if (contentType === 'text/javascript') ctx.set('cache-control', 'max-age=3600');
      ctx.type = `${contentType}; charset=utf-8`;
      ctx.body = await read();
    },
  });
  return [
    page('/docs', 'API reference page', 'text/html', async () => apiPage(bundle ? LINKS : '')),
    page('/docs/try.js', 'Script of /docs that sends requests', 'text/javascript', async () => TRY_SCRIPT),
    page('/docs/viewer.js', 'Script of /docs', 'text/javascript', async () => await readViewer(bundle)),
    ...(bundle
      ? [
          page('/docs/config', 'Configuration reference page', 'text/html', async () => await readConfigPage(bundle)),
          ...siteRoutes(bundle),
        ]
      : []),
  ];
}

const TYPES: Readonly<Record<string, string>> = Object.freeze({
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.md': 'text/markdown; charset=utf-8',
  '.txt': 'text/plain; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.svg': 'image/svg+xml',
});

/** Serves the docs pages from the bundle; only the names of its files are valid. */
function siteRoutes(bundle: Bundle): readonly Route[] {
  return [
    {
      method: 'GET',
      path: '/docs/pages',
      auth: 'none',
      summary: 'The docs',
      responses: { 302: 'Redirects to the first page.' },
      handler: (ctx) => ctx.redirect('pages/index.html'),
    },
    {
      method: 'GET',
      path: '/docs/pages/*file',
      auth: 'none',
      summary: 'Page or asset of the documentation',
      responses: { 200: { description: 'OK.', contentType: 'text/html' } },
      async handler(ctx) {
        const name = ctx.params['file'] ?? '';
        const type = TYPES[path.extname(name)];
        const isZipped = ctx.acceptsEncodings('gzip', 'identity') === 'gzip';
        const file = `docs/${name}`;
        const bytes = type && (await (isZipped ? bundle.readZipped(file) : bundle.read(file)));
        if (type === undefined || !bytes)
          throw new GatewayError('not_found', 'Documentation page not found. /docs/pages lists all pages.');
        ctx.set({
          'content-security-policy': STRICT_POLICY,
          'x-content-type-options': 'nosniff',
          'referrer-policy': 'no-referrer',
          'cache-control': 'no-cache',
          vary: 'accept-encoding',
        });
        ctx.type = type;
        if (isZipped) ctx.set('content-encoding', 'gzip');
        ctx.body = bytes;
      },
    },
  ];
}

/** Reads the viewer's script from the bundle, or from `node_modules` without a build. */
async function readViewer(bundle: Bundle | undefined): Promise<Buffer> {
  const built = await bundle?.read('viewer.js');
  return built ?? (await readFile(createRequire(import.meta.url).resolve('rapidoc/dist/rapidoc-min.js')));
}

async function readConfigPage(bundle: Bundle): Promise<Buffer> {
  const built = await bundle.read('config.html');
  if (!built) throw new Error('the bundle of the docs has no config.html');
  return built;
}
