import type { CommandContext } from './commands.ts';
import { createIo } from './io.ts';
import { withAssembly } from './load.ts';
import { formatTable } from './table.ts';

/** `tollgate providers`: what is configured, and what each still needs. */
export async function run(context: CommandContext): Promise<void> {
  await withAssembly(context, async ({ registry, loaded }) => {
    const rows = [...registry.providers].map(([name, { value }]) => {
      const plugin =
        loaded.config.instances.find((instance) => instance.group === 'providers' && instance.name === name)?.plugin ??
        name;
      const isReady = !value.credential?.required || value.credential.value !== undefined;
      return {
        name,
        plugin,
        state: isReady ? 'ready' : 'no key',
        chat: value.chat !== undefined,
        embeddings: value.embed !== undefined,
      };
    });
    const table = formatTable(
      ['PROVIDER', 'PLUGIN', 'STATE', 'HAS'],
      rows.map(({ name, plugin, state, chat, embeddings }) => [
        name,
        plugin,
        state,
        [chat && 'chat', embeddings && 'embeddings'].filter(Boolean).join(', '),
      ]),
    );
    createIo(context.terminal, context.globals.json === true).result(rows, table);
  });
}
