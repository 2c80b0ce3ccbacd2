import { useState } from 'preact/hooks';
import { change, get, getSome, hasRoute, may, type Page } from '../api.ts';
import { Outcome, targetOf } from '../calls-table.tsx';
import { EraseUser } from '../erase-user.tsx';
import { count, until, zone } from '../format.ts';
import { EditKey, NewKey } from '../key-forms.tsx';
import { keyColumns } from '../keys-table.tsx';
import { type Filter, Filters, LoadedList, useList } from '../list.tsx';
import { ActionButton } from '../object-form.tsx';
import { linkTo, route } from '../routing.ts';
import type { Call, Key, ProgramSignIn, Usage, User, WholeAccount } from '../shapes.ts';
import {
  Badge,
  Button,
  type Column,
  Facts,
  PageHead,
  Panel,
  Problem,
  Spinner,
  Table,
  Time,
  Usd,
  useLoad,
} from '../ui.tsx';
import { AccountBudgets, AccountFacts } from './accounts.tsx';

const FILTERS: readonly Filter[] = [
  { name: 'name', label: 'Name', placeholder: 'part of the id or name' },
  { name: 'plan', label: 'Plan', names: 'plan' },
  {
    name: 'state',
    label: 'State',
    options: [
      ['', 'all'],
      ['active', 'active'],
      ['blocked', 'blocked'],
    ],
  },
];

/** Users with a key or a call; with `id` one of them. */
export function Users() {
  const { id } = route.value.query;
  return id ? <OneUser key={id} id={id} /> : <UserList />;
}

function UserList() {
  const { name, plan, state, after } = route.value.query;
  const query = { name, plan, state, after };
  const list = useList<User>('/users', query);
  return (
    <>
      <PageHead title="Users" note="Everyone with a key, a token or a call." />
      <Filters label="Filters of users" filters={FILTERS} />
      <LoadedList
        name="users"
        label="Users"
        path="/users"
        query={query}
        list={list}
        keyOf={(user) => user.id}
        empty={(name ?? plan ?? state) ? 'No user matches. Remove a filter.' : 'No users yet.'}
        columns={COLUMNS}
      />
    </>
  );
}

const COLUMNS: readonly Column<User>[] = [
  {
    name: 'User',
    value: ({ id }) => id,
    cell: ({ id, name }) => (
      <div class="wrap">
        <a href={linkTo('users', { id })}>{id}</a> {name && <span class="muted">{name}</span>}
      </div>
    ),
  },
  {
    name: 'State',
    value: ({ blocked }) => (blocked ? 'blocked' : 'active'),
    cell: ({ blocked }) => <Badge tone={blocked ? 'bad' : 'good'}>{blocked ? 'blocked' : 'active'}</Badge>,
  },
  { name: 'Plan', value: ({ plan }) => plan, cell: ({ plan }) => plan ?? '–' },
  { name: 'Account', isExtra: true, value: ({ account }) => account, cell: ({ account }) => account },
  { name: 'Keys', isNumber: true, isExtra: true, value: ({ keys }) => keys, cell: ({ keys }) => count(keys) },
  {
    name: 'Spent this month',
    isNumber: true,
    value: (user) => user.spent_this_month_usd,
    cell: (user) => <Usd of={user.spent_this_month_usd} />,
  },
  {
    name: 'Last call',
    value: ({ last_call_at }) => last_call_at,
    cell: ({ last_call_at }) => <Time at={last_call_at} />,
  },
];

