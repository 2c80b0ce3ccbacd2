import { useState } from 'preact/hooks';
import { change, get, hasRoute, may, type Page } from '../api.ts';
import { until, usd } from '../format.ts';
import { EditKey, NewKey } from '../key-forms.tsx';
import { describeLimits, KeyState } from '../key-state.tsx';
import { linkTo, route, setWords } from '../routing.ts';
import type { Key, ProgramSignIn } from '../shapes.ts';
import { Badge, Button, type Column, PageHead, Panel, Problem, Search, Spinner, Table, Time, useLoad } from '../ui.tsx';

type Work = { readonly kind: 'new' } | { readonly kind: 'edit'; readonly key: Key };

/** Keys of all users. */
export function Keys() {
  const { user, after } = route.value.query;
  const [work, setWork] = useState<Work>();
  const keys = useLoad(JSON.stringify([user, after]), () => get<Page<Key>>('/keys', { user, after, limit: 100 }));
  const close = (): void => {
    setWork(undefined);
    keys.reload();
  };
  return (
    <>
      <PageHead title="API keys" note="Programs call the gateway with a key. What it may do and spend stands with it.">
        {may('keys:write') && (
          <Button kind="main" onClick={() => setWork({ kind: 'new' })}>
            New key
          </Button>
        )}
      </PageHead>
      <search class="filters" aria-label="Which keys">
        <Search
          label="User"
          value={user ?? ''}
          onPick={(text) => setWords({ user: text, after: undefined })}
          placeholder="all"
        />
      </search>
      {user && may('users:read') && <Person key={user} id={user} />}
      {user && may('users:read') && <Programs key={`programs ${user}`} id={user} />}
      <Problem error={keys.error} retry={keys.reload} />
      <Spinner of={keys} />
      {keys.data && (
        <Table
          label="Keys"
          rows={keys.data.data}
          keyOf={({ id }) => id}
          empty="There is no key yet. Make one, and connect a program with it."
          columns={columnsOf((key) => setWork({ kind: 'edit', key }))}
        />
      )}
      {keys.data?.next && (
        <p>
          <a class="button plain" href={linkTo('keys', { user, after: keys.data.next })}>
            Next page
          </a>
        </p>
      )}
      {work?.kind === 'new' && <NewKey user={user} onClose={close} />}
      {work?.kind === 'edit' && <EditKey id={work.key.id} onClose={close} />}
    </>
  );
}

function columnsOf(edit: (key: Key) => void): readonly Column<Key>[] {
  return [
    {
      name: 'Key',
      cell: (key) => (
        <div class="wrap">
          <code>{key.prefix}</code> <b>{key.name || 'without a name'}</b>{' '}
          {[key.role ?? [], key.scopes ?? []].flat().map((right) => (
            <Badge key={right} tone="warn">
              {right}
            </Badge>
          ))}
        </div>
      ),
    },
    {
      name: 'User',
      cell: ({ user_id }) => (
        <div class="wrap short">
          <a href={linkTo('keys', { user: user_id })}>{user_id}</a>
        </div>
      ),
    },
    { name: 'State', cell: (key) => <KeyState item={key} /> },
    { name: 'Limits', isExtra: true, cell: (key) => <div class="wrap">{describeLimits(key)}</div> },
    {
      name: 'Spent',
      isNumber: true,
      cell: ({ spent_usd, budget_usd }) => `${usd(spent_usd)}${budget_usd ? ` of ${usd(budget_usd)}` : ''}`,
    },
    {
      name: 'Used',
      isExtra: true,
      cell: ({ last_used_at }) => (last_used_at ? <Time at={last_used_at} /> : <span class="muted">never</span>),
    },
    {
      name: 'Actions',
      isQuiet: true,
      cell: (key) =>
        key.revoked_at === null &&
        may('keys:write') && (
          <Button kind="quiet" aria-label={`Edit ${key.prefix}`} onClick={() => edit(key)}>
            Edit
          </Button>
        ),
    },
  ];
}

/** User with all keys; blocking rejects all keys and tokens. */
function Person({ id }: { id: string }) {
  const path = `/users/${encodeURIComponent(id)}`;
  const [error, setError] = useState<unknown>();
  const user = useLoad(id, () => get<{ blocked_at: string | null; blocked_reason: string | null }>(path));
  const isBlocked = Boolean(user.data?.blocked_at);
  const act = (): void => {
    setError(undefined);
    change('POST', `${path}/${isBlocked ? 'unblock' : 'block'}`).then(user.reload, setError);
  };
  return (
    <div class="panel spread">
      <span>
        <b>{id}</b> {isBlocked && <Badge tone="bad">blocked</Badge>} {user.data?.blocked_reason}
      </span>
      <div class="actions">
        <a href={linkTo('usage', { user: id })}>Usage</a>
        <a href={linkTo('calls', { user: id })}>Calls</a>
        {may('users:write') && <Button onClick={act}>{isBlocked ? 'Unblock this person' : 'Block this person'}</Button>}
      </div>
      <Problem error={error ?? user.error} />
    </div>
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
    <Panel title="Signed in with" note="programs that use no key, but the sign-in of this person">
      <Problem error={error ?? found.error} retry={found.reload} />
      {found.data && (
        <Table
          label="Programs"
          rows={found.data.data}
          keyOf={(row) => row.id}
          empty="This person is signed in with no program."
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
