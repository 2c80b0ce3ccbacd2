import cluster, { type Worker } from 'node:cluster';
import os from 'node:os';
import path from 'node:path';
import { type LoadedConfig, loadConfig } from '../../config/load-config.ts';
import { CODE_ROOT, IS_SOURCE } from '../../config/package-root.ts';
import type { AuditActor, AuditChange } from '../../contract/audit.ts';
import type { RoutingState } from '../../contract/call.ts';
import type { ReloadControl, ReloadReport } from '../../contract/gateway.ts';
import type { Log } from '../../contract/plugin.ts';
import { mergeStates } from '../../contract/target-rows.ts';
import type { Gateway } from '../../core/app.ts';
import type { PreparedGeneration } from '../../core/http/serve.ts';
import { PROCESS_TOPIC, type ProcessState } from '../../core/plugins/gather.ts';
import { ROUTING_TOPIC } from '../../routing/routing-states.ts';
import type { CommandContext } from '../io.ts';
import { CliError, describeError, EXIT } from '../io.ts';
import { draining, EXIT_OF, listenToSignals, type StopSignal } from '../load.ts';
import { type ReloaderDeps, type Reloads, startReloads } from '../reload.ts';
import { Connections } from './connections.ts';
import { primaryDrafts, runDraftWork } from './drafts.ts';
import { GATHER_MS, parseRawConfig, send, sendToPrimary, type WorkerMessage, writeRawConfig } from './messages.ts';

/** Entry file of workers: that of the primary's build, even if `dist` points to a newer one. */
const PROGRAM = path.join(CODE_ROOT, 'cli', IS_SOURCE ? 'main.ts' : 'main.js');

/** Environment variable that holds a worker's number. */
const WORKER_VARIABLE = 'TOLLGATE_WORKER';

/** Worker number of this process, from 1; undefined without workers. */
export function workerNumber(): number | undefined {
  const number = Number(process.env[WORKER_VARIABLE]);
  return cluster.isWorker && number > 0 ? number : undefined;
}

/** Requests the primary's configuration, so that a replacement worker starts with the same one as the others. */
export function requestConfiguration(): Promise<LoadedConfig> {
  return new Promise((resolve) => {
    const listen = (message: WorkerMessage): void => {
      if (message.tollgate !== 'configuration') return;
      process.off('message', listen);
      resolve(loadConfig({ raw: parseRawConfig(message.text) }));
    };
    process.on('message', listen);
    sendToPrimary({ tollgate: 'configure' });
  });
}

/** In a worker: the primary reloads for all workers, and replies. */
export function primaryReloads(): ReloadControl {
  let lastId = 0;
  const request = (wanted: { readonly cause?: string; readonly actor?: AuditActor }): Promise<ReloadReport> =>
    new Promise((resolve) => {
      lastId += 1;
      const id = lastId;
      const listen = (message: WorkerMessage): void => {
        if (message.tollgate !== 'reloaded' || message.id !== id) return;
        process.off('message', listen);
        resolve(message.report);
      };
      process.on('message', listen);
      sendToPrimary({ tollgate: 'reload', id, ...wanted });
    });
  return {
    reload: (cause, actor) => request({ cause, actor }),
    compare: () => request({}),
    drafts: primaryDrafts(),
  };
}

/**
 * In a worker: drains when the primary requests it or disconnects. The primary alone handles signals to the process
 * group.
 */
export function onPrimary(drain: () => void): void {
  let isDraining = false;
  const once = (): void => {
    if (isDraining) return;
    isDraining = true;
    drain();
  };
  // Otherwise Node ends a worker as soon as the primary disconnects.
  if (cluster.worker) cluster.worker.exitedAfterDisconnect = true;
  process.on('SIGINT', () => {});
  process.on('SIGHUP', () => {});
  process.on('SIGTERM', once);
  process.on('disconnect', once);
  process.on('message', (message: WorkerMessage) => {
    if (message.tollgate === 'drain') once();
    if (message.tollgate === 'stop') process.exit(EXIT_OF.SIGTERM);
  });
}

