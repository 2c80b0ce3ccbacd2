import {
  type AuditEntry,
  type AuditQuery,
  definePlugin,
  GatewayError,
  isObject,
  type PluginApi,
  type UserRecord,
} from '../../../core/index.ts';
import { USERS } from '../kit/index.ts';
import { printable } from '../kit/printable.ts';
import {
  type Action,
  listAction,
  REASON_BODY,
  REASON_OPTION,
  type Resource,
  readReason,
  resource,
  WITHIN,
} from '../kit/resource.ts';

const WORD = { type: 'string', minLength: 1, maxLength: 300 } as const;
const TIME = { type: 'string', maxLength: 40 } as const;
/** The longest text in a column of the command's table. */
const MAX_SHOWN = 160;

const ENTRY = {
  type: 'object',
  required: ['id', 'at', 'actor', 'action', 'subject', 'before', 'after'],
  properties: {
    id: { type: 'string' },
    at: { type: 'string', description: 'ISO 8601.' },
    actor: {
      type: 'object',
      required: ['via', 'user_id', 'key_id', 'address'],
      properties: {
        via: { enum: ['api', 'cli', 'console'] },
        user_id: { type: ['string', 'null'] },
        key_id: { type: ['string', 'null'] },
        address: { type: ['string', 'null'] },
      },
    },
    action: { type: 'string', description: 'Such as `key.block`.' },
    subject: { type: 'string', description: 'Such as `tg_Q0sdw7kGLtpz` or a user id.' },
    before: { type: ['object', 'null'] },
    after: { type: ['object', 'null'] },
  },
} as const;

type Words = Readonly<Record<string, unknown>>;

/** `/api/core/admin/audit` and `tollgate audit`: there is no way to change it. */
function auditLog({ auditLog: readLog }: Pick<PluginApi, 'auditLog'>): Required<Action> {
  return listAction('/api/core/admin/audit', {
    http: {
      summary: 'List what operators changed, newest first',
      description: 'A page that is not full may have a `next`: one search looks at a bounded number of entries.',
      response: 'A page of changes.',
      schema: ENTRY,
      filters: {
        subject: { ...WORD, description: 'What was changed: a key’s `tg_` prefix, a user, an account, a plan.' },
        actor: { ...WORD, description: 'Who: a user id, the id of a key, or console, cli, api.' },
        action: { ...WORD, description: 'An action such as `key.block`, or `key` for all of keys.' },
        from: { ...TIME, description: 'An instant such as 2026-11-20T12:00:00Z, or a day (UTC).' },
        to: { ...TIME, description: 'The first instant, or day, after the range.' },
      },
    },
    async read({ limit, after, filters }) {
      const { entries, next } = await readLog({
        ...readFilters(filters),
        limit,
        ...(after !== undefined && { after }),
      });
      return { rows: entries.map(showEntry), next };
    },
    cli: {
      options: [
        { flags: '--subject <id>', summary: 'what was changed: tg_…, a user, an account, a plan' },
        { flags: '--actor <id>', summary: 'who: a user, the id of a key, or console, cli, api' },
        { flags: '--action <name>', summary: 'such as key.block, or key for all of keys' },
        { flags: '--from <time>', summary: 'a day (UTC) or an instant such as 2026-11-20T12:00:00Z' },
        { flags: '--to <time>', summary: 'the first day or instant after the range' },
      ],
      page: { after: '--after <id>', one: 'entry', first: 50, most: 1000 },
      columns: [
        ['TIME UTC', ({ at }) => at],
        [
          'WHO',
          ({ actor: { via, user_id, key_id } }) =>
            printable([via, user_id ?? key_id].filter(Boolean).join(':'), MAX_SHOWN),
        ],
        ['ACTION', ({ action }) => action],
        ['SUBJECT', ({ subject }) => printable(subject, MAX_SHOWN)],
        ['CHANGE', ({ before, after }) => printable(describeChange(before, after), MAX_SHOWN)],
      ],
    },
  });
}

function showEntry({ id, at, actor, action, subject, before, after }: AuditEntry) {
  const { via, userId = null, keyId = null, address = null } = actor;
  const who = { via, user_id: userId, key_id: keyId, address };
  return {
    id,
    at: new Date(at).toISOString(),
    actor: who,
    action,
    subject,
    before: before ?? null,
    after: after ?? null,
  };
}

/** What is different since, as `rpm 60 -> 120`. */
function describeChange(before: object | null, after: object | null): string {
  const was: Words = isObject(before) ? { ...before } : {};
  const is: Words = isObject(after) ? { ...after } : {};
  const names = [...new Set([...Object.keys(was), ...Object.keys(is)])];
  const changed = names.filter((name) => JSON.stringify(was[name] ?? null) !== JSON.stringify(is[name] ?? null));
  return changed
    .map((name) => (before ? `${name} ${show(was[name])} -> ${show(is[name])}` : `${name} ${show(is[name])}`))
    .join(', ');
}

function show(value: unknown): string {
  if (value === undefined || value === null || value === '') return '-';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function readFilters(words: Words): Omit<AuditQuery, 'limit' | 'after'> {
  const text = (name: string): Readonly<Record<string, string>> => {
    const value = words[name];
    return typeof value === 'string' ? { [name]: value } : {};
  };
  const [from, to] = [readTime(words['from'], 'from'), readTime(words['to'], 'to')];
  if (from !== undefined && to !== undefined && from >= to)
    throw new GatewayError('invalid_request', '"from" must be before "to".', { param: 'from' });
  return {
    ...{ ...text('subject'), ...text('actor'), ...text('action') },
    ...{ ...(from !== undefined && { from }), ...(to !== undefined && { to }) },
  };
}

const INSTANT = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?(?:Z|[+-]\d{2}:\d{2}))?$/;

