import { randomUUID } from 'node:crypto';
import {
  type AccountBalance,
  type AccountRecord,
  formatUsd,
  GatewayError,
  type Ledger,
  nearest,
  type PluginApi,
  type PluginConfig,
  parseUsd,
} from '../../../contract/index.ts';
import { CALLABLE_MODELS, type CallableModels, type FindCallable, formatCallable } from '../kit/callable-models.ts';
import { ACCOUNTS, cpuBudget, createPlanBook, findAccount } from '../kit/index.ts';
import { printable } from '../kit/printable.ts';
import { type Action, type Actions, type Resource, resource, textOf, type Wish } from '../kit/resource.ts';
import { isStoreFailure } from '../kit/write-queue.ts';
import { CONTROL, checkAccountId } from './account-id.ts';
import type { ReadAccountBudgets } from './budgets/balance.ts';
import { CALLER_BUDGET } from './budgets/view.ts';

/** Number of ledger entries in the details of an account, newest first. */
const SHOWN_ENTRIES = 20;

const MONEY = { type: 'string', description: 'US dollars as a decimal string.' } as const;
const TEXT = { type: 'string' } as const;
const TEXT_OR_NULL = { type: ['string', 'null'] } as const;
const WORD = { type: 'string', minLength: 1, maxLength: 300 } as const;

const ACCOUNT_FIELDS = {
  object: { const: 'account' },
  id: TEXT,
  plan: { ...TEXT_OR_NULL, description: 'Plan set by an operator, otherwise the default plan.' },
  balance_usd: MONEY,
  held_usd: MONEY,
  spent_usd: MONEY,
  credited_usd: MONEY,
  updated_at: TEXT_OR_NULL,
} as const;
const ACCOUNT = { type: 'object', required: Object.keys(ACCOUNT_FIELDS), properties: ACCOUNT_FIELDS };

const ENTRY = {
  type: 'object',
  required: ['at', 'kind', 'amount_usd', 'reason', 'ref'],
  properties: { at: TEXT, kind: { enum: ['credit', 'charge'] }, amount_usd: MONEY, reason: TEXT, ref: TEXT },
};

const KEPT_BYTES = {
  type: 'integer',
  description: 'Stored bytes of the account: results for idempotency keys, responses, memories of agents.',
} as const;

/** Account details, with data from outside the ledger. */
const WHOLE_ACCOUNT = {
  ...ACCOUNT,
  properties: {
    ...ACCOUNT_FIELDS,
    kept_bytes: KEPT_BYTES,
    budgets: {
      type: 'array',
      items: { ...CALLER_BUDGET, properties: { ...CALLER_BUDGET.properties, plan: { type: 'string' } } },
      description: 'Budgets of its plan, of used plans of its keys and tokens, and of the user with its name.',
    },
    callable_models: {
      ...CALLABLE_MODELS,
      description: `${CALLABLE_MODELS.description} For calls without a key of its own: keys may have fewer models and other plans.`,
    },
    entries: { type: 'array', items: ENTRY },
  },
};

const CREDIT_BODY = {
  type: 'object',
  required: ['amount_usd'],
  examples: [{ amount_usd: '25.00', id: 'invoice-7' }],
  additionalProperties: false,
  properties: {
    amount_usd: {
      anyOf: [{ type: 'number' }, { type: 'string', maxLength: 20 }],
      description: 'US dollars, such as "25.00"; a negative amount takes money back.',
    },
    id: { type: 'string', minLength: 1, maxLength: 200, description: 'Idempotency id: the same id is credited once.' },
    reason: { type: 'string', minLength: 1, maxLength: 200, description: 'Reason; stored in the ledger.' },
  },
} as const;

const CREDITED = {
  type: 'object',
  required: ['id', 'credited', 'is_new', 'similar', 'amount_usd', 'account'],
  properties: {
    id: TEXT,
    credited: { type: 'boolean', description: 'False if this id was credited before.' },
    is_new: {
      type: 'boolean',
      description: 'True if the account is new. Check its id.',
    },
    similar: { type: 'array', items: TEXT, description: 'For a new account: existing accounts with similar ids.' },
    amount_usd: MONEY,
    account: ACCOUNT,
  },
};

