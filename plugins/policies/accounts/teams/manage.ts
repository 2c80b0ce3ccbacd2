import { type CommandInput, type CommandOption, GatewayError, type PluginApi } from '../../../../contract/index.ts';
import {
  ALL_TEAMS,
  changedMeanwhile,
  createModelNames,
  createPlanBook,
  FOR_OPERATORS,
  listOf,
  OWN_TEAMS,
  ownsTeam,
  refuseTag,
  type StoredTeam,
  type StoredTeams,
  sendList,
  shownTag,
  TEAM,
  TEAMS,
  type Team,
  teamOf,
} from '../../kit/index.ts';
import { printable } from '../../kit/printable.ts';
import { type Action, type Actions, type List, type Resource, resource, textOf, WITHIN } from '../../kit/resource.ts';
import { keyIdOf } from '../budgets/budget-window.ts';
import { createKeyOrigins } from '../budgets/find-budgets.ts';
import type { ReadRule } from '../budgets/manage.ts';
import type { BudgetRecords } from '../budgets/records.ts';

/** Team with its tag, as shown to operators. */
type ShownTeam = { readonly object: 'team'; readonly tag: string } & Team;

const SHOWN_TEAM = {
  type: 'object',
  required: ['object', 'tag', 'owners'],
  properties: { object: { const: 'team' }, tag: { type: 'string' }, ...TEAM.properties },
} as const;

const MAX_TEAMS = 500;

const COLUMNS: List<ShownTeam>['cli']['columns'] = [
  ['TEAM', ({ tag }) => tag],
  [
    'OWNERS',
    ({ owners: { users = [], groups = [], keys = [] } }) =>
      printable([...users, ...groups, ...keys.map((id) => `tg_${id}`)].join(', '), 80),
  ],
  ['PAYS', ({ tag, account = tag }) => printable(account)],
  ['LIMIT USD', ({ budget }) => (budget ? `${budget.amount_usd} ${budget.every}` : '-')],
  ['MODELS', ({ models }) => printable(models?.join(', ') ?? 'all', 80)],
];

interface Parts {
  /** The budget of a team has the name of its tag. */
  readonly budgets: BudgetRecords;
  readonly readRule: ReadRule;
}

/**
 * Registers `/api/core/admin/teams` and `tollgate accounts teams`: tags whose owners create keys and budgets within
 * them.
 */
export function registerTeams(api: PluginApi, parts: Parts): void {
  const records = api.books.records<StoredTeams>(TEAMS);
  const read = async (): Promise<StoredTeams> => (await records.find(ALL_TEAMS)).value ?? {};
  const all = async () =>
    Object.entries(await read())
      .map(([tag, { team }]) => show(tag, team))
      .sort((a, b) => (a.tag < b.tag ? -1 : 1));
  const table: Resource<ShownTeam | undefined, number> = {
    ...{ name: 'team', path: '/api/core/admin/teams', id: 'name', schema: SHOWN_TEAM },
    scopes: { read: 'teams:read', write: 'teams:write' },
    response: 'The team since.',
    command: {
      name: 'teams',
      summary: 'List, create and delete teams',
      id: { name: '<tag>', summary: 'tag of the team, such as team=search' },
    },
    async find(tag) {
      const stored = teamOf(await read(), tag);
      return { version: stored?.version ?? 0, value: stored && show(tag, stored.team) };
    },
    show: (team) => team,
    notFound: noTeam,
  };
  resource(api, table, (make) => [
    make.list({
      http: { ...{ summary: 'List teams by tag', response: 'All teams.' }, ...{ schema: SHOWN_TEAM, isWhole: true } },
      read: async () => ({ rows: await all() }),
      cli: { columns: COLUMNS, empty: 'There are no teams.' },
    }),
    make.show({
      http: { summary: 'Show a team', response: 'The team, with its version as ETag.' },
      show: (team) => team,
      cli: { summary: 'Show a team, as JSON', text: (team) => JSON.stringify(team, undefined, 2) },
    }),
    putAction(make, api, parts),
    removeAction(make, api),
  ]);
  api.route({
    ...{ ...FOR_OPERATORS, scope: 'teams:own', method: 'GET', path: OWN_TEAMS },
    summary: 'List the teams that you own',
    responses: { 200: { description: 'Your teams.', schema: listOf(SHOWN_TEAM) } },
    async handler(ctx) {
      const { principal } = ctx.state;
      const own = (await all()).filter((team) => ownsTeam(team, principal));
      sendList(ctx, own, undefined);
    },
  });
}

