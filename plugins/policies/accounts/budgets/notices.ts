import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { formatUsd, type Log, type Sets } from '../../../../contract/index.ts';
import { maxEntries } from '../../kit/index.ts';
import type { OperatorNotice } from '../../kit/notices.ts';
import { printable } from '../../kit/printable.ts';
import { type CountedBudget, resetsAt, startsAt } from './budget-window.ts';

/** Kind of budget notice: the soft limit is reached, or the budget no longer covers calls. */
export type NoticeKind = 'soft_limit' | 'used_up';

/** Budget notice as sent to the webhook. Amounts are decimal strings of US dollars. */
export interface Notice {
  readonly type: `budget.${NoticeKind}`;
  readonly budget: string;
  readonly of: CountedBudget['scope'];
  /** Owner, if each account or key has its own budget. */
  readonly account?: string;
  readonly key?: string;
  readonly end_user?: string;
  readonly every: CountedBudget['rule']['every'];
  readonly timezone: string;
  readonly amount: string;
  readonly used: string;
  readonly soft: string | null;
  readonly starts_at: string | null;
  readonly resets_at: string | null;
}

export interface Notices {
  /** Returns if this process has sent the notice already in the budget's current window. */
  isSent(kind: NoticeKind, budget: CountedBudget): boolean;
  /** Sends the notice, once per window over all processes of the store. Never rejects. */
  tell(kind: NoticeKind, budget: CountedBudget, used: number): Promise<void>;
}

interface NoticesParts {
  readonly sets: Pick<Sets, 'add' | 'list' | 'remove'>;
  readonly log: Log;
  /** Queues a notice for operators. `cause` is unique per window and budget. */
  readonly send?: ((notice: Notice, cause: string) => void) | undefined;
}

/** Set of sent notices, to detect the first sender. Members are `<hash of the budget>@<window>#<kind>`. */
const SENT = 'budget-notices';
/** Number of past windows whose notices are remembered. The next notice removes older ones. */
const KEPT_WINDOWS = 2;

const MESSAGES: Readonly<Record<NoticeKind, string>> = Object.freeze({
  soft_limit: 'a budget has come to its soft limit',
  used_up: 'a budget no longer covers calls, which are refused',
});

export function createNotices({ sets, log, send }: NoticesParts): Notices {
  const sent = new LRUCache<string, true>(maxEntries(20_000));

  const tellOnce = async (kind: NoticeKind, budget: CountedBudget, used: number): Promise<void> => {
    const { hash, member } = memberOf(kind, budget);
    if (sent.has(member)) return;
    sent.set(member, true);
    if ((await sets.add(SENT, member)) !== 'added') return;
    const notice = noticeOf(kind, budget, used);
    const { type: _type, of, ...fields } = notice;
    log.warn({ ...fields, scope: of }, MESSAGES[kind]);
    send?.(notice, member);
    await forgetOld(hash, budget);
  };

  const forgetOld = async (hash: string, { window: { start, end } }: CountedBudget): Promise<void> => {
    const oldest = start - KEPT_WINDOWS * (end - start);
    for (const member of await sets.list(SENT, { limit: 20, after: `${hash}@` })) {
      if (!member.startsWith(`${hash}@`)) return;
      const at = Number(member.slice(hash.length + 1).split('#')[0]);
      if (at < oldest) await sets.remove(SENT, member);
    }
  };

  return {
    isSent: (kind, budget) => sent.has(memberOf(kind, budget).member),
    async tell(kind, budget, used) {
      try {
        await tellOnce(kind, budget, used);
      } catch (error) {
        // The next call that reaches the limit retries the notice.
        sent.delete(memberOf(kind, budget).member);
        log.debug({ err: error }, 'a budget notice was not sent: the store does not respond');
      }
    },
  };
}

const MEMBERS = new WeakMap<CountedBudget, string>();

/** The id of a budget may contain an account name of any length, so members use its hash. */
function memberOf(kind: NoticeKind, budget: CountedBudget): { readonly hash: string; readonly member: string } {
  const { id, window } = budget;
  let hash = MEMBERS.get(budget);
  if (hash === undefined) {
    const name = id.replace(/@\d+$/, '');
    hash = createHash('sha256').update(name).digest('hex').slice(0, 32);
    MEMBERS.set(budget, hash);
  }
  const start = window.start === Number.NEGATIVE_INFINITY ? 0 : window.start;
  return { hash, member: `${hash}@${start}#${kind}` };
}

function noticeOf(kind: NoticeKind, budget: CountedBudget, used: number): Notice {
  const { rule, scope, limit, owner } = budget;
  return {
    type: `budget.${kind}`,
    budget: rule.name,
    of: scope,
    ...owner,
    every: rule.every,
    timezone: rule.timezone,
    amount: formatUsd(limit),
    used: formatUsd(used),
    soft: rule.soft === undefined ? null : formatUsd(rule.soft),
    starts_at: startsAt(budget),
    resets_at: resetsAt(budget),
  };
}

/** Creates the notice for all receivers of the policy `notices`. */
export function noticeForOperators(notice: Notice, cause: string): OperatorNotice {
  const { type, ...facts } = notice;
  const { budget, account, key, end_user: endUser, used, amount } = notice;
  const whose = account ?? key ?? endUser;
  const name = `The budget ${budget}${whose === undefined ? '' : ` of ${printable(whose)}`}`;
  const what =
    type === 'budget.soft_limit' ? 'has come to its soft limit' : 'no longer covers calls, which are refused';
  return {
    type,
    text: `${name} ${what}: ${used} of ${amount} USD are used`,
    facts,
    ...{ cause: `${type} ${cause}`, rememberMs: REMEMBER_MS },
  };
}

/** Time to deduplicate notices; covers processes that reach the same window at about the same time. */
const REMEMBER_MS = 86_400_000;
