import { useState } from 'preact/hooks';
import { change, get, getVersion, may, type Page, type Versioned } from '../api.ts';
import { BudgetLine } from '../budget-line.tsx';
import { day, until, usd } from '../format.ts';
import type { Budget } from '../shapes.ts';
import {
  Badge,
  Button,
  Choice,
  type Column,
  Conflict,
  Dialog,
  PageHead,
  Problem,
  Spinner,
  Table,
  Text,
  Time,
  Usd,
  useLoad,
} from '../ui.tsx';

type Work = { readonly kind: 'new' } | { readonly kind: 'edit' | 'raise'; readonly budget: Budget };

/** Budgets, with the amounts left. */
export function Budgets() {
  const [work, setWork] = useState<Work>();
  const budgets = useLoad('budgets', () => get<Page<Budget>>('/budgets'));
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
          <Button kind="main" onClick={() => setWork({ kind: 'new' })}>
            New budget
          </Button>
        )}
      </PageHead>
      <Problem error={budgets.error} retry={budgets.reload} />
      <Spinner of={budgets} />
      {budgets.data && (
        <Table
          label="Budgets"
          rows={budgets.data.data}
          keyOf={({ name }) => name}
          empty="No budgets yet: only the limits of the vendors apply."
          columns={columnsOf(setWork)}
        />
      )}
      {work?.kind === 'new' && <BudgetForm onClose={close} />}
      {work?.kind === 'edit' && <EditBudget name={work.budget.name} onClose={close} />}
      {work?.kind === 'raise' && <Raise budget={work.budget} onClose={close} />}
    </>
  );
}

/** Scope of a budget. */
function namesOf(budget: Budget): string {
  const names = KINDS.flatMap((kind) =>
    kind === 'all' || budget[kind] === undefined ? [] : [`${kind} ${budget[kind]}`],
  );
  return names.join(', ') || 'all';
}

function columnsOf(work: (work: Work) => void): readonly Column<Budget>[] {
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
            <Button kind="quiet" aria-label={`Raise ${budget.name}`} onClick={() => work({ kind: 'raise', budget })}>
              Raise
            </Button>
            {budget.owner === 'store' && (
              <Button kind="quiet" aria-label={`Edit ${budget.name}`} onClick={() => work({ kind: 'edit', budget })}>
                Edit
              </Button>
            )}
          </div>
        ),
    },
  ];
}

function EditBudget({ name, onClose }: { name: string; onClose: () => void }) {
  const loaded = useLoad(name, () => getVersion<Budget>(`/budgets/${encodeURIComponent(name)}`));
  if (!loaded.data)
    return (
      <Dialog title={name} onClose={onClose} isDrawer>
        <Spinner of={loaded} />
        <Problem error={loaded.error} retry={loaded.reload} />
      </Dialog>
    );
  return <BudgetForm known={loaded.data} reload={loaded.reload} onClose={onClose} />;
}

const KINDS = ['all', 'user', 'key', 'tag', 'plan', 'provider', 'model'] as const;
type Kind = (typeof KINDS)[number];

/** Creates a budget in the store, or edits one, except when it was changed meanwhile. */
function BudgetForm({
  known,
  reload,
  onClose,
}: {
  known?: Versioned<Budget>;
  reload?: () => void;
  onClose: () => void;
}) {
  const [name, setName] = useState(known?.value.name ?? '');
  const [amount, setAmount] = useState(known?.value.amount_usd ?? '');
  const [every, setEvery] = useState(known?.value.every ?? 'month');
  const shownKind = KINDS.find((word) => word !== 'all' && known?.value[word] !== undefined) ?? 'all';
  const [kind, setKind] = useState<Kind>(shownKind);
  const [of, setOf] = useState(kind === 'all' ? '' : (known?.value[kind] ?? ''));
  const [isSure, setSure] = useState(false);
  const [error, setError] = useState<unknown>();
  const path = `/budgets/${encodeURIComponent(name)}`;
  const submit = (event: Event): void => {
    event.preventDefault();
    setError(undefined);
    const before: Partial<Budget> = known?.value ?? {};
    const { soft_usd, timezone, starts_on } = before;
    const others = KINDS.flatMap((word) =>
      word === 'all' || word === shownKind || before[word] === undefined ? [] : [[word, before[word]]],
    );
    const body = {
      // Fields that this form does not show are preserved.
      ...Object.fromEntries(others),
      ...(soft_usd !== undefined && { soft_usd }),
      ...(timezone !== undefined && { timezone }),
      ...(starts_on !== undefined && { starts_on }),
      amount_usd: amount.trim(),
      every,
      ...(kind !== 'all' && { [kind]: of.trim() }),
    };
    change('PUT', path, body, known?.etag).then(onClose, setError);
  };
  const remove = (): void => {
    change('DELETE', path, undefined, known?.etag).then(onClose, setError);
  };
  return (
    <Dialog title={known ? `Edit ${name}` : 'New budget'} onClose={onClose} isDrawer>
      <form onSubmit={submit}>
        {!known && <Text label="Name" required maxLength={63} value={name} onType={setName} />}
        <div class="pair">
          <Text label="US dollars" required value={amount} onType={setAmount} />
          <Choice
            label="Each"
            value={every}
            options={['day', 'week', 'month', 'total'].map((word) => [word, word] as const)}
            onPick={setEvery}
          />
        </div>
        <div class="pair">
          <Choice
            label="Scope"
            value={kind}
            options={KINDS.map((word) => [word, word === 'all' ? 'all' : `of one ${word}`] as const)}
            onPick={(word) => setKind(KINDS.find((each) => each === word) ?? 'all')}
          />
          {kind !== 'all' && <Text label={`Which ${kind}`} required value={of} onType={setOf} />}
        </div>
        <Conflict
          error={error}
          fields={['amount_usd', 'every', 'soft_usd', 'timezone', 'starts_on', ...KINDS]}
          known={known?.value ?? {}}
          load={() => get<Budget>(path)}
          onReload={() => {
            setError(undefined);
            reload?.();
          }}
        />
        <div class="actions">
          <Button kind="main" type="submit">
            Save
          </Button>
          <Button onClick={onClose}>Cancel</Button>
          {known &&
            (isSure ? (
              <Button kind="danger" onClick={remove}>
                Remove it for good
              </Button>
            ) : (
              <Button onClick={() => setSure(true)}>Remove …</Button>
            ))}
        </div>
      </form>
    </Dialog>
  );
}

function Raise({ budget, onClose }: { budget: Budget; onClose: () => void }) {
  const [amount, setAmount] = useState('');
  const [error, setError] = useState<unknown>();
  const submit = (event: Event): void => {
    event.preventDefault();
    setError(undefined);
    change('POST', `/budgets/${encodeURIComponent(budget.name)}/raises`, {
      amount_usd: amount.trim(),
      until: budget.resets_at ?? new Date(Date.now() + 30 * 86_400_000).toISOString(),
    }).then(onClose, setError);
  };
  return (
    <Dialog title={`Raise ${budget.name}`} onClose={onClose}>
      <form onSubmit={submit}>
        <p>
          <Usd of={budget.left_usd} /> of <Usd of={budget.amount_usd} /> are left. The raise ends when the budget resets
          {budget.resets_at && (
            <>
              : <Time at={budget.resets_at} />
            </>
          )}
          .
        </p>
        <Text label="More US dollars" required value={amount} onType={setAmount} />
        <Problem error={error} />
        <div class="actions">
          <Button kind="main" type="submit">
            Raise it
          </Button>
          <Button onClick={onClose}>Cancel</Button>
        </div>
      </form>
    </Dialog>
  );
}
