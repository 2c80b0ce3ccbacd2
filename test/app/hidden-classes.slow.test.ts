import { readFileSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { expect } from 'chai';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { useTempFolder } from '../support/folders.ts';
import { startProgram } from '../support/processes/cli.ts';

/** Half of them are more than the files that Node reads at the start, about 500 with an object of options each. */
const CALLS = 1500;

const RESPONSE = JSON.stringify({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: 'gpt-4o-mini',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 },
});

describe('objects of a call', () => {
  const folder = useTempFolder('hidden-classes');

  it('share their hidden classes, so that V8 can free a call when it ends', async () => {
    const vendor = http.createServer((request, response) => {
      request.resume().on('end', () => response.writeHead(200, { 'content-type': 'application/json' }).end(RESPONSE));
    });
    await new Promise<void>((resolve) => vendor.listen(0, '127.0.0.1', resolve));
    const log = path.join(folder, 'v8.log');
    const config = path.join(folder, 'tollgate.config.json');
    const openai = {
      apiKey: 'sk-upstream',
      models: ['*'],
      prices: { '*': { input: 1, output: 4 } },
      baseUrl: `http://127.0.0.1:${(vendor.address() as AddressInfo).port}/v1`,
    };
    const settings = {
      server: { host: '127.0.0.1', port: 0 },
      store: 'sqlite:./data',
      providers: { openai },
      auth: { 'api-key': { bootstrap: true } },
      plans: { test: { rpm: 1e6, tpm: 1e9 } },
      defaultPlan: 'test',
    };
    writeFileSync(config, JSON.stringify(settings));
    const flags = ['--log-maps', `--logfile=${log}`, '--no-logfile-per-isolate'];
    const main = path.join(PACKAGE_ROOT, 'dist', 'cli', 'main.js');
    const gateway = startProgram([process.execPath, ...flags, main, 'start', '--config', config], folder);
    try {
      const [, port] = await gateway.seen(/listens on http:\/\/127\.0\.0\.1:(\d+)/);
      const [key] = await gateway.seen(/\btg_\w{62}\b/);
      const body = JSON.stringify({ model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'Hello' }] });
      for (let call = 0; call < CALLS; call += 1) {
        const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
        const url = `http://127.0.0.1:${port}/api/core/openai/chat/completions`;
        const response = await fetch(url, { method: 'POST', headers, body });
        expect(response.status, await response.text()).to.equal(200);
      }
    } finally {
      gateway.child.kill('SIGTERM');
      await gateway.finished;
      vendor.close();
    }
    expect(findOwnClasses(readFileSync(log, 'latin1'))).to.deep.equal([]);
  });
});

/**
 * Finds fields that give at least every other call an object with a hidden class of its own, such as a field after a
 * spread on Node 20. Names with a symbol are Node's own: its `AbortSignal`.
 */
function findOwnClasses(log: string): readonly string[] {
  const counts = new Map<string, number>();
  for (const [, position, name] of log.matchAll(/^map,Transition,.*,(\d+,\d+),prototype,(\w+)$/gm)) {
    const place = `${position} ${name}`;
    counts.set(place, (counts.get(place) ?? 0) + 1);
  }
  return [...counts].filter(([, count]) => count > CALLS / 2).map(([place]) => place);
}
