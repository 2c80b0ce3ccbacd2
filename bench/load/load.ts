/**
 * The load of the bench, in a process of its own. It is told what to do by messages and answers each with one:
 * `start` → when all connections have seen an answer begin, `mark` → what was counted since the last mark, `stop`.
 */
import { STAMP } from '../wires.ts';
import type { Job, Mark, Order } from './job.ts';
import { type Lane, openLane } from './lane.ts';
import { percentile } from './numbers.ts';

const RAMP = 50;
const START_MS = 60_000;

let lanes: Lane[] = [];
let pacer: NodeJS.Timeout | undefined;
let counted = emptyCount();

function emptyCount() {
  return { requests: 0, chunks: 0, errors: [] as string[], requestMs: [] as number[], chunkMs: [] as number[] };
}

async function start(job: Job): Promise<void> {
  const request = Buffer.from(job.request, 'latin1');
  const idle: Lane[] = [];
  let begun = 0;
  lanes = [];
  for (let at = 0; at < job.connections; at += 1) {
    let sentAt = 0;
    let isNew = true;
    const lane: Lane = openLane(job.port, request, {
      onBytes(bytes) {
        if (isNew) begun += 1;
        isNew = false;
        if (job.hasChunks) readChunks(bytes);
      },
      onDone(status) {
        counted.requests += 1;
        counted.requestMs.push(performance.now() - sentAt);
        if (status !== 200) counted.errors.push(`status ${status}`);
        if (job.rate === undefined) send();
        else idle.push(timed);
      },
      onBroken: (error) => counted.errors.push(error.message),
    });
    const send = (): void => {
      sentAt = performance.now();
      lane.send();
    };
    const timed: Lane = { send, close: lane.close };
    lanes.push(timed);
    send();
    if (at % RAMP === RAMP - 1) await sleep(10);
  }
  const deadline = Date.now() + START_MS;
  while (begun < job.connections) {
    if (Date.now() > deadline || counted.errors.length > 0) break;
    await sleep(5);
  }
  if (job.rate !== undefined) pace(job.rate, idle);
}

/** Open loop: a request is sent when it is due, whatever became of the ones before. */
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
  for (const lane of lanes) lane.close();
  lanes = [];
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
