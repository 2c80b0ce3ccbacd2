import { useState } from 'preact/hooks';
import { change, getVersion, type Versioned } from './api.ts';
import type { Team } from './shapes.ts';
import { Button, Choice, Dialog, Problem, Spinner, Text, useLoad } from './ui.tsx';

/** Periods of a team's budget. */
export const PERIODS = ['day', 'week', 'month', 'total'].map((word) => [word, word] as const);

/** Form to edit or delete a team. */
export function EditTeam({ tag, onClose }: { tag: string; onClose: () => void }) {
  const loaded = useLoad(tag, () => getVersion<Team>(`/teams/${encodeURIComponent(tag)}`));
  if (!loaded.data)
    return (
      <Dialog title={tag} onClose={onClose} isDrawer>
        <Spinner of={loaded} />
        <Problem error={loaded.error} retry={loaded.reload} />
      </Dialog>
    );
  return <TeamForm known={loaded.data} reload={loaded.reload} onClose={onClose} />;
}

/** Lists of names in a form, with their labels. */
const LISTS = Object.freeze({
  users: ['Owners: users', 'User ids, with commas. Each needs the role team, too.'],
  groups: ['Owners: groups', 'Groups of the identity provider that give the role team.'],
  keys: ['Owners: keys', 'Keys with the role team, as tg_….'],
  members: ['Members', 'Whose keys owners may make; * is anybody. Empty: the team itself alone.'],
  models: ['Models', 'What its keys may use at most; empty allows all.'],
  providers: ['Providers', 'Empty allows all.'],
  plans: ['Plans', 'Plans that its keys may have; empty gives none.'],
  server_tools: ['Tools of vendors', 'Empty gives none.'],
} as const);
type ListName = keyof typeof LISTS;

const OWNERS: readonly ListName[] = ['users', 'groups', 'keys'];
const GIVEN: readonly ListName[] = ['members', 'models', 'providers', 'plans', 'server_tools'];

/** Lists as typed text. */
function textsOf({ owners, ...team }: Pick<Team, 'owners'> & Partial<Team>): Readonly<Record<ListName, string>> {
  const lists = { ...team, ...owners };
  return Object.fromEntries([...OWNERS, ...GIVEN].map((name) => [name, (lists[name] ?? []).join(', ')])) as Readonly<
    Record<ListName, string>
  >;
}

/** Lists that are not empty. */
function readLists(names: readonly ListName[], texts: Readonly<Record<ListName, string>>): object {
  return Object.fromEntries(
    names.flatMap((name) => {
      const words = texts[name]
        .split(',')
        .map((word) => word.trim())
        .filter(Boolean);
      return words.length > 0 ? [[name, [...new Set(words)]]] : [];
    }),
  );
}

/** Creates a team, or edits one, except when it was changed meanwhile. */
export function TeamForm({
  known,
  reload,
  onClose,
}: {
  known?: Versioned<Team>;
  reload?: () => void;
  onClose: () => void;
}) {
  const before = known?.value;
  const [tag, setTag] = useState(before?.tag ?? '');
  const [texts, setTexts] = useState(textsOf(before ?? { owners: {} }));
  const [account, setAccount] = useState(before?.account ?? '');
  const [amount, setAmount] = useState(String(before?.budget?.amount_usd ?? ''));
  const [every, setEvery] = useState(before?.budget?.every ?? 'month');
  const [isSure, setSure] = useState(false);
  const [error, setError] = useState<unknown>();
  const path = `/teams/${encodeURIComponent(tag.trim())}`;
  const submit = (event: Event): void => {
    event.preventDefault();
    setError(undefined);
    const body = {
      owners: readLists(OWNERS, texts),
      ...readLists(GIVEN, texts),
      ...(account.trim() !== '' && { account: account.trim() }),
      // Budget fields that this form does not show are preserved.
      ...(amount.trim() !== '' && { budget: { ...before?.budget, amount_usd: amount.trim(), every } }),
    };
    change('PUT', path, body, known?.etag).then(onClose, setError);
  };
  const fields = (names: readonly ListName[]) =>
    names.map((name) => {
      const [label, hint] = LISTS[name];
      return (
        <Text
          key={name}
          label={label}
          hint={hint}
          value={texts[name]}
          onType={(text) => setTexts({ ...texts, [name]: text })}
        />
      );
    });
  return (
    <Dialog title={before ? `Edit ${before.tag}` : 'New team'} onClose={onClose} isDrawer>
      <form onSubmit={submit}>
        {!before && (
          <Text label="Tag" hint="Such as team=search." required maxLength={129} value={tag} onType={setTag} />
        )}
        {fields(OWNERS)}
        <div class="pair">
          <Text
            label="At most, in US dollars"
            hint="Of all calls with the tag."
            placeholder="no limit"
            value={amount}
            onType={setAmount}
          />
          <Choice label="Each" value={every} options={PERIODS} onPick={setEvery} />
        </div>
        <Text label="Account that pays" placeholder="the tag itself" value={account} onType={setAccount} />
        {fields(GIVEN)}
        <Problem
          error={error}
          {...(reload && {
            retry: () => {
              setError(undefined);
              reload();
            },
          })}
        />
        <div class="actions">
          <Button kind="main" type="submit">
            Save
          </Button>
          <Button onClick={onClose}>Cancel</Button>
          {before &&
            (isSure ? (
              <Button
                kind="danger"
                onClick={() => void change('DELETE', path, undefined, known.etag).then(onClose, setError)}
              >
                Remove it; its keys and budgets stay
              </Button>
            ) : (
              <Button onClick={() => setSure(true)}>Remove …</Button>
            ))}
        </div>
      </form>
    </Dialog>
  );
}
