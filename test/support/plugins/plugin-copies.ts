import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { isBuiltin } from 'node:module';
import path from 'node:path';
import { PACKAGE_ROOT } from '../../../config/package-root.ts';

/** Built-in plugins that a third party could have written, because they use only public entries. */
export const COPIED: readonly { readonly section: string; readonly name: string; readonly file: string }[] = [
  { section: 'auth', name: 'api-key', file: 'auth/api-key' },
  { section: 'policies', name: 'metrics', file: 'policies/metrics' },
  { section: 'policies', name: 'limits', file: 'policies/limits' },
  { section: 'policies', name: 'accounts', file: 'policies/accounts' },
  { section: 'operations', name: 'embeddings', file: 'operations/embeddings.ts' },
  { section: 'operations', name: 'speech', file: 'operations/speech' },
  ...readdirSync(path.join(PACKAGE_ROOT, 'plugins/dialects'))
    .filter((file) => file !== 'kit')
    .map((file) => ({ section: 'dialects', name: path.basename(file, '.ts'), file: `dialects/${file}` })),
];

/** Folder of copies that test gateways load in place of the built-in plugins; the suites run unchanged. */
export const COPIES_VARIABLE = 'TOLLGATE_TEST_COPIES';

/** Configuration with copies in place of the built-in plugins, if the environment names a folder of them. */
export function withCopies(config: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const folder = process.env[COPIES_VARIABLE];
  if (folder === undefined) return config;
  const changed: Record<string, unknown> = { ...config };
  for (const { section, name, file } of COPIED) {
    const group = (changed[section] ?? {}) as Readonly<Record<string, object | boolean | undefined>>;
    const own = group[name];
    // API keys are enabled if they are configured, the others unless they are disabled.
    if (own === false || (section === 'auth' && own === undefined)) continue;
    const options = typeof own === 'object' ? own : {};
    changed[section] = { ...group, [name]: { ...options, plugin: entryOf(folder, file) } };
  }
  return changed;
}

/** File that a configuration names. */
export const entryOf = (folder: string, file: string): string =>
  path.join(folder, file.endsWith('.ts') ? file : path.join(file, 'index.ts'));

/** Copy of one plugin; throws for a plugin that is not copied. */
export function copyOf(folder: string, section: string, name: string): string {
  const copied = COPIED.find((one) => one.section === section && one.name === name);
  if (!copied) throw new Error(`${section}/${name} is not among the plugins that are copied`);
  return entryOf(folder, copied.file);
}

/** Imports of a third party in place of this repository's files. */
const PUBLIC: readonly (readonly [file: RegExp, entry: string])[] = [
  [/(['"])(?:\.\.\/)+contract\/index\.ts\1/g, 'tollgate'],
  [/(['"])(?:\.\.\/)+contract\/operators\.ts\1/g, 'tollgate/operators'],
  [/(['"])(?:\.\.\/)+policies\/kit\/index\.ts\1/g, 'tollgate/operators'],
  [/(['"])(?:\.\.\/)+providers\/kit\/index\.ts\1/g, 'tollgate/codec'],
  [/(['"])(?:\.\.\/)+formats\/kit\/index\.ts\1/g, 'tollgate/codec'],
  [/(['"])(?:\.\.\/)+contract\/event-reader\.ts\1/g, 'tollgate/codec'],
  [/(['"])(?:\.\.\/)+tts\/kit\/index\.ts\1/g, 'tollgate/speech'],
];

/** Imports from outside a plugin's own kind, which no third party could write. */
const FOREIGN = /from '(\.\.\/\.\.\/\.\.\/[^']*|(?:\.\.\/)+(?:contract|core)\/[^']*)'/g;

/**
 * Copies built-in plugins (`auth/api-key`, `dialects/chat.ts`) into a folder outside the repository, with the kits of
 * their kind, as a third party would have written them. This package is imported by name, other packages from a
 * separate `node_modules`. Returns the remaining imports of this repository, which must be empty.
 */
export function copyPlugins(plugins: readonly string[], folder: string): readonly string[] {
  const kits = ['formats', ...plugins.map((plugin) => path.join(path.dirname(plugin), 'kit'))];
  const copied = new Set([...plugins, ...kits.filter((kit) => existsSync(path.join(PACKAGE_ROOT, 'plugins', kit)))]);
  const left: string[] = [];
  for (const plugin of copied) {
    const target = path.join(folder, plugin);
    mkdirSync(path.dirname(target), { recursive: true });
    cpSync(path.join(PACKAGE_ROOT, 'plugins', plugin), target, { recursive: true });
    for (const file of filesOf(target)) {
      let text = readFileSync(file, 'utf8');
      for (const [pattern, entry] of PUBLIC) text = text.replace(pattern, `'${entry}'`);
      writeFileSync(file, text);
      left.push(...[...text.matchAll(FOREIGN)].map(([, name]) => `${path.relative(folder, file)}: ${name}`));
      for (const [, name = ''] of text.matchAll(/from '([^.'][^']*)'/g)) linkPackage(name, folder);
    }
  }
  return left;
}

function filesOf(place: string): readonly string[] {
  if (!statSync(place).isDirectory()) return [place];
  return readdirSync(place, { recursive: true, encoding: 'utf8' })
    .map((name) => path.join(place, name))
    .filter((file) => file.endsWith('.ts'));
}

/** Links a package as if it were installed there; never this one. */
function linkPackage(specifier: string, folder: string): void {
  const name = /^(@[^/]+\/)?[^/]+/.exec(specifier)?.[0] ?? specifier;
  if (name === 'tollgate' || isBuiltin(specifier)) return;
  const link = path.join(folder, 'node_modules', name);
  if (existsSync(link)) return;
  mkdirSync(path.dirname(link), { recursive: true });
  symlinkSync(path.join(PACKAGE_ROOT, 'node_modules', name), link);
}
