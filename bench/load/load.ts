/**
 * Load generator of the bench, in a separate process. It replies to each message: `start` when a response has started
 * on all connections, `mark` with the counts since the last mark, and `stop`.
 */

import { percentile } from '../numbers.ts';
import { STAMP } from '../wires.ts';
import type { Job, Mark, Order } from './job.ts';
import { type Lane, openLane } from './lane.ts';

/**
 * Callers start in groups of this size, each once the previous group has responses or has waited this long. Real
 * callers do not start all at once.
 */
const RAMP = 50;
const RAMP_MS = 1000;
const START_MS = 60_000;
/** Delay of a refused caller (503), as in `retry-after`. */
const RETRY_MS = 1000;

let callers: Lane[] = [];
let pacer: NodeJS.Timeout | undefined;
let counted = emptyCount();

function emptyCount() {
  return { requests: 0, chunks: 0, errors: [] as string[], requestMs: [] as number[], chunkMs: [] as number[] };
}

async function start(job: Job): Promise<void> {
  const request = Buffer.from(job.request, 'latin1');
  const idle: Lane[] = [];
  let begun = 0;
  callers = [];
  const giveUpAt = Date.now() + START_MS;
  for (let at = 0; at < job.connections; at += 1) {
    const caller = startCaller(job, request, {
      onBegun: () => (begun += 1),
      onRefused: () => (begun -= 1),
      onIdle: (lane) => idle.push(lane),
    });
    callers.push(caller);
    if (at % RAMP === RAMP - 1) await until(() => begun > at, Math.min(Date.now() + RAMP_MS, giveUpAt));
  }
  await until(() => begun >= job.connections || counted.errors.length > job.connections, giveUpAt);
  if (job.rate !== undefined) pace(job.rate, idle);
}

interface CallerEvents {
  onBegun(): void;
  onRefused(): void;
  /** Called only if a rate sets the time of the next request. */
  onIdle(lane: Lane): void;
}

/** Sends over one connection; after a refusal or disconnect it opens another one with a short delay. */
function startCaller(job: Job, request: Buffer, { onBegun, onRefused, onIdle }: CallerEvents): Lane {
  let lane: Lane;
  let sentAt = 0;
  let hasBegun = false;
  let again: NodeJS.Timeout | undefined;
  const send = (): void => {
    sentAt = performance.now();
    lane.send();
  };
  const close = (): void => {
    clearTimeout(again);
    lane.close();
  };
  const comeBack = (error: string): void => {
    counted.errors.push(error);
    if (hasBegun) onRefused();
    hasBegun = false;
    lane.close();
    again = setTimeout(open, RETRY_MS);
  };
  const open = (): void => {
    lane = openLane(job.port, request, {
      onBytes(bytes) {
        if (!hasBegun) onBegun();
        hasBegun = true;
        if (job.hasChunks) readChunks(bytes);
      },
      onDone(status) {
        if (status !== 200) return comeBack(`status ${status}`);
        counted.requests += 1;
        counted.requestMs.push(performance.now() - sentAt);
        if (job.rate === undefined) send();
        else onIdle({ send, close });
      },
      onBroken: (error) => comeBack(error.message),
    });
    send();
  };
  open();
  return { send, close };
}

async function until(isSo: () => boolean, deadline: number): Promise<void> {
  while (!isSo() && Date.now() < deadline) await sleep(5);
}

/** Open loop: requests are sent on schedule, whatever the outcome of earlier ones. */
function pace(rate: number, idle: Lane[]): void {
  const began = performance.now();
  let sent = 0;
  const tick = (): void => {
    const due = Math.floor(((performance.now() - began) * rate) / 1000);
    for (; sent < due; sent += 1) {
      const lane = idle.shift();
      if (lane) lane.send();
      else counted.errors.push('all connections are waiting');
    }
    pacer = setTimeout(tick, 1);
  };
  tick();
}

function readChunks(bytes: Buffer): void {
  const now = Number(process.hrtime.bigint());
  for (const [, nanos] of bytes.toString('latin1').matchAll(STAMP)) {
    counted.chunks += 1;
    counted.chunkMs.push((now - Number(nanos)) / 1e6);
  }
}

function mark(): Mark {
  const { requests, chunks, errors, requestMs, chunkMs } = counted;
  counted = emptyCount();
  return {
    requests,
    chunks,
    errors: errors.slice(0, 5),
    requestP50: percentile(requestMs, 50),
    requestP99: percentile(requestMs, 99),
    chunkP50: percentile(chunkMs, 50),
    chunkP99: percentile(chunkMs, 99),
  };
}

function stop(): void {
  clearTimeout(pacer);
  for (const caller of callers) caller.close();
  callers = [];
  counted = emptyCount();
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

process.on('message', async (order: Order) => {
  if (order.do === 'start') {
    await start(order.job);
    process.send?.({});
  } else if (order.do === 'mark') process.send?.(mark());
  else {
    stop();
    process.send?.({});
  }
});
process.on('disconnect', () => process.exit());
process.send?.('ready');