type Make = Actions<ShownTeam | undefined, number>;

function putAction(make: Make, api: PluginApi, { budgets, readRule }: Parts): Action {
  const records = api.books.records<StoredTeams>(TEAMS);
  const firstKeyOf = createKeyOrigins(api);
  const readPlans = createPlanBook(api);
  return make.change({
    word: 'put',
    http: {
      ...{ method: 'PUT', summary: 'Create or replace a team' },
      description:
        'Replaces all fields. Allowed models, providers and plans apply to keys created later. `budget` applies at once to all calls with the tag.',
      body: {
        ...TEAM,
        examples: [{ owners: { groups: ['search-leads'] }, budget: { amount_usd: 500, every: 'month' } }],
      },
    },
    async apply({ id: tag, body, expected }) {
      checkTeam(api, tag, body, [...(await readPlans()).keys()]);
      const { keys } = body.owners;
      const firsts = keys && (await Promise.all(keys.map((key) => firstKeyOf(keyIdOf(key)))));
      const team = firsts ? { ...body, owners: { ...body.owners, keys: firsts } } : body;
      const rule = team.budget && (await readRule({ ...team.budget, tag }, tag));
      const { version } = teamOf((await records.find(ALL_TEAMS)).value ?? {}, tag) ?? { version: 0 };
      if (expected !== undefined && expected !== version) throw changedMeanwhile();
      // Writes the budget first: if the second write fails, there is a budget without a team, never a team without its
      // budget.
      await budgets.change(tag, (before) => rule && { rule, raises: before?.raises ?? [] });
      const change = await records.change(ALL_TEAMS, (teams = {}) => withTeam(teams, tag, team, expected));
      const before = teamOf(change.before ?? {}, tag)?.team;
      return {
        version: teamOf(change.value, tag)?.version ?? 0,
        ...{ before, after: team },
        show: () => show(tag, team),
      };
    },
    cli: {
      summary: 'Create or replace a team',
      options: PUT_OPTIONS,
      read: readPut,
      text: ({ tag }) => `the team ${tag} is put; ${WITHIN}`,
    },
  });
}

function removeAction(make: Make, api: PluginApi): Action {
  const records = api.books.records<StoredTeams>(TEAMS);
  return make.change({
    word: 'remove',
    http: {
      ...{ method: 'DELETE', summary: 'Delete a team', response: 'The deleted team.' },
      description: 'Its owners lose access at once. Its keys, budgets and limit remain; operators manage them.',
    },
    async apply({ id: tag, expected }) {
      const { before = {} } = await records.change(ALL_TEAMS, (teams = {}) => {
        const known = teamOf(teams, tag);
        if (!known) throw noTeam(tag);
        if (expected !== undefined && expected !== known.version) throw changedMeanwhile();
        const { [tag]: _gone, ...others } = teams;
        return others;
      });
      const team = teamOf(before, tag)?.team ?? { owners: {} };
      return { before: team, show: () => show(tag, team) };
    },
    cli: {
      summary: 'Delete a team; its keys, budgets and limit remain',
      text: ({ tag }) => `the team ${tag} is removed; ${WITHIN}`,
    },
  });
}

function show(tag: string, team: Team): ShownTeam {
  return { object: 'team', tag, ...team };
}

function withTeam(teams: StoredTeams, tag: string, team: Team, expected: number | undefined): StoredTeams {
  const known: StoredTeam | undefined = teamOf(teams, tag);
  if (expected !== undefined && expected !== (known?.version ?? 0)) throw changedMeanwhile();
  if (!known && Object.keys(teams).length >= MAX_TEAMS)
    throw new GatewayError('conflict', `The maximum of ${MAX_TEAMS} teams is reached. Delete one first.`);
  // A team that is deleted and created again has a new version.
  const version = Math.max(Date.now(), ...Object.values(teams).map((each) => each.version + 1));
  return { ...teams, [tag]: { team, version } };
}

function noTeam(tag: string): GatewayError {
  return new GatewayError(
    'not_found',
    `There is no team "${shownTag(tag)}". "tollgate accounts teams list" shows them.`,
  );
}

