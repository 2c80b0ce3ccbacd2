import {
  type BudgetRule,
  type BudgetValues,
  type CommandInput,
  GatewayError,
  type PluginApi,
  parseDuration,
  type Subcommand,
} from '../../../../contract/index.ts';
import {
  ALL_TEAMS,
  BUDGET,
  changedMeanwhile,
  checkBudget,
  createModelNames,
  createPlanBook,
  type ModelNamesApi,
  readBudget,
  type StoredTeams,
  TEAMS,
  teamOf,
} from '../../kit/index.ts';
import { type Action, type Actions, type List, type Resource, resource, textOf } from '../../kit/resource.ts';
import { type AccountRaises, showRaise } from './account-raises.ts';
import { SHARED } from './budget-table.ts';
import { type BudgetClock, createCounter, EACH, isoSeconds, scopeOf } from './budget-window.ts';
import { checkModel } from './model-check.ts';
import { type RaiseValues, readRaise, runningOf, withRaise } from './raises.ts';
import { type BudgetRecord, type BudgetRecords, entityTag, type NamedBudget, writtenBudget } from './records.ts';
import { OPERATOR_BUDGET, RAISE_FIELDS, readStates, showToOperator } from './view.ts';

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;

const { name: _name, ...VALUES } = BUDGET.properties;

