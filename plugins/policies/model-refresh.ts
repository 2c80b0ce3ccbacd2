import {
  type Command,
  type CommandIo,
  definePlugin,
  GatewayError,
  nearest,
  type PluginApi,
  type Price,
  type Provider,
  type Route,
} from '../../core/index.ts';
import { FOR_OPERATORS, listOf, PAGE_QUERY, readPage, sendList } from './kit/index.ts';

/** A vendor's list as it was fetched; kept in the store, so that a restart knows it at once. */
interface FetchedList {
  readonly ids: readonly string[];
  /** Unix milliseconds. */
  readonly at: number;
}

/** Longer timers overflow and fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * Keeps the catalogue up with what vendors list: first what the store remembers, then, for providers with `refreshModels` and
 * when that is old, the vendor's own list, beside the running gateway. And the command `models`, which shows the catalogue.
 */
export default definePlugin({
  name: 'model-refresh',
  kind: 'policy',
  apiVersion: 1,
  configSchema: { type: 'object', additionalProperties: false },
  commands: [{ name: 'models', summary: 'List models, their context windows and prices' }],
  setup(api) {
    api.command(modelsCommand(api));
    api.route(modelsRoute(api));
    api.onReady(() => {
      for (const [name, provider] of api.offers('chat')) {
        if (!provider.listModels) continue;
        const everyMs = canListModels(provider) ? provider.refreshModelsMs : undefined;
        const refresh = () => void refreshList(api, name, everyMs);
        refresh();
        if (everyMs === undefined) continue;
        const timer = setInterval(refresh, Math.min(everyMs, MAX_TIMER_MS));
        timer.unref();
        api.onClose(() => clearInterval(timer));
      }
    });
  },
});

/** Whether a vendor can be asked for its list: it has one, and the operator has the key it takes. */
function canListModels({ listModels, credential }: Provider): boolean {
  return listModels !== undefined && !(credential?.required && credential.value === undefined);
}

/** A vendor that does not respond changes nothing. */
async function refreshList(api: PluginApi, name: string, everyMs: number | undefined): Promise<void> {
  const lists = api.keyv<FetchedList>('lists');
  try {
    const known = await lists.get(name);
    if (known) api.catalog.learn(name, known.ids);
    if (everyMs === undefined || (known && Date.now() - known.at < everyMs)) return;
    const ids = await api.listModels(name);
    api.catalog.learn(name, ids);
    await lists.set(name, { ids, at: Date.now() });
    api.log.info({ provider: name, models: ids.length }, 'fetched the model list');
  } catch (error) {
    api.log.warn(
      { provider: name, reason: error instanceof Error ? error.name : 'unknown' },
      'the model list could not be fetched; the known one stays',
    );
  }
}

const NUMBER_OR_NULL = { type: ['number', 'null'] } as const;
const MODEL = {
  type: 'object',
  required: ['id', 'provider', 'is_callable', 'targets', 'context_window', 'max_output', 'price'],
  properties: {
    id: { type: 'string', description: '`provider/model`, or an alias.' },
    provider: { type: ['string', 'null'] },
    is_callable: { type: 'boolean', description: 'Whether its provider, or that of a target, has what it needs.' },
    targets: {
      type: ['array', 'null'],
      items: { type: 'string' },
      description: 'What an alias stands for, in the order to try.',
    },
    context_window: NUMBER_OR_NULL,
    max_output: NUMBER_OR_NULL,
    price: { type: ['object', 'null'], description: 'US dollars per million tokens; null where it is not known.' },
  },
} as const;

/** `GET /api/core/admin/catalog` (`/api/core/<provider>/models` is a provider's list): what `tollgate models` shows, and what can be called now. */
function modelsRoute(api: PluginApi): Route {
  return {
    ...{ ...FOR_OPERATORS, method: 'GET', path: '/api/core/admin/catalog' },
    summary: 'List models and aliases: which can be called now, context windows, prices',
    query: { type: 'object', additionalProperties: false, properties: PAGE_QUERY },
    responses: { 200: { description: 'The aliases, then the models by provider.', schema: listOf(MODEL) } },
    handler(ctx) {
      const { limit, after } = readPage(ctx);
      const { catalog } = api;
      const canCall = (target: string): boolean => catalog.isConfigured(target.split('/', 1)[0] ?? '');
      const aliases = api.aliases().map(([id, targets]) => ({
        ...{ id, provider: null, is_callable: targets.some(canCall), targets },
        ...{ context_window: null, max_output: null, price: null },
      }));
      const models = catalog.providers().flatMap((provider) =>
        modelsOf(api, provider).map(({ id, ...facts }) => ({
          ...{ id, provider, is_callable: catalog.isConfigured(provider), targets: null },
          ...facts,
        })),
      );
      const all = [...aliases, ...models];
      const from = after === undefined ? 0 : all.findIndex(({ id }) => id === after) + 1;
      const page = all.slice(from, from + limit);
      sendList(ctx, page, from + limit < all.length ? page.at(-1)?.id : undefined);
    },
  };
}

