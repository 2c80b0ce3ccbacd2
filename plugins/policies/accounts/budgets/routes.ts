import {
  auditActor,
  BUDGET,
  type PluginApi,
  type PluginConfig,
  type Route,
  type RouteContext,
} from '../../../../core/index.ts';
import { createCounter, scopeOf } from './counted.ts';
import type { BudgetManager, ChangeBy } from './manage.ts';
import { SHARED } from './match.ts';
import { entityTag, type NamedBudget } from './records.ts';
import type { BudgetClock } from './set-up.ts';
import { OPERATOR_BUDGET, readStates, showToOperator } from './view.ts';

const PATH = '/api/core/admin/budgets';

const { name: _name, ...VALUES } = BUDGET.properties;

const PUT_BODY = {
  type: 'object',
  additionalProperties: false,
  required: ['amount_usd', 'every'],
  properties: VALUES,
} as const;

const RAISE_BODY = {
  type: 'object',
  additionalProperties: false,
  required: ['amount_usd', 'until'],
  properties: {
    amount_usd: {
      anyOf: [{ type: 'number' }, { type: 'string', maxLength: 20 }],
      description: 'US dollars beside the budget’s own.',
    },
    until: { type: 'string', maxLength: 40, description: 'When it ends: ISO 8601 with a time zone.' },
  },
} as const;

const LIST_QUERY = {
  type: 'object',
  additionalProperties: false,
  properties: {
    limit: { type: 'string', pattern: '^([1-9]|[1-9][0-9]|100)$', description: '1 to 100; 20 by default.' },
    after: { type: 'string', maxLength: 100, description: '`next` of the page before.' },
  },
} as const;

const NONE = { type: 'object', additionalProperties: false, properties: {} } as const;
const ONE = { description: 'The budget; its `etag` is what `If-Match` wants.', schema: OPERATOR_BUDGET } as const;
const GUARDED = { auth: ['key', 'token'], role: 'admin', query: NONE } as const;

/** What operators read and change of the budgets that all calls share which match them. */
export function registerBudgetRoutes(api: PluginApi, manager: BudgetManager, now: BudgetClock): void {
  const show = createViewer(api, now);
  const respond = async (ctx: RouteContext, budget: NamedBudget): Promise<void> => {
    const [shown] = await show([budget]);
    ctx.set('cache-control', 'no-store');
    ctx.set('etag', entityTag(budget));
    ctx.body = shown;
  };
  api.route(listRoute(manager, show));
  api.route({
    ...{ method: 'GET', path: `${PATH}/:name`, summary: 'Show a budget', ...GUARDED, responses: { 200: ONE } },
    handler: async (ctx) => respond(ctx, await manager.get(nameOf(ctx))),
  });
  api.route({
    ...{ method: 'PUT', path: `${PATH}/:name`, summary: 'Make or replace a budget', ...GUARDED },
    description: 'Budgets of the configuration are changed there. It holds on every node within five seconds.',
    body: PUT_BODY,
    responses: { 200: ONE },
    async handler(ctx: RouteContext<PluginConfig<typeof PUT_BODY>>) {
      const { timezone = 'UTC', ...values } = ctx.state.body as Partial<PluginConfig<typeof PUT_BODY>>;
      const whole = { ...values, timezone } as PluginConfig<typeof PUT_BODY>;
      await respond(ctx, await manager.put(nameOf(ctx), whole, changeBy(ctx)));
    },
  });
  api.route({
    ...{ method: 'DELETE', path: `${PATH}/:name`, summary: 'Remove a budget', ...GUARDED },
    responses: {
      200: {
        description: 'It limits nothing any more.',
        schema: { type: 'object', properties: { name: { type: 'string' }, deleted: { const: true } } },
      },
    },
    async handler(ctx) {
      const name = nameOf(ctx);
      await manager.remove(name, changeBy(ctx));
      ctx.body = { name, deleted: true };
    },
  });
  api.route({
    ...{ method: 'POST', path: `${PATH}/:name/raises`, summary: 'Raise a budget for a while', ...GUARDED },
    description: 'Also for budgets of the configuration. Until its end it adds to the amount of each period.',
    body: RAISE_BODY,
    responses: { 200: ONE },
    async handler(ctx: RouteContext<PluginConfig<typeof RAISE_BODY>>) {
      await respond(ctx, await manager.raise(nameOf(ctx), ctx.state.body, changeBy(ctx)));
    },
  });
  api.route({
    ...{ method: 'DELETE', path: `${PATH}/:name/raises`, summary: 'End the raises of a budget', ...GUARDED },
    responses: { 200: ONE },
    handler: async (ctx) => respond(ctx, await manager.endRaises(nameOf(ctx), changeBy(ctx))),
  });
}

function listRoute(manager: BudgetManager, show: Viewer): Route {
  return {
    ...{ method: 'GET', path: PATH, summary: 'List budgets by name', ...GUARDED, query: LIST_QUERY },
    responses: {
      200: {
        description: 'Those of the configuration and those of the store, with what is spent of each.',
        schema: {
          type: 'object',
          required: ['object', 'data', 'has_more'],
          properties: {
            object: { const: 'list' },
            data: { type: 'array', items: OPERATOR_BUDGET },
            has_more: { type: 'boolean' },
            next: { type: 'string' },
          },
        },
      },
    },
    async handler(ctx) {
      const query = new URLSearchParams(ctx.querystring);
      const limit = Number(query.get('limit') ?? '20');
      const after = query.get('after') ?? '';
      const rest = (await manager.list()).filter(({ name }) => name > after);
      const page = rest.slice(0, limit);
      const next = rest.length > limit ? page.at(-1)?.name : undefined;
      ctx.set('cache-control', 'no-store');
      ctx.body = {
        object: 'list',
        data: await show(page),
        has_more: next !== undefined,
        ...(next !== undefined && { next }),
      };
    },
  };
}

/** Shows budgets with what is spent of them now. */
export type Viewer = (budgets: readonly NamedBudget[]) => Promise<readonly Record<string, unknown>[]>;

export function createViewer({ ledger }: Pick<PluginApi, 'ledger'>, now: BudgetClock): Viewer {
  return async (budgets) => {
    const at = now();
    const counted = budgets.map(({ rule, raises }) =>
      createCounter({ prefix: SHARED, rule, scope: scopeOf(rule), raises })(at),
    );
    const states = await readStates(ledger, counted);
    return budgets.flatMap((budget, index) => {
      const each = counted[index];
      return each ? [showToOperator(budget, each, states[index])] : [];
    });
  };
}

function nameOf({ params }: RouteContext): string {
  return params['name'] ?? '';
}

function changeBy(ctx: RouteContext): ChangeBy {
  const ifMatch = ctx.get('if-match');
  return { actor: auditActor(ctx), ...(ifMatch !== '' && { ifMatch }) };
}
