import { createHash } from 'node:crypto';
import type { GatewayConfig } from '../config/core-schema.ts';
import type { ModelRoute, RouteTarget, Sticky } from '../config/model-routes.ts';
import type { ModelCatalog, Target } from '../contract/call.ts';
import type { ChatRequest } from '../contract/chat.ts';
import { splitModel } from '../contract/model-names.ts';
import type { PooledKey } from '../contract/provider.ts';
import { steadyNow } from '../contract/units.ts';
import { isSlowerThan, LEAST_SHARE } from './target-health.ts';

/** Order in which the targets of an alias are tried, and affinity of conversations to a target. */

/** Approximate time that a vendor caches a prompt after its last use. */
const LIFETIME_MS = 5 * 60_000;

/** Maximum number of conversations in memory. */
const MAX_CONVERSATIONS = 10_000;

/** No vendor caches shorter system messages and tools: the minimum is about a thousand tokens. */
const LEAST_PREFIX = 4_000;

/** Last target of each conversation in this process, where its prompt is cached. */
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

/** Facts about the caller that identify related calls. */
export interface StickyFacts {
  readonly account: string;
  readonly userId: string;
  /** Session name sent by the caller. */
  readonly session: string | undefined;
  readonly request: object;
}

/**
 * Key shared by the calls of a conversation: its session, else the common prefix of its prompts (system messages and
 * tools). Undefined if the prefix is too short for any vendor's cache. It is a hash: no prompt text is stored.
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

/** Inputs for the choice of targets, in addition to the alias. */
export interface ChoiceFacts {
  readonly stream: boolean;
  /** Key shared by the calls of a conversation; undefined for none. */
  readonly stickyKey: string | undefined;
  readonly health: {
    mayTry(target: Target): boolean;
    latencyMs(target: Target, stream: boolean): number | undefined;
    shareOf(target: Target, stream: boolean): number;
  };
  readonly sticky: Pick<StickyTargets, 'get'>;
  /** Maximum cost of the request at a target, in nano-dollars; undefined without a known price. */
  costAt(target: Target): number | undefined;
  random(): number;
}

/**
 * Targets of an alias in the order of attempts: group by group, each by its strategy. The target for long prompts is
 * not included.
 */
export function chooseTargets(route: ModelRoute, facts: ChoiceFacts): readonly Target[] {
  const rows = withoutDearer(route.targets, facts);
  const orders = [...new Set(rows.map(({ order }) => order))].sort((a, b) => a - b);
  const targets = orders.flatMap((order) =>
    orderGroup(
      route,
      rows.filter((row) => row.order === order),
      facts,
    ),
  );
  return demoteSlower(targets, facts);
}

/** Puts the second target first for a share of the calls while the first one has just recovered, or is slow. */
function demoteSlower(targets: readonly Target[], { health, stream, random }: ChoiceFacts): readonly Target[] {
  const [first] = targets;
  const share = first ? health.shareOf(first, stream) : 1;
  if (share === 1 || random() < share) return targets;
  const other = targets.find((each) => health.mayTry(each) && health.shareOf(each, stream) > share);
  return other ? [other, ...targets.filter((each) => each !== other)] : targets;
}

function targetOf({ to }: RouteTarget): Target {
  return splitModel(to);
}

/** Omits targets with `onlyWhenCheaper` unless they cost less than all others. */
function withoutDearer(rows: readonly RouteTarget[], { costAt }: ChoiceFacts): readonly RouteTarget[] {
  if (!rows.some(({ onlyWhenCheaper }) => onlyWhenCheaper)) return rows;
  const others = rows.filter(({ onlyWhenCheaper }) => !onlyWhenCheaper).map((row) => costAt(targetOf(row)));
  const least = Math.min(...others.map((cost) => cost ?? Number.POSITIVE_INFINITY));
  return rows.filter((row) => {
    if (!row.onlyWhenCheaper) return true;
    const cost = costAt(targetOf(row));
    return cost !== undefined && cost < least;
  });
}

function orderGroup(route: ModelRoute, rows: readonly RouteTarget[], facts: ChoiceFacts): readonly Target[] {
  if (rows.length < 2 || route.strategy === 'fallback') return rows.map(targetOf);
  return route.strategy === 'weighted' ? byWeight(rows, facts) : byLatency(rows.map(targetOf), facts);
}

/**
 * Weighted rendezvous hashing: each target has its own draw, and the best one wins. A conversation has the same draws
 * on every worker and node, so that it stays where its prompt is cached.
 */
function byWeight(rows: readonly RouteTarget[], facts: ChoiceFacts): readonly Target[] {
  const { stickyKey, random, health, stream } = facts;
  const latency = (row: RouteTarget): number | undefined => health.latencyMs(targetOf(row), stream);
  const drawn = rows
    .filter(({ weight }) => weight > 0)
    .map((row, _, able) => {
      const isSlow = able.some((other) => isSlowerThan(latency(row), latency(other)));
      const weight = isSlow ? row.weight * LEAST_SHARE : row.weight;
      return { row, score: scoreOf(weight, row.to, stickyKey, random) };
    });
  const reserves = rows.filter(({ weight }) => weight === 0);
  return [...drawn.sort((a, b) => b.score - a.score).map(({ row }) => row), ...reserves].map(targetOf);
}

