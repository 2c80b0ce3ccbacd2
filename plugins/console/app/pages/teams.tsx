import { useState } from 'preact/hooks';
import { change, get, getSome, may, type Page } from '../api.ts';
import { BudgetLine } from '../budget-line.tsx';
import { count, until, usd, zone } from '../format.ts';
import { NewKey } from '../key-forms.tsx';
import { describeLimits, KeyState } from '../key-state.tsx';
import { List } from '../list.tsx';
import { ObjectForm } from '../object-form.tsx';
import { linkTo, route } from '../routing.ts';
import type { Budget, Key, Team, Usage, UsageRow } from '../shapes.ts';
import { Button, type Column, Facts, PageHead, Panel, Problem, Spinner, Table, Usd, useLoad } from '../ui.tsx';

interface Work {
  /** Undefined for a new team. */
  readonly tag?: string;
}

/** Tags with owners: all of them, or the owner's own. */
export function Teams() {
  const { team: shown } = route.value.query;
  const [work, setWork] = useState<Work>();
  const teams = useLoad('teams', () => get<Page<Team>>(may('teams:read') ? '/teams' : '/own-teams'));
  const rows = teams.data?.data ?? [];
  const one = rows.find(({ tag }) => tag === shown);
  const close = (): void => {
    setWork(undefined);
    teams.reload();
  };
  return (
    <>
      <PageHead title="Teams" note="A team is a tag. Its owners create keys and budgets within it, and see its usage.">
        {may('teams:write') && (
          <Button kind="main" onClick={() => setWork({})}>
            New team
          </Button>
        )}
      </PageHead>
      <Problem error={teams.error} retry={teams.reload} />
      <Spinner of={teams} />
      {teams.data && (
        <Table
          label="Teams"
          rows={rows}
          keyOf={({ tag }) => tag}
          isCurrent={({ tag }) => tag === shown}
          empty={
            may('teams:read')
              ? 'No teams yet. Create one, and its owners create keys themselves.'
              : 'You own no team. An admin sets owners.'
          }
          columns={columnsOf((tag) => setWork({ tag }))}
        />
      )}
      {one && <OneTeam key={one.tag} team={one} />}
      {teams.data && shown && !one && <p class="muted">There is no team {shown}, or it is not yours to see.</p>}
      {work && <TeamForm {...work} onClose={close} />}
    </>
  );
}

function TeamForm({ tag, onClose }: Work & { onClose: () => void }) {
  return (
    <ObjectForm
      id={tag}
      noun="team"
      path="/teams"
      name={{ label: 'Tag', hint: 'Such as team=search.' }}
      first={['owners', 'members', 'budget', 'models']}
      removal="Delete the team; its keys and budgets stay"
      onClose={onClose}
    />
  );
}

function columnsOf(edit: (tag: string) => void): readonly Column<Team>[] {
  return [
    { name: 'Team', cell: ({ tag }) => <a href={linkTo('teams', { team: tag })}>{tag}</a> },
    { name: 'Owners', cell: ({ owners }) => ownersOf(owners) },
    { name: 'Account', isExtra: true, cell: ({ tag, account }) => account ?? tag },
    { name: 'Models', isExtra: true, cell: ({ models, providers }) => listed(models ?? providers, 'all') },
    {
      name: 'At most',
      isNumber: true,
      cell: ({ budget }) => (budget ? `${usd(String(budget.amount_usd))} a ${budget.every}` : 'no limit'),
    },
    {
      name: 'Actions',
      isQuiet: true,
      cell: ({ tag }) =>
        may('teams:write') && (
          <Button kind="quiet" aria-label={`Edit ${tag}`} onClick={() => edit(tag)}>
            Edit
          </Button>
        ),
    },
  ];
}

function ownersOf({ users = [], groups = [], keys = [] }: Team['owners']): string {
  return [...users, ...groups.map((name) => `group ${name}`), ...keys.map((id) => `key ${id}`)].join(', ');
}

function listed(names: readonly string[] | undefined, otherwise: string): string {
  return names ? names.join(', ') : otherwise;
}

