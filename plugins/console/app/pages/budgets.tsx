import { useState } from 'preact/hooks';
import { change, get, may, type Page } from '../api.ts';
import { BudgetLine } from '../budget-line.tsx';
import { day, until, usd } from '../format.ts';
import { ActionButton, ObjectForm } from '../object-form.tsx';
import type { Budget } from '../shapes.ts';
import { Badge, Button, type Column, PageHead, Problem, Spinner, Table, Usd, useLoad } from '../ui.tsx';

interface Work {
  /** Undefined for a new budget. */
  readonly name?: string;
}

/** Budgets, with the amounts left. */
export function Budgets() {
  const [work, setWork] = useState<Work>();
  const budgets = useLoad('budgets', () => get<Page<Budget>>('/budgets'));
  const [error, setError] = useState<unknown>();
  const endRaises = ({ name }: Budget): void => {
    setError(undefined);
    change('DELETE', `/budgets/${encodeURIComponent(name)}/raises`).then(budgets.reload, setError);
  };
  const close = (): void => {
    setWork(undefined);
    budgets.reload();
  };
  return (
    <>
      <PageHead
        title="Budgets"
        note="Budgets of matching calls over all keys. Keys and plans have budgets of their own."
      >
        {may('budgets:write') && (
          <Button kind="main" onClick={() => setWork({})}>
            New budget
          </Button>
        )}
      </PageHead>
      <Problem error={error ?? budgets.error} retry={budgets.reload} />
      <Spinner of={budgets} />
      {budgets.data && (
        <Table
          label="Budgets"
          rows={budgets.data.data}
          keyOf={({ name }) => name}
          empty="No budgets yet: only the limits of the vendors apply."
          columns={columnsOf({ edit: ({ name }) => setWork({ name }), endRaises, reload: budgets.reload })}
        />
      )}
      {work && <BudgetForm {...work} onClose={close} />}
    </>
  );
}

/** Scope of a budget. */
function namesOf(budget: Budget): string {
  const names = KINDS.flatMap((kind) =>
    budget[kind] === undefined ? [] : [`${kind.replace('_', ' ')} ${budget[kind]}`],
  );
  return names.join(', ') || 'all';
}

const KINDS = ['user', 'key', 'tag', 'plan', 'end_user', 'provider', 'model'] as const;

interface BudgetActions {
  edit(budget: Budget): void;
  endRaises(budget: Budget): void;
  reload(): void;
}

function columnsOf({ edit, endRaises, reload }: BudgetActions): readonly Column<Budget>[] {
  return [
    {
      name: 'Budget',
      cell: ({ name, owner }) => (
        <>
          <b>{name}</b> {owner === 'file' && <Badge tone="dim">from the file</Badge>}
        </>
      ),
    },
    { name: 'Of', cell: namesOf },
    { name: 'Each', cell: ({ every, timezone }) => `${every}, ${timezone}` },
    { name: 'Spent', cell: (budget) => <BudgetLine budget={budget} isShort /> },
    {
      name: 'Left',
      isNumber: true,
      cell: ({ left_usd }) => <Usd of={left_usd} />,
    },
    { name: 'Resets', cell: ({ resets_at }) => (resets_at ? until(resets_at) : 'never') },
    {
      name: 'Raised',
      isExtra: true,
      cell: ({ raises }) =>
        raises.map(({ amount_usd, until: end }) => `${usd(amount_usd)} until ${day(end)}`).join(', ') || '–',
    },
    {
      name: 'Actions',
      isQuiet: true,
      cell: (budget) =>
        may('budgets:write') && (
          <div class="actions">
            <Raise budget={budget} onDone={reload} />
            {budget.raises.length > 0 && (
              <Button kind="quiet" aria-label={`End the raises of ${budget.name}`} onClick={() => endRaises(budget)}>
                End raises
              </Button>
            )}
            {budget.owner === 'store' && (
              <Button kind="quiet" aria-label={`Edit ${budget.name}`} onClick={() => edit(budget)}>
                Edit
              </Button>
            )}
          </div>
        ),
    },
  ];
}

function BudgetForm({ name, onClose }: { name?: string; onClose: () => void }) {
  return (
    <ObjectForm
      id={name}
      noun="budget"
      path="/budgets"
      name={{ label: 'Name', hint: 'Spend is counted by this name.' }}
      first={['amount_usd', 'every', 'soft_usd', 'user', 'tag', 'model']}
      removal="Delete it for good"
      onClose={onClose}
    />
  );
}

/** A raise of a budget that never resets lasts this time, unless another one is typed. */
const RAISE_MS = 30 * 86_400_000;

function Raise({ budget, onDone }: { budget: Budget; onDone: () => void }) {
  const { name, left_usd, amount_usd, resets_at } = budget;
  return (
    <ActionButton
      label="Raise"
      title={`Raise ${name}`}
      route="/budgets/{name}/raises"
      path={`/budgets/${encodeURIComponent(name)}/raises`}
      first={['amount_usd', 'until']}
      start={{ until: resets_at ?? new Date(Date.now() + RAISE_MS).toISOString() }}
      note={
        <>
          <Usd of={left_usd} /> of <Usd of={amount_usd} /> are left{resets_at && `; it resets ${until(resets_at)}`}.
        </>
      }
      isQuiet
      onDone={onDone}
    />
  );
}
