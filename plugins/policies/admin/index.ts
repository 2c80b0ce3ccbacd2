import {
  type AuditActor,
  type AuditEntry,
  type AuditQuery,
  type Command,
  type CommandInput,
  definePlugin,
  GatewayError,
  isObject,
  type PluginApi,
  type Records,
  type Route,
  type RouteContext,
  type UserRecord,
} from '../../../core/index.ts';
import {
  auditActor,
  FOR_OPERATORS,
  listOf,
  matchVersion,
  PAGE_QUERY,
  readPage,
  sendList,
  sendVersion,
  USERS,
} from '../../../core/operators.ts';
import { printable } from '../kit/printable.ts';

const WORD = { type: 'string', minLength: 1, maxLength: 300 } as const;
const TIME = { type: 'string', maxLength: 40 } as const;
const MAX_LIMIT = 1000;
const DEFAULT_LIMIT = 50;
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

type LogApi = Pick<PluginApi, 'auditLog'>;
type Words = Readonly<Record<string, unknown>>;

/** `/api/core/admin/audit`: there is no route that changes it. */
function auditRoute({ auditLog }: LogApi): Route {
  return {
    ...FOR_OPERATORS,
    method: 'GET',
    path: '/api/core/admin/audit',
    summary: 'List what operators changed, newest first',
    description: 'A page that is not full may have a `next`: one search looks at a bounded number of entries.',
    query: {
      type: 'object',
      additionalProperties: false,
      properties: {
        ...PAGE_QUERY,
        subject: { ...WORD, description: 'What was changed: a key’s `tg_` prefix, a user, an account, a plan.' },
        actor: { ...WORD, description: 'Who: a user id, the id of a key, or console, cli, api.' },
        action: { ...WORD, description: 'An action such as `key.block`, or `key` for all of keys.' },
        from: { ...TIME, description: 'An instant such as 2026-11-20T12:00:00Z, or a day (UTC).' },
        to: { ...TIME, description: 'The first instant, or day, after the range.' },
      },
    },
    responses: { 200: { description: 'A page of changes.', schema: listOf(ENTRY) } },
    async handler(ctx) {
      const { limit, after, query } = readPage(ctx);
      const page = await auditLog({ ...readFilters(query), limit, ...(after !== undefined && { after }) });
      sendList(ctx, page.entries.map(showEntry), page.next);
    },
  };
}

/** `tollgate audit`. */
function auditCommand({ auditLog }: LogApi): Command {
  return {
    name: 'audit',
    summary: 'List what operators changed, newest first',
    changesStore: false,
    options: [
      { flags: '--subject <id>', summary: 'what was changed: tg_…, a user, an account, a plan' },
      { flags: '--actor <id>', summary: 'who: a user, the id of a key, or console, cli, api' },
      { flags: '--action <name>', summary: 'such as key.block, or key for all of keys' },
      { flags: '--from <time>', summary: 'a day (UTC) or an instant such as 2026-11-20T12:00:00Z' },
      { flags: '--to <time>', summary: 'the first day or instant after the range' },
      { flags: '--limit <n>', summary: `how many at most; ${DEFAULT_LIMIT} by default, up to ${MAX_LIMIT}` },
      { flags: '--after <id>', summary: 'goes on after this entry' },
    ],
    async run({ options, io }) {
      const { after } = options;
      const limit = readLimit(options['limit']);
      const page = await auditLog({ ...readFilters(options), limit, ...(typeof after === 'string' && { after }) });
      const data = page.entries.map(showEntry);
      const next = page.next === undefined ? {} : { next: page.next };
      const rows = page.entries.map(({ at, actor, action, subject, before, after: since }) => [
        new Date(at).toISOString(),
        printable([actor.via, actor.userId ?? actor.keyId].filter(Boolean).join(':'), MAX_SHOWN),
        action,
        printable(subject, MAX_SHOWN),
        printable(describeChange(before, since), MAX_SHOWN),
      ]);
      io.result(
        { object: 'list', data, has_more: page.next !== undefined, ...next },
        io.table(['TIME UTC', 'WHO', 'ACTION', 'SUBJECT', 'CHANGE'], rows),
      );
      if (page.next !== undefined) io.note(`There are more: --after ${page.next}`);
    },
  };
}