/** What is known of the models of a provider. */
function modelsOf({ catalog }: Pick<PluginApi, 'catalog'>, provider: string) {
  return catalog.list(provider).map((model) => {
    const info = catalog.find(provider, model);
    return {
      id: `${provider}/${model}`,
      context_window: info?.contextWindow ?? null,
      max_output: info?.maxOutput ?? null,
      price: catalog.priceOf({ provider, model }, info) ?? null,
    };
  });
}

/** `tollgate models`: names, context windows and prices in US dollars per million tokens. */
function modelsCommand(api: PluginApi): Command {
  return {
    name: 'models',
    summary: 'List models, their context windows and prices',
    changesStore: false,
    options: [
      { flags: '--provider <name>', summary: 'of one provider only' },
      { flags: '--refresh', summary: 'fetch the lists of the vendors first, and keep them in the store' },
    ],
    async run({ options, io }) {
      const wanted = typeof options['provider'] === 'string' ? options['provider'] : undefined;
      const { catalog } = api;
      if (wanted !== undefined && !catalog.has(wanted)) {
        const near = nearest(wanted, catalog.providers());
        const hint =
          near.length > 0 ? `Did you mean ${near.join(' or ')}?` : `Configured are: ${catalog.providers().join(', ')}.`;
        throw new GatewayError(
          'unsupported_provider',
          `there is no provider "${wanted}" in the configuration\n${hint}`,
        );
      }
      const names = wanted === undefined ? catalog.providers() : [wanted];
      if (options['refresh'] === true) await refreshAll(api, names, io);
      for (const name of names) {
        const known = await api.keyv<FetchedList>('lists').get(name);
        if (known) catalog.learn(name, known.ids);
      }
      showModels(api, names, wanted === undefined, io);
    },
  };
}

/** Fetches the lists one by one, saying which; a vendor that fails is named and passed over. */
async function refreshAll(api: PluginApi, names: readonly string[], io: CommandIo): Promise<void> {
  const listing = [...api.offers('chat')].filter(([name, provider]) => names.includes(name) && canListModels(provider));
  for (const [at, [name]] of listing.entries()) {
    const step = `${at + 1} of ${listing.length}: the models of ${name}`;
    try {
      const ids = await api.listModels(name);
      await api.keyv<FetchedList>('lists').set(name, { ids, at: Date.now() });
      io.note(`${step} … ${ids.length}`);
    } catch (error) {
      io.note(`${step} … failed (${error instanceof Error ? error.name : 'unknown'}); the known list stays`);
    }
  }
}

function showModels(api: PluginApi, names: readonly string[], withAliases: boolean, io: CommandIo): void {
  const aliases = withAliases ? api.aliases().map(([id, targets]) => ({ id, alias_of: targets })) : [];
  const rows = names.flatMap((provider) => modelsOf(api, provider));
  const table = io.table(
    ['MODEL', 'CONTEXT TOKENS', 'INPUT USD/M TOKENS', 'CACHED USD/M TOKENS', 'OUTPUT USD/M TOKENS'],
    [
      ...aliases.map(({ id, alias_of }) => [id, '', '', '', `-> ${alias_of.join(', ')}`]),
      ...rows.map(({ id, context_window, price }) => [
        id,
        context_window === null ? '?' : String(context_window),
        ...showPrices(price),
      ]),
    ],
  );
  io.result([...aliases, ...rows], table);
}

function showPrices(price: Price | null): readonly string[] {
  return [price?.input, price?.cached_input, price?.output].map((amount) =>
    amount === undefined ? '?' : String(amount),
  );
}
