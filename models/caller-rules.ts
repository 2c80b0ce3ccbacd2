import type { ModelCatalog, Principal, Target } from '../contract/call.ts';
import { toolRulesOf } from '../contract/server-tools.ts';
import { assertAllowed } from './catalog.ts';

/**
 * Rules that depend on the caller alone. They are cached with the principal's object, which authentication replaces when
 * a key changes: a revocation, a block or another allow-list therefore drops them.
 */
export class CallerRules {
  readonly #principal: Principal;
  readonly #hasLists: boolean;
  /** Routes that the caller may call. */
  readonly #allowed = new WeakSet<object>();

  constructor(principal: Principal) {
    this.#principal = principal;
    this.#hasLists = principal.models !== undefined || principal.providers !== undefined;
  }

  /** Throws `model_not_allowed` for a route with a target that the caller's key may not use. */
  assertMayCall(
    catalog: Pick<ModelCatalog, 'find'>,
    route: { readonly targets: readonly Target[]; readonly requested?: string | undefined },
  ): void {
    if (!this.#hasLists || this.#allowed.has(route)) return;
    assertAllowed(catalog, this.#principal, route.targets, { requested: route.requested });
    this.#allowed.add(route);
  }

  /** Returns whether the caller's key may use a tool that the vendor runs. */
  mayUseTool(name: string): boolean {
    return toolRulesOf(this.#principal.serverTools)(name);
  }
}

const known = new WeakMap<Principal, CallerRules>();

/** Returns the rules of a caller. The principal is frozen, so that they stay true. */
export function rulesOf(principal: Principal): CallerRules {
  const rules = known.get(principal);
  if (rules) return rules;
  const compiled = new CallerRules(principal);
  if (Object.isFrozen(principal)) known.set(principal, compiled);
  return compiled;
}
