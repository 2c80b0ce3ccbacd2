import type { ReloadControl } from '../config/reload-report.ts';
import type { CommandContext } from './commands.ts';
import { type ControlWork, openControl } from './control.ts';
import { loadFor } from './load.ts';
import { createReloader, type ReloaderDeps } from './reloader.ts';
import { watchFiles } from './watch-files.ts';

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
