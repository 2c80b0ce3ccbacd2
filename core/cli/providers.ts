import type { CommandContext } from './commands.ts';
import { createIo } from './io.ts';
import { withGeneration } from './load.ts';
import { formatTable } from './table.ts';

/** `tollgate providers`: what is configured, and what each still needs. */
export async function run(context: CommandContext): Promise<void> {
  await withGeneration(context, async ({ registry, loaded }) => {
    const operations = ['chat', ...registry.operations.keys()];
    const offers = [...registry.offers.values()];
    const has = (name: string, operation: string): boolean =>
      offers.some(({ owner, value }) => owner === name && value.operation === operation);
    const rows = [...registry.offersOf('chat')].map(([name, value]) => {
      const plugin =
        loaded.config.instances.find((instance) => instance.group === 'providers' && instance.name === name)?.plugin ??
        name;
      const { credential } = value;
      const isReady = !credential?.required || credential.value !== undefined;
      return {
        name,
        plugin,
        state: isReady ? 'ready' : 'no key',
        ...(!isReady && credential.env !== undefined && { usually_from: credential.env }),
        has: operations.filter((operation) => has(name, operation)),
      };
    });
    const table = formatTable(
      ['PROVIDER', 'PLUGIN', 'STATE', 'HAS'],
      rows.map(({ name, plugin, state, usually_from: env, has: own }) => [
        name,
        plugin,
        env === undefined ? state : `${state} (${env})`,
        own.join(', '),
      ]),
    );
    createIo(context.terminal, context.globals.json === true).result(rows, table);
  });
}
