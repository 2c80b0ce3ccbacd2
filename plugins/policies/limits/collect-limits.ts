import { type Call, type ChatRequest, estimateInputTokens, type Window } from '../../../core/index.ts';
import type { NamedPlan } from '../kit/plan-finder.ts';

/** Who set a limit: the key, unless a plan is named. */
interface Origin {
  readonly plan: string | undefined;
  /** Where the plan limits one provider. */
  readonly provider: string | undefined;
}

/** A window of one minute, with what the call uses of it. */
export interface Limit extends Window, Origin {
  readonly unit: 'requests' | 'tokens';
}

/** A number of calls at once. */
export interface Slot extends Origin {
  readonly key: string;
  readonly limit: number;
}

export interface Limits {
  readonly windows: readonly Limit[];
  readonly slots: readonly Slot[];
}

/** Rates, and whose they are. */
interface Source extends Origin {
  readonly scope: 'key' | 'user' | 'provider';
  readonly id: string;
  readonly rates: {
    readonly rpm?: number | undefined;
    readonly tpm?: number | undefined;
    readonly concurrency?: number | undefined;
  };
}

export const MINUTE_MS = 60_000;

/** Every limit that a call counts against: of its key, of its user's plan, and of its first provider within that plan. */
export function collectLimits(call: Call, plan: NamedPlan | undefined): Limits {
  const { keyId, rpm, tpm, account } = call.principal;
  const sources: Source[] = [];
  if (keyId !== undefined)
    sources.push({ scope: 'key', id: keyId, rates: { rpm, tpm }, plan: undefined, provider: undefined });
  if (plan) {
    sources.push({ scope: 'user', id: account, rates: plan.plan, plan: plan.name, provider: undefined });
    const [target] = call.targets;
    if (target) sources.push(...sourcesOf(plan, target.provider, account));
  }
  return limitsOf(call, sources);
}

/** The limits of one provider within a plan. */
export function collectProviderLimits(call: Call, plan: NamedPlan, provider: string): Limits {
  return limitsOf(call, sourcesOf(plan, provider, call.principal.account));
}

/** Whose a limit is, in words. */
export function describeOrigin({ plan, provider }: Origin): string {
  if (plan === undefined) return 'of this API key';
  return provider === undefined ? `of the plan "${plan}"` : `of the plan "${plan}" at the provider "${provider}"`;
}

function sourcesOf({ name, plan: { providers } }: NamedPlan, provider: string, account: string): readonly Source[] {
  const rates = providers && Object.hasOwn(providers, provider) ? providers[provider] : undefined;
  // Names of providers hold no colon, user ids may.
  return rates ? [{ scope: 'provider', id: `${provider}:${account}`, rates, plan: name, provider }] : [];
}

function limitsOf(call: Call, sources: readonly Source[]): Limits {
  const windows: Limit[] = [];
  const slots: Slot[] = [];
  let tokens: number | undefined;
  for (const { scope, id, rates, plan, provider } of sources) {
    const { rpm, tpm, concurrency } = rates;
    const window = { windowMs: MINUTE_MS, plan, provider };
    if (rpm !== undefined && !call.skip.has('rpm'))
      windows.push({ ...window, key: `rpm:${scope}:${id}`, limit: rpm, amount: 1, unit: 'requests' });
    if (tpm !== undefined && call.operation !== 'speech') {
      tokens ??= estimateTokens(call as Call<'chat' | 'embeddings'>);
      // A call that is larger than the limit uses all of it.
      const amount = Math.min(tokens, tpm);
      windows.push({ ...window, key: `tpm:${scope}:${id}`, limit: tpm, amount, unit: 'tokens' });
    }
    if (concurrency !== undefined && !call.skip.has('concurrency'))
      slots.push({ key: `calls:${scope}:${id}`, limit: concurrency, plan, provider });
  }
  return { windows, slots };
}

function estimateTokens({ request }: Call<'chat' | 'embeddings'>): number {
  const { max_completion_tokens, max_tokens } = request as Partial<ChatRequest>;
  return estimateInputTokens(request) + (max_completion_tokens ?? max_tokens ?? 0);
}
