import { stat } from 'node:fs/promises';
import type { LoadedConfig } from '../config/load-config.ts';
import { ConfigError } from '../config/problems.ts';
import { rereadSecrets } from '../config/secrets.ts';
import type { AuditActor, AuditChange } from '../contract/audit.ts';
import type { ConfigChange } from '../contract/config-changes.ts';
import type { ReloadControl, ReloadReport } from '../contract/gateway.ts';
import type { Log } from '../contract/plugin.ts';
import { connect } from '../egress/http-client.ts';
import { type ControlWork, openControl } from './cluster/control.ts';
import { diffConfigs } from './config-diff.ts';
import { createDrafts, type DraftDeps } from './config-drafts.ts';
import type { CommandContext } from './io.ts';
import { describeError } from './io.ts';
import { HERE, loadFor } from './load.ts';
import { publicProblems } from './public-problems.ts';
import { certificateWarnings, egressWarnings, logWarnings } from './warnings.ts';

interface Reloader extends ReloadControl {
  /** Active configuration. */
  readonly current: LoadedConfig;
}

export interface ReloaderDeps {
  /** Active configuration. */
  readonly loaded: LoadedConfig;
  readonly log: Log;
  /** Reads and checks the configuration files; a text replaces the content of the main one. */
  read(text?: string): Promise<LoadedConfig>;
  /** Checks what a start would refuse; resolves with warnings. */
  readonly inspect: DraftDeps['inspect'];
  /** Builds it while the current one serves, then activates it in all workers or in none. */
  swap(next: LoadedConfig): Promise<void>;
  /** Records why the last reload was refused, without secrets; undefined if it succeeded. */
  note(problem: string | undefined): void;
  /** Writes an entry to the audit log. */
  audit(change: AuditChange): Promise<void>;
}

/** Reloads the configuration of a running gateway. Problems are reported and the former configuration stays active. */
export function createReloader({ loaded, log, read, inspect, swap, note, audit }: ReloaderDeps): Reloader {
  let current = loaded;
  let problemOfLast: string | undefined;
  const lastProblem = {
    get: () => problemOfLast,
    set(problem: string | undefined) {
      problemOfLast = problem;
      note(problem);
    },
  };
  const readNext = async (): Promise<LoadedConfig> => {
    const next = await read();
    // Starting without a file means the built-in configuration; losing the file later does not.
    if (next.raw.isDefault && !current.raw.isDefault)
      throw new ConfigError([{ file: current.config.file, path: '', message: 'was removed', hint: 'Restore it.' }]);
    return next;
  };
  // Settings that cannot change at run time are compared with those at the start of the process.
  const compareWith = (next: LoadedConfig): readonly ConfigChange[] => {
    const changes = diffConfigs(current.config, next.config).filter(({ needsRestart }) => !needsRestart);
    return [...changes, ...diffConfigs(loaded.config, next.config).filter(({ needsRestart }) => needsRestart)];
  };
  const attempt = async (cause: string, actor: AuditActor): Promise<ReloadReport> => {
    try {
      const next = await readNext();
      const changes = compareWith(next);
      await swap(next);
      current = next;
      lastProblem.set(undefined);
      logChanges(log, cause, next, changes);
      const { file } = next.config;
      return {
        file,
        isReloaded: true,
        changes,
        isInAudit: await writeReload({ log, audit }, { actor, cause, file, changes }),
      };
    } catch (error) {
      const problem = describeError(error).join('\n');
      const summary = describePublicly(error);
      lastProblem.set(summary);
      log.error({ cause, problem }, 'the configuration was not reloaded; the previous one stays active');
      return { file: current.config.file, isReloaded: false, changes: [], problem, summary };
    }
  };
  let last: Promise<unknown> = Promise.resolve();
  const reload = (cause: string, actor: AuditActor): Promise<ReloadReport> => {
    const report = last.then(() => attempt(cause, actor));
    last = report;
    return report;
  };
  return {
    get current() {
      return current;
    },
    reload,
    drafts: createDrafts({ current: () => current, read, inspect, compareWith, reload, lastProblem, audit, log }),
    async compare() {
      try {
        const next = await readNext();
        return { file: next.config.file, isReloaded: false, changes: compareWith(next) };
      } catch (error) {
        const problem = describeError(error).join('\n');
        return { file: current.config.file, isReloaded: false, changes: [], problem, summary: describePublicly(error) };
      }
    },
  };
}

