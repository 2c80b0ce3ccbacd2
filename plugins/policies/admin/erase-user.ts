import { randomBytes } from 'node:crypto';
import {
  type AuditActor,
  GatewayError,
  type PersonOf,
  type PluginApi,
  type Route,
  type Subcommand,
  type UserRecord,
} from '../../../contract/index.ts';
import { auditActor, FOR_OPERATORS, USERS } from '../kit/index.ts';
import { printable } from '../kit/printable.ts';
import type { Action } from '../kit/resource.ts';

/** Result of an erasure, or of its dry run. */
interface Erasure {
  readonly object: 'erasure';
  readonly user_id: string;
  /** Id that replaces the name in sums, records and the audit log; null for a dry run. */
  readonly erased_id: string | null;
  /** True if data was only counted. */
  readonly dry_run: boolean;
  /** Counts by kind of data. */
  readonly erased: Readonly<Record<string, number>>;
  readonly stays: readonly { readonly what: string; readonly why: string }[];
}

type Stays = Erasure['stays'][number];

/** Data that stays without the name, as in `docs/security.md`. */
const RENAMED: Stays = Object.freeze({
  what: 'sums, balances, entries of the ledger, records of calls and the audit log, with a new id in place of the name',
  why: 'accounting data must not change; records are deleted after policies.accounts.keepCalls, the audit log after audit.keepFor',
});
/** Data that stays in a store that cannot replace names. */
const NAMED: Stays = Object.freeze({
  what: 'sums, balances, entries of the ledger and records of calls, with the name',
  why: 'this store cannot replace names',
});
const STAYS: Erasure['stays'] = Object.freeze([
  {
    what: 'data of an account whose name differs from the user',
    why: 'its user is unknown; it is deleted when it expires',
  },
  {
    what: 'responses of responseCache in the memory of each process',
    why: 'they have no user; they are deleted when they expire',
  },
  {
    what: 'the configuration, logs, notices, exported audit entries and traces, and backups',
    why: 'they are outside the store',
  },
]);

const ERASURE = {
  type: 'object',
  required: ['object', 'user_id', 'erased_id', 'dry_run', 'erased', 'stays'],
  properties: {
    object: { const: 'erasure' },
    user_id: { type: 'string' },
    erased_id: {
      type: ['string', 'null'],
      description: 'Id that replaces the name in sums, records of calls and the audit log; null for a dry run.',
    },
    dry_run: { type: 'boolean', description: 'True if data was only counted, not erased.' },
    erased: {
      type: 'object',
      additionalProperties: { type: 'integer' },
      description: 'Number of items by kind, such as `keys`.',
    },
    stays: {
      type: 'array',
      items: {
        type: 'object',
        required: ['what', 'why'],
        properties: { what: { type: 'string' }, why: { type: 'string' } },
      },
    },
  },
} as const;

const QUERY = {
  type: 'object',
  additionalProperties: false,
  properties: { yes: { enum: ['true', 'false'], description: '`true` erases. Default: data is only counted.' } },
} as const;

type Api = Pick<PluginApi, 'books' | 'operators'>;

/**
 * `DELETE /api/core/admin/users/{id}` and `tollgate users erase`: counts a user's stored data, and erases it if
 * requested.
 */
export function eraseAction(api: Api, checkId: (id: string) => void): Action {
  const run = async (id: string, isSure: boolean, actor: AuditActor): Promise<Erasure> => {
    checkId(id);
    const user = { userId: id, accounts: await accountsOf(api, id) };
    const stays = [api.books.ledger.rename ? RENAMED : NAMED, ...STAYS];
    const result = { object: 'erasure', user_id: id, stays } as const;
    if (!isSure) return { ...result, erased_id: null, dry_run: true, erased: await count(api, user) };
    const { erasedId, erased } = await erase(api, user);
    const author = actor.userId === id ? { ...actor, userId: erasedId } : actor;
    await api.operators.audit({ actor: author, action: 'user.erase', subject: erasedId, after: { erased } });
    return { ...result, erased_id: erasedId, dry_run: false, erased };
  };
  const route: Route = {
    ...FOR_OPERATORS,
    scope: 'users:erase',
    method: 'DELETE',
    path: '/api/core/admin/users/:id',
    summary: 'Count the stored data of a user; `yes=true` erases it',
    description: 'Revokes keys and ends sessions. The response lists remaining data and the reasons.',
    query: QUERY,
    responses: { 200: { description: 'Erased data, or data to be erased.', schema: ERASURE } },
    async handler(ctx) {
      const shown = await run(ctx.params['id'] ?? '', ctx.query['yes'] === 'true', auditActor(ctx));
      ctx.set('cache-control', 'no-store');
      ctx.body = shown;
    },
  };
  const subcommand: Subcommand = {
    name: 'erase',
    summary: 'Count the stored data of a user; --yes erases it',
    args: [{ name: '<id>', summary: 'user id, as in tokens or in "keys create --user"' }],
    options: [{ flags: '--yes', summary: 'confirm: keys are revoked and the data cannot be restored' }],
    async run({ args: [id = ''], options, io, actor }) {
      const erasure = await run(id, options['yes'] === true, actor);
      io.result(erasure, describe(erasure));
      if (erasure.dry_run)
        io.note(`Nothing was erased. To erase, run: tollgate users erase ${JSON.stringify(id)} --yes`);
    },
  };
  return { route, subcommand };
}