const PLAN_BODY = {
  type: 'object',
  required: ['plan'],
  examples: [{ plan: 'pro' }],
  additionalProperties: false,
  properties: {
    plan: { type: ['string', 'null'], minLength: 1, maxLength: 100, description: 'Plan name; null removes the plan.' },
  },
} as const;

const { required: _required, ...PATCH_BODY } = PLAN_BODY;

/** Account data outside the ledger. */
interface Account extends AccountRecord {
  readonly id: string;
}

type Api = Pick<PluginApi, 'settings' | 'route' | 'command'> & {
  readonly books: Pick<PluginApi['books'], 'ledger' | 'records'>;
  readonly stores: Pick<PluginApi['stores'], 'shared' | 'stored'>;
  readonly operators: Pick<PluginApi['operators'], 'audit'>;
};

/** Registers `/api/core/admin/accounts` and `tollgate accounts`. An id with a slash is sent as `%2F`. */
export function registerAccounts(
  api: Api,
  readBudgets: ReadAccountBudgets = async () => [],
  findCallable: FindCallable = async () => NO_MODELS,
): void {
  const {
    books: { ledger },
  } = api;
  const { defaultPlan } = api.settings;
  const table: Resource<Account, number> = {
    ...{ name: 'account', path: '/api/core/admin/accounts', id: 'id', schema: WHOLE_ACCOUNT },
    scopes: { read: 'accounts:read', write: 'accounts:write' },
    response: 'The account since.',
    command: {
      name: 'accounts',
      summary: 'List, show and credit accounts, and set plans',
      id: { name: '<user>', summary: 'the user id, as in the tokens or in "keys create --user"' },
      order: ['credit', 'show', 'list', 'plan'],
    },
    async find(id) {
      checkAccountId(id);
      const { version, plan } = await findAccount(api, id);
      return { version, value: { id, ...(plan !== undefined && { plan }) } };
    },
    show: (account) => showWhole(api, { readBudgets, findCallable }, account),
  };
  const show = async (id: string) => {
    const [account, balance] = await Promise.all([table.find(id), ledger.balance(id)]);
    return describe(account.value, defaultPlan, balance);
  };

  resource(api, table, (make) => [
    listAccounts(make, api, table),
    showAction(make, api, { readBudgets, findCallable }),
    creditAction(make, ledger, show),
    ...planActions(make, api, show, { readBudgets, findCallable }),
  ]);
}

/** Readers of data outside the account's ledger and record. */
interface Readers {
  readonly readBudgets: ReadAccountBudgets;
  readonly findCallable: FindCallable;
}

const NO_MODELS: CallableModels = Object.freeze({ callable: [], count: 0, stopped: [] });

type Make = Actions<Account, number>;
type ShowAccount = (id: string) => Promise<ReturnType<typeof describe>>;

