import type { ConfigChange } from './diff.ts';

/** What a reload came to, or would come to. */
export interface ReloadReport {
  /** The configuration's name for people. */
  readonly file: string;
  /** Whether it serves now; a trial changes nothing. */
  readonly isReloaded: boolean;
  readonly changes: readonly ConfigChange[];
  /** Why the former configuration goes on. */
  readonly problem?: string;
  /** The same in words that anybody may read: without paths, and not too long. */
  readonly summary?: string;
}

/** Reads the configuration of a running gateway anew. Nothing rejects: what is wrong is in the report. */
export interface ReloadControl {
  /** Goes on with it; one after the other. `cause` is for the log. */
  reload(cause: string): Promise<ReloadReport>;
  /** What a reload would change; changes nothing. */
  compare(): Promise<ReloadReport>;
}
