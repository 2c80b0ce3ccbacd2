import { type BudgetRule, formatUsd, GatewayError, type PluginApi, parseUsd } from '../../../../contract/index.ts';
import {
  auditActor,
  beyondTeam,
  changedMeanwhile,
  createTeamRoutes,
  listOf,
  matchVersion,
  type OwnTeam,
  refuseOtherTag,
  sendList,
  sendVersion,
} from '../../kit/index.ts';
import { assertNew } from '../../kit/versions.ts';
import { assertName, PUT_BODY, type ReadRule, unknownBudget, type Viewer } from '../budgets/manage.ts';
import { type BudgetRecords, entityTag, type NamedBudget, writtenBudget } from '../budgets/records.ts';
import { OPERATOR_BUDGET } from '../budgets/view.ts';

/** Maximum number of budgets that the owners of one team may create. All teams and operators share one list. */
const MAX_OF_TEAM = 20;

/** Hours of a period; those of a month are of the longest one. */
const HOURS = Object.freeze({ hour: 1, day: 24, week: 168, month: 744, total: Number.POSITIVE_INFINITY });

interface Parts {
  readonly records: BudgetRecords;
  readonly view: Viewer;
  readonly readRule: ReadRule;
}

/**
 * Registers the budgets of a team, for its owners. Owners see all budgets with its tag, and may change those that they
 * created.
 */
export function registerTeamBudgets(api: PluginApi, { records, view, readRule }: Parts): void {
  const route = createTeamRoutes(api);
  const show = async (budget: NamedBudget): Promise<Record<string, unknown>> => (await view([budget]))[0] ?? {};
  const response = 'The budget, with its version as ETag.';
  route({
    ...{ method: 'GET', path: '/budgets', summary: 'List the budgets with the tag of your team' },
    responses: {
      200: { description: 'Budgets with the tag, those of operators included.', schema: listOf(OPERATOR_BUDGET) },
    },
    async handler(ctx, { tag }) {
      const { budgets } = await records.read();
      sendList(ctx, await view(budgets.filter(({ rule }) => rule.tag === tag)), undefined);
    },
  });
  route({
    ...{ method: 'PUT', path: '/budgets/:name', summary: 'Create or replace a budget of your team', body: PUT_BODY },
    description:
      'Counts only calls with the tag of the team. The amount must not exceed the budget of the team. The full name is the tag, `~` and the name.',
    responses: { 200: { description: response, schema: OPERATOR_BUDGET } },
    async handler(ctx, own) {
      const { tag } = own;
      const { name, found } = await findOwn(records, ctx.params['name'] ?? '', tag);
      const isNew = assertNew(ctx, found !== undefined);
      const expected = matchVersion(ctx, found ? entityTag(found) : '') ? found && entityTag(found) : undefined;
      const { body } = ctx.state;
      refuseOtherTag(body.tag, tag);
      const rule = await readRule({ ...body, tag }, name);
      refuseMore(rule, own);
      if (!found) await refuseMany(records, tag);
      const { before, after } = await records.change(name, (last) => {
        if (expected !== undefined && (!last || entityTag(last) !== expected)) throw changedMeanwhile();
        if (isNew && last) throw changedMeanwhile();
        return { rule, raises: last?.raises ?? [] };
      });
      await api.operators.audit({
        ...{ actor: auditActor(ctx), action: 'budget.put', subject: name },
        ...{ ...(before && { before: writtenBudget(before) }), ...(after && { after: writtenBudget(after) }) },
      });
      if (after) sendVersion(ctx, entityTag(after), await show(after));
    },
  });
  route({
    ...{ method: 'DELETE', path: '/budgets/:name', summary: 'Delete a budget that owners of your team created' },
    responses: { 200: { description: 'The deleted budget.', schema: OPERATOR_BUDGET } },
    async handler(ctx, { tag }) {
      const { name, found } = await findOwn(records, ctx.params['name'] ?? '', tag);
      if (!found) throw unknownBudget(name);
      const shown = await show(found);
      const { before } = await records.change(name, () => undefined);
      const actor = auditActor(ctx);
      await api.operators.audit({
        actor,
        action: 'budget.remove',
        subject: name,
        ...(before && { before: writtenBudget(before) }),
      });
      ctx.set('cache-control', 'no-store');
      ctx.body = shown;
    },
  });
}

/**
 * Names of team budgets contain `~`, which no tag and no other budget has. So no team can get the budget of another.
 */
async function findOwn(records: BudgetRecords, given: string, tag: string) {
  const short = given.startsWith(`${tag}~`) ? given.slice(tag.length + 1) : given;
  assertName(short);
  const name = `${tag}~${short}`;
  const { budgets } = await records.read();
  return { name, found: budgets.find((budget) => budget.name === name) };
}

async function refuseMany(records: BudgetRecords, tag: string): Promise<void> {
  const { budgets } = await records.read();
  if (budgets.filter(({ name }) => name.startsWith(`${tag}~`)).length < MAX_OF_TEAM) return;
  throw new GatewayError(
    'conflict',
    `The maximum of ${MAX_OF_TEAM} budgets of this team is reached. Delete one first.`,
  );
}

/** Rejects a budget above the team's budget for the same time. */
function refuseMore({ amount, every }: BudgetRule, { team: { budget } }: OwnTeam): void {
  if (!budget) return;
  const ceiling = parseUsd(budget.amount_usd);
  const longer = every === budget.every ? 1 : HOURS[every] / HOURS[budget.every];
  if (amount <= ceiling * Math.max(longer, 1)) return;
  throw beyondTeam(
    'amount_usd',
    `${formatUsd(ceiling)} USD ${budget.every === 'total' ? 'in all' : `a ${budget.every}`}`,
  );
}
