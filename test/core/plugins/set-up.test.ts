import { mock } from 'node:test';
import { expect } from 'chai';
import type { WholeApi } from '../../../core/contract/plugin.ts';
import {
  type Installable,
  runClosers,
  runReady,
  SETUP_TIMEOUT_MS,
  setUpPlugins,
} from '../../../core/plugins/foundation.ts';
import { Registry } from '../../../core/plugins/registry.ts';

const installable = (instance: string, setup: () => void | Promise<void>): Installable => ({
  instance,
  plugin: { name: instance, kind: 'policy', apiVersion: 1, setup },
  api: {} as WholeApi,
  config: {},
});

const messageOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => expect.fail('it did not fail'),
    (error: Error) => error.message,
  );

describe('boot', () => {
  it('sets plugins up one after the other, in order', async () => {
    const ran: string[] = [];
    const step = (name: string) => async () => {
      ran.push(`${name} begins`);
      await new Promise((resolve) => setImmediate(resolve));
      ran.push(`${name} ends`);
    };
    await setUpPlugins([installable('a', step('a')), installable('b', step('b'))]);
    expect(ran).to.deep.equal(['a begins', 'a ends', 'b begins', 'b ends']);
  });

  it('stops at the first plugin that throws, and names it', async () => {
    const never = installable('b', () => expect.fail('it was set up after a fault'));
    const message = await messageOf(
      setUpPlugins([
        installable('a', () => {
          throw new Error('no such folder');
        }),
        never,
      ]),
    );
    expect(message).to.equal('plugin "a": setup failed: no such folder');
  });

  it('ends a setup that never does, and names it', async () => {
    mock.timers.enable({ apis: ['setTimeout'] });
    try {
      const message = messageOf(setUpPlugins([installable('slow', () => new Promise(() => {}))]));
      mock.timers.tick(SETUP_TIMEOUT_MS);
      expect(await message).to.equal('plugin "slow": setup did not finish within 30 s');
    } finally {
      mock.timers.reset();
    }
  });

  it('names who was not ready', async () => {
    const registry = new Registry();
    registry.ready.push({ owner: 'a', value: () => Promise.reject(new Error('no answer')) });
    expect(await messageOf(runReady(registry.ready))).to.equal('plugin "a": onReady failed: no answer');
  });

  it('closes in reverse order, past one that fails', async () => {
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
    expect(failed.map(String)).to.deep.equal(['PluginError: plugin "b": onClose failed: stuck']);
  });
});