/** One user: spend, plan, balance, budgets, latest failures, sign-ins and keys. */
function OneUser({ id }: { id: string }) {
  const path = `/users/${encodeURIComponent(id)}`;
  const user = useLoad(id, () => get<User>(path));
  const [error, setError] = useState<unknown>();
  const unblock = (): void => {
    setError(undefined);
    change('POST', `${path}/unblock`).then(user.reload, setError);
  };
  const account = useLoad(may('accounts:read') ? user.data?.account : undefined, () =>
    get<WholeAccount>(`/accounts/${encodeURIComponent(user.data?.account ?? id)}`),
  );
  return (
    <>
      <PageHead title={id} note={user.data?.name ?? 'User'}>
        {may('usage:read') && <a href={linkTo('usage', { user: id })}>Usage</a>}
        {may('calls:read') && <a href={linkTo('calls', { user: id })}>Calls</a>}
        {may('users:write') && user.data && (
          <>
            <ActionButton
              label="Name"
              title={`Name of ${id}`}
              method="patch"
              route="/users/{id}"
              path={path}
              first={['name']}
              start={{ ...user.data }}
              onDone={user.reload}
            />
            {user.data.blocked ? (
              <Button onClick={unblock}>Unblock this user</Button>
            ) : (
              <ActionButton
                label="Block this user"
                title={`Block ${id}`}
                route="/users/{id}/block"
                path={`${path}/block`}
                first={['reason']}
                onDone={user.reload}
              />
            )}
          </>
        )}
        {may('users:erase') && user.data && <EraseUser id={id} />}
      </PageHead>
      <Problem error={error ?? user.error} retry={user.reload} />
      <Spinner of={user} />
      {user.data?.blocked && (
        <p role="status">
          <Badge tone="bad">blocked</Badge> <Time at={user.data.blocked_at} /> {user.data.blocked_reason}
        </p>
      )}
      <div class="grid">
        {user.data && (
          <Panel title="Spend">
            <p class="figures">
              <span>
                <b class="big">
                  <Usd of={user.data.spent_this_month_usd} />
                </b>{' '}
                this month (UTC)
              </span>
            </p>
            <Facts
              rows={[
                ['Plan', user.data.plan ?? 'none'],
                ['Keys', count(user.data.keys)],
                ['Last call', <Time at={user.data.last_call_at} />],
              ]}
            />
          </Panel>
        )}
        {may('accounts:read') && (
          <Panel title="Balance">
            <Problem error={account.error} retry={account.reload} />
            {account.data && <AccountFacts account={account.data} />}
          </Panel>
        )}
        {account.data && <AccountBudgets budgets={account.data.budgets} />}
        {may('usage:read') && <Spend id={id} />}
        {may('calls:read') && <Failures id={id} />}
      </div>
      {may('keys:read') && <UserKeys id={id} />}
      {may('users:read') && <Programs id={id} />}
    </>
  );
}

function Spend({ id }: { id: string }) {
  const tz = zone.value;
  const usage = useLoad(`${id} ${tz}`, () =>
    get<Usage>('/usage', { user: id, last: '30d', by: 'model', sort: 'cost', limit: 10, tz }),
  );
  return (
    <Panel title="Usage of the last 30 days" note={usage.data && <Usd of={usage.data.totals.cost_usd} />}>
      <Problem error={usage.error} retry={usage.reload} />
      <Spinner of={usage} />
      {usage.data && (
        <Table
          label={`Usage of ${id} by model`}
          rows={usage.data.data}
          keyOf={({ model }) => String(model)}
          empty="No calls in the last 30 days."
          columns={[
            { name: 'Model', cell: ({ model }) => <div class="wrap">{String(model)}</div> },
            { name: 'Calls', isNumber: true, cell: ({ requests }) => count(requests) },
            { name: 'Errors', isNumber: true, isExtra: true, cell: ({ errors }) => count(errors) },
            { name: 'Cost', isNumber: true, cell: ({ cost_usd }) => <Usd of={cost_usd} /> },
          ]}
        />
      )}
    </Panel>
  );
}

/** Number of failures of each kind. */
const FAILURES = 5;

