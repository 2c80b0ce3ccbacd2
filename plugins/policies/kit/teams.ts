import {
  GatewayError,
  type PluginApi,
  type PluginConfig,
  type Principal,
  type Route,
  type RouteContext,
  type Schema,
} from '../../../contract/index.ts';
import { OWN_BUDGET } from '../../../contract/operators.ts';
import { FOR_OPERATORS } from './operator-lists.ts';

const NAMES = {
  minItems: 1,
  maxItems: 100,
  uniqueItems: true,
  items: { type: 'string', minLength: 1, maxLength: 256 },
} as const;
const names = (description: string) => ({ type: 'array', ...NAMES, description }) as const;
const { amount_usd, every, timezone, starts_on, soft_usd } = OWN_BUDGET.properties;

/** A team as operators put it: a tag whose owners make keys and budgets within it. */
export const TEAM = {
  type: 'object',
  additionalProperties: false,
  required: ['owners'],
  properties: {
    owners: {
      type: 'object',
      additionalProperties: false,
      minProperties: 1,
      properties: {
        users: names('User ids of people and keys with the role `team`.'),
        groups: names('Groups: claim values with the role `team` in `roles` of `auth.openid` or `auth.jwt`.'),
        keys: names('Keys with the role `team`, by id or `tg_` prefix, and their rotated successors.'),
      },
      description: 'Owners, who may create keys and budgets of the team. Each also needs the role `team`.',
    },
    account: {
      type: 'string',
      minLength: 1,
      maxLength: 256,
      pattern: '^[^\\u0000-\\u001f\\u007f]+$',
      description: 'Account charged for keys that owners create. Default: the tag itself.',
    },
    members: names('Users for whom owners may create keys, in addition to the team itself; `*` allows all.'),
    models: names('Models that its keys may use. Default: all.'),
    providers: names('Providers that its keys may use. Default: all.'),
    server_tools: names('Vendor tools that its keys may use. Default: none.'),
    plans: names('Plans that its keys may have. Default: only that of the account.'),
    budget: {
      type: 'object',
      additionalProperties: false,
      required: ['amount_usd', 'every'],
      properties: { amount_usd, every, timezone, starts_on, soft_usd },
      description: 'Maximum spend of all calls with the tag. Budgets that owners create cannot exceed it.',
    },
  },
} as const satisfies Schema;

export type Team = PluginConfig<typeof TEAM>;

/** Teams by their tag, in one record. */
export interface StoredTeams {
  readonly [tag: string]: StoredTeam;
}

export interface StoredTeam {
  readonly team: Team;
  /** Grows with each change of this team. */
  readonly version: number;
}

/** The name of the record of teams, and its only id. */
export const TEAMS = 'teams';
export const ALL_TEAMS = 'all';

/** A team, found by a tag that comes from strangers. */
export function teamOf(teams: StoredTeams, tag: string): StoredTeam | undefined {
  return Object.hasOwn(teams, tag) ? teams[tag] : undefined;
}

/** A tag that comes from strangers, for a message. */
export function shownTag(tag: string): string {
  return tag.replace(/[^\w .:/@+=-]/g, '?').slice(0, 129);
}

/** Whether a team is somebody's; an admin has all. Keys are known by the first of those that replaced one another. */
export function ownsTeam(
  { owners: { users, groups, keys } }: Team,
  { isAdmin, userId, keyId, limitsId = keyId, groups: own = [] }: Principal,
): boolean {
  if (isAdmin === true || users?.includes(userId)) return true;
  return (limitsId !== undefined && keys?.includes(limitsId)) || own.some((group) => groups?.includes(group));
}

/** Where owners work; nothing else is open to them. */
export const OWN_TEAMS = '/api/core/admin/own-teams';

/** A team that the caller owns. */
export interface OwnTeam {
  readonly tag: string;
  readonly team: Team;
}

type TeamRoute<Body extends object> = Pick<
  Route<Body>,
  'method' | 'path' | 'summary' | 'description' | 'body' | 'bodyOptional' | 'query' | 'responses'
> & { handler(ctx: Parameters<Route<Body>['handler']>[0], own: OwnTeam): Promise<void> };

/** Makes what registers a route within a team, for its owners alone: who owns it is read anew each time. */
export function createTeamRoutes(
  api: Pick<PluginApi, 'records' | 'route'>,
): <const Body extends object>(route: TeamRoute<Body>) => void {
  const teams = api.records<StoredTeams>(TEAMS);
  const find = async ({ params, state: { principal } }: RouteContext<unknown>): Promise<OwnTeam> => {
    const tag = params['team'] ?? '';
    const team = teamOf((await teams.find(ALL_TEAMS)).value ?? {}, tag)?.team;
    if (team && ownsTeam(team, principal)) return { tag, team };
    // One sentence for a team of others and for none: who asks learns nothing.
    throw new GatewayError(
      'permission_denied',
      `You do not own a team "${shownTag(tag)}". GET ${OWN_TEAMS} lists your teams; an admin can add owners.`,
      { refusedBy: 'the ownership of the team' },
    );
  };
  return ({ handler, path, ...route }) =>
    api.route({
      ...{ ...FOR_OPERATORS, scope: 'teams:own', ...route, path: `${OWN_TEAMS}/:team${path}` },
      handler: async (ctx) => handler(ctx, await find(ctx)),
    });
}

/** What owners may not do is one error, which names the field. */
export function beyondTeam(param: string, allowed: string): GatewayError {
  return new GatewayError('permission_denied', `Not allowed for this team. Allowed for ${param}: ${allowed}.`, {
    param,
  });
}

/** Refuses a tag that is not the team's own. */
export function refuseOtherTag(tag: string | undefined, own: string, param = 'tag'): void {
  if (tag !== undefined && tag !== own) throw beyondTeam(param, `"${own}" alone`);
}
