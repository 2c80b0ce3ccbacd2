import { isGatewayError, type Log, parseDuration } from '../../../contract/index.ts';
import { storeClosed, storeRefused, storeUnavailable } from './failure.ts';
import { createGuard, type Guard, within } from './guard.ts';

/** What a server says when it is greeted. */
interface Greeting {
  /** The server's clock, in Unix milliseconds. */
  readonly timeMs: number;
  /** The id of the data, made with it: another one means that the data is gone. */
  readonly epoch: string;
}

const RESTORE = 'restore it, or restart the gateway to go on with an empty one.';

/** What differs between kinds of servers; {@link connectServer} does the rest. */
export interface ServerDriver<Client> {
  readonly kind: string;
  /** The longest a greeting may take while connecting. */
  readonly greetMs: number;
  /** Makes a client, which need not be connected; `onBreak` is told when it loses its server. */
  open(onBreak: (error: unknown) => void): Client;
  /** Connects a client within a bound of its own. `isFirst` until a server has answered: then the schema is checked or made. */
  prepare(client: Client, isFirst: boolean): Promise<unknown>;
  /** Asks for the time and the epoch, which is made when `isFirst` and there is none. */
  greet(client: Client, isFirst: boolean): Promise<Greeting>;
  /** Ends a client that has done its work. */
  close(client: Client): Promise<unknown>;
  /** Ends a client without waiting: its server may never answer. */
  destroy(client: Client): void;
  /** Whether an error means that the server is away, and not that it refused this one operation. */
  isOutage(error: unknown): boolean;
  /** What an error says of the server, for callers and `/readyz`; undefined for one that says no more than that it failed. */
  explain?(error: unknown): string | undefined;
  /** What the operator must change when waiting does not help; undefined for other errors. */
  findRefusal(error: unknown): string | undefined;
  /** The server's time in the error of an operation that came after its deadline. */
  findLateTime(error: unknown): number | undefined;
}

/** One client at a time, replaced when it hangs or breaks. */
export interface ServerConnection<Client> {
  /** For operations that may be repeated: one whose connection breaks runs once more. */
  run<T>(operation: (client: Client) => Promise<T>): Promise<T>;
  /** For operations that change something: the server is to refuse them after `deadline`, a time of its own clock. */
  runInTime<T>(operation: (client: Client, deadline: number) => Promise<T>): Promise<T>;
  /** Resolves with whether a broken connection was the reason of an error, and has been replaced: what was written is not known. */
  reconnected(error: unknown): Promise<boolean>;
  /** The server's time as far as it is known here, in Unix milliseconds. */
  now(): number;
  health(): Promise<void>;
  close(): Promise<void>;
}

export interface ServerOptions {
  /** The longest an operation may take. */
  readonly timeoutMs: number;
  readonly log?: Log | undefined;
}

/**
 * Connects to a server. Resolves also while it is away (everything is refused until it answers); rejects when it refuses
 * this client for good.
 */
export async function connectServer<Client>(
  driver: ServerDriver<Client>,
  { timeoutMs, log }: ServerOptions,
): Promise<ServerConnection<Client>> {
  const { kind } = driver;
  const clock = createServerClock();
  const data = createDataWatch(kind, log);
  let client: Client | undefined;
  let closing: Promise<void> | undefined;

  const greet = async (to: Client): Promise<void> => {
    const { timeMs, epoch } = await driver.greet(to, data.isNew());
    clock.observe(timeMs);
    data.observe(epoch);
  };

  const probe = async (): Promise<void> => {
    if (client !== undefined) driver.destroy(client);
    client = undefined;
    client = await openClient(
      driver,
      data.isNew(),
      async (next) => {
        await within(driver.greetMs, greet(next));
        if (closing) throw storeClosed();
      },
      (broken, error) => broken === client && guard.trip(error),
    );
  };

  const { isOutage, explain } = driver;
  const guard = createGuard({ kind, timeoutMs, probe, isOutage, ...(explain && { explain }), log });
  await startGuard(guard, kind, log);

  const current = (): Client => {
    if (client === undefined) throw storeUnavailable(`The ${kind} store does not respond.`);
    return client;
  };
  const end = async (): Promise<void> => {
    guard.close();
    const last = client;
    client = undefined;
    if (last !== undefined) await within(timeoutMs, driver.close(last)).catch(() => driver.destroy(last));
  };
  return {
    run: (operation) => guard.run(async () => operation(current()), true),
    runInTime: (operation) => {
      const send = async (deadline: number) => operation(current(), deadline);
      return guard.run(() => sendInTime(clock, timeoutMs, send, driver.findLateTime));
    },
    reconnected: (error) => guard.reconnected(error),
    now: clock.now,
    health: async () => {
      await guard.run(async () => greet(current()));
      if (data.isLost()) throw storeUnavailable(`The ${kind} store lost its data: ${RESTORE}`);
    },
    close: () => (closing ??= end()),
  };
}

