import {
  nearest,
  type Offer,
  OptionError,
  type PluginApi,
  type Principal,
  type Target,
} from '../../../contract/index.ts';
import { assertInPlan, createPlanFinder } from '../../../contract/operators.ts';

export type ModelNamesApi = Pick<PluginApi, 'models'>;

/** Checks model names in lists and budgets: an unknown name would allow or limit nothing. */
export interface ModelNames {
  readonly providers: readonly string[];
  /** True for a known name: `*`, an alias, `provider/*`, `provider/model`, or a model that a provider lists. */
  isModel(name: string): boolean;
  /** True if a provider accepts a model: one of its list, or any. */
  isModelOf(provider: string, name: string): boolean;
  /**
   * True if a budget for the name would count any call; for a name that ends in `*`, one model with this prefix
   * suffices.
   */
  isCounted(name: string, provider: string | undefined): boolean;
  /** Known names similar to an unknown one. */
  near(name: string): readonly string[];
}

type Offers = ReadonlyMap<string, Offer>;

export function createModelNames(api: ModelNamesApi): ModelNames {
  const {
    models: { catalog },
  } = api;
  const offers: readonly Offers[] = (
    ['chat', 'embeddings', 'speech', 'moderations', 'rerank', 'images', 'transcription'] as const
  ).map((each) => api.models.offers(each));
  const all = api.models.aliases().map(([alias]) => alias);
  const patterns = all.flatMap((alias) => (alias.endsWith('*') ? [alias.slice(0, -1)] : []));
  const aliases = all.filter((alias) => !alias.endsWith('*'));
  const isAlias = (name: string): boolean =>
    aliases.includes(name) || (!name.endsWith('*') && patterns.some((start) => name.startsWith(start)));
  const providers = [...new Set(offers.flatMap((each) => [...each.keys()]))];
  const isModelOf = (provider: string, name: string): boolean =>
    offers.some((each) => hasModel(api, each, provider, name));
  const isModel = (name: string): boolean => {
    if (name === '*' || isAlias(name)) return true;
    const { provider, model } = splitName(name);
    if (provider !== '' && offers.some((each) => each.has(provider) && (model === '*' || isModelOf(provider, model))))
      return true;
    return offers.some((each) => [...each.keys()].some((other) => isListed(api, each, other, name)));
  };
  return {
    providers,
    isModel,
    isModelOf,
    isCounted(name, only) {
      if (!name.endsWith('*')) return only === undefined ? isModel(name) : isModelOf(only, splitOf(only, name));
      const start = name.slice(0, -1);
      const own = only === undefined ? providers : [only];
      return own.some((provider) => {
        const rest = splitOf(provider, start);
        const isOfAny = offers.some((each) => each.get(provider)?.anyModel === true);
        if (isOfAny && (only !== undefined || rest !== start)) return true;
        return modelsOf(api, offers, provider).some((id) => id.startsWith(rest));
      });
    },
    near(name) {
      const { model } = splitName(name);
      const listed = catalog
        .providers()
        .flatMap((provider) => catalog.suggest(provider, model).map((id) => `${provider}/${id}`));
      return nearest(name, [...aliases, ...listed]);
    },
  };
}

export function splitName(name: string): { readonly provider: string; readonly model: string } {
  const slash = name.indexOf('/');
  return { provider: name.slice(0, Math.max(slash, 0)), model: name.slice(slash + 1) };
}

/** Removes the provider's own prefix from a name. */
function splitOf(provider: string, name: string): string {
  return name.startsWith(`${provider}/`) ? name.slice(provider.length + 1) : name;
}

function hasModel(api: ModelNamesApi, offers: Offers, provider: string, model: string): boolean {
  const isAny = offers.get(provider)?.anyModel === true && model !== '';
  return isAny || isListed(api, offers, provider, model);
}

/** True if a provider's list has a model; for a provider that accepts any, only listed names count. */
function isListed({ models: { catalog } }: ModelNamesApi, offers: Offers, provider: string, model: string): boolean {
  const { models = [], addModels = [] } = offers.get(provider) ?? {};
  const found = catalog.find(provider, model);
  if (found && catalog.list(provider).includes(found.id)) return true;
  return [...models, ...addModels].some(({ id }) => model.startsWith(id));
}

function modelsOf(
  { models: { catalog } }: ModelNamesApi,
  offers: readonly Offers[],
  provider: string,
): readonly string[] {
  const offered = offers.flatMap((each) => {
    const { models = [], addModels = [] } = each.get(provider) ?? {};
    return [...models, ...addModels].map(({ id }) => id);
  });
  return [...offered, ...(catalog.has(provider) ? catalog.list(provider) : [])];
}

/**
 * Creates a test whether a caller may use a model that was not requested, by the lists of the key and of its plan. An
 * alias in them allows its own targets alone.
 */
export function createModelCheck(
  api: Pick<PluginApi, 'models'> & Parameters<typeof createPlanFinder>[0],
): (principal: Principal, target: Target) => Promise<boolean> {
  const findPlan = createPlanFinder(api);
  return async (principal, target) => {
    if (principal.providers && !principal.providers.includes(target.provider)) return false;
    const lists = [principal.models && { name: 'key', plan: { models: principal.models } }, await findPlan(principal)];
    try {
      for (const list of lists) assertInPlan(api.models.catalog, list, [target]);
      return true;
    } catch {
      return false;
    }
  };
}

/**
 * Throws an {@link OptionError} if the option at `pointer` is not a `provider/model` that a configured provider
 * accepts.
 */
export function assertTarget({ models: { catalog } }: Pick<PluginApi, 'models'>, pointer: string, name: string): void {
  const { provider, model } = splitName(name);
  if (name.includes('/') && catalog.find(provider, model)) return;
  throw new OptionError(
    pointer,
    `is "${name}", which is not a model of a configured provider`,
    'Use "provider/model" from `tollgate models`, not an alias.',
  );
}
