import type { ModelCatalog, Principal, Target } from './call.ts';

/** Splits `provider/model` at the first slash; a name without one has an empty provider. */
export function splitModel(name: string): Target {
  const slash = name.indexOf('/');
  return slash < 1 ? { provider: '', model: name } : { provider: name.slice(0, slash), model: name.slice(slash + 1) };
}

/**
 * Returns whether a principal's allow-lists allow a target; `requested` is the alias that resolved to it. An allowed model is an
 * alias, `provider/model`, `model`, `provider/*` or `*`. It includes the dated variants that the catalog counts as that model, but
 * no siblings: `gpt-5` does not allow `gpt-5-pro`.
 */
export function isAllowed(
  catalog: Pick<ModelCatalog, 'find'>,
  principal: Pick<Principal, 'models' | 'providers'>,
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

/** Sanitizes a caller's text for an error message: limits its length and replaces control characters. */
export function clip(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out
  const clean = text.replace(/[\u0000-\u001f\u007f-\u009f]/g, '?');
  return clean.length > 80 ? `${clean.slice(0, 77)}…` : clean;
}
