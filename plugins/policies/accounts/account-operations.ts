import { randomUUID } from 'node:crypto';
import {
  type AccountBalance,
  type AccountRecord,
  type AuditActor,
  formatUsd,
  GatewayError,
  type PluginApi,
  parseUsd,
} from '../../../core/index.ts';
import { ACCOUNTS, createPlanBook, findAccount } from '../../../core/operators.ts';
import { isStoreFailure } from '../kit/write-queue.ts';
import { CONTROL, checkAccountId } from './account-id.ts';

/** How many of an account's newest entries are shown. */
const SHOWN_ENTRIES = 20;

/** An account as operators see it; amounts are decimal strings of US dollars. */
export interface ShownAccount {
  readonly object: 'account';
  readonly id: string;
  readonly plan: string | null;
  readonly balance: string;
  readonly held: string;
  readonly spent: string;
  readonly credited: string;
  readonly updated_at: string | null;
}

export interface ShownEntry {
  readonly at: string;
  readonly kind: 'credit' | 'charge';
  readonly amount: string;
  readonly reason: string;
  readonly ref: string;
}

export interface AccountVersion {
  /** How often its plan was changed. */
  readonly version: number;
  readonly account: ShownAccount;
}

export interface CreditWish {
  readonly amount: string | number;
  /** Credits once, however often it comes; one is made unless given. */
  readonly id?: string | undefined;
  readonly reason?: string | undefined;
}

export interface Credited {
  readonly id: string;
  /** False when this id was credited before. */
  readonly credited: boolean;
  readonly amount: string;
  readonly account: ShownAccount;
}

/** What operators do with accounts, each change written down in the audit log. */
export interface AccountOperations {
  list(page: { readonly limit: number; readonly after?: string }): Promise<{
    readonly accounts: readonly ShownAccount[];
    readonly next: string | undefined;
  }>;
  show(id: string): Promise<AccountVersion & { readonly entries: readonly ShownEntry[] }>;
  find(id: string): Promise<AccountVersion>;
  credit(actor: AuditActor, id: string, wish: CreditWish): Promise<Credited>;
  /** Gives an account a plan, or takes it away with null. */
  setPlan(actor: AuditActor, id: string, plan: string | null, expected?: number): Promise<AccountVersion>;
}

type Api = Pick<PluginApi, 'ledger' | 'settings' | 'records' | 'shared' | 'audit'>;

export function createAccountOperations(api: Api): AccountOperations {
  const { ledger, audit } = api;
  const readPlans = createPlanBook(api);
  const records = api.records<AccountRecord>(ACCOUNTS);

  const show = (id: string, plan: string | undefined, balance: AccountBalance): ShownAccount =>
    showAccount(id, plan ?? api.settings.defaultPlan, balance);
  const find = async (id: string): Promise<AccountVersion> => {
    checkAccountId(id);
    const [{ version, plan }, balance] = await Promise.all([findAccount(api, id), ledger.balance(id)]);
    return { version, account: show(id, plan, balance) };
  };

  return {
    find,

    async list({ limit, after }) {
      const rows = await ledger.accounts({ limit: limit + 1, ...(after !== undefined && { after }) });
      const page = rows.slice(0, limit);
      const accounts = await Promise.all(
        page.map(async ({ account, ...balance }) => show(account, (await findAccount(api, account)).plan, balance)),
      );
      return { accounts, next: rows.length > limit ? page.at(-1)?.account : undefined };
    },

    async show(id) {
      const [found, entries] = await Promise.all([find(id), ledger.entries(id, { limit: SHOWN_ENTRIES })]);
      const shown = entries.map(({ at, kind, amount, reason, ref }): ShownEntry => {
        return { at: new Date(at).toISOString(), kind, amount: formatUsd(amount), reason, ref };
      });
      return { ...found, entries: shown };
    },

    async credit(actor, id, wish) {
      const { ref, amount, reason, credited } = await writeCredit(ledger, id, wish);
      const { account } = await find(id);
      if (credited) {
        const after = { amount_usd: amount, id: ref, reason, balance: account.balance };
        await audit({ actor, action: 'account.credit', subject: id, after });
      }
      return { id: ref, credited, amount, account };
    },

    async setPlan(actor, id, plan, expected) {
      checkAccountId(id);
      const names = [...(await readPlans()).keys()];
      if (plan !== null && !names.includes(plan))
        throw new GatewayError(
          'invalid_request',
          `There is no plan "${plan.slice(0, 80)}" here; plans are: ${names.slice(0, 20).join(', ') || 'none'}.`,
          { param: 'plan' },
        );
      const before = await findAccount(api, id);
      const changed = await records.change(id, () => (plan === null ? {} : { plan }), expected);
      const was = (before.version === 0 ? before.plan : changed.before?.plan) ?? null;
      await audit({ actor, action: 'account.plan', subject: id, before: { plan: was }, after: { plan } });
      return { ...(await find(id)), version: changed.version };
    },
  };
}

/** Writes a credit, once for each id of it. */
async function writeCredit(
  ledger: Pick<Api['ledger'], 'credit'>,
  id: string,
  { amount, id: ref = randomUUID(), reason = 'credit' }: CreditWish,
) {
  checkAccountId(id);
  const micro = readAmount(amount);
  checkLine('id', ref);
  checkLine('reason', reason);
  const credited = await ledger
    .credit(id, ref, micro, reason, Date.now())
    .catch((error: unknown) => Promise.reject(isStoreFailure(error) ? unknownCredit(ref, error) : error));
  return { ref, amount: formatUsd(micro), reason, credited };
}

function showAccount(id: string, plan: string | undefined, balance: AccountBalance): ShownAccount {
  return {
    object: 'account',
    id,
    plan: plan ?? null,
    balance: formatUsd(balance.balance),
    held: formatUsd(balance.held),
    spent: formatUsd(balance.spent),
    credited: formatUsd(balance.credited),
    updated_at: balance.updatedAt === 0 ? null : new Date(balance.updatedAt).toISOString(),
  };
}

function unknownCredit(id: string, cause: unknown): GatewayError {
  return new GatewayError(
    'store_unavailable',
    `The store did not say whether the credit was written. Send it again with the id "${id}": it then counts once.`,
    { retryAfterMs: 1000, cause },
  );
}

function readAmount(text: string | number): number {
  let micro = 0;
  try {
    micro = parseUsd(text);
  } catch (cause) {
    throw new GatewayError(
      'invalid_request',
      'The amount is no amount of US dollars: write 25, -3.50 or "12.345678".',
      {
        param: 'amount',
        cause,
      },
    );
  }
  if (micro !== 0) return micro;
  throw new GatewayError('invalid_request', 'The amount must not be 0.', { param: 'amount' });
}

const MAX_LINE = 200;

function checkLine(param: string, text: string): void {
  if (text !== '' && text.length <= MAX_LINE && !CONTROL.test(text)) return;
  throw new GatewayError('invalid_request', `"${param}" is a line of 1 to ${MAX_LINE} characters.`, { param });
}
