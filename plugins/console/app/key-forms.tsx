import { useState } from 'preact/hooks';
import { change, getVersion, session } from './api.ts';
import { KeySpending } from './budget-line.tsx';
import { CLIENTS, type Client, connectLines } from './connect-lines.ts';
import type { Key } from './shapes.ts';
import { Button, Choice, Code, Copy, Dialog, Problem, Spinner, Text, useLoad } from './ui.tsx';

/** Typed values of a key form. */
interface Draft {
  readonly user_id: string;
  readonly name: string;
  readonly role: string;
  readonly budget_usd: string;
  readonly amount: string;
  readonly every: string;
  readonly rpm: string;
  readonly tpm: string;
  readonly models: string;
  readonly expires: string;
}

const EMPTY: Draft = {
  user_id: '',
  name: '',
  role: '',
  budget_usd: '',
  amount: '',
  every: 'day',
  rpm: '',
  tpm: '',
  models: '',
  expires: '',
};

const ROLES = [
  ['', 'no: a key for programs'],
  ['viewer', 'viewer: sees all but what was said'],
  ['billing', 'billing: accounts, plans and budgets'],
  ['operator', 'operator: keys, people and the configuration'],
  ['team', 'team: keys and budgets of teams that name its owner'],
  ['admin', 'admin: everything that this console can'],
] as const;

/** Request body: empty fields are null, so that an edit removes them. */
function bodyOf({ name, budget_usd, amount, every, rpm, tpm, models, expires }: Draft): Record<string, unknown> {
  const number = (text: string): number | null => (text.trim() === '' ? null : Number(text));
  const names = models.split(/[\s,]+/).filter(Boolean);
  return {
    name,
    budget_usd: budget_usd.trim() || null,
    budgets: amount.trim() === '' ? null : [{ amount_usd: amount.trim(), every }],
    rpm: number(rpm),
    tpm: number(tpm),
    models: names.length > 0 ? names : null,
    expires_at: expires === '' ? null : `${expires}T23:59:59Z`,
  };
}

function KeyFields({ draft, set }: { draft: Draft; set: (change: Partial<Draft>) => void }) {
  const text = (name: keyof Draft) => ({
    value: draft[name],
    onType: (typed: string) => set({ [name]: typed }),
  });
  return (
    <>
      <Text label="Name" hint="What it is for, such as laptop or Claude Code." maxLength={100} {...text('name')} />
      <div class="pair">
        <Text
          label="Budget in US dollars, by period"
          hint="Refused with 402 once it is spent."
          placeholder="none"
          {...text('amount')}
        />
        <Choice
          label="Each"
          value={draft.every}
          options={['day', 'week', 'month'].map((word) => [word, word] as const)}
          onPick={(every) => set({ every })}
        />
      </div>
      <Text label="Budget in US dollars, in all" placeholder="none" {...text('budget_usd')} />
      <div class="pair">
        <Text label="Calls a minute" type="number" placeholder="no limit" {...text('rpm')} />
        <Text label="Tokens a minute" type="number" placeholder="no limit" {...text('tpm')} />
      </div>
      <Text
        label="Models"
        hint="provider/model, provider/* or an alias, with commas; empty allows all."
        {...text('models')}
      />
      <Text label="Works until the end of (UTC)" type="date" {...text('expires')} />
    </>
  );
}

/** Text typed for a new key survives a change of the page, until the key is created or the form is cancelled. */
let kept: { readonly of: string; readonly draft: Draft } | undefined;

