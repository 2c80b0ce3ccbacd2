import { formatUsd, GatewayError, type PluginApi, type Records, type UserRecord } from '../../../contract/index.ts';
import { cpuBudget, findAccount, USERS } from '../kit/index.ts';
import { printable } from '../kit/printable.ts';
import {
  type Action,
  type Actions,
  REASON_BODY,
  REASON_OPTION,
  type Resource,
  readReason,
  resource,
  textOf,
  WITHIN,
} from '../kit/resource.ts';
import { eraseAction } from './erase-user.ts';

/** User in the API's form. Everyone named by a token or a key is a user. */
interface ShownUser {
  readonly object: 'user';
  readonly id: string;
  readonly name: string | null;
  readonly plan: string | null;
  readonly account: string;
  readonly keys: number;
  readonly spent_this_month_usd: string;
  readonly last_call_at: string | null;
  readonly blocked: boolean;
  readonly blocked_at: string | null;
  readonly blocked_reason: string | null;
}

/** Stored user with the id. */
interface User extends UserRecord {
  readonly id: string;
}

/** Pattern of user ids in keys and tokens. */
const USER_ID_PATTERN = '^[^\\u0000-\\u001f\\u007f]{1,300}$';

const TEXT_OR_NULL = { type: ['string', 'null'] } as const;
const WORD = { type: 'string', minLength: 1, maxLength: 300 } as const;
const FIELDS = {
  object: { const: 'user' },
  id: { type: 'string' },
  name: { ...TEXT_OR_NULL, description: 'Name set by the identity provider or an operator.' },
  plan: { ...TEXT_OR_NULL, description: 'Plan of the account, or the default plan. Keys and tokens can have another.' },
  account: { type: 'string', description: 'Account that was charged for the last call. Default: the user’s own.' },
  keys: { type: 'integer', description: 'Number of API keys that are not revoked.' },
  spent_this_month_usd: { type: 'string', description: 'Cost of calls of this month (UTC), as a decimal.' },
  last_call_at: { ...TEXT_OR_NULL, description: 'End of the last recorded call; ISO 8601.' },
  blocked: { type: 'boolean', description: 'True if all keys and tokens are rejected.' },
  blocked_at: { ...TEXT_OR_NULL, description: 'Time of the block; ISO 8601.' },
  blocked_reason: { ...TEXT_OR_NULL, description: 'Reason, for operators.' },
} as const;
const USER = { type: 'object', required: Object.keys(FIELDS), properties: FIELDS };

const PATCH_BODY = {
  type: 'object',
  additionalProperties: false,
  examples: [{ name: 'Ann', blocked: false }],
  properties: {
    name: {
      type: ['string', 'null'],
      maxLength: 200,
      pattern: '^[^\\u0000-\\u001f\\u007f]*$',
      description: 'Shown to operators; null removes it.',
    },
    blocked: { type: 'boolean', description: 'True if all keys and tokens are rejected.' },
    blocked_reason: {
      type: ['string', 'null'],
      maxLength: 200,
      pattern: '^[^\\u0000-\\u001f\\u007f]*$',
      description: 'Reason, shown to operators.',
    },
  },
} as const;

type Api = Pick<PluginApi, 'books' | 'stores' | 'settings' | 'operators' | 'route' | 'command'>;

/** `/api/core/admin/users` and `tollgate users`; an id with a slash is sent as `%2F`. */
export function registerUsers(api: Api): void {
  const users = api.books.records<UserRecord>(USERS);
  const show = (user: User): Promise<ShownUser> => showUser(api, user);
  const table: Resource<User, number> = {
    name: 'user',
    path: '/api/core/admin/users',
    id: 'id',
    schema: USER,
    scopes: { read: 'users:read', write: 'users:write' },
    response: 'User, with its version as ETag.',
    command: {
      name: 'users',
      summary: 'List, block, unblock and erase users',
      id: { name: '<id>', summary: 'user id, as in tokens or in "keys create --user"' },
    },
    async find(id) {
      checkId(id);
      const { version, value } = await users.find(id);
      return { version, value: { ...value, id } };
    },
    show,
  };
  resource(api, table, (make) => [
    listUsers(make, api),
    make.show({
      http: { summary: 'Show a user: plan, account, keys, spend, block state' },
      show,
      cli: {
        summary: 'Show a user and its block state',
        text: (user) =>
          [
            describe(user),
            `name      ${printable(user.name ?? '-')}`,
            `plan      ${user.plan ?? '-'}`,
            `account   ${printable(user.account)}`,
            `keys      ${user.keys}`,
            `spent     ${user.spent_this_month_usd} USD this month`,
            `last call ${user.last_call_at ?? '-'}`,
          ].join('\n'),
        note: () => 'Their keys: "tollgate keys list --user <id>"; their account: "tollgate accounts show <id>".',
      },
    }),
    ...changeActions(make, users, show),
    eraseAction(api, checkId),
  ]);
}

