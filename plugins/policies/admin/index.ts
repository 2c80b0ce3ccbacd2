import { type AuditQuery, definePlugin, GatewayError, isObject, type PluginApi } from '../../../contract/index.ts';
import { auditActor, createRefusals } from '../kit/index.ts';
import { printable } from '../kit/printable.ts';
import { type Action, listAction } from '../kit/resource.ts';
import { showEntry } from './audit-entry.ts';
import { AUDIT_EXPORT, startAuditExport } from './audit-export.ts';
import { draftRoutes } from './config-drafts.ts';
import { gatewayRoutes } from './gateway-routes.ts';
import { registerNodes } from './nodes.ts';
import { registerTargetOrders } from './target-orders.ts';
import { registerUsers } from './users.ts';

const WORD = { type: 'string', minLength: 1, maxLength: 300 } as const;
const TIME = { type: 'string', maxLength: 40 } as const;
/** Longest text in a column of the command's table. */
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
        via: { enum: ['api', 'cli', 'console', 'file'] },
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

/** `/api/core/admin/audit` and `tollgate audit`: the log is read only. */
function auditLog({ operators: { auditLog: readLog } }: Pick<PluginApi, 'operators'>): Required<Action> {
  return listAction(
    { path: '/api/core/admin/audit', scope: 'audit:read' },
    {
      http: {
        summary: 'List changes by operators, newest first',
        description: 'A page that is not full may have a `next`, since one search checks a limited number of entries.',
        response: 'Page of changes.',
        schema: ENTRY,
        filters: {
          subject: { ...WORD, description: 'Changed object: a key’s `tg_` prefix, a user, an account, a plan.' },
          actor: { ...WORD, description: 'Actor: a user id, the id of a key, or console, cli, api.' },
          action: { ...WORD, description: 'Action such as `key.block`, or `key` for all actions on keys.' },
          from: { ...TIME, description: 'Start: an instant such as 2026-11-20T12:00:00Z, or a day (UTC).' },
          to: { ...TIME, description: 'End, exclusive: an instant or a day.' },
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
          { flags: '--subject <id>', summary: 'changed object: tg_…, a user, an account, a plan' },
          { flags: '--actor <id>', summary: 'actor: a user, the id of a key, or console, cli, api' },
          { flags: '--action <name>', summary: 'action such as key.block, or key for all actions on keys' },
          { flags: '--from <time>', summary: 'start: a day (UTC) or an instant such as 2026-11-20T12:00:00Z' },
          { flags: '--to <time>', summary: 'end, exclusive: a day or an instant' },
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
    },
  );
}

/** Changed values, such as `rpm 60 -> 120`. */
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
    ...text('subject'),
    ...text('actor'),
    ...text('action'),
    ...(from !== undefined && { from }),
    ...(to !== undefined && { to }),
  };
}

const INSTANT = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?(?:Z|[+-]\d{2}:\d{2}))?$/;

function readTime(text: unknown, param: string): number | undefined {
  if (typeof text !== 'string') return undefined;
  const time = INSTANT.test(text) ? Date.parse(text) : Number.NaN;
  if (time >= 0) return time;
  throw new GatewayError(
    'invalid_request',
    `"${param}" must be a day such as 2026-11-20 or an instant with a time zone such as 2026-11-20T12:00:00Z.`,
    { param },
  );
}

/** Route for signing in at the console with a key. */
const SIGN_IN = 'POST /api/core/admin/console/session';

/** Writes refusals to the audit log: on operator routes including the metrics, and on signing in at the console. */
function recordRefusals(api: PluginApi): void {
  const note = createRefusals(api);
  api.operators.watchRefusals(({ error: { code, refusedBy }, route, ip, principal }) => {
    // A request without a credential is not an attempt.
    if (code === 'missing_api_key') return;
    const isSignIn = route === SIGN_IN;
    note({
      actor: principal ? auditActor({ state: { principal, ip } }) : { via: isSignIn ? 'console' : 'api', address: ip },
      ...(isSignIn ? { action: 'session.refused', subject: 'console' } : { action: 'admin.refused', subject: route }),
      code,
      lacking: refusedBy,
    });
  });
}

/** Operator functions for the gateway itself and for users, and the log of operators' actions. */
export default definePlugin({
  name: 'admin',
  kind: 'policy',
  apiVersion: 1,
  permissions: ['ledger', 'records', 'operators'],
  commands: [
    { name: 'users', summary: 'List, block, unblock and erase users' },
    { name: 'target', summary: 'Drain a target or reset its health' },
    { name: 'audit', summary: 'List changes by operators' },
  ],
  configSchema: { type: 'object', additionalProperties: false, properties: { auditExport: AUDIT_EXPORT } },
  setup(api, { auditExport }) {
    const { readFacts, findOthers } = registerNodes(api);
    for (const each of gatewayRoutes(api, readFacts)) api.route(each);
    for (const each of draftRoutes(api, findOthers)) api.route(each);
    registerUsers(api);
    registerTargetOrders(api);
    recordRefusals(api);
    startAuditExport(api, auditExport);
    const { route, subcommand } = auditLog(api);
    api.route(route);
    api.command({ ...subcommand, name: 'audit', changesStore: false });
  },
});
