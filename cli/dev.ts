import { readFileSync, realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { createJiti } from 'jiti';
import { type CodePlace, isOwnCode, ownModules, placeOfError } from '../config/import-plugin.ts';
import { type LoadedConfig, loadConfig } from '../config/load-config.ts';
import { ConfigError, displayPath } from '../config/problems.ts';
import { type RawConfig, readRawConfig } from '../config/read.ts';
import { createGateway, type Gateway } from '../core/app.ts';
import { connect } from '../egress/http-client.ts';
import { diffConfigs } from './config-diff.ts';
import type { CommandContext } from './io.ts';
import { describeError, type Terminal } from './io.ts';
import { draining, EXIT_OF, HERE, listenToSignals } from './load.ts';
import { createProgramLog, flushLog } from './program-log.ts';
import { watchFiles } from './reload.ts';
import { markBuildInUse } from './running-build.ts';
import { formatBanner, makeSignInLinks, readExchangeOptions, readListenOptions } from './start.ts';

/**
 * Timing of file watching: a save is detected and loaded well within a second. Files that an editor saves together
 * count as one change.
 */
const TIMING = Object.freeze({ lookMs: 200, quietMs: 50, keepsAlive: true });

/** Most files that are watched. */
const MAX_FILES = 2000;

/**
 * `tollgate plugins dev`: runs the gateway in one process, and reloads plugins and configuration when a file of theirs
 * is saved. Calls in flight finish on the old code. Problems are printed with their position in the code. The gateway
 * then continues unchanged, or waits for the next save if it has not started yet.
 */
export async function runDev(context: CommandContext): Promise<void> {
  const { terminal, globals } = context;
  const { level = 'info', ...listenAt } = readListenOptions(context.options);
  markBuildInUse();
  const log = createProgramLog({ level, format: 'auto', isTerminal: process.stdout.isTTY === true });
  const code = createCodeLoader();
  let read: RawConfig | undefined;
  const filesOfConfig = (): readonly string[] => (read ? [...read.files, ...read.texts.keys()] : []);
  const load = async (): Promise<LoadedConfig> => {
    read = await readRawConfig({ ...HERE, configPath: globals.config });
    return await loadConfig({ raw: read, importFile: code.importFile, connect });
  };
  let running: { readonly gateway: Gateway; readonly loaded: LoadedConfig } | undefined;
  const start = async (): Promise<void> => {
    const loaded = await load();
    const gateway = await createGateway({ loaded, log, ...listenAt, ...readExchangeOptions(context.options) });
    running = { gateway, loaded };
    const banner = { file: loaded.config.file, configPath: globals.config, workers: 1, terminal };
    terminal.err.write(formatBanner(gateway, { ...banner, signIn: await makeSignInLinks(gateway, terminal) }));
  };
  const reload = async (gateway: Gateway, former: LoadedConfig, changed: readonly string[]): Promise<void> => {
    const before = performance.now();
    const loaded = await load();
    await gateway.use(loaded);
    running = { gateway, loaded };
    const names = changed.map((file) => displayPath(file, process.cwd())).join(', ');
    terminal.err.write(
      `${terminal.colors.green('reloaded')}  ${names} (${Math.round(performance.now() - before)} ms)\n`,
    );
    terminal.err.write(formatWaiting(former, loaded));
  };
  const attempt = async (changed: readonly string[]): Promise<void> => {
    const begun = Date.now();
    code.forget();
    try {
      await (running ? reload(running.gateway, running.loaded, changed) : start());
      files.watch([...code.files(), ...filesOfConfig()], begun);
    } catch (error) {
      if (!running && !isOfAuthor(error)) throw error;
      terminal.err.write(formatFailure(error, code.failure() ?? error, terminal));
      const state = running ? 'the gateway continues unchanged' : 'the gateway has not started';
      terminal.err.write(`       ${state}; save a file to try again\n`);
      files.watchToo([...code.files(), ...filesOfConfig(), ...filesOf(error)], begun);
    }
  };
  const onUncaught = (error: unknown): void => void terminal.err.write(formatFailure(error, error, terminal));
  process.on('uncaughtException', onUncaught);
  process.on('unhandledRejection', onUncaught);
  const files = createWatch((changed) => turns.take(changed));
  const turns = createTurns(attempt);
  const stopped = untilStopped(
    terminal,
    () => running?.gateway.close(),
    () => turns.take(['SIGHUP']),
  );
  turns.take([]);
  await Promise.race([stopped, turns.failed]).finally(() => files.close());
  await flushLog(log);
}

function formatWaiting(former: LoadedConfig, loaded: LoadedConfig): string {
  const waiting = diffConfigs(former.config, loaded.config).filter(({ needsRestart }) => needsRestart);
  if (waiting.length === 0) return '';
  return `          restart to apply ${waiting.map(({ path }) => path).join(', ')}; the previous values stay in use\n`;
}

/** True for errors that the author can fix by a save. A port in use or an unreachable store is not one. */
function isOfAuthor(error: unknown): boolean {
  return error instanceof Error && ['ConfigError', 'PluginError'].includes(error.name);
}

/** Resolves when a signal has drained the gateway; a second signal ends the process. */
function untilStopped(terminal: Terminal, close: () => Promise<void> | undefined, reload: () => void): Promise<void> {
  return new Promise((resolve, reject) => {
    let isStopping = false;
    listenToSignals({
      reload,
      stop(signal) {
        if (isStopping) process.exit(EXIT_OF[signal]);
        isStopping = true;
        terminal.err.write(draining(signal));
        Promise.resolve(close()).then(resolve, reject);
      },
    });
  });
}

/**
 * Runs attempts one at a time; changes in the meantime cause one more attempt. `failed` rejects with an attempt's
 * error.
 */
function createTurns(attempt: (changed: readonly string[]) => Promise<void>) {
  let waiting: Set<string> | undefined;
  let isRunning = false;
  let fail: (error: unknown) => void;
  const failed = new Promise<never>((_resolve, reject) => {
    fail = reject;
  });
  const run = async (): Promise<void> => {
    isRunning = true;
    for (let next = waiting; next; next = waiting) {
      waiting = undefined;
      await attempt([...next]);
    }
    isRunning = false;
  };
  return {
    failed,
    take(changed: readonly string[]): void {
      waiting = new Set([...(waiting ?? []), ...changed]);
      if (!isRunning) run().catch((error: unknown) => fail(error));
    },
  };
}

/** Watches at most {@link MAX_FILES} files. */
function createWatch(onChange: (changed: readonly string[]) => void) {
  const watch = watchFiles(onChange, TIMING);
  let watched: readonly string[] = [];
  // A save between loading a file and the first poll is a change too.
  const set = (files: readonly string[], since: number): void => {
    watched = [...new Set(files)].slice(0, MAX_FILES);
    watch.watch(watched, since);
  };
  return {
    watch: set,
    /** Watches these files in addition to the current ones. */
    watchToo: (files: readonly string[], since: number): void => set([...files, ...watched], since),
    close: watch.close,
  };
}

/**
 * Loads plugin modules with jiti, which keeps them in the cache of `require`, so that they can be reloaded. Node's own
 * module cache cannot be cleared. Installed packages are loaded by Node.
 */
function createCodeLoader() {
  const { cache } = createRequire(import.meta.url);
  const entries = new Set<string>();
  let failure: unknown;
  const isAuthors = (file: string): boolean => !/[\\/]node_modules[\\/]/.test(file) && !isOwnCode(file);
  const loadedFiles = (): readonly string[] => Object.keys(cache).filter(isAuthors);
  return {
    async importFile(file: string): Promise<Readonly<Record<string, unknown>> | undefined> {
      const real = realpathSync(file);
      if (!isAuthors(real)) return undefined;
      entries.add(real);
      try {
        return createJiti(real, { fsCache: false, ...(await ownModules()) })(real) as Readonly<Record<string, unknown>>;
      } catch (error) {
        failure = error;
        throw error;
      }
    },
    /** Clears the cache: the next import reads the files again. */
    forget(): void {
      failure = undefined;
      for (const file of loadedFiles()) delete cache[file];
    },
    /** Error of the last import. */
    failure: () => failure,
    /** All files of the plugins, and a file that is missing or unreadable. */
    files: (): readonly string[] => [...entries, ...loadedFiles(), ...filesOf(failure)],
  };
}

/** Files named by an error, whose change may fix it. */
function filesOf(error: unknown): readonly string[] {
  if (error instanceof ConfigError) return error.problems.map(({ file }) => path.resolve(file));
  const place = placeOfError(error);
  const { requireStack: [importer] = [] } = (error ?? {}) as { readonly requireStack?: readonly string[] };
  const [, missing] = (error instanceof Error && /^Cannot find module '(\.[^']*)'/.exec(error.message)) || [];
  return [
    ...(place ? [place.file] : []),
    ...(importer === undefined ? [] : [importer]),
    ...(importer === undefined || missing === undefined ? [] : [path.resolve(path.dirname(importer), missing)]),
  ];
}

