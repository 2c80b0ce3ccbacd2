import { unwatchFile, watchFile } from 'node:fs';
import type { ReloadControl } from '../config/reload-report.ts';
import type { CommandContext } from './commands.ts';
import { type ControlWork, openControl } from './control.ts';
import { loadFor } from './load.ts';
import { createReloader, type ReloaderDeps } from './reloader.ts';

/** The ways in which a running gateway is told to reload. */
export interface Reloads {
  /** By a signal. */
  reload(): void;
  /** For the admin API. */
  readonly control: ReloadControl;
  close(): void;
}

/** Opens the ways to reload: a signal, `tollgate reload`, and files that change where the configuration says so. */
export async function startReloads(
  context: Pick<CommandContext, 'globals'>,
  deps: Omit<ReloaderDeps, 'read'> & Pick<ControlWork, 'routing'>,
): Promise<Reloads> {
  const { loaded, log } = deps;
  const files = loaded.config.server.watch ? watchFiles(() => void reloader.reload('a file was changed')) : undefined;
  const watch = ({ raw }: typeof loaded): void => files?.watch([...raw.files, ...raw.texts.keys()]);
  const reloader = createReloader({
    ...deps,
    read: () => loadFor(context),
    async swap(next) {
      await deps.swap(next);
      watch(next);
    },
  });
  watch(loaded);
  const { routing } = deps;
  const closeControl = await openControl(loaded.settings.dataDir, { reloader, routing }, log);
  return {
    reload: () => void reloader.reload('SIGHUP'),
    control: reloader,
    close() {
      closeControl();
      files?.close();
    },
  };
}

/** How often files are looked at. By their state and not by events: those miss mounted volumes, and files that are replaced. */
const LOOK_MS = 1000;

/** What an editor or a deployment writes in one go is one change. */
const QUIET_MS = 300;

/** Files that are looked at; which ones may change with what they say. */
interface FileWatch {
  watch(files: readonly string[]): void;
  close(): void;
}

/** Tells when a file was changed, came or went, once for changes that come together. Keeps no process alive. */
function watchFiles(onChange: () => void): FileWatch {
  let watched: ReadonlySet<string> = new Set();
  let quiet: NodeJS.Timeout | undefined;
  const notice = (): void => {
    clearTimeout(quiet);
    quiet = setTimeout(onChange, QUIET_MS).unref();
  };
  const watch = (files: readonly string[]): void => {
    const wanted = new Set(files);
    for (const file of watched) if (!wanted.has(file)) unwatchFile(file, notice);
    for (const file of wanted)
      if (!watched.has(file)) watchFile(file, { interval: LOOK_MS, persistent: false }, notice);
    watched = wanted;
  };
  return {
    watch,
    close() {
      watch([]);
      clearTimeout(quiet);
    },
  };
}