function listAccounts(
  make: Make,
  { books: { ledger }, settings }: Api,
  { find }: Pick<Resource<Account, number>, 'find'>,
): Action {
  const { defaultPlan } = settings;
  return make.list({
    http: {
      summary: 'List accounts that were ever credited or charged',
      ...{ response: 'A page of accounts.', schema: ACCOUNT },
      description:
        'With a filter, a request checks a limited number of accounts: a page that is not full may have a `next`.',
      filters: {
        name: { ...WORD, description: 'Accounts whose id contains this text; case-insensitive.' },
        plan: { ...WORD, description: 'Accounts with this plan, set or by default.' },
      },
    },
    async read({ limit: wanted, after, filters }) {
      const [name, plan] = [textOf(filters, 'name')?.toLowerCase(), textOf(filters, 'plan')];
      // Filters drop accounts, so more must be read.
      const limit = name === undefined && plan === undefined ? wanted : MAX_COMPARED;
      const found = await ledger.accounts({ limit: limit + 1, ...(after !== undefined && { after }) });
      const page = found.slice(0, limit);
      const fitting: ReturnType<typeof describe>[] = [];
      const isSpent = cpuBudget(MOST_CPU_MS);
      let looked = 0;
      while (looked < page.length && fitting.length <= wanted && (looked === 0 || limit === wanted || !isSpent())) {
        const part = page
          .slice(looked, looked + AT_ONCE)
          .filter(({ account }) => name === undefined || account.toLowerCase().includes(name));
        const rows = await Promise.all(
          part.map(async ({ account, ...balance }) => describe((await find(account)).value, defaultPlan, balance)),
        );
        fitting.push(...rows.filter((row) => plan === undefined || row.plan === plan));
        looked += AT_ONCE;
      }
      const shown = fitting.slice(0, wanted);
      const isCut = fitting.length > wanted;
      const last = isCut ? shown.at(-1)?.id : page[Math.min(looked, page.length) - 1]?.account;
      return { rows: shown, next: isCut || looked < page.length || found.length > limit ? last : undefined };
    },
    cli: {
      options: [
        { flags: '--name <text>', summary: 'only accounts whose id contains this text' },
        { flags: '--plan <name>', summary: 'only accounts with this plan, set or by default' },
      ],
      page: { after: '--after <account>', one: 'account', first: 100, most: 1000 },
      columns: [
        ['ACCOUNT', ({ id }) => printable(id, id.length)],
        ['PLAN', ({ plan }) => plan ?? '-'],
        ['BALANCE USD', ({ balance_usd }) => balance_usd],
        ['HELD USD', ({ held_usd }) => held_usd],
        ['SPENT USD', ({ spent_usd }) => spent_usd],
        ['CREDITED USD', ({ credited_usd }) => credited_usd],
      ],
    },
  });
}

/** Returns an account with its newest entries, its plan's budgets and the size of its documents. */
async function showWhole(
  { books: { ledger }, stores, settings }: Api,
  { readBudgets, findCallable }: Readers,
  account: Account,
) {
  const { id } = account;
  const [balance, entries, kept, budgets, models] = await Promise.all([
    ledger.balance(id),
    ledger.entries(id, { limit: SHOWN_ENTRIES }),
    stores.stored.bytes(id),
    readBudgets(id),
    findCallable({ credential: 'key', userId: id, account: id }),
  ]);
  const shown = entries.map(({ at, amount, ...entry }) => {
    const { kind, reason, ref } = entry;
    return { at: new Date(at).toISOString(), kind, amount_usd: formatUsd(amount), reason, ref };
  });
  return {
    ...describe(account, settings.defaultPlan, balance),
    kept_bytes: kept,
    budgets,
    callable_models: models,
    entries: shown,
  };
}

function showAction(make: Make, api: Api, readers: Readers): Action {
  return make.show({
    http: {
      summary: 'Show an account with its newest entries',
      response: 'The account; its ETag is the version of its plan.',
    },
    show: (account) => showWhole(api, readers, account),
    cli: {
      summary: 'Show the balance, the plan and the newest entries of an account',
      text: ({
        id,
        plan,
        balance_usd,
        held_usd,
        spent_usd,
        credited_usd,
        kept_bytes,
        budgets,
        callable_models: models,
        entries,
      }) =>
        [
          `account   ${id}`,
          `plan      ${plan ?? '-'}`,
          `balance   ${balance_usd} USD (held ${held_usd})`,
          `spent     ${spent_usd} USD of ${credited_usd} USD credited`,
          `stored    ${kept_bytes} bytes`,
          ...budgets.map(
            ({ name, plan: by, every, amount_usd, spent_usd: used, left_usd }) =>
              `budget    ${name}${by === undefined || by === plan ? '' : ` (plan ${by})`}: ${used} USD spent of ${amount_usd} ${every === 'total' ? 'in all' : `a ${every}`}, ${left_usd} left`,
          ),
          ...formatCallable(models).map((line, at) => `${at === 0 ? 'models' : ''}`.padEnd(10) + line),
          ...entries.map(
            ({ at, kind, amount_usd, reason }) => `${at}  ${kind.padEnd(6)}  ${amount_usd.padStart(12)}  ${reason}`,
          ),
        ].join('\n'),
    },
  });
}

