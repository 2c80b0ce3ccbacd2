import { nearest } from '../../config/problems.ts';
import type { Principal, Target } from '../contract/call.ts';
import type { DialectDefinition } from '../contract/dialect.ts';
import { GatewayError } from '../contract/errors.ts';
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
  /** Ids of one provider. */
  list(provider: string): readonly string[];
  /** Whether calls to a provider have the credential that they need. */
  isConfigured(provider: string): boolean;
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

/** What the names of models are looked up in. */
export interface ModelNames {
  readonly catalog: Catalog;
  /** Of the configuration. */
  readonly aliases: Aliases;
  /** Those of the client format that a request came by; they come first. */
  readonly dialectAliases?: DialectDefinition['aliases'] | undefined;
}

/**
 * The targets of a model of the `/v1` surface, and the alias they came by (`alias` when it is the configuration's own). In this order a name is `provider/model`; an alias of
 * the client's format, or of the configuration; a model that one provider with a key lists alone.
 */
export function targetsOfRequest(
  names: ModelNames,
  model: string,
): { readonly targets: readonly Target[]; readonly requested?: string; readonly alias?: string } {
  const { catalog } = names;
  const named = splitModel(model);
  if (named.provider !== '' && catalog.has(named.provider))
    return { targets: [targetOfPath(catalog, named.provider, named.model)] };
  const alias = aliasOf(names, model);
  if (alias)
    return {
      targets: alias.map(splitModel).map(({ provider, model: id }) => targetOfPath(catalog, provider, id)),
      requested: model,
      ...(!Object.hasOwn(names.dialectAliases ?? {}, model) && { alias: model }),
    };
  const providers = providersOf(catalog, model);
  if (providers.length === 0) throw unknownModel(names, model);
  if (providers.length > 1) throw ambiguousModel(providers, model);
  return { targets: providers.map((provider) => ({ provider, model })) };
}

function aliasOf({ aliases, dialectAliases = {} }: ModelNames, name: string): readonly string[] | undefined {
  return Object.hasOwn(dialectAliases, name) ? dialectAliases[name] : aliases.get(name);
}

/** The providers with a key whose lists have a model, or one that it is a dated variant of. */
function providersOf(catalog: Catalog, model: string): readonly string[] {
  return catalog.providers().filter((provider) => catalog.isConfigured(provider) && isListed(catalog, provider, model));
}

/** Whether a provider's list has a model; one that takes any name lists those alone that its operator or its vendor named. */
function isListed(catalog: Catalog, provider: string, model: string): boolean {
  const found = catalog.find(provider, model);
  return found !== undefined && catalog.list(provider).includes(found.id);
}

function ambiguousModel(providers: readonly string[], model: string): GatewayError {
  const candidates = providers.map((provider) => `"${provider}/${clip(model)}"`);
  return new GatewayError(
    'unsupported_model',
    `More than one provider has a model "${clip(model)}": write ${candidates.slice(0, -1).join(', ')} or ${candidates.at(-1)}.`,
    { param: 'model' },
  );
}

function unknownModel({ catalog, aliases, dialectAliases = {} }: ModelNames, model: string): GatewayError {
  const { provider, model: id } = splitModel(model);
  const known = new Map([...Object.keys(dialectAliases), ...aliases.keys()].map((name) => [name, name]));
  // A bare name is near to a bare one.
  for (const name of catalog.providers())
    for (const near of catalog.suggest(name, id))
      known.set(provider === '' ? near : `${name}/${near}`, `${name}/${near}`);
  const near = nearest(model, known.keys()).map((name) => known.get(name) ?? name);
  return new GatewayError(
    'unsupported_model',
    `There is no model "${clip(model)}": write "provider/model" or an alias.${didYouMean(near)}`,
    { param: 'model' },
  );
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
export function clip(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out
  const clean = text.replace(/[\u0000-\u001f\u007f-\u009f]/g, '?');
  return clean.length > 80 ? `${clean.slice(0, 77)}…` : clean;
}