/**
 * In a worker: builds the configuration that the primary sends. Activates it once the primary reports that all workers
 * could build it.
 */
export function reloadWithPrimary(gateway: Pick<Gateway, 'prepare' | 'recordReload' | 'audit'>): void {
  const prepared = new Map<number, PreparedGeneration>();
  process.on('message', async (message: WorkerMessage) => {
    if (message.tollgate === 'note') gateway.recordReload(message.problem);
    if (message.tollgate === 'audit') {
      const { id, change } = message;
      const reply = (isWritten: boolean) => sendToPrimary({ tollgate: 'audited', id, isWritten });
      void gateway.audit(change).then(
        () => reply(true),
        () => reply(false),
      );
    }
    if (message.tollgate === 'commit' || message.tollgate === 'abandon') {
      const generation = prepared.get(message.id);
      prepared.delete(message.id);
      if (message.tollgate === 'commit') generation?.commit();
      else await generation?.abandon();
    }
    if (message.tollgate !== 'prepare') return;
    const { id, text } = message;
    try {
      prepared.set(id, await gateway.prepare(await loadConfig({ raw: parseRawConfig(text) })));
      sendToPrimary({ tollgate: 'prepared', id });
    } catch (error) {
      sendToPrimary({ tollgate: 'prepared', id, problem: describeError(error).join('\n') });
    }
  });
}

interface ClusterOptions {
  readonly count: number;
  readonly log: Log;
  /** Configuration as text, sent to every worker. */
  readonly text: string;
  /** Returns the control that handles workers' reload requests. */
  reloads(): Promise<ReloadControl>;
}

interface Cluster {
  /**
   * Switches all workers or none to another configuration. Rejects with the problem of a worker that could not build
   * it.
   */
  swap(text: string): Promise<void>;
  /** Sets the state of the last reload that every worker's `/readyz` reports. */
  note(problem: string | undefined): void;
  /** Collects the values of all workers for a topic; omits workers that do not reply in time. */
  gather(topic: string): Promise<readonly unknown[]>;
  /** Lets every worker finish its running responses, then kills those that take longer. */
  drain(withinMs: number): void;
  /** Stops every worker at once. */
  stop(): void;
  /** Exit code once all workers have ended: the first worker's if it could not start, else the highest. */
  readonly finished: Promise<number>;
}

/** A worker that exits sooner than this after its start delays the start of the next one. */
const STEADY_MS = 5_000;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 10_000;

/** Time limit for a worker to stop at once. */
const STOP_MS = 1000;

/** Time limit for a worker to build a configuration: each plugin has 30 s to set up. */
const PREPARE_MS = 100_000;

interface Member {
  readonly number: number;
  readonly worker: Worker;
  isReady: boolean;
  /** Version of the configuration that it runs or starts with. */
  version: number;
  /** Resolves when it is ready or has ended. */
  readonly started: Promise<void>;
}

/** Longest wait of a reload for workers that are starting. Later ones are updated one by one. */
const STARTING_MS = 10_000;

/**
 * Runs processes of this program on one port. The first worker starts alone: it creates the schema and the first key,
 * and prints the banner. A configuration that cannot start ends the program there. A worker that exits later is
 * replaced, at a bounded rate.
 */
class WorkerCluster implements Cluster {
  readonly finished: Promise<number>;
  readonly #count: number;
  readonly #log: Log;
  readonly #reloads: ClusterOptions['reloads'];
  readonly #members = new Map<number, Member>();
  readonly #connections = new Connections();
  readonly #pauses = new Set<NodeJS.Timeout>();
  #text: string;
  #version = 1;
  #lastId = 0;
  #problem: string | undefined;
  #stopping = false;
  #exitCode = 0;
  #earlyExits = 0;
  #hasStarted = false;
  #finish: (code: number) => void = () => {};

