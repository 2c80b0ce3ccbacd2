import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { PluginSchema } from '../../config/core-schema.ts';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { bundleFiles } from '../../openapi/docs-bundle.ts';
import { renderDocsSite } from '../../openapi/pages/docs-site.ts';
import { renderConfigPage } from './config-page.ts';

/**
 * Bundles everything that a gateway serves at `/docs` into one file: the API viewer, the page of all keys, the docs
 * pages.
 */
export function bundleDocs(plugins: readonly PluginSchema[]): Buffer {
  const files = new Map<string, Buffer>([
    ['config.html', Buffer.from(renderConfigPage(plugins))],
    ['viewer.js', readFileSync(path.join(PACKAGE_ROOT, 'node_modules/rapidoc/dist/rapidoc-min.js'))],
  ]);
  for (const [name, bytes] of renderDocsSite(PACKAGE_ROOT)) files.set(`docs/${name}`, bytes);
  return bundleFiles(files);
}
