import { createHash } from 'node:crypto';
import type { Sticky } from '../config/model-routes.ts';
import type { ChatRequest } from '../core/contract/chat.ts';
import { steadyNow } from '../core/contract/units.ts';

/** How long a vendor keeps a prompt after it was used last, about. */
const LIFETIME_MS = 5 * 60_000;

/** Conversations that are remembered at once. */
const MAX_CONVERSATIONS = 10_000;

/** System messages and tools that are shorter are cached by no vendor: some thousand tokens. */
const LEAST_PREFIX = 4_000;

/** Where conversations went last, in this process: their prompts are cached there. */
export class StickyTargets {
  readonly #targets = new Map<string, { readonly target: string; readonly until: number }>();
  readonly #now: () => number;

  constructor(now: () => number = steadyNow) {
    this.#now = now;
  }

  get(key: string): string | undefined {
    const known = this.#targets.get(key);
    return known && known.until > this.#now() ? known.target : undefined;
  }

  set(key: string, target: string): void {
    this.#targets.delete(key);
    this.#targets.set(key, { target, until: this.#now() + LIFETIME_MS });
    const [oldest] = this.#targets.keys();
    if (this.#targets.size > MAX_CONVERSATIONS && oldest !== undefined) this.#targets.delete(oldest);
  }
}

/** Who asks, as far as it says which calls belong together. */
export interface StickyFacts {
  readonly account: string;
  readonly userId: string;
  /** What the caller named its session. */
  readonly session: string | undefined;
  readonly request: object;
}

/**
 * What the calls of one conversation have in common: its session, else the beginning that its prompts share (system messages and
 * tools). Undefined where that is too short for any vendor's cache. Hashed: nothing of a prompt is kept.
 */
export function stickyKeyOf(rule: Sticky, { account, userId, session, request }: StickyFacts): string | undefined {
  if (rule === 'none') return undefined;
  if (rule === 'user') return hash(['user', account, userId]);
  if (session !== undefined) return hash(['session', account, session]);
  const prefix = prefixOf(request as Partial<ChatRequest>);
  return prefix.length < LEAST_PREFIX ? undefined : hash(['prefix', account, prefix]);
}

function prefixOf({ messages = [], tools = [] }: Partial<ChatRequest>): string {
  const first = messages.findIndex(({ role }) => role !== 'system' && role !== 'developer');
  const system = messages.slice(0, first < 0 ? messages.length : first).map(({ content }) => content);
  return system.length === 0 && tools.length === 0 ? '' : JSON.stringify([system, tools]);
}

function hash(parts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url');
}