function creditAction(make: Make, ledger: Ledger, show: ShowAccount): Action {
  return make.change({
    word: 'credit',
    http: { summary: 'Add money to an account', body: CREDIT_BODY, schema: CREDITED },
    async apply({ id, body, found }) {
      const news = found.version === 0 ? await lookForNew(ledger, id) : KNOWN;
      const { ref, amount, reason, credited } = await writeCredit(ledger, id, body);
      const account = await show(id);
      return {
        // A repeated credit changes nothing.
        ...(credited && { after: { amount_usd: amount, id: ref, reason, balance_usd: account.balance_usd } }),
        show: () => ({ id: ref, credited, ...news, amount_usd: amount, account }),
      };
    },
    cli: {
      summary: 'Add money to an account (a negative amount takes it back)',
      args: [{ name: '<amount>', summary: 'US dollars, such as 25.00' }],
      options: [
        { flags: '--reason <text>', summary: 'reason; stored in the ledger' },
        { flags: '--id <id>', summary: 'idempotency id: the same id is credited once' },
      ],
      read({ args: [, amount = ''], options }) {
        const [id, reason] = [textOf(options, 'id'), textOf(options, 'reason')];
        return { amount_usd: amount, ...(id !== undefined && { id }), ...(reason !== undefined && { reason }) };
      },
      intro: (shown) => (shown.is_new ? warnOfNew(shown) : undefined),
      text: ({ id, credited, amount_usd: amount, account: { id: user, balance_usd: balance } }) =>
        credited
          ? `credited ${amount} USD to ${user}; the balance is ${balance} USD`
          : `"${id}" was credited before; the balance of ${user} is ${balance} USD`,
    },
  });
}

/** Maximum number of accounts that are compared for similar ids. */
const MAX_COMPARED = 1000;
/** Number of accounts read concurrently, and maximum CPU time for a page of them. */
const AT_ONCE = 100;
const MOST_CPU_MS = 25;

interface News {
  readonly is_new: boolean;
  readonly similar: readonly string[];
}

const KNOWN: News = Object.freeze({ is_new: false, similar: [] });

/**
 * Returns if an account is new, and known accounts with similar ids. Ignores store failures: the credit itself reports
 * them.
 */
async function lookForNew(ledger: Pick<Ledger, 'accounts' | 'balance'>, id: string): Promise<News> {
  try {
    if ((await ledger.balance(id)).updatedAt !== 0) return KNOWN;
    const known = (await ledger.accounts({ limit: MAX_COMPARED })).map(({ account }) => account);
    return { is_new: true, similar: nearest(id, known) };
  } catch {
    return KNOWN;
  }
}

/** A credit to a mistyped id creates an account that no one uses. */
function warnOfNew(shown: {
  readonly similar: readonly string[];
  readonly amount_usd: string;
  readonly account: { id: string };
}) {
  const { similar, amount_usd: amount, account } = shown;
  const near = similar.length === 0 ? '' : ` Similar accounts: ${similar.map((id) => printable(id)).join(', ')}.`;
  const back = amount.startsWith('-') ? amount.slice(1) : `-${amount}`;
  return `The account ${printable(account.id)} is new. Check its id.${near} To undo the credit, credit ${back}.`;
}

type PlanWish = Pick<Wish<Account, number, unknown>, 'id' | 'found' | 'expected'>;