/** Throws for an unknown tag, plan, provider or model. */
function checkTeam(api: PluginApi, tag: string, team: Team, plans: readonly string[]): void {
  const reason = refuseTag(tag, api.settings.tags);
  if (reason !== undefined) throw new GatewayError('invalid_request', reason, { param: 'tag' });
  const { users = [], groups = [], keys = [] } = team.owners;
  if (users.length + groups.length + keys.length === 0)
    throw new GatewayError('invalid_request', 'A team needs an owner: name a user, a group or a key.', {
      param: 'owners',
    });
  const models = createModelNames(api);
  const lists: readonly (readonly [
    field: string,
    named: readonly string[] | undefined,
    isKnown: (name: string) => boolean,
  ])[] = [
    ['plans', team.plans, (name) => plans.includes(name)],
    ['providers', team.providers, (name) => models.providers.includes(name)],
    [
      'models',
      team.models,
      (name) => models.isModel(name) || (team.providers ?? []).some((each) => models.isModelOf(each, name)),
    ],
  ];
  for (const [field, named = [], isKnown] of lists)
    for (const [at, name] of named.entries())
      if (!isKnown(name))
        throw new GatewayError(
          'invalid_request',
          `There is no "${name.replace(/[\p{Cc}\p{Cf}]/gu, '?').slice(0, 80)}" here. Check "${field}" against the configuration.`,
          { param: `${field}[${at}]` },
        );
}

const PUT_OPTIONS: readonly CommandOption[] = [
  { flags: '--owner-user <list>', summary: 'owners: users with the role team, comma-separated' },
  { flags: '--owner-group <list>', summary: 'owners: groups of the identity provider' },
  { flags: '--owner-key <list>', summary: 'owners: keys with the role team' },
  { flags: '--account <id>', summary: 'account that is charged (default: the tag)' },
  { flags: '--members <list>', summary: 'users for whom owners may create keys; * is all' },
  { flags: '--models <list>', summary: 'models that its keys may use' },
  { flags: '--providers <list>', summary: 'providers that its keys may use' },
  { flags: '--server-tools <list>', summary: 'vendor tools that its keys may use' },
  { flags: '--plans <list>', summary: 'plans that its keys may have' },
  { flags: '--budget <usd>', summary: 'limit for all calls with the tag, in US dollars' },
  { flags: '--every <period>', summary: 'period of --budget: total, hour, day, week or month (default: month)' },
  { flags: '--timezone <zone>', summary: 'time zone of the period of --budget (default: UTC)' },
];

const EVERY = ['total', 'hour', 'day', 'week', 'month'] as const;

function readPut({ options }: CommandInput): Team {
  const list = <Name extends string>(option: string, name: Name) => namesOf(name, option, textOf(options, option));
  const word = textOf(options, 'every') ?? 'month';
  const every = EVERY.find((each) => each === word);
  if (!every)
    throw new GatewayError('invalid_request', `--every must be one of ${EVERY.join(', ')}.`, { param: 'every' });
  const [amount, account] = [textOf(options, 'budget'), textOf(options, 'account')];
  return {
    owners: { ...list('ownerUser', 'users'), ...list('ownerGroup', 'groups'), ...list('ownerKey', 'keys') },
    ...{ ...list('members', 'members'), ...list('models', 'models'), ...list('providers', 'providers') },
    ...{ ...list('serverTools', 'server_tools'), ...list('plans', 'plans') },
    ...(account !== undefined && { account }),
    ...(amount !== undefined && {
      budget: { amount_usd: amount, every, timezone: textOf(options, 'timezone') ?? 'UTC' },
    }),
  };
}

/** Reads an option with names into a field; omits the field if the option is missing. */
function namesOf<Name extends string>(name: Name, option: string, text?: string): Partial<Record<Name, string[]>>;
function namesOf(name: string, option: string, text?: string): object {
  if (text === undefined) return {};
  const words = text.split(',').map((word) => word.trim());
  if (words.length <= 100 && words.every((word) => word !== '' && word.length <= 256))
    return { [name]: [...new Set(words)] };
  const flag = option.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  throw new GatewayError('invalid_request', `--${flag} must have 1 to 100 comma-separated names.`, { param: flag });
}