  constructor({ count, log, text, reloads }: ClusterOptions) {
    this.#count = count;
    this.#log = log;
    this.#reloads = reloads;
    this.#text = text;
    this.finished = new Promise((resolve) => {
      this.#finish = resolve;
    });
    this.#start(1);
  }

  async swap(text: string): Promise<void> {
    await this.#allStarted();
    const members = [...this.#members.values()].filter(({ isReady }) => isReady);
    const id = this.#nextId();
    const problems = await Promise.all(members.map((member) => this.#prepare(member, id, text)));
    const problem = problems.find((each) => each !== undefined);
    for (const { worker } of members) send(worker, { tollgate: problem === undefined ? 'commit' : 'abandon', id });
    if (problem !== undefined) throw new Error(problem);
    this.#text = text;
    this.#version += 1;
    for (const member of members) member.version = this.#version;
    // Update workers that became ready meanwhile with the former configuration.
    for (const member of this.#members.values()) if (member.isReady) void this.#catchUp(member);
  }

  note(problem: string | undefined): void {
    this.#problem = problem;
    for (const { worker } of this.#members.values()) this.#sendProblem(worker);
  }

  drain(withinMs: number): void {
    this.#end('drain', withinMs);
  }

  stop(): void {
    this.#end('stop', STOP_MS);
  }

  #start(number: number): void {
    const startedAt = performance.now();
    // V8 accepts this flag on the command line alone (docs/decisions/bytecode.md).
    cluster.setupPrimary({ exec: PROGRAM, execArgv: [...process.execArgv, '--no-memory-reducer'] });
    const worker = cluster.fork({ [WORKER_VARIABLE]: String(number) });
    let onStarted: () => void = () => {};
    const started = new Promise<void>((resolve) => {
      onStarted = resolve;
    });
    const member: Member = { number, worker, isReady: false, version: 0, started };
    this.#members.set(number, member);
    worker.on('message', (message: WorkerMessage) => {
      if (message.tollgate === 'configure') {
        member.version = this.#version;
        send(worker, { tollgate: 'configuration', text: this.#text });
      }
      if (message.tollgate === 'ready') {
        this.#onReady(member);
        onStarted();
      }
      if (message.tollgate === 'reload') void this.#reload(worker, message);
      if (message.tollgate === 'draft') void this.#draft(worker, message);
      void this.#connections.receive(worker, message);
      if (message.tollgate === 'gather')
        void this.gather(message.topic).then((values) =>
          send(worker, { tollgate: 'gathered', id: message.id, values }),
        );
    });
    worker.once('exit', (code, signal) => {
      // Remove the worker after its last messages have been read.
      setImmediate(() => setImmediate(() => this.#connections.remove(worker)));
      this.#members.delete(number);
      onStarted();
      // oxlint-disable-next-line typescript/no-unnecessary-condition -- null when a signal ended it
      this.#onExit(number, code ?? 1, signal, performance.now() - startedAt);
    });
  }

  async #allStarted(): Promise<void> {
    const all = Promise.all([...this.#members.values()].map(({ started }) => started));
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise((resolve) => {
      timer = setTimeout(resolve, STARTING_MS);
    });
    await Promise.race([all, late]);
    clearTimeout(timer);
  }

  #onReady(member: Member): void {
    member.isReady = true;
    if (this.#problem !== undefined) this.#sendProblem(member.worker);
    void this.#catchUp(member);
    if (this.#hasStarted) return;
    this.#hasStarted = true;
    for (let other = 1; other <= this.#count; other += 1) if (other !== member.number) this.#start(other);
  }

  #onExit(number: number, code: number, signal: string | null, livedMs: number): void {
    if (this.#stopping || !this.#hasStarted) {
      this.#exitCode = Math.max(this.#exitCode, signal ? 1 : code);
      if (this.#members.size === 0) this.#finish(this.#exitCode);
      return;
    }
    this.#earlyExits = livedMs < STEADY_MS ? this.#earlyExits + 1 : 0;
    const pauseMs =
      this.#earlyExits === 0 ? 0 : Math.min(FIRST_PAUSE_MS * 2 ** (this.#earlyExits - 1), LONGEST_PAUSE_MS);
    this.#log.error({ worker: number, code, signal, pause_ms: pauseMs }, 'worker exited; starting a new one');
    const pause = setTimeout(() => {
      this.#pauses.delete(pause);
      this.#start(number);
    }, pauseMs);
    this.#pauses.add(pause);
  }

  /**
   * Updates a worker that started with a former configuration. Replaces the worker if it cannot build the current one.
   */
  async #catchUp(member: Member): Promise<void> {
    if (member.version === this.#version) return;
    member.version = this.#version;
    const id = this.#nextId();
    const problem = await this.#prepare(member, id, this.#text);
    if (problem === undefined) return send(member.worker, { tollgate: 'commit', id });
    this.#log.error(
      { worker: member.number, problem },
      'a worker could not load the configuration of the others and is replaced',
    );
    member.worker.process.kill('SIGKILL');
  }

  /** Sends a configuration to a worker to build; resolves with the problem, if any. */
  async #prepare({ number, worker }: Member, id: number, text: string): Promise<string | undefined> {
    const isPrepared = (message: WorkerMessage): boolean => message.tollgate === 'prepared' && message.id === id;
    const reply = await exchange(worker, { tollgate: 'prepare', id, text }, isPrepared, PREPARE_MS);
    if (reply?.tollgate === 'prepared') return reply.problem;
    return `worker ${number} did not load the configuration: it exited or timed out`;
  }

  async gather(topic: string): Promise<readonly unknown[]> {
    const values = await Promise.all([...this.#members.values()].map(({ worker }) => this.#read(worker, topic)));
    return values.filter((value) => value !== undefined);
  }

  /** Reloads for a worker whose caller requested it. */
  async #reload(worker: Worker, { id, cause, actor }: WorkerMessage & { readonly tollgate: 'reload' }): Promise<void> {
    const control = await this.#reloads();
    const isTrial = cause === undefined || actor === undefined;
    const report = await (isTrial ? control.compare() : control.reload(cause, actor));
    send(worker, { tollgate: 'reloaded', id, report });
  }

  /** Reads, checks or writes drafts for a worker whose caller requested it. */
  async #draft(worker: Worker, { id, work }: WorkerMessage & { readonly tollgate: 'draft' }): Promise<void> {
    const { drafts } = await this.#reloads();
    send(worker, { tollgate: 'drafted', id, result: await runDraftWork(drafts, work, this.#log) });
  }

  /** Sends an audit entry to a worker, which writes it to the audit log. */
  async audit(change: AuditChange): Promise<void> {
    const [member] = [...this.#members.values()].filter(({ isReady }) => isReady);
    const id = this.#nextId();
    const isReply = (message: WorkerMessage): boolean => message.tollgate === 'audited' && message.id === id;
    const reply = member && (await exchange(member.worker, { tollgate: 'audit', id, change }, isReply, PREPARE_MS));
    if (reply?.tollgate !== 'audited' || !reply.isWritten) throw new Error('no worker could write it');
  }

  /** Reads one worker's value for a topic; undefined if it does not reply in time. */
  async #read(worker: Worker, topic: string): Promise<unknown> {
    const id = this.#nextId();
    const isReply = (message: WorkerMessage): boolean => message.tollgate === 'answer' && message.id === id;
    const reply = await exchange(worker, { tollgate: 'read', id, topic }, isReply, GATHER_MS);
    return reply?.tollgate === 'answer' ? reply.value : undefined;
  }

  #sendProblem(worker: Worker): void {
    send(worker, { tollgate: 'note', ...(this.#problem !== undefined && { problem: this.#problem }) });
  }

  #end(how: 'drain' | 'stop', killMs: number): void {
    this.#stopping = true;
    for (const pause of this.#pauses) clearTimeout(pause);
    this.#connections.end(how === 'stop');
    if (this.#members.size === 0) this.#finish(this.#exitCode);
    for (const { worker } of this.#members.values()) send(worker, { tollgate: how });
    const kill = (): void => {
      for (const { worker } of this.#members.values()) worker.process.kill('SIGKILL');
    };
    setTimeout(kill, killMs).unref();
  }

  #nextId(): number {
    this.#lastId += 1;
    return this.#lastId;
  }
}

/** Sends a message and waits for its reply; undefined if the worker ends first or takes too long. */
function exchange(
  worker: Worker,
  message: WorkerMessage,
  isReply: (message: WorkerMessage) => boolean,
  withinMs: number,
): Promise<WorkerMessage | undefined> {
  return new Promise((resolve) => {
    const done = (reply?: WorkerMessage): void => {
      clearTimeout(timer);
      worker.off('message', listen);
      worker.off('disconnect', onGone);
      resolve(reply);
    };
    const listen = (received: WorkerMessage): void => {
      if (isReply(received)) done(received);
    };
    const onGone = (): void => done();
    const timer = setTimeout(done, withinMs);
    worker.on('message', listen);
    worker.once('disconnect', onGone);
    send(worker, message);
  });
}

/** Time for a worker to close its resources after the drain deadline. */
const CLOSE_MS = 15_000;

/**
 * Number of processes that the configuration requests. Throws if each process would have a store, and so keys and
 * limits, of its own.
 */
export function countWorkers({
  config: { server, store },
  plugins: [plugin],
}: Pick<LoadedConfig, 'config' | 'plugins'>): number {
  const count = server.workers === 'auto' ? os.availableParallelism() : server.workers;
  if (count > 1 && plugin?.processes === 'one')
    throw new CliError(
      `server.workers is ${server.workers}, and the store "${store.plugin}" is limited to one process: workers would not share keys, limits and balances`,
      EXIT.config,
      'Use a shared store (docs/stores.md) or one worker.',
    );
  return count;
}

/** Runs the primary process: workers on one port, until a signal drains them. Sets the exit code. */
export async function runWorkers(
  count: number,
  loaded: LoadedConfig,
  { context, log, inspect }: { readonly context: CommandContext; readonly log: Log } & Pick<ReloaderDeps, 'inspect'>,
): Promise<void> {
  const { terminal } = context;
  const workers: WorkerCluster = new WorkerCluster({
    count,
    log,
    text: writeRawConfig(loaded.raw),
    reloads: async () => (await reloads).control,
  });
  let { server } = loaded.config;
  let stopping: StopSignal | undefined;
  const reloads: Promise<Reloads> = startReloads(context, {
    loaded,
    log,
    async swap(next) {
      await workers.swap(writeRawConfig(next.raw));
      server = next.config.server;
    },
    note: (problem) => workers.note(problem),
    audit: (change) => workers.audit(change),
    inspect,
    routing: async () => mergeStates((await workers.gather(ROUTING_TOPIC)) as readonly RoutingState[]),
    processStates: async () => (await workers.gather(PROCESS_TOPIC)) as readonly ProcessState[],
  });
  listenToSignals({
    stop(signal) {
      if (stopping) {
        process.exitCode = EXIT_OF[signal];
        workers.stop();
        return;
      }
      stopping = signal;
      terminal.err.write(draining(signal));
      workers.drain(server.drainDelayMs + server.drainTimeoutMs + CLOSE_MS);
    },
    reload: () => void reloads.then(({ reload }) => reload()),
  });
  const code = await workers.finished;
  (await reloads).close();
  process.exitCode ??= code;
}
