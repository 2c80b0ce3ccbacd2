import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { GatewayError, type Route, type RouteContext } from '../../contract/index.ts';
import { isLocal } from './browser.ts';

/** Restricted to this origin, without inline code or style. */
const POLICY = [
  "default-src 'none'",
  // Speech output is held in memory by the page.
  ...["media-src 'self' blob:"],
  ...["script-src 'self'", "style-src 'self'", "img-src 'self' data:", "connect-src 'self'"],
  ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"],
].join('; ');

const TYPES: Readonly<Record<string, string>> = Object.freeze({
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
});

interface File {
  readonly bytes: Buffer;
  readonly zipped: Buffer;
}

/** Folder of the built page: next to the compiled plugin, or below `dist/` when running from source. */
function findFolder(): string | undefined {
  return ['../../console/', '../../dist/console/']
    .map((name) => fileURLToPath(new URL(name, import.meta.url)))
    .find((folder) => existsSync(path.join(folder, 'index.html')));
}

/** `/console` and its files. File names contain a hash of the content, so browsers cache them permanently. */
export function pageRoutes(isOpen: boolean, basePath: string, folder = findFolder()): readonly Route[] {
  const read = createReader(folder, basePath);
  const send = (ctx: RouteContext, name: string, caching: string): void => {
    if (!isOpen && !isLocal(ctx.req))
      throw new GatewayError(
        'permission_denied',
        'The console is only shown on the machine of the gateway. "console: { remote: true }" in the configuration shows it to others too.',
      );
    const file = read(name);
    if (!file) throw missing(name);
    const isZipped = ctx.acceptsEncodings('gzip', 'identity') === 'gzip';
    ctx.set({
      'content-security-policy': POLICY,
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cache-control': caching,
      vary: 'accept-encoding',
      ...(isZipped && { 'content-encoding': 'gzip' }),
    });
    ctx.type = TYPES[path.extname(name)] ?? 'application/octet-stream';
    ctx.body = isZipped ? file.zipped : file.bytes;
  };
  return [
    {
      method: 'GET',
      path: '/console',
      auth: 'none',
      summary: 'The operators’ console',
      responses: { 200: { description: 'A page.', contentType: 'text/html' } },
      handler: (ctx) => send(ctx, 'index.html', 'no-cache'),
    },
    {
      method: 'GET',
      path: '/console/assets/:file',
      auth: 'none',
      summary: 'A file of the console',
      responses: { 200: { description: 'A script, a style or a picture.', contentType: 'text/javascript' } },
      handler: (ctx) => send(ctx, `assets/${ctx.params['file'] ?? ''}`, 'public, max-age=31536000, immutable'),
    },
  ];
}

/** Reads the files of the build, each once; other names do not exist. */
function createReader(folder: string | undefined, basePath: string): (name: string) => File | undefined {
  if (folder === undefined || !existsSync(path.join(folder, 'index.html'))) return () => undefined;
  const names = new Set(['index.html', ...readdirSync(path.join(folder, 'assets')).map((name) => `assets/${name}`)]);
  const known = new Map<string, File>();
  return (name) => {
    if (!names.has(name)) return undefined;
    const found = known.get(name);
    if (found) return found;
    const built = readFileSync(path.join(folder, name));
    // The page names its files from the root; the files use relative paths.
    const isPage = name === 'index.html' && basePath !== '';
    const bytes = isPage ? Buffer.from(built.toString().replaceAll('"/console/', `"${basePath}/console/`)) : built;
    const file = { bytes, zipped: gzipSync(bytes) };
    known.set(name, file);
    return file;
  };
}

function missing(name: string): GatewayError {
  if (name !== 'index.html') return new GatewayError('not_found', 'The console has no such file. Reload the page.');
  return new GatewayError('feature_disabled', 'The pages of the console are not built. Run: npm run build');
}
