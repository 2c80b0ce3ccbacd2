import { createHash } from 'node:crypto';
import { userBudgetId } from './calendar-windows.ts';

export { createNameReplacer } from '../../../contract/operators.ts';

/**
 * Returns a test for the ledger ids of budgets that one person has: as a user, as an account with a plan, and as an end user. The same
 * ids are those of their shares.
 */
export function isBudgetOf(name: string): (id: string) => boolean {
  const [ofUser, ofEndUser] = [userBudgetId(name), `${endUserWindowPrefix(name)}:`];
  return (id) => {
    if (id === ofUser || id.startsWith(`${ofUser}#`) || id.startsWith(ofEndUser)) return true;
    // `plan:<plan>:<account>:<budget>:<period>`; only the account may contain colons.
    const [, rest = ''] = /^plan:[^:]*:(.*)$/s.exec(id) ?? [];
    return rest.startsWith(`${name}:`) && OF_ACCOUNT.test(rest.slice(name.length + 1));
  };
}

/** Budget and period at the end of a ledger id, with the share of a process. */
const OF_ACCOUNT = /^[^:]*:(?:total|hour|day|week|month)(?:@\d+)?(?:#.*)?$/s;

/** Ledger prefix of the budgets of an end user. */
export function endUserWindowPrefix(endUser: string): string {
  return `end-user:${createHash('sha256').update(endUser).digest('hex').slice(0, 32)}`;
}
