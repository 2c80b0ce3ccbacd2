import { type Call, type ChatRequest, estimateInputTokens, type Window } from '../../../core/index.ts';
import type { NamedPlan } from '../kit/plan-of.ts';

/** Who set a limit: nobody but the key, unless a plan is named. */
interface Origin {
  readonly plan: string | undefined;
  /** Where the plan limits one provider. */
  readonly provider: string | undefined;
}

/** A window of one minute, with what the call takes of it. */
export interface Limit extends Window, Origin {
  readonly unit: 'requests' | 'tokens';
}

/** A number of calls at once. */
export interface Place extends Origin {
  readonly key: string;
  readonly limit: number;
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

export const MINUTE_MS = 60_000;

/** Every limit that a call counts against: of its key, of its user's plan, and of its first provider within that plan. */
export function limitsOf(call: Call, plan: NamedPlan | undefined): Limits {
  const { principal } = call;
  const { keyId, rpm, tpm } = principal;
  const gathered = new Gathered(call);
  if (keyId !== undefined && (rpm !== undefined || tpm !== undefined))
    gathered.add('key', keyId, { rpm, tpm }, undefined, undefined);
  if (!plan) return gathered;
  gathered.add('user', principal.account, plan.plan, plan.name, undefined);
  const [target] = call.targets;
  if (target) gathered.addProvider(plan, target.provider);
  return gathered;
}

/** The limits of one provider within a plan. */
export function limitsOfProvider(call: Call, plan: NamedPlan, provider: string): Limits {
  const gathered = new Gathered(call);
  gathered.addProvider(plan, provider);
  return gathered;
}

/** Whose a limit is, in words. */
export function whose({ plan, provider }: Origin): string {
  if (plan === undefined) return 'of this API key';
  return provider === undefined ? `of the plan "${plan}"` : `of the plan "${plan}" at the provider "${provider}"`;
}

class Gathered implements Limits {
  readonly windows: Limit[] = [];
  readonly places: Place[] = [];
  readonly #call: Call;
  #tokens: number | undefined;

  constructor(call: Call) {
    this.#call = call;
  }

  add(
    scope: string,
    id: string,
    { rpm, tpm, concurrency }: Rates,
    plan: string | undefined,
    provider: string | undefined,
  ): void {
    const { skip, operation } = this.#call;
    const windowMs = MINUTE_MS;
    if (rpm !== undefined && !skip.has('rpm'))
      this.windows.push({
        key: `rpm:${scope}:${id}`,
        limit: rpm,
        windowMs,
        amount: 1,
        unit: 'requests',
        plan,
        provider,
      });
    if (tpm !== undefined && operation !== 'speech') {
      this.#tokens ??= estimateTokens(this.#call as Call<'chat' | 'embeddings'>);
      // A call that is larger than the limit takes all of it.
      const amount = Math.min(this.#tokens, tpm);
      this.windows.push({ key: `tpm:${scope}:${id}`, limit: tpm, windowMs, amount, unit: 'tokens', plan, provider });
    }
    if (concurrency !== undefined && !skip.has('concurrency'))
      this.places.push({ key: `calls:${scope}:${id}`, limit: concurrency, plan, provider });
  }

  addProvider({ name, plan: { providers } }: NamedPlan, provider: string): void {
    const rates = providers && Object.hasOwn(providers, provider) ? providers[provider] : undefined;
    // Names of providers hold no colon, user ids may.
    if (rates) this.add('provider', `${provider}:${this.#call.principal.account}`, rates, name, provider);
  }
}

function estimateTokens({ request }: Call<'chat' | 'embeddings'>): number {
  const { max_completion_tokens, max_tokens } = request as Partial<ChatRequest>;
  return estimateInputTokens(request) + (max_completion_tokens ?? max_tokens ?? 0);
}
