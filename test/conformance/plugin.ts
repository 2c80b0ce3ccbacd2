import assert from 'node:assert/strict';
import { configCheck, type PluginKit, type PluginSubject, setUpPlugin } from './plugin-subject.ts';
import { findRunner, nameOf, requirePlugin } from './runner.ts';
import { watchedAsync } from './watched.ts';

/** Value of every secret option, which must not be exposed. It is long enough for options with a minimum length. */
const SECRET = 'canary-7f3a9c2e5b81-d06b4418ac2f4e9b-71c5e83f9a20d46b';

/**
 * Runs the tests that every plugin of any kind must pass: its description, its options, its registrations.
 *
 * ```ts
 * import { testPlugin } from 'tollgate/conformance';
 * import mine from '../mine.ts';
 * testPlugin({ plugin: mine, config: { url: 'http://127.0.0.1:9' } });
 * ```
 */
export function testPlugin(kit: PluginKit): void {
  const { describe } = findRunner(kit.runner);
  describe(`${nameOf(kit.plugin)}: what every plugin promises`, () => {
    requirePlugin(kit.plugin, kit.plugin?.kind);
    testDefinition(kit);
  });
}

/** Tests shared with the kits of each kind. `use` runs a typical call, so that the tests observe the plugin at work. */
export function testDefinition(kit: PluginKit, use: (subject: PluginSubject) => unknown = () => undefined): void {
  const { describe, it } = findRunner();
  const { plugin, config = {} } = kit;
  const subjectOf = async <T>(look: (subject: PluginSubject) => T | Promise<T>, options = config): Promise<T> => {
    const subject = await setUpPlugin({ plugin, config: options });
    try {
      return await look(subject);
    } finally {
      await subject.close();
    }
  };

  describe('the plugin', () => {
    it('is of this plugin version, named in kebab-case', () => {
      assert.equal(plugin.apiVersion, 1);
      assert.match(plugin.name, /^[a-z][a-z0-9-]{0,39}$/);
    });
    it('has a schema of its options that accepts those of the kit and refuses unknown ones', () => {
      const check = configCheck(plugin);
      assert.equal(check(structuredClone(config)), undefined);
      assert.ok(
        plugin.configSchema === undefined || check({ ...structuredClone(config), optoin: 1 }) !== undefined,
        'an option that it does not know is taken: say `additionalProperties: false`',
      );
    });
    it('describes each of its options', () => {
      const { properties = {} } = (plugin.configSchema ?? {}) as Schema;
      const silent = Object.entries(properties).filter(([, { description }]) => !description?.trim());
      assert.deepEqual(
        silent.map(([name]) => name),
        [],
        'options without a description',
      );
    });
    it('can be set up repeatedly, with the same result', async () => {
      const [first, second] = [await subjectOf(registeredBy), await subjectOf(registeredBy)];
      assert.deepEqual(second, first);
    });
    it('registers its declared commands', () =>
      subjectOf(({ commands }) => {
        const said = (plugin.commands ?? []).map(({ name }) => name);
        assert.deepEqual(
          commands.map(({ name }) => name).filter((name) => !said.includes(name)),
          [],
          'commands that `setup` registers and `commands` does not name',
        );
      }));
    it('has routes with absolute paths, each with one line of summary', () =>
      subjectOf(({ routes }) => {
        for (const { path, summary } of routes) {
          assert.match(path, /^\//);
          assert.match(summary, /^[^\n]+$/, path);
        }
      }));
    it('writes nothing to the console, and reads no environment variable', () =>
      watchedAsync(() =>
        subjectOf(async (subject) => {
          try {
            await use(subject);
          } catch {
            // Another test reports this error.
          }
        }),
      ));
    const secrets = secretsOf(plugin.configSchema);
    if (secrets.length === 0) return;
    it('writes no secret to its log, and into no error', async () => {
      const options = { ...config, ...Object.fromEntries(secrets.map((name) => [name, SECRET])) };
      const look = ({ logged }: PluginSubject): void =>
        assert.ok(!logged.join('\n').includes(SECRET), 'a secret option is in the log');
      await subjectOf(look, options).catch((error: unknown) => {
        if (error instanceof assert.AssertionError) throw error;
        // The plugin may refuse a secret with an invalid format.
        assert.ok(!String((error as Error).message).includes(SECRET), 'a secret option is in an error of `setup`');
      });
    });
  });
}

interface Schema {
  readonly properties?: Readonly<
    Record<string, { readonly type?: unknown; readonly description?: string; readonly secret?: boolean }>
  >;
}

/** Names of options with a secret text. */
function secretsOf(schema: object | undefined): readonly string[] {
  const { properties = {} } = (schema ?? {}) as Schema;
  return Object.entries(properties).flatMap(([name, { secret, type }]) =>
    secret === true && type === 'string' ? [name] : [],
  );
}

/** Registrations of a plugin, for inspection. */
function registeredBy({ routes, commands, agents, others, hooksOf }: PluginSubject): unknown {
  const hooks = (
    ['authenticate', 'admit', 'prepare', 'answer', 'route', 'reserve', 'send', 'receive', 'stream'] as const
  ).map((name) => hooksOf(name).length);
  return {
    ...{ hooks, routes: routes.map(({ method, path }) => [method, path]), commands: commands.map(({ name }) => name) },
    agents: agents.map(({ name }) => name),
    others,
  };
}