const TOP_LEVEL_AWAIT = /await is only valid in async functions/;

/**
 * Formats an error with the author's lines of code. `thrown` is the error that the code threw; `error` may only refer
 * to it.
 */
function formatFailure(error: unknown, thrown: unknown, { colors }: Terminal): string {
  const reported = describeError(error);
  const lines = reported.map((line) => `${colors.red('error')}  ${line}\n`);
  const place = placeOfError(thrown);
  if (place) lines.push(...readFrame(place).map((line) => `       ${line}\n`));
  if (thrown instanceof Error && TOP_LEVEL_AWAIT.test(thrown.message))
    lines.push('       tollgate plugins dev does not support top-level await. Move that code to setup\n');
  return lines.join('');
}

/** Lines shown before and after the line of the error. */
const AROUND = 2;
const LONGEST_LINE = 160;

/** Reads the lines around a position and marks it. */
function readFrame({ file, line, column }: CodePlace): readonly string[] {
  const at = `at ${displayPath(file, process.cwd())}:${line}${column === undefined ? '' : `:${column}`}`;
  let text: readonly string[];
  try {
    text = readFileSync(file, 'utf8').split('\n');
  } catch {
    return [at];
  }
  const first = Math.max(1, line - AROUND);
  const width = String(line + AROUND).length;
  const frame = text.slice(first - 1, line + AROUND).flatMap((content, index) => {
    const number = first + index;
    const head = `${number === line ? '>' : ' '} ${String(number).padStart(width)} | `;
    const shown = `${head}${content.replaceAll('\t', ' ').slice(0, LONGEST_LINE)}`;
    const isMarked = number === line && column !== undefined && column <= Math.min(content.length + 1, LONGEST_LINE);
    return isMarked ? [shown, `${' '.repeat(head.length + column - 1)}^`] : [shown];
  });
  return [at, ...frame];
}
