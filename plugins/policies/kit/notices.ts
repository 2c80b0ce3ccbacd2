import type { GatewayView, PluginApi } from '../../../contract/index.ts';

/** Types of notices for operators, with their occasions. A test compares `docs/plugins/notices.md` with this table. */
export const NOTICES = Object.freeze({
  'target.opened': 'a target became unhealthy (rate limits: for a minute or more)',
  'target.closed': 'an unhealthy target is healthy again',
  'budget.soft_limit': 'a budget reached its soft limit',
  'budget.used_up': 'a budget is exhausted',
  'model.ends': 'a used model is shut down by its vendor: 30, 7 and 1 days before, and on the day',
  'key.expires': 'a key expires: 7 days before; a key with a role or scopes 14, 7 and 1 days before',
  'key.new_network':
    'a key is used from a network for the first time (24 bits of IPv4, 48 of IPv6), except its first one',
  'reload.refused': 'a configuration was rejected; the previous one stays active',
  'spend.unusual': 'spend is far higher than on the same weekday of previous weeks',
} as const);

export type NoticeType = keyof typeof NOTICES;

/** Notice for operators. Contains no secret, no text of a call and no key; a key's public prefix is allowed. */
export interface OperatorNotice {
  readonly type: NoticeType;
  /** Event, as a sentence without its full stop. */
  readonly text: string;
  /** Facts by names in snake_case. */
  readonly facts: Readonly<Record<string, string | null>>;
  /** Identifies the event, so that it is sent once even if several processes detect it. */
  readonly cause: string;
  /** Time for which the cause is remembered. */
  readonly rememberMs: number;
}

type Listener = (notice: OperatorNotice) => void;

/** Listeners by the gateway that instances share. */
const LISTENERS = new WeakMap<GatewayView, Set<Listener>>();

/** Part of the plugin API that sends and receives notices; it needs the permission `operators`. */
export interface NoticeApi {
  readonly operators: Pick<PluginApi['operators'], 'gateway'>;
}

/**
 * Notifies operators: receivers of the policy `notices` get each cause once. Costs nothing without receivers; never
 * throws.
 */
export function tellOperators({ operators: { gateway } }: NoticeApi, notice: OperatorNotice): void {
  for (const listener of LISTENERS.get(gateway) ?? []) listener(notice);
}

/** True if there is a receiver of notices. */
export function hasReceivers({ operators: { gateway } }: NoticeApi): boolean {
  return LISTENERS.has(gateway);
}

/** Listens to notices of all instances of the same gateway. */
export function onNotice({ operators: { gateway } }: NoticeApi, listener: Listener): void {
  LISTENERS.set(gateway, (LISTENERS.get(gateway) ?? new Set()).add(listener));
}

/** Smallest threshold in days that an end has reached, such as 7 of 30, 7 and 1; undefined before the first. */
export function daysBefore(end: number, days: readonly number[], now: number): number | undefined {
  return days.findLast((each) => end - now <= each * DAY_MS);
}

const DAY_MS = 86_400_000;
