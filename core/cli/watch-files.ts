import { unwatchFile, watchFile } from 'node:fs';

/** How often files are looked at. By their state and not by events: those miss mounted volumes, and files that are replaced. */
const LOOK_MS = 1000;

/** What an editor or a deployment writes in one go is one change. */
const QUIET_MS = 300;

/** Files that are looked at; which ones may change with what they say. */
export interface FileWatch {
  watch(files: readonly string[]): void;
  close(): void;
}

/** Tells when a file was changed, came or went, once for changes that come together. Keeps no process alive. */
export function watchFiles(onChange: () => void): FileWatch {
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