type Make = Actions<User, number>;

function changeActions(
  make: Make,
  users: Records<UserRecord>,
  show: (user: User) => Promise<ShownUser>,
): readonly Action[] {
  const change = async (id: string, alter: (user: UserRecord) => UserRecord, expected: number | undefined) => {
    const { version, before, value } = await users.change(id, (user) => alter(user ?? {}), expected);
    await users.note(id);
    return {
      version,
      before: shownInAudit(id, before),
      after: shownInAudit(id, value),
      show: () => show({ ...value, id }),
    };
  };
  return [
    make.change({
      word: 'update',
      http: {
        method: 'PATCH',
        summary: 'Update the name or state of a user',
        body: PATCH_BODY,
        description: 'Accepts a user as returned by GET. Missing fields are unchanged.',
      },
      apply: ({ id, body, expected, now }) =>
        change(
          id,
          (user) => {
            const { name = user.name ?? null, blocked = user.blockedAt !== undefined } = body;
            const { blocked_reason: reason = user.reason ?? null } = body;
            const { name: _name, ...unnamed } = user;
            const named = { ...unnamed, ...(name !== null && name !== '' && { name }) };
            const { reason: _reason, ...blockedUser } = block(named, now, undefined);
            return blocked ? { ...blockedUser, ...(reason !== null && { reason }) } : unblock(named);
          },
          expected,
        ),
    }),
    make.change({
      word: 'block',
      http: {
        summary: 'Block a user with all keys and tokens until unblocked',
        body: REASON_BODY,
        bodyOptional: true,
      },
      apply: ({ id, body: { reason }, expected, now }) => change(id, (user) => block(user, now, reason), expected),
      cli: {
        summary: 'Block a user with all keys and tokens until unblocked',
        options: [REASON_OPTION],
        read: readReason,
        text: (user) => `${describe(user)}; ${WITHIN}`,
      },
    }),
    make.change({
      word: 'unblock',
      http: { summary: 'Unblock a user' },
      apply: ({ id, expected }) => change(id, unblock, expected),
      cli: { summary: 'Unblock a user', text: (user) => `${describe(user)}; ${WITHIN}` },
    }),
  ];
}

/** Blocking again keeps the first time. */
function block(user: UserRecord, now: number, reason: string | undefined): UserRecord {
  return { ...user, blockedAt: user.blockedAt ?? now, ...(reason !== undefined && { reason }) };
}

function unblock({ blockedAt: _at, reason: _reason, ...user }: UserRecord): UserRecord {
  return user;
}

/** Maximum users read per request. */
const MAX_LOOKED_AT = 500;
/** CPU limit of a page, in milliseconds, so that other work is not delayed. */
const MOST_CPU_MS = 20;
/** Users read concurrently: each needs several reads of the store. */
const AT_ONCE = 8;

function listUsers(make: Make, api: Api): Action {
  const users = api.books.records<UserRecord>(USERS);
  return make.list({
    http: {
      summary: 'List users with a call, a key or a block',
      response: 'Page of users, sorted by id.',
      schema: USER,
      description: `One request checks ${MAX_LOOKED_AT} users, so a page that is not full may have a \`next\`.`,
      filters: {
        name: { ...WORD, description: 'Users whose id or name contains this text, case-insensitive.' },
        plan: { ...WORD, description: 'Users whose account has this plan, set or by default.' },
        state: { enum: ['active', 'blocked'], description: 'Block state.' },
      },
    },
    async read({ limit: wanted, after, filters }) {
      const { name, plan, state } = readFilters(filters);
      const hasFilter = [name, plan, state].some((filter) => filter !== undefined);
      const limit = hasFilter ? MAX_LOOKED_AT : Math.min(wanted, MAX_LOOKED_AT);
      const ids = await users.ids({ limit: limit + 1, ...(after !== undefined && { after }) });
      const spent = await readSpent(api);
      const rows: ShownUser[] = [];
      const isSpent = cpuBudget(MOST_CPU_MS);
      let last: string | undefined;
      for (let at = 0; at < Math.min(ids.length, limit) && rows.length < wanted; at += AT_ONCE) {
        if (at > 0 && isSpent()) break;
        const some = ids.slice(at, Math.min(at + AT_ONCE, limit));
        const found = await Promise.all(
          some.map(async (id): Promise<User> => ({ ...(await users.find(id)).value, id })),
        );
        const fitting = found.filter((user) => isWanted(user, name, state));
        const shown = await Promise.all(fitting.map((user) => showUser(api, user, spent)));
        for (const row of shown) if (plan === undefined || row.plan === plan) rows.push(row);
        last = some.at(-1);
      }
      const page = rows.slice(0, wanted);
      const isCut = rows.length > wanted;
      const next = isCut ? page.at(-1)?.id : last === ids.at(-1) ? undefined : last;
      return { rows: page, next };
    },
    cli: {
      options: [
        { flags: '--name <text>', summary: 'users whose id or name contains this text' },
        { flags: '--plan <name>', summary: 'users whose account has this plan, set or by default' },
        { flags: '--state <state>', summary: 'active or blocked' },
      ],
      page: { after: '--after <id>', one: 'user', first: 100, most: 1000 },
      columns: [
        ['USER', ({ id }) => printable(id, id.length)],
        ['NAME', ({ name }) => printable(name ?? '-')],
        ['PLAN', ({ plan }) => plan ?? '-'],
        ['ACCOUNT', ({ account }) => printable(account)],
        ['KEYS', ({ keys }) => String(keys)],
        ['MONTH USD', ({ spent_this_month_usd }) => spent_this_month_usd],
        ['LAST CALL UTC', ({ last_call_at }) => last_call_at ?? '-'],
        ['STATE', ({ blocked }) => (blocked ? 'blocked' : 'active')],
      ],
      empty: 'No users yet. They are listed after their first key, call or block.',
    },
  });
}

