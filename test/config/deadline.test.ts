import { mock } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { expect } from 'chai';
import { loadConfig } from '../../config/load-config.ts';
import { makeFolder, removeFolders } from '../support/folders.ts';

/** Manager of secrets that never responds. */
const MANAGER = `export default { name: 'slow', kind: 'secrets', apiVersion: 1, setup() {},
  secrets: () => ({ read(name) { (globalThis.stuckWork ??= []).push(name); return new Promise(() => {}); } }) };`;

describe('G64: loading a configuration', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }));
  afterEach(() => {
    mock.timers.reset();
    removeFolders();
  });

  /** Returns the message of a load that fails at its time limits. */
  const messageOf = async (config: object, files: Readonly<Record<string, string>>): Promise<string> => {
    Reflect.deleteProperty(globalThis, 'stuckWork');
    const cwd = makeFolder({ ...files, 'tollgate.config.json': JSON.stringify(config) });
    let isOver = false;
    const load = loadConfig({ cwd, env: {}, connect: () => expect.fail('nothing is called') }).then(
      () => 'loaded',
      (error: Error) => error.message,
    );
    void load.finally(() => {
      isOver = true;
    });
    while (!isOver) {
      // No time passes before the plugin is stuck.
      if (Reflect.has(globalThis, 'stuckWork')) mock.timers.tick(1000);
      await setImmediate();
    }
    return await load;
  };

  it('ends at an import that does not end, and names the plugin', async () => {
    const config = { providers: { echo: {} }, policies: { stuck: { plugin: './stuck.mjs' } } };
    expect(
      await messageOf(config, { 'stuck.mjs': 'globalThis.stuckWork = []; await new Promise(() => {});' }),
    ).to.match(/policies\.stuck.*\.\/stuck\.mjs.* did not finish within 30 s; a top-level "await"/);
  });

  it('ends at a manager of secrets that does not respond, which is asked once', async () => {
    const config = {
      secrets: { slow: { plugin: './slow.mjs' } },
      // biome-ignore lint/suspicious/noTemplateCurlyInString: references of a configuration
      providers: { openai: { apiKey: '${slow:a}' }, anthropic: { apiKey: '${slow:b}' } },
    };
    const message = await messageOf(config, { 'slow.mjs': MANAGER });
    expect(message).to.match(/providers\.openai\.apiKey.*slow:a.* no response within 30 s/);
    expect(message).to.match(/providers\.anthropic\.apiKey.*"slow", which did not respond within 30 s/);
    expect(Reflect.get(globalThis, 'stuckWork')).to.deep.equal(['a']);
  });
});
