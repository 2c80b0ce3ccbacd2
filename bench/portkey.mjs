#!/usr/bin/env node
/**
 * Compares the yardstick, the gateway and Portkey's gateway: 2 KB and 32 KB with 32 callers, and 2 KB with one caller.
 *
 *   node bench/portkey.mjs FOLDER [options of gate.mjs]
 *
 * FOLDER is the package @portkey-ai/gateway with its dependencies:
 *   npm pack @portkey-ai/gateway && tar xzf portkey-ai-gateway-*.tgz && cd package && npm install --omit=dev --ignore-scripts
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const GATE = fileURLToPath(new URL('gate.mjs', import.meta.url));
const RUNS = [
  ['--body', '2'],
  ['--body', '32', '--calls', '3000'],
  ['--body', '2', '--conns', '1'],
];
const [folder, ...options] = process.argv.slice(2);
if (!folder) throw new Error('Name the folder of the package @portkey-ai/gateway.');

for (const run of RUNS) {
  const { status } = spawnSync(process.execPath, [GATE, '--portkey', folder, ...run, ...options], { stdio: 'inherit' });
  if (status !== 0) process.exitCode = 1;
}
