import { formatUsd, GatewayError, type PluginApi, type Principal } from '../../../contract/index.ts';
import { createModelNames, type ModelNamesApi, refuseTag } from '../../policies/kit/index.ts';
import { omitUndefined } from '../kit/omit-undefined.ts';
import type { KeyLimits } from './records.ts';

/** What a creator's token, or a team, says it has; a key made with it never gets more. */
export type Creator = Pick<Principal, 'plan' | 'models' | 'providers' | 'serverTools' | 'rpm' | 'tpm' | 'budget'>;

/**
 * The limits a new key gets: the wanted ones, each within the creator's own, and the creator's own where none is wanted.
 * Throws `permission_denied` naming the field that wants more.
 */
export function narrow(wanted: KeyLimits, creator: Creator): KeyLimits {
  const plan = narrowPlan(wanted.plan, creator.plan);
  const providers = narrowList('providers', wanted.providers, creator.providers, (name, own) => name === own);
  const models = narrowList('models', wanted.models, creator.models, (model, own) => covers(own, model, providers));
  const serverTools = narrowTools(wanted.serverTools, creator.serverTools);
  const rpm = narrowNumber('rpm', wanted.rpm, creator.rpm);
  const tpm = narrowNumber('tpm', wanted.tpm, creator.tpm);
  const budget = narrowNumber('budget_usd', wanted.budget, creator.budget);
  // Windows and addresses narrow whatever else holds, so that nobody gets more by them.
  const { name, expiresAt, budgets, addresses } = wanted;
  return {
    name,
    ...omitUndefined({ expiresAt, plan, models, providers, serverTools, rpm, tpm, budget, budgets, addresses }),
  };
}

/** Plans have no order, so a key has its creator's or, when the token names none, the account's (by naming none). */
function narrowPlan(wanted: string | undefined, own: string | undefined): string | undefined {
  if (wanted === undefined || wanted === own) return own;
  throw denied(
    'plan',
    own === undefined ? 'none; remove the field to use the plan of the account' : `"${own}" or none`,
  );
}

/** Unlike models, no list allows none: what runs with the operator's account is the operator's to give. */
function narrowTools(
  wanted: readonly string[] | undefined,
  own: readonly string[] | undefined,
): readonly string[] | undefined {
  return wanted === undefined ? own : narrowList('server_tools', wanted, own ?? [], (name, mine) => name === mine);
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
 * Whether an own entry (`*`, `provider/*`, `provider/model`, `model` or an alias) allows all that another one does. What
 * reads as `openai/gpt-5` may be a model of that name at another provider too, so an entry counts as one provider's
 * only when the key is bound to this provider alone.
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

/** How many names an error lists. */
const MAX_SHOWN = 20;

/**
 * Throws `invalid_request` for a plan, provider or model that this gateway does not have. A misspelt plan would not limit, and a
 * misspelt model would open nothing: both show only when the key is used.
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
  // A name alone may be any model of the providers that the key is bound to.
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
