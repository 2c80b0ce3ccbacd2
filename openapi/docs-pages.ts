import { createReadStream, existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { PACKAGE_ROOT } from '../config/package-root.ts';
import type { Route } from '../core/contract/plugin.ts';

const CONFIG_FILE = path.join(PACKAGE_ROOT, 'dist', 'assets', 'config.html');

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

/** `/docs`: the OpenAPI document in RapiDoc, and the keys of the configuration; from this machine only. */
export function docsRoutes(): readonly Route[] {
  const page = (path: string, summary: string, contentType: string, read: () => string | Readable): Route => ({
    method: 'GET',
    path,
    summary,
    auth: 'none',
    responses: { 200: { description: 'OK.', contentType } },
    handler(ctx) {
      ctx.set({ 'content-security-policy': POLICY, 'x-content-type-options': 'nosniff' });
      if (contentType === 'text/javascript') ctx.set('cache-control', 'max-age=3600');
      ctx.type = `${contentType}; charset=utf-8`;
      ctx.body = read();
    },
  });
  return [
    page('/docs', 'The API as a page', 'text/html', () => PAGE),
    page('/docs/viewer.js', 'The script of /docs', 'text/javascript', () => createReadStream(viewerFile())),
    // The build makes it; a gateway that runs from its sources has none.
    ...(existsSync(CONFIG_FILE)
      ? [page('/docs/config', 'The keys of the configuration', 'text/html', () => createReadStream(CONFIG_FILE))]
      : []),
  ];
}

/** The viewer's script: copied into `dist/assets` by the build, in `node_modules` when run from source. */
function viewerFile(): string {
  const built = path.join(PACKAGE_ROOT, 'dist', 'assets', 'rapidoc-min.js');
  return existsSync(built) ? built : createRequire(import.meta.url).resolve('rapidoc/dist/rapidoc-min.js');
}