function readTime(text: unknown, param: string): number | undefined {
  if (typeof text !== 'string') return undefined;
  const time = INSTANT.test(text) ? Date.parse(text) : Number.NaN;
  if (time >= 0) return time;
  throw new GatewayError(
    'invalid_request',
    `"${param}" is neither a day such as 2026-11-20 nor an instant with a time zone such as 2026-11-20T12:00:00Z.`,
    { param },
  );
}

/** A user as the API shows it. Whoever a token or a key names is a user; there is no list of them. */
interface ShownUser {
  readonly object: 'user';
  readonly id: string;
  readonly blocked_at: string | null;
  readonly blocked_reason: string | null;
}

/** What the user ids of keys and tokens are held to. */
const USER_ID_PATTERN = '^[^\\u0000-\\u001f\\u007f]{1,300}$';

const TEXT_OR_NULL = { type: ['string', 'null'] } as const;
const USER = {
  type: 'object',
  required: ['object', 'id', 'blocked_at', 'blocked_reason'],
  properties: {
    object: { const: 'user' },
    id: { type: 'string' },
    blocked_at: { ...TEXT_OR_NULL, description: 'Since when; ISO 8601.' },
    blocked_reason: TEXT_OR_NULL,
  },
} as const;

/** `/api/core/admin/users` and `tollgate users`; an id with a slash is sent as `%2F`. */
function registerUsers(api: PluginApi): void {
  const users = api.records<UserRecord>(USERS);
  const change = async (id: string, make: (user: UserRecord) => UserRecord, expected: number | undefined) => {
    const { version, before, value } = await users.change(id, (user) => make(user ?? {}), expected);
    const after = showUser(id, value);
    return { version, before: showUser(id, before), after, show: () => after };
  };
  const table: Resource<ShownUser, number> = {
    ...{ name: 'user', path: '/api/core/admin/users', id: 'id', schema: USER },
    response: 'The user, with its version as ETag.',
    command: {
      name: 'users',
      summary: 'Show, block and unblock users',
      id: { name: '<id>', summary: 'the user id, as in the tokens or in "keys create --user"' },
    },
    async find(id) {
      checkId(id);
      const { version, value } = await users.find(id);
      return { version, value: showUser(id, value) };
    },
  };
  resource(api, table, (make) => [
    make.show({
      http: { summary: 'Show whether a user is blocked' },
      show: (user) => user,
      cli: {
        text: describe,
        note: () => 'Their keys: "tollgate keys list --user <id>"; their account: "tollgate accounts show <id>".',
      },
    }),
    make.change({
      word: 'block',
      http: {
        summary: 'Block a user, with all keys and tokens, until unblocked',
        ...{ body: REASON_BODY, bodyOptional: true },
      },
      // Blocked twice is blocked since the first time.
      apply: ({ id, body: { reason }, expected, now }) =>
        change(
          id,
          (user) => ({ ...user, blockedAt: user.blockedAt ?? now, ...(reason !== undefined && { reason }) }),
          expected,
        ),
      cli: {
        summary: 'Refuse a user, with all keys and tokens, until unblocked',
        options: [REASON_OPTION],
        read: readReason,
        text: (user) => `${describe(user)}; ${WITHIN}`,
      },
    }),
    make.change({
      word: 'unblock',
      http: { summary: 'Unblock a user' },
      apply: ({ id, expected }) => change(id, ({ blockedAt: _at, reason: _reason, ...user }) => user, expected),
      cli: { summary: 'Let a blocked user in again', text: (user) => `${describe(user)}; ${WITHIN}` },
    }),
  ]);
}

function showUser(id: string, { blockedAt, reason }: UserRecord = {}): ShownUser {
  return {
    object: 'user',
    id,
    blocked_at: blockedAt === undefined ? null : new Date(blockedAt).toISOString(),
    blocked_reason: reason ?? null,
  };
}

function checkId(id: string): void {
  if (new RegExp(USER_ID_PATTERN).test(id)) return;
  throw new GatewayError(
    'invalid_request',
    'A user id is a text of 1 to 300 characters without control characters, as in tokens and in "keys create --user".',
    { param: 'id' },
  );
}

function describe({ id, blocked_at, blocked_reason }: ShownUser): string {
  if (blocked_at === null) return `${id} is not blocked`;
  return `${id} is blocked since ${blocked_at}${blocked_reason ? ` (${blocked_reason})` : ''}`;
}

/** What operators do with users, and the log of what operators did: over the admin API and on the command line. */
export default definePlugin({
  name: 'admin',
  kind: 'policy',
  apiVersion: 1,
  commands: [
    { name: 'users', summary: 'Show, block and unblock users' },
    { name: 'audit', summary: 'List what operators changed' },
  ],
  configSchema: { type: 'object', additionalProperties: false },
  setup(api) {
    registerUsers(api);
    const { route, subcommand } = auditLog(api);
    api.route(route);
    api.command({ ...subcommand, name: 'audit', changesStore: false });
  },
});
