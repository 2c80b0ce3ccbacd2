import { useState } from 'preact/hooks';
import { may } from '../api.ts';
import { EditKey, NewKey } from '../key-forms.tsx';
import { keyColumns } from '../keys-table.tsx';
import { type Filter, Filters, LoadedList, useList } from '../list.tsx';
import { linkTo, route, setWords } from '../routing.ts';
import type { Key } from '../shapes.ts';
import { Button, PageHead } from '../ui.tsx';

type Work = { readonly kind: 'new' } | { readonly kind: 'edit'; readonly key: Key };

const FILTERS: readonly Filter[] = [
  { name: 'name', label: 'Name', placeholder: 'part of the name' },
  { name: 'user', label: 'User', names: 'user' },
  {
    name: 'state',
    label: 'State',
    options: [['', 'all'], ...['active', 'blocked', 'expired', 'revoked'].map((word) => [word, word] as const)],
  },
  { name: 'tag', label: 'Team or tag', placeholder: 'team=search', names: 'tag' },
  { name: 'plan', label: 'Plan', names: 'plan' },
  {
    name: 'role',
    label: 'Role',
    isMore: true,
    options: [['', 'all'], ...['viewer', 'billing', 'operator', 'team', 'admin'].map((word) => [word, word] as const)],
  },
];

/** Keys of all users. */
export function Keys() {
  const { user, name, tag, plan, state, role, after, edit } = route.value.query;
  const [work, setWork] = useState<Work>();
  const query = { user, name, tag, plan, state, role, after };
  const list = useList<Key>('/keys', query);
  const close = (): void => {
    setWork(undefined);
    if (edit) setWords({ edit: undefined });
    list.reload();
  };
  return (
    <>
      <PageHead title="API keys" note="Programs call the gateway with a key, within its limits and budgets.">
        {may('keys:write') && (
          <Button kind="main" onClick={() => setWork({ kind: 'new' })}>
            New key
          </Button>
        )}
      </PageHead>
      <Filters label="Filters of keys" filters={FILTERS} />
      {user && may('users:read') && (
        <p>
          <a href={linkTo('users', { id: user })}>{user}: spend, budgets and last failures</a>
        </p>
      )}
      <LoadedList
        name="keys"
        label="Keys"
        path="/keys"
        query={query}
        list={list}
        keyOf={({ id }) => id}
        empty={
          (user ?? name ?? tag ?? plan ?? state ?? role)
            ? 'No key matches. Remove a filter.'
            : 'No keys yet. Create one, and connect a program with it.'
        }
        columns={keyColumns((key) => setWork({ kind: 'edit', key }))}
      />
      {work?.kind === 'new' && <NewKey user={user} onClose={close} />}
      {work?.kind === 'edit' && <EditKey id={work.key.id} onClose={close} />}
      {!work && edit && may('keys:write') && <EditKey key={edit} id={edit} onClose={close} />}
    </>
  );
}
