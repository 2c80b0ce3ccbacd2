import { randomUUID } from 'node:crypto';
import {
  type AccountBalance,
  type AccountRecord,
  formatUsd,
  GatewayError,
  type Ledger,
  type PluginApi,
  type PluginConfig,
  parseUsd,
} from '../../../core/index.ts';
import { ACCOUNTS, createPlanBook, findAccount } from '../kit/index.ts';
import { printable } from '../kit/printable.ts';
import { type Action, type Actions, type Resource, resource, textOf } from '../kit/resource.ts';
import { isStoreFailure } from '../kit/write-queue.ts';

/** How many of an account's newest entries are shown. */
const SHOWN_ENTRIES = 20;

const MONEY = { type: 'string', description: 'US dollars as a decimal string.' } as const;
const TEXT = { type: 'string' } as const;
const TEXT_OR_NULL = { type: ['string', 'null'] } as const;

const ACCOUNT_FIELDS = {
  object: { const: 'account' },
  id: TEXT,
  plan: { ...TEXT_OR_NULL, description: 'What an operator gave it, else the default plan.' },
  balance: MONEY,
  held: MONEY,
  spent: MONEY,
  credited: MONEY,
  updated_at: TEXT_OR_NULL,
} as const;
const ACCOUNT = { type: 'object', required: Object.keys(ACCOUNT_FIELDS), properties: ACCOUNT_FIELDS };

const ENTRY = {
  type: 'object',
  required: ['at', 'kind', 'amount', 'reason', 'ref'],
  properties: { at: TEXT, kind: { enum: ['credit', 'charge'] }, amount: MONEY, reason: TEXT, ref: TEXT },
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
    id: { type: 'string', minLength: 1, maxLength: 200, description: 'An id of your own: sent twice, it counts once.' },
    reason: { type: 'string', minLength: 1, maxLength: 200, description: 'What for; kept in the ledger.' },
  },
} as const;

const CREDITED = {
  type: 'object',
  required: ['id', 'credited', 'amount', 'account'],
  properties: {
    id: TEXT,
    credited: { type: 'boolean', description: 'False when this id was credited before.' },
    amount: MONEY,
    account: ACCOUNT,
  },
};

const PLAN_BODY = {
  type: 'object',
  required: ['plan'],
  examples: [{ plan: 'pro' }],
  additionalProperties: false,
  properties: {
    plan: { type: ['string', 'null'], minLength: 1, maxLength: 100, description: 'The plan; null takes it away.' },
  },
} as const;

/** What is kept of an account beside the ledger. */
interface Account extends AccountRecord {
  readonly id: string;
}

type Api = Pick<PluginApi, 'ledger' | 'settings' | 'records' | 'shared' | 'audit' | 'route' | 'command'>;

/** `/api/core/admin/accounts` and `tollgate accounts`. An id with a slash is sent as `%2F`. */
export function registerAccounts(api: Api): void {
  const { ledger } = api;
  const { defaultPlan } = api.settings;
  const table: Resource<Account, number> = {
    ...{ name: 'account', path: '/api/core/admin/accounts', id: 'id', schema: ACCOUNT },
    response: 'The account since.',
    command: {
      name: 'accounts',
      summary: 'List, credit and show accounts, and set their plans',
      id: { name: '<user>', summary: 'the user id, as in the tokens or in "keys create --user"' },
      order: ['credit', 'show', 'list', 'plan'],
    },
    async find(id) {
      checkAccountId(id);
      const { version, plan } = await findAccount(api, id);
      return { version, value: { id, ...(plan !== undefined && { plan }) } };
    },
  };
  const show = async (id: string) => {
    const [account, balance] = await Promise.all([table.find(id), ledger.balance(id)]);
    return describe(account.value, defaultPlan, balance);
  };

  resource(api, table, (make) => [
    make.list({
      http: {
        summary: 'List accounts that were ever credited or charged',
        ...{ response: 'A page of accounts.', schema: ACCOUNT },
      },
      async read({ limit, after }) {
        const found = await ledger.accounts({ limit: limit + 1, ...(after !== undefined && { after }) });
        const page = found.slice(0, limit);
        const rows = await Promise.all(
          page.map(async ({ account, ...balance }) =>
            describe((await table.find(account)).value, defaultPlan, balance),
          ),
        );
        return { rows, next: found.length > limit ? page.at(-1)?.account : undefined };
      },
      cli: {
        page: { after: '--after <account>', one: 'account', first: 100, most: 1000 },
        columns: [
          ['ACCOUNT', ({ id }) => printable(id, id.length)],
          ['PLAN', ({ plan }) => plan ?? '-'],
          ['BALANCE USD', ({ balance }) => balance],
          ['HELD USD', ({ held }) => held],
          ['SPENT USD', ({ spent }) => spent],
          ['CREDITED USD', ({ credited }) => credited],
        ],
      },
    }),
    showAction(make, api),
    creditAction(make, ledger, show),
    planAction(make, api, show),
  ]);
}

type Make = Actions<Account, number>;
type ShowAccount = (id: string) => Promise<ReturnType<typeof describe>>;