function readFilters(filters: Readonly<Record<string, unknown>>) {
  const state = textOf(filters, 'state');
  if (state !== undefined && state !== 'active' && state !== 'blocked')
    throw new GatewayError('invalid_request', 'state must be active or blocked.', { param: 'state' });
  return { name: textOf(filters, 'name')?.toLowerCase(), plan: textOf(filters, 'plan'), state };
}

/** True if the user's id or name contains the text and the state matches; `name` is in lower case. */
function isWanted(user: User, name: string | undefined, state: string | undefined): boolean {
  return (
    (name === undefined || user.id.toLowerCase().includes(name) || user.name?.toLowerCase().includes(name) === true) &&
    (state === undefined || (user.blockedAt !== undefined) === (state === 'blocked'))
  );
}

/** Spending of each user since the start of the month, by id; of one user alone if given. */
async function readSpent(
  { books: { ledger } }: Pick<Api, 'books'>,
  userId?: string,
): Promise<ReadonlyMap<string, bigint>> {
  const now = new Date();
  const from = Date.UTC(now.getUTCFullYear(), now.getUTCMonth());
  const edges = [from, now.getTime() + 1];
  const rows = await ledger.report({ edges, by: ['user'], ...(userId !== undefined && { userId }) });
  return new Map(rows.map(({ user = '', cost }) => [user, cost]));
}

async function showUser(api: Api, { id, ...user }: User, spent?: ReadonlyMap<string, bigint>): Promise<ShownUser> {
  const sums = spent ?? (await readSpent(api, id));
  const { calls } = await api.books.ledger.calls({ userId: id, limit: 1 });
  const account = calls[0]?.account ?? id;
  const { plan = api.settings.defaultPlan ?? null } = await findAccount(api, account);
  const counts = api.operators.allPersonalData().filter(({ name }) => name === 'keys');
  const keys = await Promise.all(counts.map((data) => data.count({ userId: id, accounts: [account] })));
  const at = calls[0]?.at;
  return {
    object: 'user',
    id,
    name: user.name ?? null,
    plan,
    account,
    keys: keys.reduce((sum, count) => sum + count, 0),
    spent_this_month_usd: formatUsd(sums.get(id) ?? 0n),
    last_call_at: at === undefined ? null : new Date(at).toISOString(),
    ...showState(user),
  };
}

function showState({ blockedAt, reason }: UserRecord) {
  return {
    blocked: blockedAt !== undefined,
    blocked_at: blockedAt === undefined ? null : new Date(blockedAt).toISOString(),
    blocked_reason: reason ?? null,
  };
}

function shownInAudit(id: string, user: UserRecord = {}): object {
  return { id, name: user.name ?? null, ...showState(user) };
}

function checkId(id: string): void {
  if (new RegExp(USER_ID_PATTERN).test(id)) return;
  throw new GatewayError(
    'invalid_request',
    'A user id must have 1 to 300 characters and no control characters, as in tokens and in "keys create --user".',
    { param: 'id' },
  );
}

function describe({ id, blocked_at, blocked_reason }: ShownUser): string {
  if (blocked_at === null) return `${id} is not blocked`;
  return `${id} is blocked since ${blocked_at}${blocked_reason ? ` (${blocked_reason})` : ''}`;
}
