// Preloaded (`--import`): prints the URL of each loaded module as `IMPORTED file:///…` on stdout.
import { writeSync } from 'node:fs';
import { register } from 'node:module';
import { isMainThread } from 'node:worker_threads';

/** Runs on the thread of hooks, in which Node loads this file again. */
export async function load(url, context, nextLoad) {
  writeSync(1, `IMPORTED ${url}\n`);
  return await nextLoad(url, context);
}

if (isMainThread) register(import.meta.url);
