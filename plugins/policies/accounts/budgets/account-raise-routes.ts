import type { PluginConfig, Route, RouteContext } from '../../../../core/index.ts';
import { auditActor, FOR_OPERATORS, listOf, sendList } from '../../../../core/operators.ts';
import { type AccountRaises, showRaise } from './account-raises.ts';
import { RAISE_FIELDS, RAISES_SHOWN } from './view.ts';

const PATH = '/api/core/admin/accounts/:id/raises';
const BUDGET = { type: 'string', minLength: 1, maxLength: 63, description: 'A budget of the account’s plan.' } as const;

const RAISE_BODY = {
  type: 'object',
  additionalProperties: false,
  required: ['budget', 'amount_usd', 'until'],
  properties: { budget: BUDGET, ...RAISE_FIELDS },
} as const;

const END_QUERY = {
  type: 'object',
  additionalProperties: false,
  required: ['budget'],
  properties: { budget: BUDGET },
} as const;

const TEXT = { type: 'string' } as const;
const RAISED = {
  type: 'object',
  required: ['account', 'budget', 'raised', 'raises'],
  properties: {
    ...{ account: TEXT, budget: TEXT },
    raised: { type: 'string', description: 'What its raises add at the moment, US dollars as a decimal string.' },
    raises: RAISES_SHOWN,
  },
} as const;

/** `/api/core/admin/accounts/{id}/raises`: what one account may spend beyond a budget of its plan, for a while. */
export function accountRaiseRoutes(raises: AccountRaises): readonly Route[] {
  const responses = { 200: { description: 'The raises of this budget since.', schema: RAISED } };
  const list: Route = {
    ...{ ...FOR_OPERATORS, method: 'GET', path: PATH, summary: 'List the raises of an account that run' },
    responses: { 200: { description: 'All of them, by budget.', schema: listOf(RAISED) } },
    handler: async (ctx) => sendList(ctx, (await raises.list(idOf(ctx))).map(showRaise), undefined),
  };
  const raise: Route = {
    ...{ ...FOR_OPERATORS, method: 'POST', path: PATH, summary: 'Raise a budget of an account’s plan for a while' },
    description: 'For this account alone. Until its end it adds to the amount of each period.',
    body: RAISE_BODY,
    responses,
    async handler(ctx) {
      const { budget, ...values } = ctx.state.body as PluginConfig<typeof RAISE_BODY>;
      send(ctx, showRaise(await raises.raise(auditActor(ctx), idOf(ctx), budget, values)));
    },
  };
  const end: Route = {
    ...{ ...FOR_OPERATORS, method: 'DELETE', path: PATH, summary: 'End the raises of a budget for an account' },
    query: END_QUERY,
    responses,
    async handler(ctx) {
      const budget = String(ctx.query['budget']);
      send(ctx, showRaise(await raises.end(auditActor(ctx), idOf(ctx), budget)));
    },
  };
  return [list, raise, end];
}

function send(ctx: RouteContext<unknown>, body: object): void {
  ctx.set('cache-control', 'no-store');
  ctx.body = body;
}

function idOf({ params }: Pick<RouteContext<unknown>, 'params'>): string {
  return params['id'] ?? '';
}
