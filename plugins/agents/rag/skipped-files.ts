import type { Log } from '../../../core/index.ts';

/** A file that is skipped, and why. */
export interface SkippedFile {
  readonly source: string;
  readonly reason: string;
}

/** The most files that are named at one check. */
const MAX_NAMED = 50;

/** Logs which files are skipped: each once, and again when the reason changed. */
export function createSkippedReporter(log: Log): (files: readonly SkippedFile[]) => void {
  let reported = new Map<string, string>();
  return (files) => {
    const fresh = files.filter(({ source, reason }) => reported.get(source) !== reason);
    reported = new Map(files.map(({ source, reason }) => [source, reason]));
    for (const file of fresh.slice(0, MAX_NAMED)) log.warn({ ...file }, 'a file of the knowledge base is skipped');
    if (fresh.length > MAX_NAMED)
      log.warn({ files: fresh.length - MAX_NAMED }, 'more files of the knowledge base are skipped');
  };
}
