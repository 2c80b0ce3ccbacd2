import type { Route, RouteContext } from '../../../core/index.ts';
import {
  auditActor,
  FOR_OPERATORS,
  listOf,
  matchVersion,
  PLAN_SCHEMA,
  sendList,
  sendVersion,
} from '../../../core/operators.ts';
import { noPlan, type PlanOperations } from './plan-operations.ts';

const PATH = '/api/core/admin/plans';

const PLAN = {
  type: 'object',
  required: ['object', 'name', 'owner', 'is_default', 'plan'],
  properties: {
    object: { const: 'plan' },
    name: { type: 'string' },
    owner: { enum: ['file', 'store'], description: 'Only those of the store are changed here.' },
    is_default: { type: 'boolean' },
    plan: { type: 'object', description: 'As under `plans` in the configuration.' },
  },
} as const;

/** `/api/core/admin/plans`: plans of the file are shown, those of the store are put and removed. */
export function planRoutes(operations: PlanOperations): readonly Route[] {
  const expectedOf = async (ctx: RouteContext<unknown>): Promise<number | undefined> => {
    const version = (await operations.find(nameOf(ctx)))?.version ?? 0;
    return matchVersion(ctx, version) ? version : undefined;
  };
  return [
    {
      ...{ ...FOR_OPERATORS, method: 'GET', path: PATH, summary: 'List plans, those of the file first' },
      responses: { 200: { description: 'All plans.', schema: listOf(PLAN) } },
      async handler(ctx) {
        sendList(ctx, await operations.list(), undefined);
      },
    },
    {
      ...{ ...FOR_OPERATORS, method: 'GET', path: `${PATH}/:name`, summary: 'Show a plan' },
      responses: { 200: { description: 'The plan, with its version as ETag.', schema: PLAN } },
      async handler(ctx) {
        const found = await operations.find(nameOf(ctx));
        if (!found) throw noPlan(nameOf(ctx));
        sendVersion(ctx, found.version, found.plan);
      },
    },
    {
      ...{ ...FOR_OPERATORS, method: 'PUT', path: `${PATH}/:name`, summary: 'Put a plan' },
      description: 'Makes or replaces it, whole. One that the configuration file has is 409 `conflict`.',
      body: { ...PLAN_SCHEMA, examples: [{ rpm: 600, tpm: 40_000 }] },
      responses: { 200: { description: 'The plan since.', schema: PLAN } },
      async handler(ctx) {
        const expected = await expectedOf(ctx);
        const { version, plan } = await operations.put(auditActor(ctx), nameOf(ctx), ctx.state.body, expected);
        sendVersion(ctx, version, plan);
      },
    },
    {
      ...{ ...FOR_OPERATORS, method: 'DELETE', path: `${PATH}/:name`, summary: 'Remove a plan' },
      description: 'Who still has it, and no other plan to hold, is refused with 403 until an operator names another.',
      responses: { 200: { description: 'The plan that was removed.', schema: PLAN } },
      async handler(ctx) {
        const expected = await expectedOf(ctx);
        ctx.set('cache-control', 'no-store');
        ctx.body = await operations.remove(auditActor(ctx), nameOf(ctx), expected);
      },
    },
  ];
}

function nameOf({ params }: Pick<RouteContext<unknown>, 'params'>): string {
  return params['name'] ?? '';
}