function Failures({ id }: { id: string }) {
  const found = useLoad(id, async () => {
    const [errors, refusals] = await Promise.all(
      ['error', 'refused'].map((outcome) => getSome<Call>('/calls', { user: id, outcome }, FAILURES)),
    );
    return [...(errors?.data ?? []), ...(refusals?.data ?? [])]
      .sort((a, b) => (a.at < b.at ? 1 : -1))
      .slice(0, FAILURES);
  });
  return (
    <Panel title="Latest failures" actions={<a href={linkTo('calls', { user: id, outcome: 'error' })}>All errors</a>}>
      <Problem error={found.error} retry={found.reload} />
      <Spinner of={found} />
      <ul class="lines">
        {found.data?.map((call) => (
          <li key={call.id}>
            <a href={linkTo('calls', { user: id, id: call.id })}>
              <Time at={call.at} />
            </a>{' '}
            <Outcome call={call} /> <span class="muted">{targetOf(call)}</span>
            <p>{call.error_message}</p>
          </li>
        ))}
        {found.data?.length === 0 && <li class="muted">No call failed or was rejected.</li>}
      </ul>
    </Panel>
  );
}

/** Keys that are shown at once. */
const A_PAGE = 100;

type Work = { readonly kind: 'new' } | { readonly kind: 'edit'; readonly key: Key };

function UserKeys({ id }: { id: string }) {
  const [work, setWork] = useState<Work>();
  const [limit, setLimit] = useState(A_PAGE);
  const keys = useLoad(`${id} ${limit}`, () => getSome<Key>('/keys', { user: id }, limit));
  const close = (): void => {
    setWork(undefined);
    keys.reload();
  };
  return (
    <Panel
      title="API keys"
      actions={
        <>
          <a href={linkTo('keys', { user: id })}>List</a>
          {may('keys:write') && <Button onClick={() => setWork({ kind: 'new' })}>New key</Button>}
        </>
      }
    >
      <Problem error={keys.error} retry={keys.reload} />
      <Spinner of={keys} />
      {keys.data && (
        <Table
          label={`Keys of ${id}`}
          rows={keys.data.data}
          keyOf={(key) => key.id}
          empty="No keys."
          columns={keyColumns((key) => setWork({ kind: 'edit', key })).filter(({ name }) => name !== 'User')}
        />
      )}
      {keys.data?.next !== undefined && <Button onClick={() => setLimit(limit + A_PAGE)}>Show more</Button>}
      {work?.kind === 'new' && <NewKey user={id} onClose={close} />}
      {work?.kind === 'edit' && <EditKey id={work.key.id} onClose={close} />}
    </Panel>
  );
}

/** Programs that a person signed in with, such as Claude Code, without a key. Shown only if the gateway supports it. */
function Programs({ id }: { id: string }) {
  const [sure, setSure] = useState<string>();
  const [error, setError] = useState<unknown>();
  const found = useLoad(id, async () =>
    (await hasRoute('/sign-ins')) ? await get<Page<ProgramSignIn>>('/sign-ins', { user: id, limit: 100 }) : undefined,
  );
  const end = (one: string): void => {
    setError(undefined);
    setSure(undefined);
    change('DELETE', `/sign-ins/${encodeURIComponent(one)}`).then(found.reload, setError);
  };
  if (found.error === undefined && !found.data) return null;
  return (
    <Panel title="Signed in with" note="programs with the sign-in of this person, without a key">
      <Problem error={error ?? found.error} retry={found.reload} />
      {found.data && (
        <Table
          label="Programs"
          rows={found.data.data}
          keyOf={(row) => row.id}
          empty="No program is signed in."
          columns={[
            { name: 'Program', cell: ({ program }) => <b>{program}</b> },
            { name: 'From', cell: ({ address }) => address },
            { name: 'Since', cell: ({ started_at }) => <Time at={started_at} /> },
            { name: 'Ends', cell: ({ ends_at }) => until(ends_at) },
            {
              name: 'Actions',
              isQuiet: true,
              cell: (row) =>
                may('users:write') &&
                (sure === row.id ? (
                  <Button kind="danger" onClick={() => end(row.id)}>
                    End it
                  </Button>
                ) : (
                  <Button kind="quiet" aria-label={`End the sign-in of ${row.program}`} onClick={() => setSure(row.id)}>
                    End …
                  </Button>
                )),
            },
          ]}
        />
      )}
    </Panel>
  );
}
