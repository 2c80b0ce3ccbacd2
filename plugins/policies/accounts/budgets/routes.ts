import type { PluginApi, PluginConfig, RouteContext } from '../../../../core/index.ts';
import {
  auditActor,
  BUDGET,
  FOR_OPERATORS,
  listOf,
  matchVersion,
  PAGE_QUERY,
  readPage,
  sendList,
  sendVersion,
} from '../../../../core/operators.ts';
import type { BudgetClock } from './counted.ts';
import { createCounter, scopeOf } from './counted.ts';
import type { BudgetManager, ChangeBy } from './manage.ts';
import { SHARED } from './match.ts';
import { entityTag, type NamedBudget } from './records.ts';
import { OPERATOR_BUDGET, RAISE_FIELDS, readStates, showToOperator } from './view.ts';

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
  properties: RAISE_FIELDS,
} as const;

const LIST_QUERY = { type: 'object', additionalProperties: false, properties: PAGE_QUERY } as const;
const ONE = { description: 'The budget, with its version as ETag.', schema: OPERATOR_BUDGET } as const;

type PutContext = RouteContext<PluginConfig<typeof PUT_BODY>>;
type RaiseContext = RouteContext<PluginConfig<typeof RAISE_BODY>>;

/** What operators read and change of the budgets that all calls share which match them. */
export function registerBudgetRoutes(api: PluginApi, manager: BudgetManager, show: Viewer): void {
  const send: Send = async (ctx, budget) => {
    const [shown = {}] = await show([budget]);
    sendVersion(ctx, entityTag(budget), shown);
  };
  registerReading(api, manager, show, send);
  registerChanging(api, manager, show, send);
  registerRaising(api, manager, send);
}

/** Sends one budget with its entity tag. */
type Send = (ctx: RouteContext<unknown>, budget: NamedBudget) => Promise<void>;

const responses = { 200: ONE };

function registerReading(api: PluginApi, manager: BudgetManager, show: Viewer, send: Send): void {
  api.route({
    ...{ ...FOR_OPERATORS, method: 'GET', path: PATH, summary: 'List budgets by name, with what is spent of each' },
    query: LIST_QUERY,
    responses: {
      200: { description: 'Those of the configuration and of the store.', schema: listOf(OPERATOR_BUDGET) },
    },
    async handler(ctx) {
      const { limit, after = '' } = readPage(ctx);
      const rest = (await manager.list()).filter(({ name }) => name > after);
      const page = rest.slice(0, limit);
      sendList(ctx, await show(page), rest.length > limit ? page.at(-1)?.name : undefined);
    },
  });
  api.route({
    ...{ ...FOR_OPERATORS, method: 'GET', path: `${PATH}/:name`, summary: 'Show a budget', responses },
    handler: async (ctx) => send(ctx, await manager.get(nameOf(ctx))),
  });
}

function registerChanging(api: PluginApi, manager: BudgetManager, show: Viewer, send: Send): void {
  api.route({
    ...{ ...FOR_OPERATORS, method: 'PUT', path: `${PATH}/:name`, summary: 'Put a budget', responses },
    description: 'Makes or replaces it, whole. One that the configuration file has is 409 `conflict`.',
    body: PUT_BODY,
    async handler(ctx: PutContext) {
      const { timezone = 'UTC', ...values } = ctx.state.body as Partial<PutContext['state']['body']>;
      const whole = { ...values, timezone } as PutContext['state']['body'];
      await send(ctx, await manager.put(nameOf(ctx), whole, changeBy(ctx)));
    },
  });
  api.route({
    ...{ ...FOR_OPERATORS, method: 'DELETE', path: `${PATH}/:name`, summary: 'Remove a budget' },
    responses: { 200: { description: 'The budget that was removed.', schema: OPERATOR_BUDGET } },
    async handler(ctx) {
      const [shown] = await show([await manager.remove(nameOf(ctx), changeBy(ctx))]);
      ctx.set('cache-control', 'no-store');
      ctx.body = shown;
    },
  });
}

function registerRaising(api: PluginApi, manager: BudgetManager, send: Send): void {
  const path = `${PATH}/:name/raises`;
  api.route({
    ...{ ...FOR_OPERATORS, method: 'POST', path, summary: 'Raise a budget for a while', responses },
    description: 'Also one of the configuration file. Until its end it adds to the amount of each period.',
    body: RAISE_BODY,
    handler: async (ctx: RaiseContext) => send(ctx, await manager.raise(nameOf(ctx), ctx.state.body, changeBy(ctx))),
  });
  api.route({
    ...{ ...FOR_OPERATORS, method: 'DELETE', path, summary: 'End the raises of a budget', responses },
    handler: async (ctx) => send(ctx, await manager.endRaises(nameOf(ctx), changeBy(ctx))),
  });
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

function nameOf({ params }: Pick<RouteContext<unknown>, 'params'>): string {
  return params['name'] ?? '';
}

function changeBy(ctx: RouteContext<unknown>): ChangeBy {
  return { actor: auditActor(ctx), match: (tag) => void matchVersion(ctx, tag) };
}