function showAction(make: Make, { ledger, settings }: Api): Action {
  return make.show({
    http: {
      summary: 'Show an account with its newest entries',
      response: 'The account; its ETag is the version of its plan.',
      schema: { ...ACCOUNT, properties: { ...ACCOUNT_FIELDS, entries: { type: 'array', items: ENTRY } } },
    },
    async show(account) {
      const [balance, entries] = await Promise.all([
        ledger.balance(account.id),
        ledger.entries(account.id, { limit: SHOWN_ENTRIES }),
      ]);
      const shown = entries.map(({ at, amount, ...entry }) => {
        const { kind, reason, ref } = entry;
        return { at: new Date(at).toISOString(), kind, amount: formatUsd(amount), reason, ref };
      });
      return { ...describe(account, settings.defaultPlan, balance), entries: shown };
    },
    cli: {
      summary: 'Show the balance, the plan and the newest entries of an account',
      text: ({ id, plan, balance, held, spent, credited, entries }) =>
        [
          `account   ${id}`,
          `plan      ${plan ?? '-'}`,
          `balance   ${balance} USD (held ${held})`,
          `spent     ${spent} USD of ${credited} USD credited`,
          ...entries.map(
            ({ at, kind, amount, reason }) => `${at}  ${kind.padEnd(6)}  ${amount.padStart(12)}  ${reason}`,
          ),
        ].join('\n'),
    },
  });
}

function creditAction(make: Make, ledger: Ledger, show: ShowAccount): Action {
  return make.change({
    word: 'credit',
    http: { summary: 'Add money to an account', body: CREDIT_BODY, schema: CREDITED },
    async apply({ id, body }) {
      const { ref, amount, reason, credited } = await writeCredit(ledger, id, body);
      const account = await show(id);
      return {
        // What was credited before is no change.
        ...(credited && { after: { amount_usd: amount, id: ref, reason, balance: account.balance } }),
        show: () => ({ id: ref, credited, amount, account }),
      };
    },
    cli: {
      summary: 'Add money to an account (a negative amount takes it back)',
      args: [{ name: '<amount>', summary: 'US dollars, such as 25.00' }],
      options: [
        { flags: '--reason <text>', summary: 'what for; kept in the ledger' },
        { flags: '--id <id>', summary: 'an id of your own: crediting it twice credits it once' },
      ],
      read({ args: [, amount = ''], options }) {
        const [id, reason] = [textOf(options, 'id'), textOf(options, 'reason')];
        return { amount_usd: amount, ...(id !== undefined && { id }), ...(reason !== undefined && { reason }) };
      },
      text: ({ id, credited, amount, account: { id: user, balance } }) =>
        credited
          ? `credited ${amount} USD to ${user}; the balance is ${balance} USD`
          : `"${id}" was credited before; the balance of ${user} is ${balance} USD`,
    },
  });
}

function planAction(make: Make, api: Api, show: ShowAccount): Action {
  const readPlans = createPlanBook(api);
  const records = api.records<AccountRecord>(ACCOUNTS);
  return make.change({
    word: 'plan',
    http: {
      ...{ method: 'PUT', at: '/plan', summary: 'Give an account a plan', body: PLAN_BODY },
      description: 'It holds on every node within five seconds, unless its keys or tokens name another.',
    },
    async apply({ id, body: { plan }, found, expected }) {
      const names = [...(await readPlans()).keys()];
      if (plan !== null && !names.includes(plan))
        throw new GatewayError(
          'invalid_request',
          `There is no plan "${plan.slice(0, 80)}" here; plans are: ${names.slice(0, 20).join(', ') || 'none'}.`,
          { param: 'plan' },
        );
      const { version, before } = await records.change(id, () => (plan === null ? {} : { plan }), expected);
      const was = (found.version === 0 ? found.value.plan : before?.plan) ?? null;
      return { version, before: { plan: was }, after: { plan }, show: () => show(id) };
    },
    cli: {
      summary: 'Give an account a plan',
      args: [{ name: '[plan]', summary: 'a name of "tollgate plans list"' }],
      options: [{ flags: '--clear', summary: 'take its plan away: the default plan holds then' }],
      read({ args: [, plan], options }) {
        if ((plan === undefined) === (options['clear'] === true)) return { plan: plan ?? null };
        throw new GatewayError('invalid_request', 'Name a plan, or take it away with --clear.', { param: 'plan' });
      },
      text: ({ id }, { args: [, plan] }) =>
        plan === undefined ? `${id} has no plan of its own` : `${id} has the plan ${plan}`,
    },
  });
}

function describe(
  { id, plan }: Pick<Account, 'id' | 'plan'>,
  defaultPlan: string | undefined,
  balance: AccountBalance,
) {
  const { updated_at, ...amounts } = showBalance(balance);
  return { object: 'account', id, plan: plan ?? defaultPlan ?? null, ...amounts, updated_at };
}

/** A balance as the API shows it. */
export function showBalance({ balance, held, spent, credited, updatedAt }: AccountBalance) {
  return {
    balance: formatUsd(balance),
    held: formatUsd(held),
    spent: formatUsd(spent),
    credited: formatUsd(credited),
    updated_at: updatedAt === 0 ? null : new Date(updatedAt).toISOString(),
  };
}

const MAX_ID = 300;
/** Control characters and lone surrogates. */
const CONTROL = /\p{Cc}|\p{Cs}/u;

/** Throws `invalid_request` for a text that names no account. */
export function checkAccountId(id: string): void {
  if (id !== '' && id.length <= MAX_ID && !CONTROL.test(id)) return;
  throw new GatewayError(
    'invalid_request',
    `An account is a text of 1 to ${MAX_ID} characters without control characters: the id of a user, or what a token's claim names.`,
    { param: 'id' },
  );
}

/** Writes a credit, once for each id of it. */
async function writeCredit(
  ledger: Pick<Ledger, 'credit'>,
  id: string,
  { amount_usd: amount, id: ref = randomUUID(), reason = 'credit' }: PluginConfig<typeof CREDIT_BODY>,
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
