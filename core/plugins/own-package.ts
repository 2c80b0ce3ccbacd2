import { existsSync, readFileSync } from 'node:fs';
import * as nodeModule from 'node:module';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { PACKAGE_ROOT } from '../config/package-root.ts';

/** What this package exports, as `tollgate/codec` and its file; from the source where this package runs from its source. */
function ownEntries(): Readonly<Record<string, string>> {
  const { exports } = JSON.parse(readFileSync(path.join(PACKAGE_ROOT, 'package.json'), 'utf8')) as {
    readonly exports: Readonly<Record<string, string | { readonly default: string }>>;
  };
  const isSource = fileURLToPath(import.meta.url).endsWith('.ts');
  return Object.fromEntries(
    Object.entries(exports).flatMap(([name, target]) => {
      if (typeof target === 'string') return [];
      const built = path.join(PACKAGE_ROOT, target.default);
      const source = path.join(PACKAGE_ROOT, target.default.replace('./dist/', '').replace(/\.js$/, '.ts'));
      const file = isSource && existsSync(source) ? source : built;
      return [[`tollgate${name.slice(1)}`, file]];
    }),
  );
}

/** What only tests of plugins import; it is not loaded for any other. */
const KIT = 'tollgate/conformance';

/** This package for jiti: the modules that run here already, and not a second copy of each. */
export async function ownModules(): Promise<{
  readonly virtualModules: Record<string, unknown>;
  readonly alias: Record<string, string>;
}> {
  const { [KIT]: kit, ...entries } = ownEntries();
  const modules = Object.entries(entries).map(
    async ([name, file]): Promise<readonly [string, unknown]> => [name, await import(pathToFileURL(file).href)],
  );
  return {
    virtualModules: Object.fromEntries(await Promise.all(modules)),
    alias: kit === undefined ? {} : { [KIT]: kit },
  };
}

type Resolve = (specifier: string, context: unknown) => { url: string; format?: string };

/** In Node since 22.15; the types are those of Node 20. */
interface HookingModule {
  registerHooks?(hooks: { resolve: (specifier: string, context: unknown, next: Resolve) => unknown }): unknown;
}

let resolved: Promise<void> | undefined;

/**
 * Lets plugin files find `tollgate` wherever they lie: beside a global install or in a container there is no `node_modules` above
 * them. A copy that is installed there is found first.
 */
export function resolveOwnPackage(): Promise<void> {
  resolved ??= registerResolver();
  return resolved;
}

async function registerResolver(): Promise<void> {
  const entries = Object.fromEntries(
    Object.entries(ownEntries()).map(([name, file]) => [name, pathToFileURL(file).href]),
  );
  const { registerHooks } = nodeModule as HookingModule;
  if (!registerHooks) {
    // Node 20: the hook runs in a thread of its own and gets the table as data.
    nodeModule.register(`data:text/javascript,${encodeURIComponent(RESOLVER)}`, { data: entries });
    return;
  }
  registerHooks({
    resolve(specifier, context, next) {
      const own = entries[specifier];
      if (own === undefined) return next(specifier, context);
      try {
        return next(specifier, context);
      } catch {
        return next(own, context);
      }
    },
  });
}

const RESOLVER = `
let entries = {};
export function initialize(data) { entries = data; }
export async function resolve(specifier, context, next) {
  const own = entries[specifier];
  if (own === undefined) return next(specifier, context);
  try { return await next(specifier, context); } catch { return next(own, context); }
}`;
