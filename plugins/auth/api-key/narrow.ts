import { GatewayError, type Principal } from '../../../core/index.ts';
import { omitUndefined } from '../kit/omit-undefined.ts';
import type { KeyLimits } from './records.ts';

/** What a creator's token says it has; a key made with it never gets more. */
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
  const { name, expiresAt } = wanted;
  return { name, ...omitUndefined({ expiresAt, plan, models, providers, serverTools, rpm, tpm, budget }) };
}

/** Plans have no order, so a key has its creator's or, when the token names none, the account's (by naming none). */
function narrowPlan(wanted: string | undefined, own: string | undefined): string | undefined {
  if (wanted === undefined || wanted === own) return own;
  throw denied(
    'plan',
    own === undefined ? 'leave it out: the key then has the plan of its account' : `"${own}" or none`,
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
  throw denied(
    `${field}[${beyond}]`,
    own.length > 0 ? `${own.slice(0, 20).join(', ')}${hintOf(field)}` : 'none at all',
  );
}

function narrowNumber(field: string, wanted: number | undefined, own: number | undefined): number | undefined {
  if (own === undefined || wanted === undefined) return wanted ?? own;
  if (wanted <= own) return wanted;
  throw denied(field, field === 'budget_usd' ? `up to ${own / 1_000_000}` : `up to ${own}`);
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
    `A key never gets more than the token that makes it has. For ${param} this token allows: ${allowed}.`,
    { param },
  );
}

function hintOf(field: string): string {
  return field === 'models' ? ' (name one provider in "providers" to ask for a part of these)' : '';
}
