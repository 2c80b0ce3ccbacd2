import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { LoadedConfig } from '../../config/load-config.ts';
import { CODE_ROOT } from '../../config/package-root.ts';
import { ownerOf, runningPlugin } from './attribution.ts';

/**
 * Returns the plugin of an uncaught error: the running plugin, else the first plugin file in the stack. The latter covers listeners
 * on a request, which run without information on who added them. Undefined for core's own errors.
 */
export function findStrayOwner(error: unknown, loaded: LoadedConfig): string | undefined {
  return (
    ownerOf(error) ?? runningPlugin() ?? (error instanceof Error ? findInStack(error.stack ?? '', loaded) : undefined)
  );
}

/** Skips frames of libraries: they run on behalf of their callers. */
function findInStack(stack: string, loaded: LoadedConfig): string | undefined {
  const places = placesOf(loaded);
  const own = ['contract', 'core', 'config', 'cli', 'openapi', 'routing', 'egress', 'models'].map(
    (room) => path.join(CODE_ROOT, room) + path.sep,
  );
  for (const frame of stack.split('\n').filter((line) => /^\s+at /.test(line))) {
    const text = frame.replaceAll('%20', ' ');
    const found = places.find(({ place }) => text.includes(place));
    if (found) return found.owner;
    if (own.some((folder) => text.includes(folder))) return undefined;
  }
  return undefined;
}

/** Returns the location of each instance's code: a file, or a folder with its separator. */
function placesOf({ config, builtins }: LoadedConfig): readonly { readonly owner: string; readonly place: string }[] {
  return config.instances.map(({ name: owner, kind, plugin }) => {
    const builtin = builtins.find((each) => each.kind === kind && each.name === plugin);
    if (builtin) return { owner, place: placeOf(fileURLToPath(builtin.url)) };
    if (/^file:/.test(plugin)) return { owner, place: placeOf(fileURLToPath(plugin)) };
    if (/^\.{0,2}\//.test(plugin) || path.isAbsolute(plugin))
      return { owner, place: placeOf(path.resolve(config.baseDir, plugin)) };
    return { owner, place: path.join(path.sep, 'node_modules', plugin, path.sep) };
  });
}

function placeOf(file: string): string {
  return /^index\.[cm]?[jt]s$/.test(path.basename(file)) ? path.dirname(file) + path.sep : file;
}