/** Resources of a team, managed by its owners. */
function OneTeam({ team }: { team: Team }) {
  const { tag, members, server_tools: tools, plans } = team;
  return (
    <>
      <div class="grid">
        <Panel
          title={tag}
          actions={
            <>
              {may('usage:read') && <a href={linkTo('usage', { tag })}>Usage</a>}
              {may('calls:read') && <a href={linkTo('calls', { tag })}>Calls</a>}
            </>
          }
        >
          <Facts
            rows={[
              ['Owners', ownersOf(team.owners)],
              ['Account', team.account ?? tag],
              ['Members', listed(members, 'none: keys belong to the team')],
              ['Models', listed(team.models, 'all')],
              ['Providers', listed(team.providers, 'all')],
              ['Plans', listed(plans, 'the account’s')],
              ['Server tools', listed(tools, 'none')],
            ]}
          />
        </Panel>
        <TeamBudgets tag={tag} />
      </div>
      <Members tag={tag} />
      {may('teams:own') && <TeamKeys tag={tag} />}
    </>
  );
}

/** Owners use the team's own routes; people who may read everything use the general ones. */
function pathOfTeam(tag: string, rest: string): string {
  return `/own-teams/${encodeURIComponent(tag)}${rest}`;
}

/** All members with calls in the last 30 days, by spend. */
function Members({ tag }: { tag: string }) {
  const isOwn = may('teams:own');
  const { after } = route.value.query;
  const path = isOwn ? pathOfTeam(tag, '/usage') : '/usage';
  const query = { last: '30d', by: 'user', sort: 'cost', tz: zone.value, ...(!isOwn && { tag }) };
  const usage = useLoad(isOwn || may('usage:read') ? JSON.stringify([tag, after, query]) : undefined, () =>
    get<Usage>(path, { ...query, limit: 100, after }),
  );
  if (!isOwn && !may('usage:read')) return null;
  return (
    <Panel
      title="Spend by member"
      note={
        usage.data && (
          <>
            last 30 days, <Usd of={usage.data.totals.cost_usd} /> in all
          </>
        )
      }
    >
      <Problem error={usage.error} retry={usage.reload} />
      <Spinner of={usage} />
      {usage.data && (
        <List
          name="members"
          label={`Usage of ${tag} by user`}
          path={path}
          query={query}
          rows={usage.data.data}
          next={usage.data.next}
          total={`${count(usage.data.rows)} ${usage.data.rows === 1 ? 'member' : 'members'} with calls`}
          keyOf={({ user }) => String(user)}
          empty="No calls with this tag."
          columns={MEMBER_COLUMNS}
        />
      )}
    </Panel>
  );
}

const MEMBER_COLUMNS: readonly Column<UsageRow>[] = [
  {
    name: 'User',
    value: ({ user }) => String(user),
    cell: ({ user }) => (
      <div class="wrap">
        {may('users:read') ? <a href={linkTo('users', { id: String(user) })}>{String(user)}</a> : String(user)}
      </div>
    ),
  },
  { name: 'Calls', isNumber: true, value: (row) => row.requests, cell: (row) => count(row.requests) },
  { name: 'Errors', isNumber: true, isExtra: true, value: (row) => row.errors, cell: (row) => count(row.errors) },
  { name: 'Cost', isNumber: true, value: (row) => row.cost_usd, cell: (row) => <Usd of={row.cost_usd} /> },
];

