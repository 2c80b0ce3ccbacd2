import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Builtin } from './builtins.ts';
import { didYouMean } from './nearest.ts';
import { API_VERSION, PLUGIN_KINDS, type Plugin, type PluginKind } from './plugin.ts';

export interface ImportOptions {
  readonly kind: PluginKind;
  readonly builtins: readonly Builtin[];
  /** Where packages are looked for and what paths are relative to: the configuration file's folder. Absolute. */
  readonly baseDir: string;
}

/** Where a plugin of each kind is named. */
const SECTIONS: Readonly<Record<string, string>> = Object.freeze({
  provider: 'Name it under "providers".',
  auth: 'Name it under "auth".',
  agent: 'Name it under "agents".',
  tts: 'Name it under "tts".',
  policy: 'Name it under "policies", or in "plugins" when it needs no options.',
  store: 'Name it as "store: { plugin: … }".',
});

/** A plugin that cannot be imported; the message continues a sentence that begins with its place in the configuration. */
export class PluginImportError extends Error {
  override readonly name = 'PluginImportError';
  readonly hint: string | undefined;

  constructor(message: string, hint?: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.hint = hint;
  }
}

/**
 * Imports the plugin that a configuration calls `spec`: the built-in of this name and kind, an npm package (a plain
 * name) looked for from `baseDir`, or anything with `.`, `/` or `@` as it is written. Throws a {@link PluginImportError}
 * when it is not there, cannot be loaded, or is no plugin of this kind and API version. Nothing is guessed.
 */
export async function importPlugin(spec: string, options: ImportOptions): Promise<Plugin> {
  const builtin = options.builtins.find(({ kind, name }) => kind === options.kind && name === spec);
  const url = builtin?.url ?? (isPath(spec) ? resolvePath(spec, options.baseDir) : await resolvePackage(spec, options));
  return checkPlugin(await load(url, spec, builtin !== undefined), spec, options.kind);
}

function isPath(spec: string): boolean {
  return (
    /^\.{0,2}\//.test(spec) || /^[a-z][a-z0-9+.-]*:/i.test(spec) || /\.[mc]?[jt]s$/.test(spec) || path.isAbsolute(spec)
  );
}

function resolvePath(spec: string, baseDir: string): string {
  if (path.isAbsolute(spec)) return pathToFileURL(spec).href;
  if (/^[a-z][a-z0-9+.-]*:/i.test(spec)) return spec;
  return pathToFileURL(path.resolve(baseDir, spec)).href;
}

async function resolvePackage(spec: string, { kind, builtins, baseDir }: ImportOptions): Promise<string> {
  const { createJiti } = await import('jiti');
  const parent = pathToFileURL(path.join(baseDir, 'tollgate.config.js')).href;
  const url = createJiti(parent).esmResolve(spec, { parentURL: parent, try: true });
  if (url !== undefined) return url;
  const sameKind = builtins.filter((builtin) => builtin.kind === kind).map(({ name }) => name);
  const near = didYouMean(spec, sameKind);
  // A near miss is a typing error: nobody should install whatever package has that name.
  if (near !== undefined) throw new PluginImportError(`there is no built-in ${kind} plugin "${spec}"`, near);
  throw new PluginImportError(
    `there is no built-in ${kind} plugin "${spec}", and no package of this name is installed`,
    `Run: npm install ${spec}. Or say which plugin it is with "plugin:" (built in: ${sameKind.join(', ') || 'none'}).`,
  );
}

async function load(url: string, spec: string, isBuiltin: boolean): Promise<unknown> {
  try {
    const module: Readonly<Record<string, unknown>> = await importModule(url, isBuiltin);
    const exported = module['default'];
    return isObject(exported) && isObject(exported['default']) ? exported['default'] : exported;
  } catch (error) {
    const reason = error instanceof Error ? error.message.split('\n')[0] : String(error);
    const isMissing = url.startsWith('file:') && (error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND';
    const hint = isMissing ? 'Check the path; a relative one is relative to the configuration file.' : undefined;
    throw new PluginImportError(`the plugin "${spec}" cannot be loaded: ${reason}`, hint, error);
  }
}

/** Built-ins load as this package itself does; other people's TypeScript goes through jiti. */
async function importModule(url: string, isBuiltin: boolean): Promise<Readonly<Record<string, unknown>>> {
  if (isBuiltin || !/^file:.*\.[mc]?ts$/.test(url)) return await import(url);
  const { createJiti } = await import('jiti');
  return await createJiti(import.meta.url, { fsCache: false }).import(fileURLToPath(url));
}

function checkPlugin(value: unknown, spec: string, kind: PluginKind): Plugin {
  const fail = (message: string, hint?: string) => new PluginImportError(`"${spec}" ${message}`, hint);
  if (!isObject(value)) {
    throw fail('is no plugin: its default export is missing or no object', 'Export default definePlugin({ … }).');
  }
  const { name, apiVersion, setup, configSchema } = value;
  if (typeof name !== 'string' || name === '') throw fail('is no plugin: it has no "name"');
  if (apiVersion !== API_VERSION) {
    throw fail(
      `speaks plugin API ${String(apiVersion)}, this gateway speaks ${API_VERSION}`,
      'Install a version of the plugin, or of Tollgate, that speaks the other’s.',
    );
  }
  if (!PLUGIN_KINDS.some((known) => known === value['kind'])) {
    throw fail(`is of the unknown kind "${String(value['kind'])}"`, `Kinds are ${PLUGIN_KINDS.join(', ')}.`);
  }
  if (value['kind'] !== kind)
    throw fail(`is a ${String(value['kind'])} plugin, not a ${kind} plugin`, SECTIONS[String(value['kind'])]);
  if (typeof setup !== 'function') throw fail('is no plugin: it has no "setup" function');
  if (configSchema !== undefined && !isObject(configSchema)) throw fail('has a "configSchema" that is no object');
  return value as unknown as Plugin;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
