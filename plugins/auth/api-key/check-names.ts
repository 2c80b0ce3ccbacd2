import { GatewayError, nearest, type Offer, type PluginApi } from '../../../core/index.ts';
// What the operations beside chat are called, and the types of their offers.
import type {} from '../../providers/kit/index.ts';
import type {} from '../../tts/kit/index.ts';
import type { KeyLimits } from './records.ts';

type NamesApi = Pick<PluginApi, 'settings' | 'catalog' | 'offers' | 'aliases'>;
type Offers = ReadonlyMap<string, Offer>;

/** How many names an error lists. */
const MAX_SHOWN = 20;

/**
 * Throws `invalid_request` for a plan, provider or model that this gateway does not have. A misspelt plan would not limit, and a
 * misspelt model would open nothing: both show only when the key is used.
 */
export function checkNames(api: NamesApi, { plan, providers = [], models = [] }: Omit<KeyLimits, 'name'>): void {
  const plans = Object.keys(api.settings.plans);
  if (plan !== undefined && !plans.includes(plan)) throw unknownName('plan', 'plan', plan, plans);
  const offers = [api.offers('chat'), api.offers('embeddings'), api.offers('speech')] satisfies readonly Offers[];
  const known = [...new Set(offers.flatMap((each) => [...each.keys()]))];
  for (const [at, name] of providers.entries())
    if (!known.includes(name)) throw unknownName(`providers[${at}]`, 'provider', name, known);
  // A name alone may be any model of the providers that the key is bound to.
  for (const [at, name] of models.entries())
    if (
      !isModel(api, offers, name) &&
      !providers.some((provider) => offers.some((each) => hasModel(api, each, provider, name)))
    )
      throw unknownName(`models[${at}]`, 'model', name, nearModels(api, name));
}

/** Whether a model list's entry means something: `*`, an alias, `provider/*`, `provider/model`, or a model that is listed. */
function isModel(api: NamesApi, offers: readonly Offers[], name: string): boolean {
  if (name === '*' || api.aliases().some(([alias]) => alias === name)) return true;
  const slash = name.indexOf('/');
  const provider = name.slice(0, Math.max(slash, 0));
  const model = name.slice(slash + 1);
  if (offers.some((each) => each.has(provider) && (model === '*' || hasModel(api, each, provider, model)))) return true;
  return offers.some((each) => [...each.keys()].some((other) => isListed(api, each, other, name)));
}

/** Whether a provider takes a model: one of its list, or any. */
function hasModel(api: NamesApi, offers: Offers, provider: string, model: string): boolean {
  const isAny = offers.get(provider)?.anyModel === true && model !== '';
  return isAny || isListed(api, offers, provider, model);
}

/** Whether a provider's list has a model; a provider that takes any has those names alone that its list knows. */
function isListed({ catalog }: NamesApi, offers: Offers, provider: string, model: string): boolean {
  const { models = [], addModels = [] } = offers.get(provider) ?? {};
  const found = catalog.find(provider, model);
  if (found && catalog.list(provider).includes(found.id)) return true;
  return [...models, ...addModels].some(({ id }) => model.startsWith(id));
}

function nearModels({ catalog, aliases }: NamesApi, name: string): readonly string[] {
  const slash = name.indexOf('/');
  const model = name.slice(slash + 1);
  const listed = catalog
    .providers()
    .flatMap((provider) => catalog.suggest(provider, model).map((id) => `${provider}/${id}`));
  return nearest(name, [...aliases().map(([alias]) => alias), ...listed]);
}

function unknownName(param: string, what: string, name: string, known: readonly string[]): GatewayError {
  const shown = known.slice(0, MAX_SHOWN).join(', ');
  const hint =
    what === 'model'
      ? `${shown === '' ? '' : `Did you mean ${shown}? `}Write "provider/model", "provider/*", an alias or a model of a provider's list.`
      : `${what === 'plan' ? 'Plans' : 'Providers'} of the configuration: ${shown || 'none'}.`;
  const clean = name.replace(/[\p{Cc}\p{Cf}]/gu, '?').slice(0, 80);
  return new GatewayError('invalid_request', `There is no ${what} "${clean}" here. ${hint}`, { param });
}