/** Draw of one candidate; the highest wins. The same seed always has the same draw. */
function scoreOf(weight: number, name: string, seed: string | undefined, random: () => number): number {
  const draw = seed === undefined ? random() : hashToUnit(`${seed}\n${name}`);
  return weight / -Math.log(Math.min(Math.max(draw, 1e-12), 1 - 1e-12));
}

/**
 * Power of two choices: the faster of two random targets, then the others by latency. A target of unknown latency
 * counts as fast.
 */
function byLatency(targets: readonly Target[], facts: ChoiceFacts): readonly Target[] {
  const { health, stream, sticky, stickyKey, random } = facts;
  const latency = (target: Target): number => health.latencyMs(target, stream) ?? 0;
  const sorted = [...targets].sort((a, b) => latency(a) - latency(b));
  const remembered = stickyKey === undefined ? undefined : sticky.get(stickyKey);
  const stays = sorted.find(({ provider, model }) => remembered === `${provider}/${model}`);
  if (stays && health.mayTry(stays)) return [stays, ...sorted.filter((target) => target !== stays)];
  const able = sorted.filter((target) => health.mayTry(target));
  const one = able[Math.floor(random() * able.length)];
  const rest = able.filter((target) => target !== one);
  const two = rest[Math.floor(random() * rest.length)];
  const first = one && two && latency(two) < latency(one) ? two : one;
  return first ? [first, ...sorted.filter((target) => target !== first)] : sorted;
}

/** Characters of each prompt text that are hashed to distinguish conversations. */
const HASHED_PREFIX = 1_000;

/**
 * Key of a conversation for choosing a provider's API key: its session, else the start of its prompt including the
 * first user message. Conversations of one account with the same system message are thus spread over all keys.
 * Undefined for requests without messages.
 */
export function conversationOf({ account, session, request }: Omit<StickyFacts, 'userId'>): string | undefined {
  if (session !== undefined) return hash(['session', account, session]);
  const { messages = [], tools = [] } = request as Partial<ChatRequest>;
  if (messages.length === 0) return undefined;
  const begins = messages.slice(0, messages.findIndex(({ role }) => role === 'user') + 1);
  const cut = (_: string, value: unknown): unknown =>
    typeof value === 'string' ? value.slice(0, HASHED_PREFIX) : value;
  return hash(['conversation', account, JSON.stringify([begins, tools], cut)]);
}

/** Inputs for the choice of an API key. */
interface KeyFacts {
  /** Key of the conversation: it keeps its API key, where its prompt is cached. */
  readonly conversation: string | undefined;
  /** API keys rejected for this call. */
  readonly refused: ReadonlySet<PooledKey>;
  /** Milliseconds until a key may be used again; 0 for a healthy key. */
  restMs(key: PooledKey): number;
  random(): number;
}

/**
 * Chooses the key for an attempt, with its remaining rest: the first healthy one by weight, else the one available
 * next.
 */
export function chooseKey(
  keys: readonly PooledKey[],
  { conversation, refused, restMs, random }: KeyFacts,
): { readonly key: PooledKey; readonly restMs: number } | undefined {
  const drawn = keys.map((key) => ({
    key,
    restMs: restMs(key),
    score: key.weight === 0 ? -1 : scoreOf(key.weight, key.name, conversation, random),
  }));
  const sorted = drawn.sort((a, b) => b.score - a.score);
  const able = sorted.find((each) => each.restMs === 0 && !refused.has(each.key));
  return able ?? sorted.sort((a, b) => a.restMs - b.restMs)[0];
}

/** Hashes a text to a number between 0 and 1. */
function hashToUnit(text: string): number {
  return createHash('sha256').update(text).digest().readUIntBE(0, 6) / 2 ** 48;
}

type Routes = ReadonlyMap<string, ModelRoute>;
type Instances = GatewayConfig['instances'];

/** Returns a test for configured targets: those of an alias, or listed by their provider. */
export function configuredTargets(routes: Routes, catalog: ModelCatalog): (target: Target) => boolean {
  const named = new Set(
    [...routes.values()].flatMap(({ targets, onOverflow }) =>
      [...targets.map(({ to }) => to), onOverflow ?? []].flat(),
    ),
  );
  return ({ provider, model }) =>
    named.has(`${provider}/${model}`) || (catalog.has(provider) && catalog.list(provider).includes(model));
}

const MAX_UNTRIED = 1000;

/**
 * Targets named in the configuration, by an alias or in a provider's models, that can be called; their number is
 * bounded.
 */
export function namedTargets(routes: Routes, catalog: ModelCatalog, instances: Instances): readonly Target[] {
  const ofAliases = [...routes.values()].flatMap(({ targets }) => targets.map(({ to }) => to));
  const ofProviders = instances.flatMap(({ group, name, config: own }) => {
    const models = group === 'providers' ? own['models'] : undefined;
    return Array.isArray(models) ? models.map((model) => `${name}/${String(model)}`) : [];
  });
  return [...new Set([...ofAliases, ...ofProviders])]
    .flatMap((name) => (name.includes('*') ? [] : splitModel(name)))
    .filter(({ provider }) => catalog.isConfigured(provider))
    .slice(0, MAX_UNTRIED);
}
