import { useState } from 'preact/hooks';
import { change } from './api.ts';
import { count } from './format.ts';
import { linkTo } from './routing.ts';
import { Button, Dialog, Facts, Problem, Spinner, Text, useLoad } from './ui.tsx';

/** Response of the erasure of a user, and of its dry run. */
interface Erasure {
  readonly erased_id: string | null;
  readonly erased: Readonly<Record<string, number>>;
  readonly stays: readonly { readonly what: string; readonly why: string }[];
}

/** Button that opens the erasure of a user; afterwards the list of users is shown. */
export function EraseUser({ id }: { id: string }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button kind="danger" onClick={() => setOpen(true)}>
        Erase …
      </Button>
      {isOpen && (
        <EraseDialog
          id={id}
          onClose={(isErased) => {
            setOpen(false);
            if (isErased) location.hash = linkTo('users');
          }}
        />
      )}
    </>
  );
}

/** Shows the stored data of a user, erases it once the name is typed, and shows what remains. */
function EraseDialog({ id, onClose }: { id: string; onClose: (isErased: boolean) => void }) {
  const path = `/users/${encodeURIComponent(id)}`;
  const stored = useLoad(id, () => change<Erasure>('DELETE', path));
  const [typed, setTyped] = useState('');
  const [erased, setErased] = useState<Erasure>();
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const submit = (event: Event): void => {
    event.preventDefault();
    if (typed !== id) return;
    setError(undefined);
    setBusy(true);
    change<Erasure>('DELETE', `${path}?yes=true`)
      .then(setErased, setError)
      .finally(() => setBusy(false));
  };
  if (erased) return <Erased id={id} erasure={erased} onClose={() => onClose(true)} />;
  return (
    <Dialog title={`Erase ${id}`} onClose={() => onClose(false)}>
      <Problem error={stored.error} retry={stored.reload} />
      <Spinner of={stored} />
      {stored.data && (
        <form onSubmit={submit}>
          <Counts title="To be erased" erasure={stored.data} />
          <Remaining erasure={stored.data} />
          <Text
            label="Name of the user, to confirm"
            hint="Keys are revoked at once. Erased data cannot be restored."
            required
            value={typed}
            onType={setTyped}
          />
          <Problem error={error} />
          <div class="actions">
            <Button kind="danger" type="submit" disabled={typed !== id || isBusy}>
              Erase
            </Button>
            <Button onClick={() => onClose(false)}>Cancel</Button>
          </div>
        </form>
      )}
    </Dialog>
  );
}

function Erased({ id, erasure, onClose }: { id: string; erasure: Erasure; onClose: () => void }) {
  const newId = erasure.erased_id ?? id;
  return (
    <Dialog title={`Erased ${id}`} onClose={onClose}>
      <div class="list">
        <Counts title="Erased" erasure={erasure} />
        <Remaining erasure={erasure} />
        <p role="status">
          Sums and records stay under <a href={linkTo('usage', { user: newId })}>{newId}</a>.
        </p>
        <div class="actions">
          <Button onClick={onClose}>Done</Button>
        </div>
      </div>
    </Dialog>
  );
}

function Counts({ title, erasure }: { title: string; erasure: Erasure }) {
  const rows = Object.entries(erasure.erased).filter(([, number]) => number > 0);
  return (
    <section aria-label={title}>
      <h3>{title}</h3>
      <Facts rows={rows.map(([name, number]) => [name.replaceAll('_', ' '), count(number)])} />
      {rows.length === 0 && <p class="muted">Nothing is stored.</p>}
    </section>
  );
}

function Remaining({ erasure }: { erasure: Erasure }) {
  return (
    <section aria-label="Remaining">
      <h3>Remaining</h3>
      <ul class="lines">
        {erasure.stays.map(({ what, why }) => (
          <li key={what}>
            {what} <p class="muted">{why}</p>
          </li>
        ))}
      </ul>
    </section>
  );
}