/** The user's own account, and all others that ever paid for the user. */
async function accountsOf({ books: { ledger } }: Pick<Api, 'books'>, userId: string): Promise<PersonOf['accounts']> {
  const rows = await ledger.report({ edges: [0, Date.now() + 1], by: ['account'], userId });
  return [...new Set([userId, ...rows.flatMap(({ account }) => account ?? [])])];
}

async function count(
  { operators: { allPersonalData }, books: { records } }: Api,
  user: PersonOf,
): Promise<Erasure['erased']> {
  const { value } = await records<UserRecord>(USERS).find(user.userId);
  const { erasedAs: _, ...known } = value ?? {};
  const counts: Record<string, number> = { records_of_the_user: Object.keys(known).length > 0 ? 1 : 0 };
  for (const data of allPersonalData()) counts[data.name] = (counts[data.name] ?? 0) + (await data.count(user));
  return counts;
}

/** Erases what is the user's alone, and replaces the name elsewhere. A repetition continues with the same id. */
async function erase(api: Api, user: PersonOf): Promise<{ erasedId: string; erased: Erasure['erased'] }> {
  const { operators, books } = api;
  const { userId } = user;
  const users = books.records<UserRecord>(USERS);
  // Count before any deletion: a session is also one of its account's stored documents.
  const erased = await count(api, user);
  const erasedId = await beginErasure(api, userId);
  for (const data of operators.allPersonalData()) await eraseOne(data, user);
  await books.ledger.rename?.(userId, erasedId);
  await operators.renameInAuditLog(userId, erasedId);
  // A blocked user stays blocked: erasure must not grant access. The record is under a hash of the name.
  await users.change(userId, ({ blockedAt } = {}) => (blockedAt === undefined ? {} : { blockedAt }));
  await users.unlist(userId);
  return { erasedId, erased };
}

/** Returns the id of this erasure; the one of an incomplete erasure before, except if its name has a new account since. */
async function beginErasure({ books: { ledger, records } }: Api, userId: string): Promise<string> {
  const users = records<UserRecord>(USERS);
  const { value: { erasedAs } = {} } = await users.find(userId);
  if (erasedAs !== undefined) {
    const [former, own] = await Promise.all([ledger.balance(erasedAs), ledger.balance(userId)]);
    if (former.updatedAt === 0 || own.updatedAt === 0) return erasedAs;
  }
  const id = `erased-${randomBytes(12).toString('base64url')}`;
  await users.change(userId, (user) => ({ ...user, erasedAs: id }));
  return id;
}

async function eraseOne(data: ReturnType<Api['operators']['allPersonalData']>[number], user: PersonOf): Promise<void> {
  try {
    await data.erase(user);
  } catch (cause) {
    throw new GatewayError(
      'store_unavailable',
      `Erasure is incomplete: the store could not delete ${data.name}. Try again; erased data is not counted twice.`,
      { retryAfterMs: 1000, cause },
    );
  }
}

function describe({ user_id, erased_id, dry_run, erased, stays }: Erasure): string {
  const lines = Object.entries(erased).map(
    ([name, count]) => `  ${String(count).padStart(6)}  ${name.replaceAll('_', ' ')}`,
  );
  return [
    `${dry_run ? 'To be erased' : 'Erased'} of ${printable(user_id)}:`,
    ...lines,
    ...(erased_id === null ? [] : [`Id in place of the name: ${erased_id}`]),
    'Remaining:',
    ...stays.map(({ what, why }) => `  ${what}; ${why}`),
  ].join('\n');
}