/** Writes a reload to the audit log; resolves with whether it succeeded. */
async function writeReload(
  { log, audit }: Pick<ReloaderDeps, 'log' | 'audit'>,
  { actor, cause, file, changes }: Pick<ReloadReport, 'file' | 'changes'> & { actor: AuditActor; cause: string },
): Promise<boolean> {
  const rows = changes.map(({ needsRestart, ...change }) => ({ ...change, needs_restart: needsRestart }));
  try {
    await audit({ actor, action: 'configuration.reload', subject: file, after: { cause, changes: rows } });
    return true;
  } catch (error) {
    log.error({ err: error, cause, file }, 'a reload is missing in the audit log: the store did not accept the entry');
    return false;
  }
}

/** Most changes named in the log. */
const MAX_NAMED = 20;

function logChanges(log: Log, cause: string, { config }: LoadedConfig, changes: readonly ConfigChange[]): void {
  const pathsOf = (needsRestart: boolean): readonly string[] =>
    changes.filter((change) => change.needsRestart === needsRestart).map(({ path }) => path);
  const [changed, waiting] = [pathsOf(false), pathsOf(true)];
  log.info(
    { cause, file: config.file, changes: changed.length, changed: changed.slice(0, MAX_NAMED) },
    'the configuration was reloaded',
  );
  if (waiting.length > 0) log.warn({ paths: waiting.slice(0, MAX_NAMED) }, 'configuration changes that need a restart');
  logWarnings(log, [...certificateWarnings(config.server), ...egressWarnings(config.instances)]);
}

/** Most problems shown by `/readyz`, which needs no credential. */
const MAX_SHOWN = 3;
const MAX_LENGTH = 600;

function describePublicly(error: unknown): string {
  const lines = publicProblems(error);
  const more = lines.length > MAX_SHOWN ? [`and ${lines.length - MAX_SHOWN} more`] : [];
  const text = [...lines.slice(0, MAX_SHOWN), ...more].join(' ');
  return `the configuration was rejected; the previous one stays active: ${text.slice(0, MAX_LENGTH)}`;
}

/** Actor of reloads by file or signal: the person is unknown. */
const BY_FILE: AuditActor = Object.freeze({ via: 'file' });

/** Triggers of a reload of a running gateway. */
export interface Reloads {
  /** Called on a signal. */
  reload(): void;
  /** Used by the admin API. */
  readonly control: ReloadControl;
  close(): void;
}

/** Opens the triggers of a reload: a signal, `tollgate reload`, and file changes if the configuration enables them. */
export async function startReloads(
  context: Pick<CommandContext, 'globals'>,
  deps: Omit<ReloaderDeps, 'read'> & Pick<ControlWork, 'routing' | 'processStates'>,
): Promise<Reloads> {
  const { loaded, log } = deps;
  const files = loaded.config.server.watch
    ? watchFiles(() => void reloader.reload('a file was changed', BY_FILE), TIMING)
    : undefined;
  // Secrets that the watch found changed, so that secret managers are not called a second time.
  let given: LoadedConfig['raw']['secrets'] | undefined;
  const secrets = watchSecrets(log, async (next) => {
    given = next;
    await reloader.reload('a secret was changed', BY_FILE);
    given = undefined;
  });
  const watch = (next: LoadedConfig): void => {
    files?.watch([...next.raw.files, ...next.raw.texts.keys()]);
    secrets.watch(next);
  };
  const reloader = createReloader({
    ...deps,
    read: (text) => loadFor(context, { ...HERE, secrets: given, text }),
    async swap(next) {
      await deps.swap(next);
      watch(next);
    },
  });
  watch(loaded);
  const { routing, processStates } = deps;
  const closeControl = await openControl(loaded.settings.dataDir, { reloader, routing, processStates }, log);
  return {
    reload: () => void reloader.reload('SIGHUP', BY_FILE),
    control: reloader,
    close() {
      closeControl();
      files?.close();
      secrets.close();
    },
  };
}

