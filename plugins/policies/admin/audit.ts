import {
  type AuditEntry,
  type AuditQuery,
  type Command,
  GatewayError,
  isObject,
  type PluginApi,
  type Route,
} from '../../../core/index.ts';
import { FOR_OPERATORS, listOf, PAGE_QUERY, readPage, sendList } from '../../../core/operators.ts';
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
export function auditRoute({ auditLog }: LogApi): Route {
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
export function auditCommand({ auditLog }: LogApi): Command {
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
