import type { Log } from '../../../core/index.ts';

/** A file that is passed over, and why. */
export interface Notice {
  readonly source: string;
  readonly reason: string;
}

/** The most files that are named at one look. */
const MAX_NAMED = 50;

/** Says which files are passed over: each once, and again when the reason changed. */
export function createNotices(log: Log): (notices: readonly Notice[]) => void {
  let said = new Map<string, string>();
  return (notices) => {
    const fresh = notices.filter(({ source, reason }) => said.get(source) !== reason);
    said = new Map(notices.map(({ source, reason }) => [source, reason]));
    for (const notice of fresh.slice(0, MAX_NAMED)) log.warn({ ...notice }, 'a file of the knowledge base is skipped');
    if (fresh.length > MAX_NAMED)
      log.warn({ files: fresh.length - MAX_NAMED }, 'more files of the knowledge base are skipped');
  };
}
