import type { Principal, Target } from '../contract/call.ts';
import type { ListedModel } from '../contract/dialect.ts';
import type { ModelRow } from '../contract/plugin.ts';
import { type Aliases, type Catalog, isAllowed, type ModelNames, splitModel } from './targets.ts';

/**
 * Aliases first, then every `provider/model`: everything without a principal, else what this principal can call. A provider
 * without its credential, and an alias of such providers alone, cannot be called.
 */
export function allModels(names: ModelNames, principal?: Principal): readonly ModelRow[] {
  const { catalog } = names;
  return [
    ...openAliases(names, principal).map(([id]) => ({ id, owned_by: 'tollgate' })),
    ...catalog.providers().flatMap((provider) => modelsOfProvider(catalog, provider, principal, `${provider}/`)),
  ];
}

/** The models of one provider, by the same rules; `prefix` is laid in front of each id. */
export function modelsOfProvider(
  catalog: Catalog,
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

/** What a principal can call, with what is known of each model; an alias is as its first target that can be called. */
export function listModels(names: ModelNames, principal: Principal, created: number): readonly ListedModel[] {
  const { catalog } = names;
  const targets = new Map(openAliases(names, principal));
  return allModels(names, principal).map(({ id, owned_by }) => {
    const candidates = (targets.get(id) ?? [id]).map(splitModel);
    const first = candidates.find(({ provider }) => catalog.isConfigured(provider));
    const { contextWindow, maxOutput } = (first && catalog.find(first.provider, first.model)) ?? {};
    return {
      ...{ id, ownedBy: owned_by, created },
      ...(contextWindow !== undefined && { contextWindow }),
      ...(maxOutput !== undefined && { maxOutput }),
    };
  });
}

/** The aliases that can be called: all targets allowed, and one of them with its key. */
function openAliases(
  { catalog, aliases, dialectAliases = {} }: ModelNames,
  principal: Principal | undefined,
): readonly (readonly [name: string, targets: readonly string[]])[] {
  const all: Aliases = new Map([...aliases, ...Object.entries(dialectAliases)]);
  if (!principal) return [...all];
  const isOpen = (target: Target, name: string): boolean => isAllowed(catalog, principal, target, name);
  return [...all].filter(([name, models]) => {
    const targets = models.map(splitModel);
    return (
      targets.every((target) => isOpen(target, name)) && targets.some(({ provider }) => catalog.isConfigured(provider))
    );
  });
}
