import path from 'node:path';
import { setFlagsFromString } from 'node:v8';
import type { LoadedConfig } from '../config/load-config.ts';
import { describeAge } from '../contract/model-ends.ts';
import type { Log } from '../contract/plugin.ts';
import type { ProblemAt } from '../contract/pointers.ts';
import { createGateway, type Gateway } from '../core/app.ts';
import { findStrayOwner } from '../core/plugins/stray-owner.ts';
import type { ExchangeOptions } from '../egress/egress.ts';
import { endingModels } from '../models/model-ends.ts';
import { inspectConfig } from './check-config.ts';
import {
  countWorkers,
  onPrimary,
  primaryReloads,
  reloadWithPrimary,
  requestConfiguration,
  runWorkers,
  workerNumber,
} from './cluster/cluster.ts';
import { createWorkerListener } from './cluster/connections.ts';
import { createWorkerGatherer, sendToPrimary } from './cluster/messages.ts';
import type { CommandContext } from './io.ts';
import { CliError, EXIT, type Terminal } from './io.ts';
import { draining, EXIT_OF, listenToSignals, loadFor, type StopSignal } from './load.ts';
import { createProgramLog, flushLog } from './program-log.ts';
import { type Reloads, startReloads } from './reload.ts';
import { markBuildInUse } from './running-build.ts';
import { logWarnings, networkWarnings } from './warnings.ts';

const LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;

/**
 * `tollgate start`: runs until SIGTERM, SIGINT or a closed terminal drains it; a second signal stops it at once.
 * Without a terminal SIGHUP reloads.
 */
export async function run(context: CommandContext): Promise<void> {
  const { terminal, globals, options } = context;
  const { level: givenLevel, ...listenAt } = readListenOptions(options);
  const worker = workerNumber();
  if (worker === undefined) markBuildInUse();
  const loaded = await (worker === undefined ? loadFor(context) : requestConfiguration());
  const { config } = loaded;
  const level = givenLevel ?? config.logging.level;
  const count = countWorkers(loaded);
  const logger = createProgramLog({
    level,
    format: config.logging.format,
    isTerminal: process.stdout.isTTY === true,
    isShared: count > 1,
    onError: ({ code }) => terminal.err.write(`The log cannot be written (${code}): lines are lost until it can.\n`),
  });
  if (count > 1 && worker === undefined) {
    await runWorkers(count, loaded, { context, log: logger, inspect: inspectConfig });
    await flushLog(logger);
    return;
  }
  const log = worker === undefined ? logger : logger.child({ worker });
  const uncaught = watchUncaughtErrors(loaded, log);
  const gateway = await createGateway({
    cwd: process.cwd(),
    env: process.env,
    configPath: globals.config,
    loaded,
    log,
    ...(worker !== undefined && { gatherer: createWorkerGatherer(), listener: createWorkerListener() }),
    ...listenAt,
    ...readExchangeOptions(options),
  });
  optimizeEarly();
  const reloads =
    worker === undefined
      ? await startReloads(context, {
          loaded,
          log,
          swap: gateway.use,
          note: gateway.recordReload,
          audit: gateway.audit,
          inspect: inspectConfig,
          routing: gateway.routing,
          processStates: gateway.processStates,
        })
      : undefined;
  gateway.reloadBy(reloads?.control ?? primaryReloads());
  // Before the banner: a program that waits for it may stop the gateway immediately.
  const stopped = untilStopped(gateway, terminal, uncaught, reloads);
  if (worker === undefined || worker === 1) {
    const ending = endingModels(loaded, gateway.models);
    logWarnings(log, [...networkWarnings(config, listenAt.host), ...ending]);
    const banner = { file: config.file, configPath: globals.config, workers: count, terminal, ending };
    terminal.err.write(formatBanner(gateway, { ...banner, signIn: await makeSignInLinks(gateway, terminal) }));
  }
  if (worker !== undefined) sendToPrimary({ tollgate: 'ready' });
  await stopped;
  reloads?.close();
  await flushLog(logger);
}

/**
 * Lets V8 optimize functions after fewer runs. Most functions of the gateway run once a call, so by V8's own number the
 * first ten thousands of calls would cost a third more. Not set before the start, whose functions end with it.
 * Figures: docs/decisions/bytecode.md#early-optimization.
 */
