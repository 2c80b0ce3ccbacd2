import type { Call } from '../../../core/index.ts';
import type { NamedPlan } from '../parts/plan-of.ts';

/** A window of one minute. */
export interface Limit {
  readonly key: string;
  readonly limit: number;
  readonly unit: 'requests' | 'tokens';
  /** The limit in words, after its number. */
  readonly label: string;
}

/** A number of calls at once. */
export interface Place {
  readonly key: string;
  readonly limit: number;
  readonly label: string;
}

export interface Limits {
  readonly windows: readonly Limit[];
  readonly places: readonly Place[];
}

interface Rates {
  readonly rpm?: number | undefined;
  readonly tpm?: number | undefined;
  readonly concurrency?: number | undefined;
}

const NONE: Limits = Object.freeze({ windows: [], places: [] });

/** Every limit that a call counts against: of its key, of its user's plan, and of its first provider within that plan. */
export function limitsOf(call: Call, plan: NamedPlan | undefined): Limits {
  const { principal } = call;
  const { keyId, rpm, tpm } = principal;
  const ofKey =
    keyId !== undefined && (rpm !== undefined || tpm !== undefined)
      ? limitsIn(call, 'key', keyId, { rpm, tpm }, 'of this API key')
      : NONE;
  if (!plan) return ofKey;
  const ofPlan = limitsIn(call, 'user', principal.account, plan.plan, `of the plan "${plan.name}"`);
  const [target] = call.targets;
  const ofProvider = target ? limitsOfProvider(call, plan, target.provider) : NONE;
  return {
    windows: [...ofKey.windows, ...ofPlan.windows, ...ofProvider.windows],
    places: [...ofKey.places, ...ofPlan.places, ...ofProvider.places],
  };
}

/** The limits of one provider within a plan. */
export function limitsOfProvider(call: Call, { name, plan }: NamedPlan, provider: string): Limits {
  const { providers } = plan;
  const rates = providers && Object.hasOwn(providers, provider) ? providers[provider] : undefined;
  if (!rates) return NONE;
  // Names of providers hold no colon, user ids may.
  const id = `${provider}:${call.principal.account}`;
  return limitsIn(call, 'provider', id, rates, `of the plan "${name}" at the provider "${provider}"`);
}

function limitsIn(call: Call, scope: string, id: string, { rpm, tpm, concurrency }: Rates, whose: string): Limits {
  const windows: Limit[] = [];
  const places: Place[] = [];
  if (rpm !== undefined && !call.skip.has('rpm'))
    windows.push({ key: `rpm:${scope}:${id}`, limit: rpm, unit: 'requests', label: `requests a minute ${whose}` });
  if (tpm !== undefined && call.operation !== 'speech')
    windows.push({ key: `tpm:${scope}:${id}`, limit: tpm, unit: 'tokens', label: `tokens a minute ${whose}` });
  if (concurrency !== undefined && !call.skip.has('concurrency'))
    places.push({ key: `calls:${scope}:${id}`, limit: concurrency, label: `calls at once ${whose}` });
  return { windows, places };
}