/** Creates a key and shows it once. A team's key has its tag, within the team's limits. */
export function NewKey({
  user = '',
  team,
  onClose,
}: {
  user?: string | undefined;
  team?: string;
  onClose: () => void;
}) {
  const of = team ?? user;
  const [draft, setDraft] = useState<Draft>(
    kept?.of === of ? kept.draft : { ...EMPTY, user_id: user || team || (session.value?.user ?? '') },
  );
  const [error, setError] = useState<unknown>();
  const [made, setMade] = useState<string>();
  const set = (part: Partial<Draft>): void => {
    kept = { of, draft: { ...draft, ...part } };
    setDraft(kept.draft);
  };
  const forget = (): void => {
    kept = undefined;
  };
  const submit = (event: Event): void => {
    event.preventDefault();
    setError(undefined);
    change<{ api_key: string }>('POST', team === undefined ? '/keys' : `/own-teams/${encodeURIComponent(team)}/keys`, {
      // Empty fields are omitted.
      ...Object.fromEntries(Object.entries(bodyOf(draft)).filter(([, value]) => value !== null)),
      user_id: draft.user_id,
      ...(draft.role !== '' && { role: draft.role }),
    })
      .then(({ api_key }) => {
        forget();
        setMade(api_key);
      })
      .catch(setError);
  };
  if (made !== undefined)
    return <MadeKey text={made} model={draft.models.split(/[\s,]+/)[0] || 'echo/echo'} onClose={onClose} />;
  return (
    <Dialog title="New key" onClose={onClose} isDrawer>
      <form onSubmit={submit}>
        <Text
          label="User"
          hint={team === undefined ? 'Whose key it is: anyone you name.' : 'A member of the team, or the team itself.'}
          required
          maxLength={300}
          value={draft.user_id}
          onType={(user_id) => set({ user_id })}
        />
        <KeyFields draft={draft} set={set} />
        {team === undefined && (
          <Choice
            label="May operate this gateway"
            value={draft.role}
            options={ROLES}
            onPick={(role) => set({ role })}
          />
        )}
        <Problem error={error} />
        <div class="actions">
          <Button kind="main" type="submit">
            Make the key
          </Button>
          <Button
            onClick={() => {
              forget();
              onClose();
            }}
          >
            Cancel
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

function MadeKey({ text, model, onClose }: { text: string; model: string; onClose: () => void }) {
  const [client, setClient] = useState<Client>('Claude Code');
  return (
    <Dialog title="The key was made" onClose={onClose} isDrawer>
      <p role="status">Keep it: it cannot be shown again.</p>
      <div class="code">
        <pre>
          <code>{text}</code>
        </pre>
        <Copy text={text} label="Copy the key" />
      </div>
      <Choice
        label="Lines to connect"
        value={client}
        options={CLIENTS.map((each) => [each, each] as const)}
        onPick={(each) => setClient(each as Client)}
      />
      <Code text={connectLines(client, text, model)} />
      <Button kind="main" onClick={onClose}>
        Done
      </Button>
    </Dialog>
  );
}

function draftOf(key: Key): Draft {
  const [budget] = key.budgets ?? [];
  return {
    user_id: key.user_id,
    name: key.name,
    role: key.role ?? '',
    budget_usd: key.budget_usd ?? '',
    amount: budget?.amount_usd ?? '',
    every: budget?.every ?? 'day',
    rpm: String(key.rpm ?? ''),
    tpm: String(key.tpm ?? ''),
    models: (key.models ?? []).join(', '),
    expires: key.expires_at?.slice(0, 10) ?? '',
  };
}

/** Edits a key, except when it was changed meanwhile; typed text stays. */
export function EditKey({ id, onClose }: { id: string; onClose: () => void }) {
  const loaded = useLoad(id, () => getVersion<Key>(`/keys/${id}`));
  const [typed, setTyped] = useState<Partial<Draft>>({});
  const [error, setError] = useState<unknown>();
  const draft = loaded.data && { ...draftOf(loaded.data.value), ...typed };
  const submit = (event: Event): void => {
    event.preventDefault();
    if (!draft) return;
    setError(undefined);
    // Only typed fields are sent: a form that shows one budget of several removes none.
    const before: Record<string, unknown> = bodyOf(draftOf(loaded.data.value));
    const changed = Object.entries(bodyOf(draft)).filter(
      ([field, value]) => JSON.stringify(value) !== JSON.stringify(before[field]),
    );
    change('PATCH', `/keys/${id}`, Object.fromEntries(changed), loaded.data.etag).then(onClose, setError);
  };
  return (
    <Dialog title={`Edit ${loaded.data?.value.prefix ?? 'a key'}`} onClose={onClose} isDrawer>
      <Problem error={loaded.error} retry={loaded.reload} />
      <Spinner of={loaded} />
      {draft && (
        <form onSubmit={submit}>
          <KeyFields draft={draft} set={(part) => setTyped({ ...typed, ...part })} />
          <Problem
            error={error}
            retry={() => {
              setError(undefined);
              loaded.reload();
            }}
          />
          <div class="actions">
            <Button kind="main" type="submit">
              Save
            </Button>
            <Button onClick={onClose}>Cancel</Button>
          </div>
        </form>
      )}
      {loaded.data?.value.budgets && <KeySpending {...loaded.data.value} />}
      {loaded.data && <EndKey item={loaded.data.value} onClose={onClose} />}
    </Dialog>
  );
}

/** Blocks a key, or revokes it after a confirmation. */
function EndKey({ item, onClose }: { item: Key; onClose: () => void }) {
  const [isSure, setSure] = useState(false);
  const [error, setError] = useState<unknown>();
  const act = (word: 'block' | 'unblock' | 'revoke'): void => {
    setError(undefined);
    change('POST', `/keys/${item.id}/${word}`).then(onClose, setError);
  };
  return (
    <>
      <h3>Refuse it</h3>
      <p class="muted">It stops working within five seconds: blocked until it is unblocked, revoked for good.</p>
      <Problem error={error} />
      <div class="actions">
        <Button onClick={() => act(item.blocked_at ? 'unblock' : 'block')}>
          {item.blocked_at ? 'Unblock' : 'Block'}
        </Button>
        {isSure ? (
          <Button kind="danger" onClick={() => act('revoke')}>
            Revoke {item.prefix} for good
          </Button>
        ) : (
          <Button onClick={() => setSure(true)}>Revoke …</Button>
        )}
      </div>
    </>
  );
}
