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

interface Rates {
  readonly rpm?: number | undefined;
  readonly tpm?: number | undefined;
  readonly concurrency?: number | undefined;
}

/** Every limit that a call counts against: of its key, of its user's plan, and of the provider within that plan. */
export function limitsOf(
  call: Call,
  plan: NamedPlan | undefined,
): { readonly windows: readonly Limit[]; readonly places: readonly Place[] } {
  const { principal, skip } = call;
  const windows: Limit[] = [];
  const places: Place[] = [];
  const add = (scope: string, id: string, rates: Rates, whose: string): void => {
    if (rates.rpm !== undefined && !skip.has('rpm'))
      windows.push({
        key: `rpm:${scope}:${id}`,
        limit: rates.rpm,
        unit: 'requests',
        label: `requests a minute ${whose}`,
      });
    if (rates.tpm !== undefined && call.operation !== 'speech')
      windows.push({ key: `tpm:${scope}:${id}`, limit: rates.tpm, unit: 'tokens', label: `tokens a minute ${whose}` });
    if (rates.concurrency !== undefined && !skip.has('concurrency'))
      places.push({ key: `calls:${scope}:${id}`, limit: rates.concurrency, label: `calls at once ${whose}` });
  };
  if (principal.keyId !== undefined)
    add('key', principal.keyId, { rpm: principal.rpm, tpm: principal.tpm }, 'of this API key');
  if (!plan) return { windows, places };
  add('user', principal.account, plan.plan, `of the plan "${plan.name}"`);
  const provider = call.targets[0]?.provider;
  const inPlan = provider === undefined ? undefined : plan.plan.providers?.[provider];
  if (inPlan)
    add(
      'provider',
      `${principal.account}:${provider}`,
      inPlan,
      `of the plan "${plan.name}" at the provider "${provider}"`,
    );
  return { windows, places };
}
