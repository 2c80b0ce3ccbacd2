import type { GatewayView, PluginApi } from '../../../contract/index.ts';

/** What operators are sent a notice of, and when. `docs/plugins/notices.md` is held to this table by a test. */
export const NOTICES = Object.freeze({
  'target.opened': 'a target fails, and calls go elsewhere; of rate limits those of a minute or more',
  'target.closed': 'a skipped target is healthy again',
  'budget.soft_limit': 'a budget has come to its soft limit',
  'budget.used_up': 'a budget no longer covers calls',
  'model.ends': 'the vendor of a model in use shuts it down: 30, 7 and 1 days before, and when it did',
  'key.expires': 'a key ends: 7 days before; one with a role or scopes 14, 7 and 1 days before',
  'reload.refused': 'a configuration was refused, and the former one serves',
  'spend.unusual': 'far more was spent today than on the same weekday of the weeks before',
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

/** What notices are sent and received by: a part of the plugin's API, with the permission `operators`. */
export interface NoticeApi {
  readonly operators: Pick<PluginApi['operators'], 'gateway'>;
}

/** Lets operators know: receivers of the policy `notices` get it, each cause once. Costs nothing where there are none; never throws. */
export function tellOperators({ operators: { gateway } }: NoticeApi, notice: OperatorNotice): void {
  for (const listener of LISTENERS.get(gateway) ?? []) listener(notice);
}

/** Whether a receiver of notices is there. */
export function hasReceivers({ operators: { gateway } }: NoticeApi): boolean {
  return LISTENERS.has(gateway);
}

/** Is given what any instance of the same gateway lets operators know. */
export function onNotice({ operators: { gateway } }: NoticeApi, listener: Listener): void {
  LISTENERS.set(gateway, (LISTENERS.get(gateway) ?? new Set()).add(listener));
}

/** The last of some days before an end that has come, such as 7 of 30, 7 and 1; undefined before the first. */
export function daysBefore(end: number, days: readonly number[], now: number): number | undefined {
  return days.findLast((each) => end - now <= each * DAY_MS);
}

const DAY_MS = 86_400_000;
