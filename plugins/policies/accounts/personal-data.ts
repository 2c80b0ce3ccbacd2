import type { AccountRecord, PersonalData, PluginApi, Records } from '../../../contract/index.ts';
import { ACCOUNTS, ALL_TEAMS, type StoredTeam, type StoredTeams, TEAMS, type Team } from '../kit/index.ts';
import { type AccountRaise, ALL_RAISES, RAISES } from './budgets/account-raises.ts';
import { createBudgetRecords, type NamedBudget } from './budgets/records.ts';

/** Registers what accounts store about people, apart from the ledger. */
export function registerPersonalData(api: Pick<PluginApi, 'books' | 'settings' | 'stores'>): void {
  const { stores, books } = api;
  // Documents of an account that several users share cannot be separated by user.
  stores.personalData({
    name: 'kept_documents',
    count: ({ userId }) => stores.stored.count(userId),
    erase: ({ userId }) => stores.stored.count(userId, true),
  });
  stores.personalData(planOfAccount(books.records<AccountRecord>(ACCOUNTS)));
  stores.personalData(budgetsOfUser(api));
  stores.personalData(raisesOfAccount(books.records<readonly AccountRaise[]>(RAISES)));
  stores.personalData(teamsOfUser(books.records<StoredTeams>(TEAMS)));
}

function planOfAccount(accounts: Records<AccountRecord>): PersonalData {
  const count = async (id: string): Promise<number> => ((await accounts.find(id)).value?.plan === undefined ? 0 : 1);
  return {
    name: 'plans_of_the_account',
    count: ({ userId }) => count(userId),
    async erase({ userId }) {
      const found = await count(userId);
      if (found > 0) await accounts.change(userId, () => ({}));
      return found;
    },
  };
}

/** Budgets of the store that name the user. Those of the configuration are the operator's to change. */
function budgetsOfUser(api: Pick<PluginApi, 'books' | 'settings'>): PersonalData {
  const records = createBudgetRecords(api);
  const find = async (id: string): Promise<readonly NamedBudget[]> =>
    (await records.read()).budgets.filter(
      ({ owner, rule: { user, endUser } }) => owner === 'store' && (user === id || endUser === id),
    );
  return {
    name: 'budgets',
    count: async ({ userId }) => (await find(userId)).length,
    async erase({ userId }) {
      const found = await find(userId);
      for (const { name } of found) await records.change(name, () => undefined);
      return found.length;
    },
  };
}

function raisesOfAccount(records: Records<readonly AccountRaise[]>): PersonalData {
  const find = async (id: string): Promise<readonly AccountRaise[]> =>
    ((await records.find(ALL_RAISES)).value ?? []).filter(({ account }) => account === id);
  return {
    name: 'raised_budgets',
    count: async ({ userId }) => (await find(userId)).length,
    async erase({ userId }) {
      const found = await find(userId);
      if (found.length > 0)
        await records.change(ALL_RAISES, (raises = []) => raises.filter(({ account }) => account !== userId));
      return found.length;
    },
  };
}

/** Teams that name the user as an owner or a member. */
function teamsOfUser(records: Records<StoredTeams>): PersonalData {
  const find = async (id: string): Promise<readonly StoredTeam[]> =>
    Object.values((await records.find(ALL_TEAMS)).value ?? {}).filter(({ team }) => names(team, id));
  return {
    name: 'teams',
    count: async ({ userId }) => (await find(userId)).length,
    async erase({ userId }) {
      const found = await find(userId);
      if (found.length > 0) await records.change(ALL_TEAMS, (teams = {}) => leaveTeams(teams, userId));
      return found.length;
    },
  };
}

function names({ owners, members }: Team, id: string): boolean {
  return owners.users?.includes(id) === true || members?.includes(id) === true;
}

function leaveTeams(teams: StoredTeams, id: string): StoredTeams {
  const others = (users: readonly string[] = []): string[] => users.filter((user) => user !== id);
  const left = Object.entries(teams).map(([tag, stored]) => {
    const { team, version } = stored;
    if (!names(team, id)) return [tag, stored] as const;
    const { users, ...owners } = team.owners;
    const { members, ...rest } = team;
    const [ownersLeft, membersLeft] = [others(users), others(members)];
    const changed: Team = {
      ...rest,
      owners: { ...owners, ...(ownersLeft.length > 0 && { users: ownersLeft }) },
      ...(membersLeft.length > 0 && { members: membersLeft }),
    };
    return [tag, { team: changed, version: version + 1 }] as const;
  });
  return Object.fromEntries(left);
}
