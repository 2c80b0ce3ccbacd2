import type { GatewayView, PluginApi } from '../../../contract/index.ts';

/** What operators are sent a notice of, and when. `docs/plugins/notices.md` is held to this table by a test. */
export const NOTICES = Object.freeze({
  'target.opened': 'a target became unhealthy (rate limits: for a minute or more)',
  'target.closed': 'an unhealthy target is healthy again',
  'budget.soft_limit': 'a budget reached its soft limit',
  'budget.used_up': 'a budget is exhausted',
  'model.ends': 'a used model is shut down by its vendor: 30, 7 and 1 days before, and on the day',
  'key.expires': 'a key expires: 7 days before; a key with a role or scopes 14, 7 and 1 days before',
  'reload.refused': 'a configuration was rejected; the previous one stays active',
  'spend.unusual': 'spend is far higher than on the same weekday of previous weeks',
} as const);

export type NoticeType = keyof typeof NOTICES;

/** Something that operators should know. It holds no secret, no text of a call and no key; a key's public prefix is none. */
export interface OperatorNotice {
  readonly type: NoticeType;
  /** What happened, as a sentence without its full stop. */
  readonly text: string;
  /** By names in snake_case. */
  readonly facts: Readonly<Record<string, string | null>>;
  /** What happened, so that it is sent once however many processes notice it. */
  readonly cause: string;
  /** How long that is remembered. */
  readonly rememberMs: number;
}

type Listener = (notice: OperatorNotice) => void;

/** By the gateway that instances share. */
const LISTENERS = new WeakMap<GatewayView, Set<Listener>>();

/** Lets operators know: receivers of the policy `notices` get it, each cause once. Costs nothing where there are none; never throws. */
export function tellOperators({ gateway }: Pick<PluginApi, 'gateway'>, notice: OperatorNotice): void {
  for (const listener of LISTENERS.get(gateway) ?? []) listener(notice);
}

/** Whether a receiver of notices is there. */
export function hasReceivers({ gateway }: Pick<PluginApi, 'gateway'>): boolean {
  return LISTENERS.has(gateway);
}

/** Is given what any instance of the same gateway lets operators know. */
export function onNotice({ gateway }: Pick<PluginApi, 'gateway'>, listener: Listener): void {
  LISTENERS.set(gateway, (LISTENERS.get(gateway) ?? new Set()).add(listener));
}

/** The last of some days before an end that has come, such as 7 of 30, 7 and 1; undefined before the first. */
export function daysBefore(end: number, days: readonly number[], now: number): number | undefined {
  return days.findLast((each) => end - now <= each * DAY_MS);
}

const DAY_MS = 86_400_000;
