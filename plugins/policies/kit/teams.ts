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

/** Team in the form that operators send: a tag whose owners create keys and budgets within it. */
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

/** Teams by tag, in one record. */
export interface StoredTeams {
  readonly [tag: string]: StoredTeam;
}

export interface StoredTeam {
  readonly team: Team;
  /** Increases with each change of this team. */
  readonly version: number;
}

/** Name of the record of teams, and its only id. */
export const TEAMS = 'teams';
export const ALL_TEAMS = 'all';

/** Finds a team by an untrusted tag. */
export function teamOf(teams: StoredTeams, tag: string): StoredTeam | undefined {
  return Object.hasOwn(teams, tag) ? teams[tag] : undefined;
}

/** Formats an untrusted tag for a message. */
export function shownTag(tag: string): string {
  return tag.replace(/[^\w .:/@+=-]/g, '?').slice(0, 129);
}

/** True if the principal owns a team; an admin owns all. Keys that replaced one another are identified by the first. */
export function ownsTeam(
  { owners: { users, groups, keys } }: Team,
  { isAdmin, userId, keyId, limitsId = keyId, groups: own = [] }: Principal,
): boolean {
  if (isAdmin === true || users?.includes(userId)) return true;
  return (limitsId !== undefined && keys?.includes(limitsId)) || own.some((group) => groups?.includes(group));
}

/** Path of the owners' routes; no others are open to them. */
export const OWN_TEAMS = '/api/core/admin/own-teams';

/** Team that the caller owns. */
export interface OwnTeam {
  readonly tag: string;
  readonly team: Team;
}

type TeamRoute<Body extends object> = Pick<
  Route<Body>,
  'method' | 'path' | 'summary' | 'description' | 'body' | 'bodyOptional' | 'query' | 'responses'
> & { handler(ctx: Parameters<Route<Body>['handler']>[0], own: OwnTeam): Promise<void> };

/**
 * Returns a function that registers a route within a team, for its owners alone. Ownership is read for each request.
 */
export function createTeamRoutes(
  api: Pick<PluginApi, 'books' | 'route'>,
): <const Body extends object>(route: TeamRoute<Body>) => void {
  const teams = api.books.records<StoredTeams>(TEAMS);
  const find = async ({ params, state: { principal } }: RouteContext<unknown>): Promise<OwnTeam> => {
    const tag = params['team'] ?? '';
    const team = teamOf((await teams.find(ALL_TEAMS)).value ?? {}, tag)?.team;
    if (team && ownsTeam(team, principal)) return { tag, team };
    // The same error for another owner's team and a missing one, so that the caller cannot tell which exist.
    throw new GatewayError(
      'permission_denied',
      `You do not own a team "${shownTag(tag)}". GET ${OWN_TEAMS} lists your teams; an admin can add owners.`,
      { refusedBy: 'the ownership of the team' },
    );
  };
  return ({ handler, path, ...route }) =>
    api.route({
      ...FOR_OPERATORS,
      scope: 'teams:own',
      ...route,
      path: `${OWN_TEAMS}/:team${path}`,
      handler: async (ctx) => handler(ctx, await find(ctx)),
    });
}

/** Error for every restriction of owners, with the field. */
export function beyondTeam(param: string, allowed: string): GatewayError {
  return new GatewayError('permission_denied', `Not allowed for this team. Allowed for ${param}: ${allowed}.`, {
    param,
  });
}

/** Rejects a tag other than the team's own. */
export function refuseOtherTag(tag: string | undefined, own: string, param = 'tag'): void {
  if (tag !== undefined && tag !== own) throw beyondTeam(param, `"${own}" alone`);
}