function TeamBudgets({ tag }: { tag: string }) {
  const isOwn = may('teams:own');
  const [isNew, setNew] = useState(false);
  const [sure, setSure] = useState<string>();
  const [error, setError] = useState<unknown>();
  const budgets = useLoad(isOwn || may('budgets:read') ? tag : undefined, async () => {
    const page = await get<Page<Budget>>(isOwn ? pathOfTeam(tag, '/budgets') : '/budgets');
    return page.data.filter((budget) => budget.tag === tag);
  });
  const remove = (name: string): void => {
    setError(undefined);
    setSure(undefined);
    change('DELETE', pathOfTeam(tag, `/budgets/${encodeURIComponent(name)}`)).then(budgets.reload, setError);
  };
  return (
    <Panel
      title="Budgets"
      note="of calls with the tag"
      actions={isOwn && <Button onClick={() => setNew(true)}>New budget</Button>}
    >
      <Problem error={error ?? budgets.error} retry={budgets.reload} />
      <Spinner of={budgets} />
      <ul class="lines">
        {budgets.data?.map((budget) => (
          <li key={budget.name}>
            <BudgetLine budget={budget} />
            <div class="spread">
              <span class="muted">{budget.resets_at && `resets ${until(budget.resets_at)}`}</span>
              {isOwn &&
                budget.name.startsWith(`${tag}~`) &&
                (sure === budget.name ? (
                  <Button kind="danger" onClick={() => remove(budget.name)}>
                    Remove {budget.name} for good
                  </Button>
                ) : (
                  <Button kind="quiet" aria-label={`Remove ${budget.name}`} onClick={() => setSure(budget.name)}>
                    Remove …
                  </Button>
                ))}
            </div>
          </li>
        ))}
        {budgets.data?.length === 0 && <li class="muted">No budgets with this tag.</li>}
      </ul>
      {isNew && (
        <ObjectForm
          noun={`budget of ${tag}`}
          path={pathOfTeam(tag, '/budgets')}
          route="/own-teams/{team}/budgets"
          name={{ label: 'Name' }}
          first={['amount_usd', 'every', 'user', 'model']}
          onClose={() => {
            setNew(false);
            budgets.reload();
          }}
        />
      )}
    </Panel>
  );
}

/** Keys that are shown at once. */
const A_PAGE = 100;

function TeamKeys({ tag }: { tag: string }) {
  const [isNew, setNew] = useState(false);
  const [sure, setSure] = useState<string>();
  const [error, setError] = useState<unknown>();
  const [limit, setLimit] = useState(A_PAGE);
  const keys = useLoad(`${tag} ${limit}`, () => getSome<Key>(pathOfTeam(tag, '/keys'), {}, limit));
  const revoke = (id: string): void => {
    setError(undefined);
    setSure(undefined);
    change('POST', pathOfTeam(tag, `/keys/${encodeURIComponent(id)}/revoke`)).then(keys.reload, setError);
  };
  return (
    <Panel title="Keys" actions={<Button onClick={() => setNew(true)}>New key</Button>}>
      <Problem error={error ?? keys.error} retry={keys.reload} />
      <Spinner of={keys} />
      {keys.data && (
        <Table
          label={`Keys of ${tag}`}
          rows={keys.data.data}
          keyOf={({ id }) => id}
          empty="The team has no keys yet."
          columns={[
            { name: 'Key', cell: (key) => <KeyName item={key} /> },
            { name: 'User', cell: ({ user_id }) => user_id },
            { name: 'State', cell: (key) => <KeyState item={key} /> },
            { name: 'Limits', isExtra: true, cell: describeLimits },
            { name: 'Spent', isNumber: true, cell: ({ spent_usd }) => <Usd of={spent_usd} /> },
            {
              name: 'Actions',
              isQuiet: true,
              cell: ({ id, prefix, revoked_at }) =>
                revoked_at === null && (
                  <Revoke
                    prefix={prefix}
                    isSure={sure === id}
                    onFirst={() => setSure(id)}
                    onSecond={() => revoke(id)}
                  />
                ),
            },
          ]}
        />
      )}
      {keys.data?.next !== undefined && <Button onClick={() => setLimit(limit + A_PAGE)}>Show more</Button>}
      {isNew && (
        <NewKey
          team={tag}
          onClose={() => {
            setNew(false);
            keys.reload();
          }}
        />
      )}
    </Panel>
  );
}

function KeyName({ item: { prefix, name } }: { item: Key }) {
  return (
    <>
      <code>{prefix}</code> <b>{name || 'unnamed'}</b>
    </>
  );
}

/** Revokes a key on the second click, whose button names the key. */
function Revoke({ prefix, isSure, onFirst, onSecond }: RevokeProps) {
  return isSure ? (
    <Button kind="danger" onClick={onSecond}>
      Revoke {prefix} for good
    </Button>
  ) : (
    <Button kind="quiet" aria-label={`Revoke ${prefix}`} onClick={onFirst}>
      Revoke …
    </Button>
  );
}

interface RevokeProps {
  readonly prefix: string;
  readonly isSure: boolean;
  readonly onFirst: () => void;
  readonly onSecond: () => void;
}
