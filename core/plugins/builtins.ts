import { existsSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { PluginKind } from '../contract/plugin.ts';

/** A plugin that comes with the package. */
export interface Builtin {
  readonly kind: PluginKind;
  /** Its file's or folder's name, and so its name in a configuration. */
  readonly name: string;
  /** The `file:` URL of its module. */
  readonly url: string;
}

const FOLDERS: Readonly<Record<PluginKind, string>> = Object.freeze({
  provider: 'providers',
  auth: 'auth',
  agent: 'agents',
  tts: 'tts',
  operation: 'operations',
  dialect: 'dialects',
  policy: 'policies',
  store: 'stores',
});

/** Folders with what plugins of one kind share: never plugins themselves. */
const SHARED: ReadonlySet<string> = new Set(['kit', 'parts']);

/** All built-in plugins, found by reading the folders of `plugins/`; sorted by kind and name. */
export function listBuiltins(root: URL = new URL('../../plugins/', import.meta.url)): readonly Builtin[] {
  return Object.entries(FOLDERS).flatMap(([kind, folder]) => {
    const base = new URL(`${folder}/`, root);
    if (!existsSync(base)) return [];
    return readdirSync(base, { withFileTypes: true })
      .filter(({ name }) => !SHARED.has(name))
      .flatMap((entry): readonly Builtin[] => {
        const file = entry.isDirectory() ? indexOf(new URL(`${entry.name}/`, base)) : new URL(entry.name, base);
        const name = entry.isDirectory() ? entry.name : moduleName(entry.name);
        return file && name ? [{ kind: kind as PluginKind, name, url: file.href }] : [];
      })
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  });
}

function indexOf(folder: URL): URL | undefined {
  return ['index.ts', 'index.js'].map((name) => new URL(name, folder)).find((file) => existsSync(fileURLToPath(file)));
}

/** `openai` of `openai.ts` or `openai.js`; declarations, maps and tests are no modules. */
function moduleName(file: string): string | undefined {
  return /^([\w-]+)\.[jt]s$/.exec(file)?.[1];
}
