import type { Call, ChatRequest, Metered, NamedPlan, Window } from '../../../core/index.ts';

/** Who set a limit: the key, or the token that its user made it with, unless a plan is named. */
interface Origin {
  readonly ofUser?: boolean;
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
  readonly scope: 'key' | 'owner' | 'user' | 'provider';
  readonly id: string;
  readonly rates: {
    readonly rpm?: number | undefined;
    readonly tpm?: number | undefined;
    readonly concurrency?: number | undefined;
  };
}

export const MINUTE_MS = 60_000;

/** Which half of the limits: requests and calls at once are known when a call comes, tokens when its request is final. */
export type LimitHalf = 'requests' | 'tokens';

/** What the limits of a call are made of. */
export interface CountedRequest {
  readonly call: Call;
  readonly plan: NamedPlan | undefined;
  /** What the call may come to, asked for when tokens are limited. */
  readonly estimate: (call: Call) => Metered;
}

/** Every limit that a call counts against: of its key, of its user's token, of its user's plan, and of its first provider within that plan. */
export function collectLimits(request: CountedRequest, half: LimitHalf): Limits {
  const { call, plan } = request;
  const { keyId, limitsId = keyId, rpm, tpm, account, userId, userLimits } = call.principal;
  const sources: Source[] = [];
  if (limitsId !== undefined)
    sources.push({ scope: 'key', id: limitsId, rates: { rpm, tpm }, plan: undefined, provider: undefined });
  if (userLimits)
    sources.push({ scope: 'owner', id: userId, rates: userLimits, plan: undefined, provider: undefined, ofUser: true });
  if (plan) {
    sources.push({ scope: 'user', id: account, rates: plan.plan, plan: plan.name, provider: undefined });
    const [target] = call.targets;
    if (target) sources.push(...sourcesOf(plan, target.provider, account));
  }
  return half === 'requests' ? requestLimits(call, sources) : tokenLimits(request, sources);
}

/** The limits of one provider within the plan. */
export function collectProviderLimits(request: CountedRequest, provider: string, half: LimitHalf): Limits {
  const { call, plan } = request;
  const sources = plan ? sourcesOf(plan, provider, call.principal.account) : [];
  return half === 'requests' ? requestLimits(call, sources) : tokenLimits(request, sources);
}

/** Whose a limit is, in words. */
export function describeOrigin({ plan, provider, ofUser }: Origin): string {
  if (ofUser) return 'of this user, over all API keys';
  if (plan === undefined) return 'of this API key';
  return provider === undefined ? `of the plan "${plan}"` : `of the plan "${plan}" at the provider "${provider}"`;
}

function sourcesOf({ name, plan: { providers } }: NamedPlan, provider: string, account: string): readonly Source[] {
  const rates = providers && Object.hasOwn(providers, provider) ? providers[provider] : undefined;
  // Names of providers hold no colon, user ids may.
  return rates ? [{ scope: 'provider', id: `${provider}:${account}`, rates, plan: name, provider }] : [];
}

function requestLimits(call: Call, sources: readonly Source[]): Limits {
  const windows: Limit[] = [];
  const slots: Slot[] = [];
  for (const source of sources) {
    const { scope, id, rates } = source;
    const { rpm, concurrency } = rates;
    if (rpm !== undefined && !call.skip.has('rpm')) windows.push(windowOf(source, 'requests', 'rpm', rpm, 1));
    if (concurrency !== undefined && !call.skip.has('concurrency'))
      slots.push({ key: `calls:${scope}:${id}`, limit: concurrency, ...originOf(source) });
  }
  return { windows, slots };
}

function tokenLimits({ call, estimate }: CountedRequest, sources: readonly Source[]): Limits {
  const limited = sources.filter(({ rates }) => rates.tpm !== undefined);
  const tokens = limited.length > 0 ? tokensOf(call, estimate(call)) : 0;
  if (tokens === 0) return { windows: [], slots: [] };
  const windows = limited.map((source): Limit => {
    const { tpm: limit = 0 } = source.rates;
    // A call that is larger than the limit uses all of it.
    return windowOf(source, 'tokens', 'tpm', limit, Math.min(tokens, limit));
  });
  return { windows, slots: [] };
}

function windowOf(source: Source, unit: Limit['unit'], rate: 'rpm' | 'tpm', limit: number, amount: number): Limit {
  const key = `${rate}:${source.scope}:${source.id}`;
  return Object.assign({ key, windowMs: MINUTE_MS, limit, amount, unit }, originOf(source));
}

function originOf({ ofUser, plan, provider }: Origin): Origin {
  return ofUser ? { ofUser, plan, provider } : { plan, provider };
}

/** The prompt, estimated, and as much output as the caller asks for. */
function tokensOf({ request }: Call, { units }: Metered): number {
  const { max_completion_tokens, max_tokens } = request as Partial<ChatRequest>;
  return (units['prompt_tokens'] ?? 0) + Math.max(max_completion_tokens ?? 0, max_tokens ?? 0);
}
