/**
 * Measures how long a small call of one account takes while another account sends many bodies at once, and how long it
 * takes alone: both in the work of the gateway's main thread, in one run.
 *
 *     node --import tsx/esm bench/fair-bodies.ts
 */

import { attack, SENT, SMALL_CALL, startFairRig, toolTurns } from '../test/app/fair-bodies.ts';
import { workedMs } from '../test/support/gateways/gateway-process.ts';

const CALLS = 60;

const rig = await startFairRig();
const { pid } = rig.gateway;

/** Work of the gateway for one body, in milliseconds: the least of three. */
async function workFor(body: string): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let at = 0; at < 3; at += 1) {
    const began = workedMs(pid);
    await rig.post(rig.greedy, body);
    least = Math.min(least, workedMs(pid) - began);
  }
  return least;
}

/** Work of the gateway while a small call waits, in milliseconds: the 95th percentile. */
async function p95(): Promise<number> {
  const took: number[] = [];
  for (let at = 0; at < CALLS; at += 1) {
    const began = workedMs(pid);
    await rig.post(rig.other, SMALL_CALL);
    took.push(workedMs(pid) - began);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return took.sort((a, b) => a - b)[Math.floor(CALLS * 0.95)] ?? 0;
}

try {
  await rig.post(rig.greedy, toolTurns(1000));
  await p95();
  console.log('| bodies | alone, ms | with bodies, ms | × alone | × one body |');
  console.log('|---|---|---|---|---|');
  for (const [what, sent] of Object.entries(SENT)) {
    const alone = await p95();
    const body = await workFor(sent.body);
    const { end } = await attack(rig, sent);
    const parallel = await p95();
    await end();
    const ratios = `${(parallel / alone).toFixed(1)} | ${(parallel / body).toFixed(1)}`;
    console.log(`| ${what}, ${sent.lanes} at once | ${alone.toFixed(1)} | ${parallel.toFixed(1)} | ${ratios} |`);
  }
} finally {
  await rig.close();
}