function optimizeEarly(): void {
  const isNode20 = process.versions.node.startsWith('20.');
  setFlagsFromString(isNode20 ? '--ticks-before-optimization=1' : '--invocation-count-for-turbofan=1000');
}

/** Reads the options of commands that run a gateway; options that were not given are absent. */
export function readListenOptions(options: CommandContext['options']): {
  readonly level?: (typeof LEVELS)[number];
  readonly port?: number;
  readonly host?: string;
} {
  const level = readLevel(options['logLevel']);
  const port = readPort(options['port']);
  const host = readHost(options['host']);
  return { ...(level && { level }), ...(port !== undefined && { port }), ...(host !== undefined && { host }) };
}

/** Reads the options of commands that record or replay provider responses; folders become absolute. */
export function readExchangeOptions(options: CommandContext['options']): ExchangeOptions {
  const folder = (name: string): string | undefined =>
    options[name] === undefined ? undefined : path.resolve(String(options[name]));
  return { record: folder('record'), replay: folder('replay'), times: options['times'] === true };
}

function readLevel(text: unknown): (typeof LEVELS)[number] | undefined {
  if (text === undefined) return undefined;
  const level = LEVELS.find((known) => known === text);
  if (!level)
    throw new CliError(`"${String(text)}" is not a log level`, EXIT.usage, `Use one of ${LEVELS.join(', ')}.`);
  return level;
}

function readPort(text: unknown): number | undefined {
  if (text === undefined) return undefined;
  // Number() would convert an empty text to 0, which means any free port.
  const port = /^\d{1,5}$/.test(String(text)) ? Number(text) : Number.NaN;
  if (!(port <= 65_535)) throw new CliError(`"${String(text)}" is not a port`, EXIT.usage, 'Use 0 to 65535.');
  return port;
}

function readHost(text: unknown): string | undefined {
  if (typeof text !== 'string' || text.trim() !== '') return text === undefined ? undefined : String(text);
  throw new CliError(`"${text}" is not an address`, EXIT.usage, 'Use 127.0.0.1, or 0.0.0.0 for all networks.');
}

/** Handler for uncaught errors of core; before a gateway runs, they end the process. */
interface UncaughtErrors {
  onCrash: (error: unknown) => void;
}

/** Logs uncaught errors from here on. An error of a plugin carries its name, and the gateway continues. */
function watchUncaughtErrors(loaded: LoadedConfig, log: Log): UncaughtErrors {
  const uncaught: UncaughtErrors = {
    onCrash(error) {
      throw error;
    },
  };
  const onUncaught = (error: unknown): void => {
    const plugin = findStrayOwner(error, loaded);
    if (plugin === undefined) {
      log.error({ err: error }, 'unexpected error: shutting down');
      uncaught.onCrash(error);
    } else log.error({ plugin, err: error }, 'a plugin failed outside of any call; the gateway continues');
  };
  process.on('uncaughtException', onUncaught);
  process.on('unhandledRejection', onUncaught);
  return uncaught;
}

/** Resolves when the gateway has drained. An uncaught error of core also drains it, and sets the exit code to 1. */
function untilStopped(
  gateway: Gateway,
  terminal: Terminal,
  uncaught: UncaughtErrors,
  reloads: Reloads | undefined,
): Promise<void> {
  return new Promise((resolve) => {
    let stopping = false;
    const drain = (): void => {
      stopping = true;
      void gateway.close().then(resolve);
    };
    const stop = (signal: StopSignal): void => {
      if (stopping) process.exit(EXIT_OF[signal]);
      terminal.err.write(draining(signal));
      drain();
    };
    uncaught.onCrash = () => {
      process.exitCode = EXIT.unexpected;
      if (!stopping) drain();
    };
    if (reloads) {
      listenToSignals({ stop, reload: reloads.reload });
      return;
    }
    onPrimary(drain);
    reloadWithPrimary(gateway);
  });
}