function showEntry({ id, at, actor, action, subject, before, after }: AuditEntry): object {
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
function describeChange(before: object | undefined, after: object | undefined): string {
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

function readLimit(text: unknown): number {
  if (text === undefined) return DEFAULT_LIMIT;
  if (typeof text === 'string' && /^[1-9]\d{0,3}$/.test(text) && Number(text) <= MAX_LIMIT) return Number(text);
  throw new GatewayError('invalid_request', `--limit is a whole number from 1 to ${MAX_LIMIT}.`, { param: 'limit' });
}

/** A user as the API shows it. Whoever a token or a key names is a user; nobody lists them. */
interface ShownUser {
  readonly object: 'user';
  readonly id: string;
  readonly blocked_at: string | null;
  readonly blocked_reason: string | null;
}

interface UserVersion {
  readonly version: number;
  readonly user: ShownUser;
}

/** What operators do with users, each change written down in the audit log. */
interface UserOperations {
  find(id: string): Promise<UserVersion>;
  /** Blocked twice is blocked since the first time. */
  block(actor: AuditActor, id: string, reason: string | undefined, expected?: number): Promise<UserVersion>;
  unblock(actor: AuditActor, id: string, expected?: number): Promise<UserVersion>;
}

/** What the user ids of keys and tokens are held to. */
const USER_ID = {
  type: 'string',
  minLength: 1,
  maxLength: 300,
  pattern: '^[^\\u0000-\\u001f\\u007f]+$',
} as const;

function createUserOperations(users: Records<UserRecord>, audit: PluginApi['audit']): UserOperations {
  const change = async (
    actor: AuditActor,
    action: string,
    id: string,
    make: (user: UserRecord) => UserRecord,
    expected: number | undefined,
  ): Promise<UserVersion> => {
    checkId(id);
    const { version, before, value } = await users.change(id, (user) => make(user ?? {}), expected);
    const user = showUser(id, value);
    await audit({ actor, action, subject: id, before: showUser(id, before), after: user });
    return { version, user };
  };
  return {
    async find(id) {
      checkId(id);
      const { version, value } = await users.find(id);
      return { version, user: showUser(id, value) };
    },
    block(actor, id, reason, expected) {
      const make = ({ blockedAt, ...user }: UserRecord): UserRecord => ({
        ...user,
        blockedAt: blockedAt ?? Date.now(),
        ...(reason !== undefined && { reason }),
      });
      return change(actor, 'user.block', id, make, expected);
    },
    unblock(actor, id, expected) {
      return change(actor, 'user.unblock', id, ({ blockedAt: _at, reason: _reason, ...user }) => user, expected);
    },
  };
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
  if (id.length >= USER_ID.minLength && id.length <= USER_ID.maxLength && new RegExp(USER_ID.pattern).test(id)) return;
  throw new GatewayError(
    'invalid_request',
    `A user id is a text of 1 to ${USER_ID.maxLength} characters without control characters, as in tokens and in "keys create --user".`,
    { param: 'id' },
  );
}

const PATH = '/api/core/admin/users/:id';

const TEXT_OR_NULL = { type: ['string', 'null'] } as const;
const USER_SCHEMA = {
  type: 'object',
  required: ['object', 'id', 'blocked_at', 'blocked_reason'],
  properties: {
    object: { const: 'user' },
    id: { type: 'string' },
    blocked_at: { ...TEXT_OR_NULL, description: 'Since when; ISO 8601.' },
    blocked_reason: TEXT_OR_NULL,
  },
} as const;

const BLOCK_BODY = {
  type: 'object',
  additionalProperties: false,
  properties: {
    reason: {
      type: 'string',
      maxLength: 200,
      pattern: '^[^\\u0000-\\u001f\\u007f]*$',
      description: 'Why; shown to operators.',
    },
  },
} as const;
const NO_BODY = { type: 'object', additionalProperties: false, properties: {} } as const;

/** `/api/core/admin/users/:id`: anyone whom a key or token names; an id with a slash is sent as `%2F`. */
function userRoutes(operations: UserOperations): readonly Route[] {
  const responses = { 200: { description: 'The user, with its version as ETag.', schema: USER_SCHEMA } };
  const write = (
    word: string,
    summary: string,
    body: object,
    act: (ctx: RouteContext<unknown>, id: string, expected: number | undefined) => Promise<UserVersion>,
  ): Route => ({
    ...{ ...FOR_OPERATORS, method: 'POST', path: `${PATH}/${word}`, summary, body, bodyOptional: true, responses },
    async handler(ctx) {
      const id = idOf(ctx);
      const { version } = await operations.find(id);
      send(ctx, await act(ctx, id, matchVersion(ctx, version) ? version : undefined));
    },
  });
  return [
    {
      ...{ ...FOR_OPERATORS, method: 'GET', path: PATH, summary: 'Show whether a user is blocked', responses },
      async handler(ctx) {
        send(ctx, await operations.find(idOf(ctx)));
      },
    },
    write('block', 'Block a user, with all keys and tokens, until unblocked', BLOCK_BODY, (ctx, id, expected) => {
      const { reason } = (ctx.state.body ?? {}) as { readonly reason?: string };
      return operations.block(auditActor(ctx), id, reason, expected);
    }),
    write('unblock', 'Unblock a user', NO_BODY, (ctx, id, expected) =>
      operations.unblock(auditActor(ctx), id, expected),
    ),
  ];
}

function send(ctx: RouteContext<unknown>, { version, user }: UserVersion): void {
  sendVersion(ctx, version, user);
}

function idOf({ params }: Pick<RouteContext<unknown>, 'params'>): string {
  return params['id'] ?? '';
}

const USER = { name: '<id>', summary: 'the user id, as in the tokens or in "keys create --user"' } as const;
const WITHIN = 'gateways that run know it within five seconds';

/** `tollgate users`: whom a key or a token names. */
function userCommand(operations: UserOperations): Command {
  return {
    name: 'users',
    summary: 'Show, block and unblock users',
    subcommands: [
      {
        name: 'show',
        summary: 'Show whether a user is blocked',
        args: [USER],
        async run({ args, io }) {
          const { user } = await operations.find(args[0] ?? '');
          io.result(user, describe(user));
          io.note('Their keys: "tollgate keys list --user <id>"; their account: "tollgate accounts show <id>".');
        },
      },
      {
        name: 'block',
        summary: 'Refuse a user, with all keys and tokens, until unblocked',
        args: [USER],
        options: [{ flags: '--reason <text>', summary: 'why; shown to operators' }],
        async run({ args, options, io, actor }) {
          const { user } = await operations.block(actor, args[0] ?? '', readReason(options));
          io.result(user, `${describe(user)}; ${WITHIN}`);
        },
      },
      {
        name: 'unblock',
        summary: 'Let a blocked user in again',
        args: [USER],
        async run({ args, io, actor }) {
          const { user } = await operations.unblock(actor, args[0] ?? '');
          io.result(user, `${describe(user)}; ${WITHIN}`);
        },
      },
    ],
  };
}

function describe({ id, blocked_at, blocked_reason }: ShownUser): string {
  if (blocked_at === null) return `${id} is not blocked`;
  return `${id} is blocked since ${blocked_at}${blocked_reason ? ` (${blocked_reason})` : ''}`;
}

function readReason({ reason }: CommandInput['options']): string | undefined {
  if (typeof reason !== 'string') return undefined;
  if (reason.length <= 200 && !/\p{Cc}/u.test(reason)) return reason;
  throw new GatewayError('invalid_request', '--reason is a line of up to 200 characters.', { param: 'reason' });
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
    const operations = createUserOperations(api.records<UserRecord>(USERS), api.audit);
    for (const route of userRoutes(operations)) api.route(route);
    api.route(auditRoute(api));
    api.command(userCommand(operations));
    api.command(auditCommand(api));
  },
});
