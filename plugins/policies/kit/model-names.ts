import {
  nearest,
  type Offer,
  OptionError,
  type PluginApi,
  type Principal,
  type Target,
} from '../../../contract/index.ts';
import { assertInPlan, createPlanFinder } from '../../../contract/operators.ts';

export type ModelNamesApi = Pick<PluginApi, 'catalog' | 'offers' | 'aliases'>;

/** What a gateway calls its models, for lists and budgets that name them: a name that means nothing would open or limit nothing. */
export interface ModelNames {
  readonly providers: readonly string[];
  /** Whether a name means something: `*`, an alias, `provider/*`, `provider/model`, or a model that a provider lists. */
  isModel(name: string): boolean;
  /** Whether a provider takes a model: one of its list, or any. */
  isModelOf(provider: string, name: string): boolean;
  /** Whether a budget for it would count anything; of one that ends in `*` it is enough that a model begins so. */
  isCounted(name: string, provider: string | undefined): boolean;
  /** Names that are like one that means nothing. */
  near(name: string): readonly string[];
}

type Offers = ReadonlyMap<string, Offer>;

export function createModelNames(api: ModelNamesApi): ModelNames {
  const { catalog } = api;
  const offers: readonly Offers[] = (
    ['chat', 'embeddings', 'speech', 'moderations', 'rerank', 'images', 'transcription'] as const
  ).map((each) => api.offers(each));
  const all = api.aliases().map(([alias]) => alias);
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

/** A name without the provider's own before it. */
function splitOf(provider: string, name: string): string {
  return name.startsWith(`${provider}/`) ? name.slice(provider.length + 1) : name;
}

function hasModel(api: ModelNamesApi, offers: Offers, provider: string, model: string): boolean {
  const isAny = offers.get(provider)?.anyModel === true && model !== '';
  return isAny || isListed(api, offers, provider, model);
}

/** Whether a provider's list has a model; a provider that takes any has those names alone that its list knows. */
function isListed({ catalog }: ModelNamesApi, offers: Offers, provider: string, model: string): boolean {
  const { models = [], addModels = [] } = offers.get(provider) ?? {};
  const found = catalog.find(provider, model);
  if (found && catalog.list(provider).includes(found.id)) return true;
  return [...models, ...addModels].some(({ id }) => model.startsWith(id));
}

function modelsOf({ catalog }: ModelNamesApi, offers: readonly Offers[], provider: string): readonly string[] {
  const offered = offers.flatMap((each) => {
    const { models = [], addModels = [] } = each.get(provider) ?? {};
    return [...models, ...addModels].map(({ id }) => id);
  });
  return [...offered, ...(catalog.has(provider) ? catalog.list(provider) : [])];
}

/** Whether a caller may use a model that it did not ask for, by the lists of its key and of its plan; an alias among them allows its own targets alone. */
export function createModelCheck(
  api: Pick<PluginApi, 'catalog'> & Parameters<typeof createPlanFinder>[0],
): (principal: Principal, target: Target) => Promise<boolean> {
  const findPlan = createPlanFinder(api);
  return async (principal, target) => {
    if (principal.providers && !principal.providers.includes(target.provider)) return false;
    const lists = [principal.models && { name: 'key', plan: { models: principal.models } }, await findPlan(principal)];
    try {
      for (const list of lists) assertInPlan(api.catalog, list, [target]);
      return true;
    } catch {
      return false;
    }
  };
}

/** Throws an {@link OptionError} where the option at `pointer` is no `provider/model` that a provider here takes. */
export function assertTarget({ catalog }: Pick<PluginApi, 'catalog'>, pointer: string, name: string): void {
  const { provider, model } = splitName(name);
  if (name.includes('/') && catalog.find(provider, model)) return;
  throw new OptionError(
    pointer,
    `is "${name}", which is not a model of a configured provider`,
    'Use "provider/model" from `tollgate models`, not an alias.',
  );
}
