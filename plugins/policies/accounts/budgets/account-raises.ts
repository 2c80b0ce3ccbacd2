import {
  type AuditActor,
  formatUsd,
  GatewayError,
  nearest,
  type PluginApi,
  type PluginConfig,
  type Route,
  type RouteContext,
} from '../../../../contract/index.ts';
import { auditActor, createPlanBook, FOR_OPERATORS, listOf, sendList } from '../../kit/index.ts';
import { checkAccountId } from '../account-id.ts';
import { isoSeconds, type Raise } from './budget-window.ts';
import { type RaiseValues, readRaise, runningOf, withRaise } from './raises.ts';
import { RAISE_FIELDS, RAISES_SHOWN } from './view.ts';

/** Temporary raises of one account for one budget of its plan. */
export interface AccountRaise {
  readonly account: string;
  /** Budget name, in any plan that the account's calls use. */
  readonly budget: string;
  readonly raises: readonly Raise[];
}

/** Temporary raises of accounts. */
export interface AccountRaises {
  read(): Promise<{ readonly version: number; readonly raises: readonly AccountRaise[] }>;
  /** Returns the active raises of an account, by budget name. */
  list(account: string): Promise<readonly AccountRaise[]>;
  /** Adds money until a time, recorded in the audit log. Throws `not_found` if no plan has the budget. */
  raise(actor: AuditActor, account: string, budget: string, values: RaiseValues): Promise<AccountRaise>;
  /** Ends all raises of one budget at once. */
  end(actor: AuditActor, account: string, budget: string): Promise<AccountRaise>;
  /** Calls the listener after each change by this process. */
  onChange(listener: () => void): void;
}

/** Name and id of the single record with the raises of all accounts. */
export const RAISES = 'account-raises';
export const ALL_RAISES = 'all';
/** Maximum number of raised budgets of accounts. */
const MAX_RAISED = 1000;

export function createAccountRaises(api: Pick<PluginApi, 'books' | 'settings' | 'operators'>): AccountRaises {
  const records = api.books.records<readonly AccountRaise[]>(RAISES);
  const readPlans = createPlanBook(api);

  const change = async (
    { actor, action, account, budget }: Change,
    make: (raises: readonly Raise[]) => readonly Raise[],
  ): Promise<AccountRaise> => {
    const changed = await records.change(ALL_RAISES, (stored = []) => {
      const all = running(stored);
      const raises = make(raisesOf(all, account, budget));
      const others = all.filter((each) => each.account !== account || each.budget !== budget);
      if (raises.length === 0) return others;
      if (others.length < MAX_RAISED) return [...others, { account, budget, raises }];
      throw new GatewayError(
        'conflict',
        `The maximum of ${MAX_RAISED} raised account budgets is reached. End some raises first.`,
      );
    });
    const after = { account, budget, raises: raisesOf(changed.value, account, budget) };
    const before = { account, budget, raises: raisesOf(running(changed.before ?? []), account, budget) };
    const [{ account: _before, ...was }, { account: _after, ...is }] = [showRaise(before), showRaise(after)];
    await api.operators.audit({ actor, action, subject: account, before: was, after: is });
    return after;
  };

  return {
    async read() {
      const { version, value = [] } = await records.find(ALL_RAISES);
      return { version, raises: value };
    },
    async list(account) {
      checkAccountId(account);
      const { value = [] } = await records.find(ALL_RAISES);
      const own = running(value).filter((each) => each.account === account);
      return own.toSorted((a, b) => (a.budget < b.budget ? -1 : 1));
    },
    async raise(actor, account, budget, values) {
      checkAccountId(account);
      if (api.settings.billing === 'off')
        throw new GatewayError(
          'feature_disabled',
          'Budgets are disabled by "billing: off". Set "billing: track" to count them.',
        );
      const plans = [...(await readPlans()).values()];
      assertOfPlan(budget, [
        ...new Set(plans.flatMap(({ plan: { budgets = [] } }) => budgets.map(({ name }) => name))),
      ]);
      const raise = readRaise(values, Date.now());
      return await change({ actor, action: 'account.raise', account, budget }, (raises) => withRaise(raises, raise));
    },
    async end(actor, account, budget) {
      checkAccountId(account);
      return await change({ actor, action: 'account.end_raises', account, budget }, (raises) => {
        if (raises.length > 0) return [];
        throw new GatewayError('not_found', `This account has no active raise of the budget "${shorten(budget)}".`);
      });
    },
    onChange: (listener) => records.onChange(() => listener()),
  };
}

