import { formatUsd, GatewayError, type PluginApi, type Principal } from '../../../contract/index.ts';
import { coversTool, createModelNames, type ModelNamesApi, refuseTag } from '../../policies/kit/index.ts';
import { omitUndefined } from '../kit/omit-undefined.ts';
import type { KeyLimits } from './records.ts';

/** Limits of a creator's token or team; a key never exceeds them. */
export type Creator = Pick<Principal, 'plan' | 'models' | 'providers' | 'serverTools' | 'rpm' | 'tpm' | 'budget'>;

/**
 * Limits of a new key: the requested ones within the creator's own, which are also the defaults. Throws
 * `permission_denied` with the field that exceeds them.
 */
export function narrow(wanted: KeyLimits, creator: Creator): KeyLimits {
  const plan = narrowPlan(wanted.plan, creator.plan);
  const providers = narrowList('providers', wanted.providers, creator.providers, (name, own) => name === own);
  const models = narrowList('models', wanted.models, creator.models, (model, own) => covers(own, model, providers));
  const serverTools = narrowTools(wanted.serverTools, creator.serverTools);
  const rpm = narrowNumber('rpm', wanted.rpm, creator.rpm);
  const tpm = narrowNumber('tpm', wanted.tpm, creator.tpm);
  const budget = narrowNumber('budget_usd', wanted.budget, creator.budget);
  // Budgets, expiry and addresses only restrict a key further.
  const { name, expiresAt, budgets, addresses } = wanted;
  return {
    name,
    ...omitUndefined({ expiresAt, plan, models, providers, serverTools, rpm, tpm, budget, budgets, addresses }),
  };
}

/**
 * Plans have no order, so a key has its creator's plan. If the token names none, the key names none and has the
 * account's.
 */
function narrowPlan(wanted: string | undefined, own: string | undefined): string | undefined {
  if (wanted === undefined || wanted === own) return own;
  throw denied(
    'plan',
    own === undefined ? 'none; remove the field to use the plan of the account' : `"${own}" or none`,
  );
}

/**
 * Unlike for models, a missing list allows no tool: tools that run on the operator's account must be granted by the
 * operator.
 */
function narrowTools(
  wanted: readonly string[] | undefined,
  own: readonly string[] | undefined,
): readonly string[] | undefined {
  return wanted === undefined
    ? own
    : narrowList('server_tools', wanted, own ?? [], (name, mine) => coversTool(mine, name));
}

function narrowList(
  field: string,
  wanted: readonly string[] | undefined,
  own: readonly string[] | undefined,
  isWithin: (entry: string, own: string) => boolean,
): readonly string[] | undefined {
  if (!own || !wanted) return wanted ?? own;
  const beyond = wanted.findIndex((entry) => !own.some((mine) => isWithin(entry, mine)));
  if (beyond === -1) return wanted;
  throw denied(`${field}[${beyond}]`, own.length > 0 ? `${own.slice(0, 20).join(', ')}${hintOf(field)}` : 'none');
}

function narrowNumber(field: string, wanted: number | undefined, own: number | undefined): number | undefined {
  if (own === undefined || wanted === undefined) return wanted ?? own;
  if (wanted <= own) return wanted;
  throw denied(field, field === 'budget_usd' ? `up to ${Number(formatUsd(own))}` : `up to ${own}`);
}

/**
 * True if an own entry (`*`, `provider/*`, `provider/model`, `model` or an alias) allows everything that another one
 * does. `openai/gpt-5` may also be a model of that name at another provider. An entry therefore belongs to one provider
 * only if the key is restricted to that provider.
 */
function covers(own: string, entry: string, providers: readonly string[] | undefined): boolean {
  if (own === '*' || entry === own) return true;
  const [only, ...others] = providers ?? [];
  if (only === undefined || others.length > 0) return false;
  return own === `${only}/*` || entry === `${only}/${own}`;
}

function denied(param: string, allowed: string): GatewayError {
  return new GatewayError(
    'permission_denied',
    `A key cannot exceed the rights of the token or team that creates it. Allowed for ${param}: ${allowed}.`,
    { param },
  );
}

function hintOf(field: string): string {
  return field === 'models' ? ' (set one provider in "providers" to request a part of these)' : '';
}

type NamesApi = ModelNamesApi & Pick<PluginApi, 'settings'>;

/** Maximum names listed in an error. */
const MAX_SHOWN = 20;

/**
 * Throws `invalid_request` for an unknown plan, provider or model. Otherwise a misspelt plan would not limit and a
 * misspelt model would allow nothing, which would only show when the key is used.
 */
export function checkNames(
  api: NamesApi,
  { plan, providers = [], models = [], tags = [], budgets = [] }: Omit<KeyLimits, 'name'>,
  plans: readonly string[],
): void {
  if (plan !== undefined && !plans.includes(plan)) throw unknownName('plan', 'plan', plan, plans);
  const names = createModelNames(api);
  const known = names.providers;
  for (const [at, name] of providers.entries())
    if (!known.includes(name)) throw unknownName(`providers[${at}]`, 'provider', name, known);
  for (const [at, { provider, model }] of budgets.entries()) {
    if (provider !== undefined && !known.includes(provider))
      throw unknownName(`budgets[${at}].provider`, 'provider', provider, known);
    if (model !== undefined && !names.isCounted(model, provider))
      throw unknownName(`budgets[${at}].model`, 'model', model, names.near(model));
  }
  for (const [at, tag] of tags.entries()) {
    const reason = refuseTag(tag, api.settings.tags);
    if (reason !== undefined) throw new GatewayError('invalid_request', reason, { param: `tags[${at}]` });
  }
  // A name without a provider may be any model of the key's providers.
  for (const [at, name] of models.entries())
    if (!names.isModel(name) && !providers.some((provider) => names.isModelOf(provider, name)))
      throw unknownName(`models[${at}]`, 'model', name, names.near(name));
}

function unknownName(param: string, what: string, name: string, known: readonly string[]): GatewayError {
  const shown = known.slice(0, MAX_SHOWN).join(', ');
  const hint =
    what === 'model'
      ? `${shown === '' ? '' : `Did you mean ${shown}? `}Use "provider/model", "provider/*", an alias or a model of a provider's list.`
      : `${what === 'plan' ? 'Plans' : 'Providers'} of the configuration: ${shown || 'none'}.`;
  const clean = name.replace(/[\p{Cc}\p{Cf}]/gu, '?').slice(0, 80);
  return new GatewayError('invalid_request', `The ${what} "${clean}" does not exist. ${hint}`, { param });
}
