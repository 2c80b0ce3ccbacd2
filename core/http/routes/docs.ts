import { createReadStream, existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { PACKAGE_ROOT } from '../../config/sources.ts';
import type { Route } from '../../contract/plugin.ts';

/** Nothing but this origin: the viewer needs inline styles, and `connect-src` lets it try requests out. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'";

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Tollgate API</title>
<script type="module" src="/docs/viewer.js"></script>
</head>
<body>
<rapi-doc spec-url="/openapi.json" render-style="read" theme="light" show-header="false" load-fonts="false" allow-server-selection="false" allow-authentication="true"></rapi-doc>
</body>
</html>
`;

/** `/docs`: the OpenAPI document in RapiDoc, from this machine only. */
export function docsRoutes(): readonly Route[] {
  const page = (path: string, contentType: string, handler: Route['handler']): Route => ({
    method: 'GET',
    path,
    summary: path === '/docs' ? 'The API as a page' : 'The script of /docs',
    auth: 'none',
    responses: { 200: { description: 'OK.', contentType } },
    handler,
  });
  return [
    page('/docs', 'text/html', (ctx) => {
      ctx.set({ 'content-security-policy': POLICY, 'x-content-type-options': 'nosniff' });
      ctx.type = 'text/html; charset=utf-8';
      ctx.body = PAGE;
    }),
    page('/docs/viewer.js', 'text/javascript', (ctx) => {
      ctx.set({ 'x-content-type-options': 'nosniff', 'cache-control': 'max-age=3600' });
      ctx.type = 'text/javascript; charset=utf-8';
      ctx.body = createReadStream(viewerFile());
    }),
  ];
}

/** The viewer's script: copied into `dist/assets` by the build, in `node_modules` when run from source. */
function viewerFile(): string {
  const built = path.join(PACKAGE_ROOT, 'dist', 'assets', 'rapidoc-min.js');
  return existsSync(built)
    ? built
    : path.join(path.dirname(createRequire(import.meta.url).resolve('rapidoc/package.json')), 'dist', 'rapidoc-min.js');
}