/** Request body that creates or replaces a budget. */
export const PUT_BODY = {
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

interface Parts {
  readonly records: BudgetRecords;
  /** Raises of accounts; the same command manages them. */
  readonly raises: AccountRaises;
  readonly view: Viewer;
  readonly readRule: ReadRule;
  /** Lists the budgets with the largest used share. */
  readonly near: Action;
}

/** Registers `/api/core/admin/budgets` and `tollgate budgets`: budgets shared by all matching calls. */
export function registerBudgets(api: PluginApi, { records, raises, view, readRule, near }: Parts): void {
  const show = async (budget: NamedBudget): Promise<Record<string, unknown>> => (await view([budget]))[0] ?? {};
  const list = async () => (await records.read()).budgets.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const changes = createChanges(records, show);
  const table: Resource<NamedBudget | undefined, string> = {
    ...{ name: 'budget', path: '/api/core/admin/budgets', id: 'name', schema: OPERATOR_BUDGET },
    scopes: { read: 'budgets:read', write: 'budgets:write' },
    response: 'The budget, with its version as ETag.',
    command: {
      name: 'budgets',
      summary: 'List, create, delete and raise budgets',
      id: { name: '<name>', summary: 'budget name, as in "budgets list"' },
    },
    async find(name) {
      const value = (await records.read()).budgets.find((budget) => budget.name === name);
      return { version: tagOf(value), value };
    },
    show,
    notFound: unknownBudget,
  };

  resource(api, table, (make) => [
    make.list({
      http: {
        summary: 'List budgets by name, with spent and remaining amounts',
        response: 'Those of the configuration and of the store.',
        schema: OPERATOR_BUDGET,
      },
      async read({ limit, after = '' }) {
        const rest = (await list()).filter(({ name }) => name > after);
        const page = rest.slice(0, limit);
        return { rows: await view(page), next: rest.length > limit ? page.at(-1)?.name : undefined };
      },
      cli: {
        summary: 'List shared budgets, with spent and remaining amounts',
        columns: COLUMNS,
        empty: 'There are no budgets.',
      },
    }),
    make.show({ http: { summary: 'Show a budget' }, show }),
    ...ownActions(make, api, { ...changes, readRule }),
    ...raiseActions(make, raises, changes),
    near,
  ]);
}

type Make = Actions<NamedBudget | undefined, string>;
type Changes = ReturnType<typeof createChanges>;

/** Actions for budgets of the store. */
function ownActions(
  make: Make,
  api: PluginApi,
  { change, readRule }: Changes & Pick<Parts, 'readRule'>,
): readonly Action[] {
  return [
    make.change({
      word: 'put',
      http: {
        ...{ method: 'PUT', summary: 'Create or replace a budget', body: PUT_BODY },
        description: 'Replaces all fields. A budget of the configuration file returns 409 `conflict`.',
      },
      async apply({ id: name, body, expected }) {
        assertName(name);
        const rule = await readRule(body, name);
        return await change(name, expected, (before) => {
          assertOwn(before);
          return { rule, raises: before?.raises ?? [] };
        });
      },
      cli: {
        summary: 'Create or replace a budget; takes effect within 5 seconds',
        id: 'budget name; the spent amount is counted under it',
        args: [{ name: '<amount>', summary: 'US dollars per period, such as 20.00' }],
        options: PUT_OPTIONS,
        read: readPut,
        text: ({ every }, { args: [name, amount] }) =>
          `the budget ${name} is ${amount} USD ${every === 'total' ? 'in all' : `a ${every}`}`,
      },
    }),
    make.change({
      word: 'remove',
      http: { method: 'DELETE', summary: 'Delete a budget', response: 'The deleted budget.' },
      async apply({ id, expected }) {
        await refuseOfTeam(api, id);
        return change(id, expected, (before) => {
          assertOwn(known(id, before));
          return undefined;
        });
      },
      cli: {
        summary: 'Delete a budget; those of the configuration file cannot be deleted',
        text: (_budget, { args: [name] }) => `the budget ${name} is removed`,
      },
    }),
  ];
}

/** Actions for budgets of the store and the configuration. The command also raises budgets of accounts. */
function raiseActions(make: Make, ofAccounts: AccountRaises, { changeRaises }: Changes): readonly Action[] {
  const raise = make.change({
    word: 'raise',
    http: {
      ...{ at: '/raises', summary: 'Temporarily raise a budget', body: RAISE_BODY },
      description:
        'Budgets of the configuration file can be raised, too. Until it ends, the raise adds to the amount of each period.',
    },
    apply({ id, body, expected }) {
      const added = readRaise(body, Date.now());
      return changeRaises(id, expected, (former) => withRaise(former, added));
    },
  });
  const endRaises = make.change({
    word: 'end_raises',
    http: { method: 'DELETE', at: '/raises', summary: 'End the raises of a budget' },
    apply: ({ id, expected }) => changeRaises(id, expected, () => []),
  });
  return [raise, endRaises, { subcommand: raiseCommand(ofAccounts, raise.run, endRaises.run) }];
}

/** Creates the functions that change budgets, for the actions. */
function createChanges(records: BudgetRecords, show: (budget: NamedBudget) => Promise<Record<string, unknown>>) {
  const change = async (
    name: string,
    expected: string | undefined,
    make: (before: NamedBudget | undefined) => BudgetRecord | undefined,
  ) => {
    const { before, after } = await records.change(name, (found) => {
      if (expected !== undefined && expected !== tagOf(found)) throw changedMeanwhile();
      return make(found);
    });
    return {
      ...{ before: before && writtenBudget(before), after: after && writtenBudget(after) },
      ...(after && { version: entityTag(after) }),
      show: () => show(known(name, after ?? before)),
    };
  };
  const changeRaises = (
    name: string,
    expected: string | undefined,
    make: (raises: NamedBudget['raises']) => NamedBudget['raises'],
  ) =>
    change(name, expected, (found) => {
      const { owner, rule, raises: former } = known(name, found);
      return { ...(owner === 'store' && { rule }), raises: make(runningOf(former, Date.now())) };
    });
  return { change, changeRaises };
}

function tagOf(budget: NamedBudget | undefined): string {
  return budget ? entityTag(budget) : '';
}

function cell(field: string): (budget: Readonly<Record<string, unknown>>) => string {
  return (budget) => String(budget[field] ?? '-');
}

/** Users, keys, tags and plans are shown by name; end users, providers and models with their field name. */
function shownFilter(field: (typeof FILTERS)[number], value: unknown): readonly string[] {
  if (typeof value !== 'string') return [];
  if (field === 'end_user') return [value === EACH ? 'each end user' : `end user ${value}`];
  return [field === 'provider' || field === 'model' ? `${field} ${value}` : value];
}

const COLUMNS: List<Record<string, unknown>>['cli']['columns'] = [
  ['NAME', cell('name')],
  // Names in the budget's filters.
  ['OF', (budget) => FILTERS.flatMap((field) => shownFilter(field, budget[field])).join(' ') || 'all'],
  ['EVERY', cell('every')],
  ['ZONE', cell('timezone')],
  ['LIMIT USD', ({ amount_usd: own, raised_usd: more }) => (more === undefined ? `${own}` : `${own}+${more}`)],
  ['SPENT USD', cell('spent_usd')],
  ['HELD USD', cell('held_usd')],
  ['LEFT USD', cell('left_usd')],
  ['RESETS UTC', cell('resets_at')],
  ['OWNER', cell('owner')],
];

/** Formats budgets with their current amounts. */
export type Viewer = (budgets: readonly NamedBudget[]) => Promise<readonly Record<string, unknown>[]>;

export function createViewer({ books: { ledger } }: Pick<PluginApi, 'books'>, now: BudgetClock): Viewer {
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

function known(name: string, budget: NamedBudget | undefined): NamedBudget {
  if (budget) return budget;
  throw unknownBudget(name);
}

export function unknownBudget(name: string): GatewayError {
  return new GatewayError('not_found', `There is no budget "${name.replace(/[^\w.-]/g, '?').slice(0, 63)}".`);
}

/** Throws `conflict` for a budget of the configuration. */
function assertOwn(budget: NamedBudget | undefined): void {
  if (budget?.owner !== 'file') return;
  throw new GatewayError(
    'conflict',
    `The budget "${budget.name}" is in the configuration file. Change it there, under "budgets". Raises are allowed here.`,
  );
}

function assertCounted({ settings }: Pick<PluginApi, 'settings'>): void {
  if (settings.billing !== 'off') return;
  throw new GatewayError(
    'feature_disabled',
    'Budgets are disabled by "billing: off". Set "billing: track" to count them.',
  );
}

/** Throws for an invalid budget name from operators and team owners. */
export function assertName(name: string): void {
  if (NAME.test(name)) return;
  throw new GatewayError(
    'invalid_request',
    'A budget name has 1 to 63 letters, digits, dots, dashes and underscores, and begins with a letter or digit.',
    { param: 'name' },
  );
}

/**
 * Reads the rule of a request body, under this name. Throws for a rule that would count nothing, or not what it says.
 */
export type ReadRule = (
  body: Omit<BudgetValues, 'name' | 'timezone'> & { readonly timezone?: string },
  name: string,
) => Promise<BudgetRule>;

export function createReadRule(api: PluginApi): ReadRule {
  const readPlans = createPlanBook(api);
  return async (body, name) => {
    assertCounted(api);
    const plans = [...(await readPlans()).keys()];
    // Requests do not get schema defaults.
    const { timezone = 'UTC' } = body;
    return readBudget(checkValues(api, plans, { ...body, timezone, name }));
  };
}

/** The budget of a team is changed with the team. */
async function refuseOfTeam({ books: { records } }: Pick<PluginApi, 'books'>, name: string): Promise<void> {
  const { value = {} } = await records<StoredTeams>(TEAMS).find(ALL_TEAMS);
  if (!teamOf(value, name)?.team.budget) return;
  throw new GatewayError(
    'conflict',
    `This budget belongs to the team "${name}". Change it with "tollgate accounts teams set", or delete the team first.`,
  );
}

/** Throws `invalid_request` for the first problem of a budget. */
function checkValues(
  api: ModelNamesApi & Pick<PluginApi, 'settings'>,
  plans: readonly string[],
  values: BudgetValues,
): BudgetValues {
  const models = createModelNames(api);
  const names = { plans, providers: models.providers, tags: api.settings.tags };
  const [problem = checkModel(models, values)] = checkBudget(values, names);
  if (!problem) return values;
  const param = problem.path.slice(1);
  throw new GatewayError('invalid_request', `"${param}" ${problem.message}. ${problem.hint}`, { param });
}

/** Maximum length of a filter value. */
const MAX_FILTER = 300;
const FILTERS = ['user', 'key', 'tag', 'plan', 'end_user', 'provider', 'model'] as const;

const PUT_OPTIONS = [
  { flags: '--every <period>', summary: 'total, hour, day, week or month', required: true },
  { flags: '--timezone <zone>', summary: 'time zone of the period, such as Europe/Berlin (default: UTC)' },
  { flags: '--starts-on <day>', summary: 'first day of the period: a weekday for week, 1 to 28 for month' },
  { flags: '--soft <amount>', summary: 'soft limit in US dollars; sends a warning' },
  { flags: '--user <id>', summary: 'count only calls of this user' },
  { flags: '--key <id>', summary: 'count only calls of this API key and of keys rotated from it' },
  { flags: '--tag <name=value>', summary: 'count only calls with this tag' },
  { flags: '--plan <name>', summary: 'count only calls of users with this plan' },
  { flags: '--end-user <id>', summary: 'count only calls for this end user; "*": each end user has the amount' },
  { flags: '--provider <name>', summary: 'count only calls to this provider' },
  { flags: '--model <id>', summary: 'count only calls to this model; gpt-6* is a prefix' },
];

function readPut({ args: [, amount = ''], options }: CommandInput): Omit<BudgetValues, 'name'> {
  const every = options['every'];
  if (!isPeriod(every))
    throw new GatewayError('invalid_request', '--every must be total, hour, day, week or month.', { param: 'every' });
  const [starts, soft] = [textOf(options, 'startsOn'), textOf(options, 'soft')];
  const filters = FILTERS.flatMap((field) => {
    const text = textOf(options, field === 'end_user' ? 'endUser' : field);
    if (text === undefined) return [];
    if (text.length <= MAX_FILTER) return [[field, text]];
    throw new GatewayError('invalid_request', `--${field} is longer than ${MAX_FILTER} characters.`, { param: field });
  });
  return {
    ...{ amount_usd: amount, every, timezone: textOf(options, 'timezone') ?? 'UTC' },
    ...(starts !== undefined && { starts_on: /^\d+$/.test(starts) ? Number(starts) : starts }),
    ...(soft !== undefined && { soft_usd: soft }),
    ...Object.fromEntries(filters),
  };
}

function isPeriod(value: unknown): value is BudgetValues['every'] {
  return ['total', 'hour', 'day', 'week', 'month'].some((period) => period === value);
}

type Run<Body> = (actor: CommandInput['actor'], name: string, body: Body) => Promise<object>;

/** Subcommand `tollgate budgets raise`: raises a shared budget or, with `--account`, a budget of the account's plan. */
function raiseCommand(
  raises: AccountRaises,
  raise: Run<RaiseValues>,
  endRaises: Run<Record<string, never>>,
): Subcommand {
  return {
    name: 'raise',
    summary: 'Temporarily raise a budget, or end its raises',
    args: [
      { name: '<name>', summary: 'budget name, as in "budgets list"; with --account, a budget of its plan' },
      { name: '[amount]', summary: 'additional US dollars' },
    ],
    options: [
      { flags: '--until <time>', summary: 'end: a date-time with a zone, or a duration such as 2d' },
      { flags: '--account <id>', summary: 'raise a budget of this account’s plan, such as u_42' },
      { flags: '--end', summary: 'end all raises of the budget instead' },
    ],
    async run({ args: [name = '', amount], options, io, actor }) {
      const account = textOf(options, 'account');
      const whose = account === undefined ? name : `${name} of ${account}`;
      if (options['end'] === true) {
        const ended =
          account === undefined ? await endRaises(actor, name, {}) : showRaise(await raises.end(actor, account, name));
        io.result(ended, `the budget ${whose} has no raise any more`);
        return;
      }
      const values = readValues(amount, options['until']);
      const raised =
        account === undefined
          ? await raise(actor, name, values)
          : showRaise(await raises.raise(actor, account, name, values));
      io.result(raised, `the budget ${whose} has ${amount} USD more until ${values.until}`);
    },
  };
}

function readValues(amount: string | undefined, until: unknown): RaiseValues {
  if (amount !== undefined && typeof until === 'string') return { amount_usd: amount, until: readEnd(until) };
  throw new GatewayError(
    'invalid_request',
    'A raise needs an amount and an end: tollgate budgets raise <name> 5 --until 2d',
  );
}

/** Reads a time or a delay from now. */
function readEnd(text: string): string {
  try {
    return isoSeconds(Math.ceil((Date.now() + parseDuration(text)) / 1000) * 1000);
  } catch (error) {
    if (error instanceof TypeError && /^[\d.]+$/.test(text.trim()))
      throw new GatewayError('invalid_request', `--until ${error.message}.`, { param: 'until' });
    return text;
  }
}