function planActions(make: Make, api: Api, show: ShowAccount, readers: Readers): readonly Action[] {
  const readPlans = createPlanBook(api);
  const records = api.books.records<AccountRecord>(ACCOUNTS);
  const give = async (plan: string | null, { id, found, expected }: PlanWish) => {
    const names = [...(await readPlans()).keys()];
    if (plan !== null && !names.includes(plan))
      throw new GatewayError(
        'invalid_request',
        `There is no plan "${plan.slice(0, 80)}" here; plans are: ${names.slice(0, 20).join(', ') || 'none'}.`,
        { param: 'plan' },
      );
    const { version, before } = await records.change(id, () => (plan === null ? {} : { plan }), expected);
    const was = (found.version === 0 ? found.value.plan : before?.plan) ?? null;
    return { version, before: { plan: was }, after: { plan } };
  };
  const put = make.change({
    word: 'plan',
    http: {
      ...{ method: 'PUT', at: '/plan', summary: 'Set the plan of an account', body: PLAN_BODY, schema: ACCOUNT },
      description: 'Takes effect on every node within five seconds. Plans of keys and tokens take precedence.',
    },
    apply: async (wish) => ({ ...(await give(wish.body.plan, wish)), show: () => show(wish.id) }),
    cli: {
      summary: 'Set the plan of an account',
      args: [{ name: '[plan]', summary: 'plan name, as in "tollgate accounts plans list"' }],
      options: [{ flags: '--clear', summary: 'remove the plan; the default plan applies' }],
      read({ args: [, plan], options }) {
        if ((plan === undefined) === (options['clear'] === true)) return { plan: plan ?? null };
        throw new GatewayError('invalid_request', 'Name a plan, or remove it with --clear.', { param: 'plan' });
      },
      text: ({ id }, { args: [, plan] }) =>
        plan === undefined ? `${id} has no plan of its own` : `${id} has the plan ${plan}`,
    },
  });
  const patch = make.change({
    word: 'update',
    http: {
      ...{ method: 'PATCH', summary: 'Update an account', body: PATCH_BODY },
      description: 'Accepts an account as it was read. Only the plan can be changed; money is credited.',
    },
    async apply(wish) {
      const { plan = null } = wish.body;
      const given = await give(plan, wish);
      const account = { id: wish.id, ...(plan !== null && { plan }) };
      return { ...given, show: () => showWhole(api, readers, account) };
    },
  });
  return [put, patch];
}

function describe({ id, plan }: Pick<Account, 'id' | 'plan'>, defaultPlan: string | undefined, sums: AccountBalance) {
  const { balance, held, spent, credited, updated_at } = showBalance(sums);
  return {
    ...{ object: 'account', id, plan: plan ?? defaultPlan ?? null, balance_usd: balance, held_usd: held },
    ...{ spent_usd: spent, credited_usd: credited, updated_at },
  };
}

/** Formats a balance for `/api/core/balance`. */
export function showBalance({ balance, held, spent, credited, updatedAt }: AccountBalance) {
  return {
    balance: formatUsd(balance),
    held: formatUsd(held),
    spent: formatUsd(spent),
    credited: formatUsd(credited),
    updated_at: updatedAt === 0 ? null : new Date(updatedAt).toISOString(),
  };
}

/** Writes a credit, at most once per credit id. */
async function writeCredit(
  ledger: Pick<Ledger, 'credit'>,
  id: string,
  { amount_usd: amount, id: ref = randomUUID(), reason = 'credit' }: PluginConfig<typeof CREDIT_BODY>,
) {
  checkAccountId(id);
  const nano = readAmount(amount);
  checkLine('id', ref);
  checkLine('reason', reason);
  const credited = await ledger
    .credit(id, ref, nano, reason, Date.now())
    .catch((error: unknown) => Promise.reject(isStoreFailure(error) ? unknownCredit(ref, error) : error));
  return { ref, amount: formatUsd(nano), reason, credited };
}

function unknownCredit(id: string, cause: unknown): GatewayError {
  return new GatewayError(
    'store_unavailable',
    `The store did not confirm the credit. Send it again with the id "${id}"; it is credited only once.`,
    { retryAfterMs: 1000, cause },
  );
}

function readAmount(text: string | number): number {
  let nano = 0;
  try {
    nano = parseUsd(text);
  } catch (cause) {
    throw new GatewayError(
      'invalid_request',
      'Invalid amount of US dollars: write 25, -3.50 or "12.345678", at most 9000000.',
      {
        param: 'amount',
        cause,
      },
    );
  }
  if (nano !== 0) return nano;
  throw new GatewayError('invalid_request', 'The amount must not be 0.', { param: 'amount' });
}

const MAX_LINE = 200;

function checkLine(param: string, text: string): void {
  if (text !== '' && text.length <= MAX_LINE && !CONTROL.test(text)) return;
  throw new GatewayError('invalid_request', `"${param}" must be one line of 1 to ${MAX_LINE} characters.`, { param });
}
