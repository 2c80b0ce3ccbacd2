import { get, may } from '../api.ts';
import { BudgetLine } from '../budget-line.tsx';
import { until } from '../format.ts';
import { type Filter, Filters, LoadedList, useList } from '../list.tsx';
import { ActionButton } from '../object-form.tsx';
import { linkTo, route } from '../routing.ts';
import type { Account, WholeAccount } from '../shapes.ts';
import { type Column, Facts, PageHead, Panel, Problem, Spinner, Table, Time, Usd, useLoad } from '../ui.tsx';

const FILTERS: readonly Filter[] = [
  { name: 'name', label: 'Name', placeholder: 'part of the name' },
  { name: 'plan', label: 'Plan', names: 'plan' },
];

/** Accounts that calls are charged to; with `id` one of them. */
export function Accounts() {
  const { id } = route.value.query;
  return id ? <OneAccount key={id} id={id} /> : <AccountList />;
}

function AccountList() {
  const { name, plan, after } = route.value.query;
  const query = { name, plan, after };
  const list = useList<Account>('/accounts', query);
  return (
    <>
      <PageHead title="Accounts" note="Calls are charged to accounts: those of a user or a team." />
      <Filters label="Filters of accounts" filters={FILTERS} />
      <LoadedList
        name="accounts"
        label="Accounts"
        path="/accounts"
        query={query}
        list={list}
        keyOf={(account) => account.id}
        empty={(name ?? plan) ? 'No account matches. Remove a filter.' : 'No account was charged or credited yet.'}
        columns={COLUMNS}
      />
    </>
  );
}

const COLUMNS: readonly Column<Account>[] = [
  {
    name: 'Account',
    value: ({ id }) => id,
    cell: ({ id }) => (
      <div class="wrap">
        <a href={linkTo('accounts', { id })}>{id}</a>
      </div>
    ),
  },
  { name: 'Plan', value: ({ plan }) => plan, cell: ({ plan }) => plan ?? '–' },
  ...(
    [
      ['Balance', 'balance_usd'],
      ['Reserved', 'held_usd'],
      ['Spent', 'spent_usd'],
      ['Credited', 'credited_usd'],
    ] as const
  ).map(
    ([name, field]): Column<Account> => ({
      name,
      isNumber: true,
      ...(name === 'Reserved' && { isExtra: true }),
      value: (account) => account[field],
      cell: (account) => <Usd of={account[field]} />,
    }),
  ),
  { name: 'Changed', isExtra: true, value: ({ updated_at: at }) => at, cell: ({ updated_at: at }) => <Time at={at} /> },
];

function OneAccount({ id }: { id: string }) {
  const account = useLoad(id, () => get<WholeAccount>(`/accounts/${encodeURIComponent(id)}`));
  return (
    <>
      <PageHead title={id} note="Account">
        <a href={linkTo('usage', { account: id })}>Usage</a>
        <a href={linkTo('calls', { account: id })}>Calls</a>
        {account.data && may('accounts:write') && <AccountActions account={account.data} onDone={account.reload} />}
      </PageHead>
      <Problem error={account.error} retry={account.reload} />
      <Spinner of={account} />
      {account.data && (
        <div class="grid">
          <Panel title="Balance">
            <AccountFacts account={account.data} />
          </Panel>
          <AccountBudgets budgets={account.data.budgets} />
          <Panel title="Latest entries">
            <Table
              label="Entries"
              rows={account.data.entries}
              keyOf={({ at, ref, kind }) => `${at} ${ref} ${kind}`}
              empty="No entries yet."
              columns={[
                { name: 'Time', cell: ({ at }) => <Time at={at} /> },
                { name: 'Kind', cell: ({ kind }) => kind },
                { name: 'Reason', cell: ({ reason }) => <div class="wrap">{reason}</div> },
                { name: 'Amount', isNumber: true, cell: ({ amount_usd }) => <Usd of={amount_usd} /> },
              ]}
            />
          </Panel>
        </div>
      )}
    </>
  );
}

function AccountActions({ account: { id, plan, budgets }, onDone }: { account: WholeAccount; onDone: () => void }) {
  const path = `/accounts/${encodeURIComponent(id)}`;
  return (
    <>
      <ActionButton
        label="Add money"
        title={`Add money to ${id}`}
        route="/accounts/{id}/credit"
        path={`${path}/credit`}
        first={['amount_usd', 'reason']}
        onDone={onDone}
      />
      <ActionButton
        label="Set plan"
        title={`Set the plan of ${id}`}
        method="put"
        route="/accounts/{id}/plan"
        path={`${path}/plan`}
        first={['plan']}
        start={{ plan }}
        note="Without a plan the default plan applies."
        onDone={onDone}
      />
      {may('budgets:write') && budgets.length > 0 && (
        <ActionButton
          label="Raise a budget"
          title={`Raise a budget of ${id}`}
          route="/accounts/{id}/raises"
          path={`${path}/raises`}
          first={['budget', 'amount_usd', 'until']}
          start={{ budget: budgets[0]?.name, until: budgets[0]?.resets_at ?? undefined }}
          onDone={onDone}
        />
      )}
    </>
  );
}

/** Plan and balance of an account. */
export function AccountFacts({ account }: { account: Account }) {
  return (
    <Facts
      rows={[
        ['Account', <a href={linkTo('accounts', { id: account.id })}>{account.id}</a>],
        ['Plan', account.plan ?? 'none'],
        ['Balance', <Usd of={account.balance_usd} />],
        ['Reserved', <Usd of={account.held_usd} />],
        ['Spent', <Usd of={account.spent_usd} />],
        ['Credited', <Usd of={account.credited_usd} />],
      ]}
    />
  );
}

/** Budgets that limit an account. */
export function AccountBudgets({ budgets }: { budgets: WholeAccount['budgets'] }) {
  return (
    <Panel title="Budgets" note="of its plans and of the user with its name">
      <ul class="lines">
        {budgets.map((budget) => (
          <li key={`${budget.name} ${budget.plan ?? ''}`}>
            <BudgetLine budget={budget} />
            <p class="muted">
              {budget.plan && `plan ${budget.plan}, `}
              {budget.resets_at ? `resets ${until(budget.resets_at)}` : 'never resets'}
            </p>
          </li>
        ))}
        {budgets.length === 0 && <li class="muted">No budgets.</li>}
      </ul>
    </Panel>
  );
}
