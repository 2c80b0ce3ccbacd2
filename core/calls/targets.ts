import { nearest } from '../config/nearest.ts';
import type { Principal, Target } from '../contract/call.ts';
import { GatewayError } from '../contract/errors.ts';
import type { ModelRow } from '../contract/plugin.ts';
import type { ModelInfo } from '../contract/provider.ts';

/** What is known of models, by provider instance. */
export interface Catalog {
  /** The model whose id is the longest prefix of `model`; undefined when the provider has none. */
  find(provider: string, model: string): ModelInfo | undefined;
  /** Ids near to `model`, best first. */
  suggest(provider: string, model: string): readonly string[];
  /** Instance names, in the order of the configuration. */
  providers(): readonly string[];
  has(provider: string): boolean;
}

export type Aliases = ReadonlyMap<string, readonly string[]>;

/** Where a request to `/api/core/{provider}/…` goes. */
export function targetOfPath(catalog: Catalog, provider: string, model: string): Target {
  if (!catalog.has(provider)) {
    const near = nearest(provider, catalog.providers());
    throw new GatewayError(
      'unsupported_provider',
      `There is no provider "${clip(provider)}".${didYouMean(near)} Configured are: ${catalog.providers().join(', ')}.`,
    );
  }
  if (!catalog.find(provider, model)) throw unsupportedModel(catalog, provider, model);
  return { provider, model };
}

/** Where a request to `/v1/…` goes: an alias's targets in order, or the one provider that `provider/model` names. */
export function targetsOfModel(catalog: Catalog, aliases: Aliases, model: string): readonly Target[] {
  const alias = aliases.get(model);
  if (alias)
    return alias.map((name) => splitModel(name)).map(({ provider, model: id }) => targetOfPath(catalog, provider, id));
  const { provider, model: id } = splitModel(model);
  if (provider !== '' && catalog.has(provider)) return [targetOfPath(catalog, provider, id)];
  const known = [
    ...aliases.keys(),
    ...catalog.providers().flatMap((name) => catalog.suggest(name, id || provider).map((near) => `${name}/${near}`)),
  ];
  throw new GatewayError(
    'unsupported_model',
    `There is no model "${clip(model)}": write "provider/model" or an alias.${didYouMean(nearest(model, known))}`,
    { param: 'model' },
  );
}

/** The targets of a model of the `/v1` surface, and the alias they came by. */
export function targetsOfRequest(
  deps: { readonly catalog: Catalog; readonly aliases: Aliases },
  model: string,
): { targets: readonly Target[]; requested?: string } {
  const targets = targetsOfModel(deps.catalog, deps.aliases, model);
  return deps.aliases.has(model) ? { targets, requested: model } : { targets };
}

/** Splits `provider/model` at the first slash; a name without one has an empty provider. */
export function splitModel(name: string): Target {
  const slash = name.indexOf('/');
  return slash < 1 ? { provider: '', model: name } : { provider: name.slice(0, slash), model: name.slice(slash + 1) };
}

/** Refuses targets that the caller's key may not use; every way in goes through here. */
export function assertAllowed(
  catalog: Pick<Catalog, 'find'>,
  principal: Principal,
  targets: readonly Target[],
  requested?: string,
): void {
  for (const target of targets) {
    if (isAllowed(catalog, principal, target, requested)) continue;
    throw new GatewayError(
      'model_not_allowed',
      `This key may not use "${clip(target.provider)}/${clip(target.model)}".`,
      { param: 'model' },
    );
  }
}

/**
 * Whether a principal's allow-lists let a target pass; `requested` is the alias it came by. An allowed model is an alias,
 * `provider/model`, `model`, `provider/*` or `*`; it also allows the dated variants that the catalog counts as that model, but
 * never a sibling: `gpt-5` does not allow `gpt-5-pro`.
 */
export function isAllowed(
  catalog: Pick<Catalog, 'find'>,
  principal: Principal,
  target: Target,
  requested?: string,
): boolean {
  const { providers, models } = principal;
  if (providers && !providers.includes(target.provider)) return false;
  if (!models) return true;
  const listed = catalog.find(target.provider, target.model)?.id;
  return models.some(
    (allowed) =>
      allowed === '*' ||
      allowed === requested ||
      allowed === `${target.provider}/*` ||
      allowed === target.model ||
      allowed === listed ||
      allowed === `${target.provider}/${target.model}` ||
      allowed === `${target.provider}/${listed}`,
  );
}

function unsupportedModel(catalog: Catalog, provider: string, model: string): GatewayError {
  return new GatewayError(
    'unsupported_model',
    `The provider "${provider}" has no model "${clip(model)}".${didYouMean(catalog.suggest(provider, model))}`,
    {
      param: 'model',
    },
  );
}

function didYouMean(names: readonly string[]): string {
  return names.length === 0 ? '' : ` Did you mean ${names.map((name) => `"${name}"`).join(', ')}?`;
}

/** A caller's word for an error message: bounded, and without control characters. */
function clip(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out
  const clean = text.replace(/[\u0000-\u001f\u007f-\u009f]/g, '?');
  return clean.length > 80 ? `${clean.slice(0, 77)}…` : clean;
}

/** A catalog that can list the models of one provider. */
export interface ModelList extends Catalog {
  /** Ids of one provider. */
  list(provider: string): readonly string[];
  isConfigured(provider: string): boolean;
}

/**
 * Aliases first, then every `provider/model`: everything without a principal, else what this principal can call. A provider
 * without its credential, and an alias of such providers alone, cannot be called.
 */
export function allModels(
  { catalog, aliases }: { readonly catalog: ModelList; readonly aliases: Aliases },
  principal?: Principal,
): readonly ModelRow[] {
  const isReady = (provider: string): boolean => !principal || catalog.isConfigured(provider);
  const isOpen = (target: Target, name?: string): boolean => !principal || isAllowed(catalog, principal, target, name);
  const named = [...aliases].filter(([name, models]) => {
    const targets = models.map(splitModel);
    return targets.every((target) => isOpen(target, name)) && targets.some(({ provider }) => isReady(provider));
  });
  return [
    ...named.map(([id]) => ({ id, owned_by: 'tollgate' })),
    ...catalog.providers().flatMap((provider) => modelsOfProvider(catalog, provider, principal, `${provider}/`)),
  ];
}

/** The models of one provider, by the same rules; `prefix` is laid in front of each id. */
export function modelsOfProvider(
  catalog: ModelList,
  provider: string,
  principal: Principal | undefined,
  prefix = '',
): readonly ModelRow[] {
  if (principal && !catalog.isConfigured(provider)) return [];
  return catalog
    .list(provider)
    .filter((model) => !principal || isAllowed(catalog, principal, { provider, model }))
    .map((model) => ({ id: `${prefix}${model}`, owned_by: provider }));
}