/** Facts for the banner in addition to the gateway itself. */
export interface BannerOptions {
  /** Display name of the configuration. */
  readonly file: string;
  /** Value of `--config`, which commands in the banner need too. */
  readonly configPath?: string | undefined;
  readonly workers: number;
  readonly terminal: Pick<Terminal, 'colors'>;
  /** Configured models that their vendors will shut down. */
  readonly ending?: readonly Pick<ProblemAt, 'message'>[];
  /** Sign-in links with their titles. */
  readonly signIn?: readonly { readonly title: string; readonly value: string }[];
}

/**
 * Creates sign-in links for the person at the terminal. Without a terminal the banner may end up in a log, which must
 * not contain them.
 */
export async function makeSignInLinks(
  { url, signInLinks }: Gateway,
  { isTty }: Terminal,
): Promise<NonNullable<BannerOptions['signIn']>> {
  if (!isTty) return [];
  const base = url.replace(/\/\/(0\.0\.0\.0|\[::\])(?=:)/, '//127.0.0.1');
  return Promise.all(signInLinks.map(async ({ title, makePath }) => ({ title, value: base + (await makePath()) })));
}

/** Formats the start banner: address, callable models, a key (once) or how to create one, and a command to try. */
export function formatBanner(
  gateway: Gateway,
  { file, configPath, workers, terminal, ending = [], signIn = [] }: BannerOptions,
): string {
  const { colors } = terminal;
  const ready = gateway.providers.filter(({ isConfigured }) => isConfigured).map(({ name }) => name);
  const waiting = gateway.providers.filter(({ isConfigured }) => !isConfigured).map(({ name }) => name);
  const key = gateway.announcements.find(({ use }) => use === 'key')?.value;
  const shown = gateway.announcements.flatMap(({ title, value, use }) => {
    if (use !== 'key-command') return [{ title, value }];
    return process.env[VARIABLE] ? [] : [{ title, value: keyLine(value, configPath) }];
  });
  const lines = [
    `${colors.bold('Tollgate')} listens on ${colors.cyan(gateway.url)}  (API docs: ${gateway.url}/docs)`,
    `  config     ${file}`,
    `  prices     of ${describeAge(gateway.models.tableDate())}`,
    `  providers  ${ready.join(', ') || 'none ready'}${waiting.length > 0 ? `; without a key: ${waiting.join(', ')}` : ''}`,
    ...(workers > 1 ? [`  workers    ${workers}`] : []),
    ...[...new Set(ending.map(({ message }) => message))].map((message) => `  warning    the configuration ${message}`),
    ...[...shown, ...signIn].map(({ title, value }) => `\n${title}:\n  ${colors.green(value)}`),
    '\nTry it:',
    `  ${tryLine(gateway, key)}`,
  ];
  return `${lines.join('\n')}\n\n`;
}

/** Variable from which the command to try takes its key. */
const VARIABLE = 'TOLLGATE_API_KEY';

/** Command that creates a key with this program and configuration, and stores it in the variable. */
function keyLine(words: string, configPath: string | undefined): string {
  const config = configPath === undefined ? '' : ` --config ${quote(configPath)}`;
  return `export ${VARIABLE}=$(${programName()} ${words}${config})`;
}

/** Name of this program as it was called, or the file in a clone. */
function programName(): string {
  const [, script = 'tollgate'] = process.argv;
  const name = path.basename(script, path.extname(script));
  return name === 'main' ? `node ${quote(path.relative(process.cwd(), script))}` : name;
}

/** A curl command that works unchanged: with the new key, or with the variable that holds one. */
function tryLine({ url, providers, models }: Gateway, key: string | undefined): string {
  const provider = (providers.find(({ isConfigured }) => isConfigured) ?? providers[0])?.name ?? 'PROVIDER';
  const model = models.list(provider)[0] ?? 'MODEL';
  const body = JSON.stringify({ model: `${provider}/${model}`, messages: [{ role: 'user', content: 'Hello there' }] });
  // Shells expand variables between double quotes only.
  const authorization = key === undefined ? `"authorization: Bearer $${VARIABLE}"` : `'authorization: Bearer ${key}'`;
  return `curl ${url}/v1/chat/completions -H ${authorization} -H 'content-type: application/json' -d ${quote(body)}`;
}

/** Quotes a text as one shell word; paths of plain characters stay unquoted. */
function quote(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