interface Change {
  readonly actor: AuditActor;
  readonly action: string;
  readonly account: string;
  readonly budget: string;
}

/** Formats a raise for operators, with amounts as decimal strings. */
export function showRaise({ account, budget, raises }: AccountRaise) {
  return {
    account,
    budget,
    raised_usd: formatUsd(raises.reduce((sum, { amount }) => sum + amount, 0)),
    raises: raises.map(({ amount, until }) => ({ amount_usd: formatUsd(amount), until: isoSeconds(until) })),
  };
}

/** Returns the active raises. */
function running(all: readonly AccountRaise[]): readonly AccountRaise[] {
  const now = Date.now();
  return all
    .map((each) => ({ ...each, raises: runningOf(each.raises, now) }))
    .filter(({ raises }) => raises.length > 0);
}

function raisesOf(all: readonly AccountRaise[], account: string, budget: string): readonly Raise[] {
  return all.find((each) => each.account === account && each.budget === budget)?.raises ?? [];
}

/** A misspelled budget name would raise nothing. */
function assertOfPlan(budget: string, known: readonly string[]): void {
  if (known.includes(budget)) return;
  const [near] = nearest(budget, known, 1);
  const listed = known.length > 0 ? `Plans have: ${known.slice(0, 20).join(', ')}.` : 'Plans have none.';
  const hint = near === undefined ? listed : `Did you mean "${near}"?`;
  throw new GatewayError('not_found', `No plan has a budget "${shorten(budget)}". ${hint}`, { param: 'budget' });
}

function shorten(name: string): string {
  return name.replace(/[^\w.-]/g, '?').slice(0, 63);
}

const PATH = '/api/core/admin/accounts/:id/raises';
const BUDGET = { type: 'string', minLength: 1, maxLength: 63, description: 'Budget of the account’s plan.' } as const;

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
  required: ['account', 'budget', 'raised_usd', 'raises'],
  properties: {
    ...{ account: TEXT, budget: TEXT },
    raised_usd: { type: 'string', description: 'Sum of the active raises, US dollars as a decimal string.' },
    raises: RAISES_SHOWN,
  },
} as const;

/** Routes of `/api/core/admin/accounts/{id}/raises`: temporary raises of one account for budgets of its plan. */
export function accountRaiseRoutes(raises: AccountRaises): readonly Route[] {
  const responses = { 200: { description: 'Active raises of this budget.', schema: RAISED } };
  const list: Route = {
    ...{
      ...FOR_OPERATORS,
      scope: 'budgets:read',
      method: 'GET',
      path: PATH,
      summary: 'List the active raises of an account',
    },
    responses: { 200: { description: 'Active raises by budget.', schema: listOf(RAISED) } },
    handler: async (ctx) => sendList(ctx, (await raises.list(idOf(ctx))).map(showRaise), undefined),
  };
  const raise: Route = {
    ...{
      ...FOR_OPERATORS,
      scope: 'budgets:write',
      method: 'POST',
      path: PATH,
      summary: 'Temporarily raise a budget of an account’s plan',
    },
    description: 'Applies to this account only. Until it ends, the raise adds to the amount of each period.',
    body: RAISE_BODY,
    responses,
    async handler(ctx) {
      const { budget, ...values } = ctx.state.body as PluginConfig<typeof RAISE_BODY>;
      send(ctx, showRaise(await raises.raise(auditActor(ctx), idOf(ctx), budget, values)));
    },
  };
  const end: Route = {
    ...{
      ...FOR_OPERATORS,
      scope: 'budgets:write',
      method: 'DELETE',
      path: PATH,
      summary: 'End the raises of a budget for an account',
    },
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
