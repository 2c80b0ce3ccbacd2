import { isGatewayError, type Log, parseDuration } from '../../../contract/index.ts';
import { storeClosed, storeRefused, storeUnavailable } from './failure.ts';
import { createGuard, type Guard, within } from './guard.ts';

/** Response of a server to a greeting. */
interface Greeting {
  /** Server clock in Unix milliseconds. */
  readonly timeMs: number;
  /** Id of the data, created with it. A different id means that the data is lost. */
  readonly epoch: string;
}

const RESTORE = 'restore it, or restart the gateway to continue with an empty one.';

/** Differences between server kinds; {@link connectServer} does the rest. */
export interface ServerDriver<Client> {
  readonly kind: string;
  /** Maximum duration of a greeting during a connection attempt. */
  readonly greetMs: number;
  /** Creates a client, which need not be connected. Calls `onBreak` when it loses its server. */
  open(onBreak: (error: unknown) => void): Client;
  /**
   * Connects a client within its own time limit. `isFirst` is true until a server has responded; then the schema is
   * checked or created.
   */
  prepare(client: Client, isFirst: boolean): Promise<unknown>;
  /** Requests the time and the epoch. Creates a missing epoch if `isFirst`. */
  greet(client: Client, isFirst: boolean): Promise<Greeting>;
  /** Closes an idle client. */
  close(client: Client): Promise<unknown>;
  /** Closes a client without waiting: its server may never respond. */
  destroy(client: Client): void;
  /** Distinguishes an outage of the server from an error of this operation. */
  isOutage(error: unknown): boolean;
  /** Explains an error for callers and `/readyz`; undefined if the error has no details. */
  explain?(error: unknown): string | undefined;
  /** Change that the operator must make if waiting does not help; undefined for other errors. */
  findRefusal(error: unknown): string | undefined;
  /** Returns the server's time from the error of an operation that arrived after its deadline. */
  findLateTime(error: unknown): number | undefined;
}

/** Single client, replaced when it hangs or breaks. */
export interface ServerConnection<Client> {
  /** Runs a repeatable operation; it runs once more if its connection breaks. */
  run<T>(operation: (client: Client) => Promise<T>): Promise<T>;
  /** Runs an operation that changes data. The server must reject it after `deadline`, a time of the server's clock. */
  runInTime<T>(operation: (client: Client, deadline: number) => Promise<T>): Promise<T>;
  /**
   * Resolves with true if a broken connection caused an error and was replaced. Then it is unknown if the write
   * happened.
   */
  reconnected(error: unknown): Promise<boolean>;
  /** Estimated server time in Unix milliseconds. */
  now(): number;
  health(): Promise<void>;
  close(): Promise<void>;
}

export interface ServerOptions {
  /** Maximum duration of an operation. */
  readonly timeoutMs: number;
  readonly log?: Log | undefined;
}

/**
 * Connects to a server. Also resolves while the server is unavailable; operations are then rejected until it responds.
 * Rejects if the server permanently rejects this client.
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

/** Opens, prepares and greets a client; destroys it on failure. */
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

/** Detects by the epoch that the data was replaced, and logs it once. */
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

/** Probes the server once; throws if it permanently rejects this client. */
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

/** Option `timeout` of stores on a server. */
export const TIMEOUT_OPTION = Object.freeze({
  type: 'string',
  format: 'duration',
  description: 'Timeout of an operation, 50ms to 1s.',
} as const);

/**
 * Returns a configured `timeout` as `timeoutMs`, clamped to what callers can wait for. Returns an empty object by
 * default.
 */
export function readTimeout(timeout: string | undefined): { readonly timeoutMs?: number } {
  return timeout === undefined ? {} : { timeoutMs: Math.min(1000, Math.max(50, parseDuration(timeout))) };
}

/** Estimate of a server's clock, for deadlines that the server checks. */
interface ServerClock {
  /** Records a time (Unix milliseconds) that the server just sent. */
  observe(serverMs: number): void;
  /**
   * Records the time of a server that rejected an operation as late although it was not: its clock is further ahead.
   */
  correct(serverMs: number): void;
  /** Server time, at most one round trip behind. */
  now(): number;
  /** Server time at which an operation that begins now times out. */
  deadline(boundMs: number): number;
}

/** Allowance for early timers and for the rounding of both clocks. */
const MARGIN_MS = 5;

/**
 * Creates a clock. A received time is already old, so the server is at least that far ahead. Deadlines are never too
 * late, and at most one round trip too early.
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
 * Sends an operation with a deadline of the server's clock. If the server rejects it as late although time is left
 * here, corrects the clock and resends it within the remaining time. `lateAt` reads the server's time from that error.
 * Without remaining time the caller has given up, so the operation must not happen.
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
