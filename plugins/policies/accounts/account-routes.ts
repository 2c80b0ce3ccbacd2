import type { PluginConfig, Route, RouteContext } from '../../../core/index.ts';
import {
  auditActor,
  FOR_OPERATORS,
  listOf,
  matchVersion,
  PAGE_QUERY,
  readPage,
  sendList,
  sendVersion,
} from '../../../core/operators.ts';
import type { AccountOperations } from './account-operations.ts';

const PATH = '/api/core/admin/accounts';
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

/** `/api/core/admin/accounts`: what operators do with accounts. An id with a slash is sent as `%2F`. */
export function adminAccountRoutes(operations: AccountOperations): readonly Route[] {
  const show: Route = {
    ...{ ...FOR_OPERATORS, method: 'GET', path: `${PATH}/:id`, summary: 'Show an account with its newest entries' },
    responses: {
      200: {
        description: 'The account; its ETag is the version of its plan.',
        schema: { ...ACCOUNT, properties: { ...ACCOUNT_FIELDS, entries: { type: 'array', items: ENTRY } } },
      },
    },
    async handler(ctx) {
      const { version, account, entries } = await operations.show(idOf(ctx));
      sendVersion(ctx, version, { ...account, entries });
    },
  };
  const list: Route = {
    ...{ ...FOR_OPERATORS, method: 'GET', path: PATH, summary: 'List accounts that were ever credited or charged' },
    query: { type: 'object', additionalProperties: false, properties: PAGE_QUERY },
    responses: { 200: { description: 'A page of accounts.', schema: listOf(ACCOUNT) } },
    async handler(ctx) {
      const { limit, after } = readPage(ctx);
      const { accounts, next } = await operations.list({ limit, ...(after !== undefined && { after }) });
      sendList(ctx, accounts, next);
    },
  };
  return [list, show, creditRoute(operations), planRoute(operations)];
}

function creditRoute(operations: AccountOperations): Route {
  return {
    ...{ ...FOR_OPERATORS, method: 'POST', path: `${PATH}/:id/credit`, summary: 'Add money to an account' },
    body: CREDIT_BODY,
    responses: { 200: { description: 'The account since.', schema: CREDITED } },
    async handler(ctx) {
      const { amount_usd, id, reason } = ctx.state.body as PluginConfig<typeof CREDIT_BODY>;
      const credited = await operations.credit(auditActor(ctx), idOf(ctx), { amount: amount_usd, id, reason });
      ctx.set('cache-control', 'no-store');
      ctx.body = credited;
    },
  };
}

function planRoute(operations: AccountOperations): Route {
  return {
    ...{ ...FOR_OPERATORS, method: 'PUT', path: `${PATH}/:id/plan`, summary: 'Give an account a plan' },
    description: 'It holds on every node within five seconds, unless its keys or tokens name another.',
    body: PLAN_BODY,
    responses: { 200: { description: 'The account since.', schema: ACCOUNT } },
    async handler(ctx) {
      const id = idOf(ctx);
      const { plan } = ctx.state.body as PluginConfig<typeof PLAN_BODY>;
      const { version } = await operations.find(id);
      const expected = matchVersion(ctx, version) ? version : undefined;
      const changed = await operations.setPlan(auditActor(ctx), id, plan ?? null, expected);
      sendVersion(ctx, changed.version, changed.account);
    },
  };
}

function idOf({ params }: Pick<RouteContext<unknown>, 'params'>): string {
  return params['id'] ?? '';
}