/** Opens, prepares and greets a client; one that fails on the way is ended. */
async function openClient<Client>(
  driver: ServerDriver<Client>,
  isFirst: boolean,
  greet: (client: Client) => Promise<void>,
  onBreak: (client: Client, error: unknown) => void,
): Promise<Client> {
  const client: Client = driver.open((error) => onBreak(client, error));
  try {
    await driver.prepare(client, isFirst);
    await greet(client);
    return client;
  } catch (error) {
    driver.destroy(client);
    const refusal = driver.findRefusal(error);
    throw refusal === undefined ? error : storeRefused(refusal, error);
  }
}

/** Notices by the epoch that the data is another one than before, and logs it once. */
function createDataWatch(kind: string, log: Log | undefined) {
  let first: string | undefined;
  let isLost = false;
  return {
    isNew: () => first === undefined,
    isLost: () => isLost,
    observe(epoch: string): void {
      first ??= epoch;
      const wasLost = isLost;
      isLost = epoch !== first;
      if (isLost && !wasLost)
        log?.error({ store: kind }, 'the store lost its data while the gateway ran: keys and balances are gone');
    },
  };
}

/** Probes the server once; throws when it refuses this client for good. */
async function startGuard(guard: Guard, kind: string, log: Log | undefined): Promise<void> {
  const failure = await guard.start();
  if (failure === undefined) return;
  if (!isGatewayError(failure)) {
    log?.warn({ store: kind, err: failure }, 'the store does not respond yet');
    return;
  }
  guard.close();
  throw failure;
}

/** The option `timeout` of stores on a server. */
export const TIMEOUT_OPTION = Object.freeze({
  type: 'string',
  format: 'duration',
  description: 'Timeout of an operation, 50ms to 1s.',
} as const);

/** A configured `timeout` as `timeoutMs`, within what callers can wait for; nothing when none is set. */
export function readTimeout(timeout: string | undefined): { readonly timeoutMs?: number } {
  return timeout === undefined ? {} : { timeoutMs: Math.min(1000, Math.max(50, parseDuration(timeout))) };
}

/** A server's clock, seen from here: good for deadlines that the server itself keeps. */
interface ServerClock {
  /** Takes note of a time (Unix milliseconds) the server just told. */
  observe(serverMs: number): void;
  /** Takes note of a time the server told when it found a deadline over that was not: its clock is further ahead. */
  correct(serverMs: number): void;
  /** The server's time, at most one round trip behind. */
  now(): number;
  /** The server's time at which an operation that begins now is over. */
  deadline(boundMs: number): number;
}

/** What timers, which may fire a little early, and the rounding of both clocks come to. */
const MARGIN_MS = 5;

/**
 * Makes a clock. A time is old by its way to us when it arrives, so the server is at least as far ahead as it says: the
 * deadlines are never too late, and at most one round trip too early.
 */
export function createServerClock(): ServerClock {
  let aheadMs = 0;
  return {
    observe: (serverMs) => {
      aheadMs = serverMs - performance.now();
    },
    correct: (serverMs) => {
      aheadMs = Math.max(aheadMs, serverMs - performance.now());
    },
    now: () => Math.floor(performance.now() + aheadMs),
    deadline: (boundMs) => Math.floor(performance.now() + aheadMs + boundMs - MARGIN_MS),
  };
}

/**
 * Sends an operation with a deadline of the server's clock. When the server finds it over although there is time left
 * here (`lateAt` reads the server's time from that error), the clock is corrected and the operation sent once more,
 * within what is left; when there is none, its caller has given up and it must not happen.
 */
export async function sendInTime<T>(
  clock: ServerClock,
  boundMs: number,
  send: (deadline: number) => Promise<T>,
  lateAt: (error: unknown) => number | undefined,
): Promise<T> {
  const startedAt = performance.now();
  try {
    return await send(clock.deadline(boundMs));
  } catch (error) {
    const serverMs = lateAt(error);
    const leftMs = boundMs - (performance.now() - startedAt);
    if (serverMs === undefined || leftMs <= MARGIN_MS) throw error;
    clock.correct(serverMs);
    return await send(clock.deadline(leftMs));
  }
}
