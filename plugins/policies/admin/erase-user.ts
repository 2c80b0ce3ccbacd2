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

/** What was erased of a user, or would be. */
interface Erasure {
  readonly object: 'erasure';
  readonly user_id: string;
  /** Whether nothing was erased, only counted. */
  readonly dry_run: boolean;
  /** How many, by what they are. */
  readonly erased: Readonly<Record<string, number>>;
  readonly stays: readonly { readonly what: string; readonly why: string }[];
}

/** What is kept also of who was erased; `docs/security.md` says the same. */
const STAYS: Erasure['stays'] = Object.freeze([
  {
    what: 'entries of the ledger, records and sums of calls: the id of the user and of the account, names of sessions, messages of errors, models, times, amounts',
    why: 'accounting data must not change; records are deleted after policies.accounts.keepCalls',
  },
  {
    what: 'entries of the audit log',
    why: 'they prove the actions of operators; they are deleted after audit.keepFor',
  },
  {
    what: 'data of an account whose name differs from the user',
    why: 'its user is unknown; it is deleted when it expires',
  },
  {
    what: 'responses of responseCache in the memory of each process',
    why: 'they have no user; they are deleted when they expire',
  },
]);

const ERASURE = {
  type: 'object',
  required: ['object', 'user_id', 'dry_run', 'erased', 'stays'],
  properties: {
    object: { const: 'erasure' },
    user_id: { type: 'string' },
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

type Api = Pick<PluginApi, 'records' | 'ledger' | 'allPersonalData' | 'audit'>;

/** `DELETE /api/core/admin/users/{id}` and `tollgate users erase`: counts what is kept of a user, and erases it when told to. */
export function eraseAction(api: Api, checkId: (id: string) => void): Action {
  const run = async (id: string, isSure: boolean, actor: AuditActor): Promise<Erasure> => {
    checkId(id);
    const user = { userId: id, accounts: await accountsOf(api, id) };
    const erased = isSure ? await erase(api, user) : await count(api, user);
    if (isSure) await api.audit({ actor, action: 'user.erase', subject: id, after: { erased } });
    return { object: 'erasure', user_id: id, dry_run: !isSure, erased, stays: STAYS };
  };
  const route: Route = {
    ...{ ...FOR_OPERATORS, scope: 'users:erase', method: 'DELETE', path: '/api/core/admin/users/:id' },
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

/** Their own account, and all others that ever paid for them. */
async function accountsOf({ ledger }: Pick<Api, 'ledger'>, userId: string): Promise<PersonOf['accounts']> {
  const rows = await ledger.report({ edges: [0, Date.now() + 1], by: ['account'], userId });
  return [...new Set([userId, ...rows.flatMap(({ account }) => account ?? [])])];
}

async function count({ allPersonalData, records }: Api, user: PersonOf): Promise<Erasure['erased']> {
  const { value } = await records<UserRecord>(USERS).find(user.userId);
  const counts: Record<string, number> = { records_of_the_user: value && Object.keys(value).length > 0 ? 1 : 0 };
  for (const data of allPersonalData()) counts[data.name] = (counts[data.name] ?? 0) + (await data.count(user));
  return counts;
}

async function erase(api: Api, user: PersonOf): Promise<Erasure['erased']> {
  const users = api.records<UserRecord>(USERS);
  // Before any of it goes: a session is also one of the documents that its account keeps.
  const counts = await count(api, user);
  for (const data of api.allPersonalData()) await eraseOne(data, user);
  const { value } = await users.find(user.userId);
  // Who is blocked stays so: nobody gets in by being erased.
  if (value && Object.keys(value).some((name) => name !== 'blockedAt'))
    await users.change(user.userId, ({ blockedAt } = {}) => (blockedAt === undefined ? {} : { blockedAt }));
  await users.unlist(user.userId);
  return counts;
}

async function eraseOne(data: ReturnType<Api['allPersonalData']>[number], user: PersonOf): Promise<void> {
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

function describe({ user_id, dry_run, erased, stays }: Erasure): string {
  const lines = Object.entries(erased).map(
    ([name, count]) => `  ${String(count).padStart(6)}  ${name.replaceAll('_', ' ')}`,
  );
  return [
    `${dry_run ? 'To be erased' : 'Erased'} of ${printable(user_id)}:`,
    ...lines,
    'Remaining:',
    ...stays.map(({ what, why }) => `  ${what}; ${why}`),
  ].join('\n');
}
