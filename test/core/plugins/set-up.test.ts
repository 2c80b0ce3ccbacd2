import { mock } from 'node:test';
import { expect } from 'chai';
import type { WholeApi } from '../../../contract/plugin.ts';
import { runClosers, runReady, SETUP_TIMEOUT_MS, setUpPlugin } from '../../../core/plugins/foundation.ts';
import { Registry } from '../../../core/plugins/registry.ts';
import { removeFolders } from '../../support/folders.ts';
import { startGateway } from '../../support/gateways/gateway.ts';

const setUp = (name: string, setup: () => void | Promise<void>): Promise<void> =>
  setUpPlugin({ name, plugin: { name, kind: 'policy', apiVersion: 1, setup }, config: {} }, {} as WholeApi);

/** Plugin that records the beginning and end of its setup. */
const plugin = (name: string, problem = ''): string => `export default {
  name: '${name}', kind: 'policy', apiVersion: 1,
  async setup(api) {
    globalThis.setUps.push('${name} begins');
    await new Promise((resolve) => setImmediate(resolve));
    ${problem}
    api.hook('finish', () => {});
    globalThis.setUps.push('${name} ends');
  },
};`;

const messageOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => expect.fail('it did not fail'),
    (error: Error) => error.message,
  );

describe('boot', () => {
  afterEach(removeFolders);

  it('sets plugins up one after the other, in order', async () => {
    const ran: string[] = [];
    Object.assign(globalThis, { setUps: ran });
    const files = { 'a.mjs': plugin('a'), 'b.mjs': plugin('b') };
    const gateway = await startGateway({ plugins: ['./a.mjs', './b.mjs'] }, { files });
    await gateway.stop();
    expect(ran).to.deep.equal(['a begins', 'a ends', 'b begins', 'b ends']);
  });

  it('stops at the first plugin that throws, and names it', async () => {
    const ran: string[] = [];
    Object.assign(globalThis, { setUps: ran });
    const files = { 'a.mjs': plugin('a', "throw new Error('no such folder');"), 'b.mjs': plugin('b') };
    const message = await messageOf(startGateway({ plugins: ['./a.mjs', './b.mjs'] }, { files }));
    expect(message).to.match(/^plugin "\.\/a\.mjs": setup failed: no such folder \(a\.mjs:\d+:\d+\)$/);
    expect(ran).to.deep.equal(['a begins']);
  });

  it('aborts an endless setup, and names it', async () => {
    mock.timers.enable({ apis: ['setTimeout'] });
    try {
      const message = messageOf(setUp('slow', () => new Promise(() => {})));
      mock.timers.tick(SETUP_TIMEOUT_MS);
      expect(await message).to.equal('plugin "slow": setup did not finish within 30 s');
    } finally {
      mock.timers.reset();
    }
  });

  it('names the plugin that was not ready', async () => {
    const registry = new Registry();
    registry.ready.push({ owner: 'a', value: () => Promise.reject(new Error('no answer')) });
    expect(await messageOf(runReady(registry.ready))).to.match(/^plugin "a": onReady failed: no answer \(/);
  });

  it('closes in reverse order, despite a failed one', async () => {
    const registry = new Registry();
    const closed: string[] = [];
    const failed: unknown[] = [];
    for (const owner of ['a', 'b', 'c'])
      registry.closers.push({
        owner,
        value: () => {
          closed.push(owner);
          if (owner === 'b') throw new Error('stuck');
        },
      });
    await runClosers(registry.closers, (error) => failed.push(error));
    expect(closed).to.deep.equal(['c', 'b', 'a']);
    expect(failed.map(String).join('\n')).to.match(/^PluginError: plugin "b": onClose failed: stuck \(.*\)$/);
  });
});