/** Delay before secrets are read again after a failure; also the shortest interval. */
const SECRETS_AGAIN_MS = 60_000;
const SECRETS_LEAST_MS = 1000;

/** Reads secrets again at the earliest time that a secret manager requests, and reports those that changed. */
function watchSecrets(
  log: Log,
  onChange: (secrets: LoadedConfig['raw']['secrets']) => Promise<void>,
): { watch(loaded: LoadedConfig): void; close(): void } {
  let timer: NodeJS.Timeout | undefined;
  const watch = (loaded: LoadedConfig, afterMs?: number): void => {
    clearTimeout(timer);
    const times = [...loaded.raw.secrets.values()].flatMap(({ againMs }) => againMs ?? []);
    if (times.length === 0) return;
    const waitMs = Math.min(afterMs ?? Math.max(SECRETS_LEAST_MS, Math.min(...times)), MAX_TIMER_MS);
    timer = setTimeout(() => void look(loaded), waitMs);
    timer.unref();
  };
  const look = async (loaded: LoadedConfig): Promise<void> => {
    const own = timer;
    let failed: number | undefined;
    try {
      const { raw, builtins } = loaded;
      const changed = await rereadSecrets(raw, { builtins, baseDir: raw.baseDir, connect });
      if (changed) await onChange(changed);
    } catch (error) {
      failed = SECRETS_AGAIN_MS;
      const reason = error instanceof Error ? error.message : 'unknown';
      log.warn({ reason }, 'secrets could not be read again; the previous values stay in use');
    }
    // A successful reload has restarted the watch; a refused one has not.
    if (timer === own) watch(loaded, failed);
  };
  return { watch, close: () => clearTimeout(timer) };
}

/** Longest delay of a Node timer. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Timing of file watching. */
interface WatchTiming {
  /** Poll interval. Files are compared by state: events miss mounted volumes and replaced files. */
  readonly lookMs: number;
  /** Quiet time that ends a change, so that files written together count as one. */
  readonly quietMs: number;
  /** True if the watch keeps the process alive. */
  readonly keepsAlive: boolean;
}

const TIMING: WatchTiming = Object.freeze({ lookMs: 1000, quietMs: 300, keepsAlive: false });

/**
 * Watched files; the list may change with their content. A new file counts as changed if it was saved after `since`.
 */
interface FileWatch {
  watch(files: readonly string[], since?: number): void;
  close(): void;
}

/** Reports changed, added and removed files, once per group of changes. */
export function watchFiles(
  onChange: (files: readonly string[]) => void,
  { lookMs, quietMs, keepsAlive }: WatchTiming,
): FileWatch {
  /** Last known state of each file. Initially the time after which a save counts as a change. */
  const states = new Map<string, string | number>();
  const changed = new Set<string>();
  let quiet: NodeJS.Timeout | undefined;
  let next: NodeJS.Timeout | undefined;
  const later = (ms: number, run: () => void): NodeJS.Timeout =>
    keepsAlive ? setTimeout(run, ms) : setTimeout(run, ms).unref();
  const look = async (): Promise<void> => {
    for (const [file, before] of states) {
      const { mtimeMs, size, ino } = await stat(file).catch(() => ({ mtimeMs: 0, size: 0, ino: 0 }));
      const state = `${mtimeMs} ${size} ${ino}`;
      if (state === before || states.get(file) !== before) continue;
      states.set(file, state);
      if (typeof before === 'number' && mtimeMs <= before) continue;
      changed.add(file);
      clearTimeout(quiet);
      quiet = later(quietMs, () => {
        onChange([...changed]);
        changed.clear();
      });
    }
    if (next) next = later(lookMs, () => void look());
  };
  return {
    watch(files, since = Date.now()) {
      for (const file of states.keys()) if (!files.includes(file)) states.delete(file);
      for (const file of files) if (!states.has(file)) states.set(file, since);
      next ??= later(0, () => void look());
    },
    close() {
      clearTimeout(next);
      clearTimeout(quiet);
      next = undefined;
      states.clear();
    },
  };
}
