import type Keyv from 'keyv';
import { type FetchedList, fetchModelIds, isAskable, MODEL_LISTS } from '../calls/model-refresh.ts';
import { nearest } from '../config/nearest.ts';
import type { Price, Provider } from '../contract/provider.ts';
import type { CommandContext } from './commands.ts';
import { CliError, createIo, EXIT } from './io.ts';
import { withGeneration } from './load.ts';
import { formatTable } from './table.ts';

/** `tollgate models`: names, context windows and prices in US dollars per million tokens. */
export async function run(context: CommandContext): Promise<void> {
  await withGeneration(context, async ({ registry, loaded, catalog, foundation }) => {
    const providers = registry.offersOf('chat');
    const lists = foundation.store.keyv<FetchedList>(MODEL_LISTS);
    const wanted = context.options['provider'];
    if (typeof wanted === 'string' && !catalog.has(wanted)) {
      const near = nearest(wanted, catalog.providers());
      throw new CliError(
        `there is no provider "${wanted}" in the configuration`,
        EXIT.usage,
        near.length > 0 ? `Did you mean ${near.join(' or ')}?` : `Configured are: ${catalog.providers().join(', ')}.`,
      );
    }
    const chosen = [...providers].filter(([name]) => wanted === undefined || name === wanted);
    if (context.options['refresh']) await refresh(chosen, lists, context);
    for (const [name] of chosen) catalog.learn(name, (await lists.get(name))?.ids ?? []);
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

/** Fetches the lists one by one, saying which; a vendor that fails is said and passed over. */
async function refresh(
  providers: readonly (readonly [string, Provider])[],
  lists: Keyv<FetchedList>,
  { terminal }: CommandContext,
): Promise<void> {
  const askable = providers.filter(([, provider]) => isAskable(provider));
  for (const [at, [name, provider]] of askable.entries()) {
    terminal.err.write(`${at + 1} of ${askable.length}: the models of ${name} … `);
    try {
      const ids = await fetchModelIds(provider);
      await lists.set(name, { ids, at: Date.now() });
      terminal.err.write(`${ids.length}\n`);
    } catch (error) {
      terminal.err.write(`failed (${error instanceof Error ? error.name : 'unknown'}); the known list stays\n`);
    }
  }
}
