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
  /** True if data was only counted. */
  readonly dry_run: boolean;
  /** Counts by kind of data. */
  readonly erased: Readonly<Record<string, number>>;
  readonly stays: readonly { readonly what: string; readonly why: string }[];
}

/** Data that is kept even for an erased user, as in `docs/security.md`. */
const STAYS: Erasure['stays'] = Object.freeze([
  {
    what: 'entries of the ledger, records and sums of calls: the id of the user and of the account, names of sessions, messages of errors, models, times, amounts',
    why: 'they are the books, which must not change; records go by themselves after policies.accounts.keepCalls',
  },
  {
    what: 'entries of the audit log',
    why: 'they prove what operators did; they go by themselves after audit.keepFor',
  },
  {
    what: 'what an account keeps that is named otherwise than the user',
    why: 'it is not known whose of its users it is; it goes by itself, by its own time',
  },
  {
    what: 'responses that responseCache keeps in the memory of each process',
    why: 'they have no user; they go by themselves, by their own time',
  },
]);

const ERASURE = {
  type: 'object',
  required: ['object', 'user_id', 'dry_run', 'erased', 'stays'],
  properties: {
    object: { const: 'erasure' },
    user_id: { type: 'string' },
    dry_run: { type: 'boolean', description: 'True where nothing was erased, only counted.' },
    erased: {
      type: 'object',
      additionalProperties: { type: 'integer' },
      description: 'How many, by what they are, such as `keys`.',
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
  properties: { yes: { enum: ['true', 'false'], description: '`true` erases; without it is only counted.' } },
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
    const erased = isSure ? await erase(api, user) : await count(api, user);
    if (isSure) await api.operators.audit({ actor, action: 'user.erase', subject: id, after: { erased } });
    return { object: 'erasure', user_id: id, dry_run: !isSure, erased, stays: STAYS };
  };
  const route: Route = {
    ...{ ...FOR_OPERATORS, scope: 'users:erase', method: 'DELETE', path: '/api/core/admin/users/:id' },
    summary: 'Count what is kept of a user, and with `yes=true` erase it',
    description: 'Keys stop working, sessions end. What stays, and why, is in the response.',
    query: QUERY,
    responses: { 200: { description: 'What was erased, or would be.', schema: ERASURE } },
    async handler(ctx) {
      const shown = await run(ctx.params['id'] ?? '', ctx.query['yes'] === 'true', auditActor(ctx));
      ctx.set('cache-control', 'no-store');
      ctx.body = shown;
    },
  };
  const subcommand: Subcommand = {
    name: 'erase',
    summary: 'Count what is kept of a user, and with --yes erase it',
    args: [{ name: '<id>', summary: 'the user id, as in the tokens or in "keys create --user"' }],
    options: [{ flags: '--yes', summary: 'really: keys stop working, and nothing of it can be brought back' }],
    async run({ args: [id = ''], options, io, actor }) {
      const erasure = await run(id, options['yes'] === true, actor);
      io.result(erasure, describe(erasure));
      if (erasure.dry_run) io.note(`Nothing was erased. Do it with: tollgate users erase ${JSON.stringify(id)} --yes`);
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
  const counts: Record<string, number> = { records_of_the_user: value && Object.keys(value).length > 0 ? 1 : 0 };
  for (const data of allPersonalData()) counts[data.name] = (counts[data.name] ?? 0) + (await data.count(user));
  return counts;
}

async function erase(api: Api, user: PersonOf): Promise<Erasure['erased']> {
  const users = api.books.records<UserRecord>(USERS);
  // Count before any deletion: a session is also one of its account's stored documents.
  const counts = await count(api, user);
  for (const data of api.operators.allPersonalData()) await eraseOne(data, user);
  const { value } = await users.find(user.userId);
  // A blocked user stays blocked: erasure must not grant access.
  if (value && Object.keys(value).some((name) => name !== 'blockedAt'))
    await users.change(user.userId, ({ blockedAt } = {}) => (blockedAt === undefined ? {} : { blockedAt }));
  await users.unlist(user.userId);
  return counts;
}

async function eraseOne(data: ReturnType<Api['operators']['allPersonalData']>[number], user: PersonOf): Promise<void> {
  try {
    await data.erase(user);
  } catch (cause) {
    throw new GatewayError(
      'store_unavailable',
      `Not all was erased: the store did not take the removal of ${data.name}. Do it again; what is gone is not counted twice.`,
      { retryAfterMs: 1000, cause },
    );
  }
}

function describe({ user_id, dry_run, erased, stays }: Erasure): string {
  const lines = Object.entries(erased).map(
    ([name, count]) => `  ${String(count).padStart(6)}  ${name.replaceAll('_', ' ')}`,
  );
  return [
    `${dry_run ? 'To be erased' : 'Erased'} of ${printable(user_id)}:`,
    ...lines,
    'What stays:',
    ...stays.map(({ what, why }) => `  ${what}; ${why}`),
  ].join('\n');
}
