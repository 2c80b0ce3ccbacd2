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
      const { credential } = value;
      const isReady = !credential?.required || credential.value !== undefined;
      return {
        name,
        plugin,
        state: isReady ? 'ready' : 'no key',
        ...(!isReady && credential.env !== undefined && { usually_from: credential.env }),
        chat: value.chat !== undefined,
        embeddings: value.embed !== undefined,
      };
    });
    const table = formatTable(
      ['PROVIDER', 'PLUGIN', 'STATE', 'HAS'],
      rows.map(({ name, plugin, state, usually_from: env, chat, embeddings }) => [
        name,
        plugin,
        env === undefined ? state : `${state} (${env})`,
        [chat && 'chat', embeddings && 'embeddings'].filter(Boolean).join(', '),
      ]),
    );
    createIo(context.terminal, context.globals.json === true).result(rows, table);
  });
}
