import { createCatalog } from '../models.ts';
import { nearest } from '../nearest.ts';
import type { Price } from '../provider.ts';
import type { CommandContext } from './commands.ts';
import { CliError, createIo, EXIT } from './io.ts';
import { withAssembly } from './load.ts';
import { formatTable } from './table.ts';

/** `tollgate models`: names, context windows and prices in US dollars per million tokens. */
export async function run(context: CommandContext): Promise<void> {
  await withAssembly(context, async ({ registry, loaded }) => {
    const catalog = createCatalog(new Map([...registry.providers].map(([name, { value }]) => [name, value])));
    const wanted = context.options['provider'];
    if (typeof wanted === 'string' && !catalog.has(wanted)) {
      const near = nearest(wanted, catalog.providers());
      throw new CliError(
        `there is no provider "${wanted}" in the configuration`,
        EXIT.usage,
        near.length > 0 ? `Did you mean ${near.join(' or ')}?` : `Configured are: ${catalog.providers().join(', ')}.`,
      );
    }
    const aliases =
      wanted === undefined
        ? Object.entries(loaded.config.models).map(([name, targets]) => ({ id: name, alias_of: targets }))
        : [];
    const names = typeof wanted === 'string' ? [wanted] : catalog.providers();
    const rows = names.flatMap((provider) =>
      catalog.list(provider).map((model) => {
        const info = catalog.find(provider, model);
        return {
          id: `${provider}/${model}`,
          context_window: info?.contextWindow ?? null,
          max_output: info?.maxOutput ?? null,
          price: catalog.priceOf({ provider, model }, info) ?? null,
        };
      }),
    );
    const table = formatTable(
      ['MODEL', 'CONTEXT', 'INPUT', 'CACHED', 'OUTPUT'],
      [
        ...aliases.map(({ id, alias_of }) => [id, '', '', '', `-> ${alias_of.join(', ')}`]),
        ...rows.map(({ id, context_window, price }) => [
          id,
          context_window === null ? '?' : String(context_window),
          ...prices(price),
        ]),
      ],
    );
    createIo(context.terminal, context.globals.json === true).result([...aliases, ...rows], table);
  });
}

function prices(price: Price | null): readonly string[] {
  return [price?.input, price?.cached_input, price?.output].map((amount) =>
    amount === undefined ? '?' : String(amount),
  );
}
