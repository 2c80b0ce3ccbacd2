import { useState } from 'preact/hooks';
import { change, get, getVersion, session } from './api.ts';
import { KeySpending } from './budget-line.tsx';
import { CLIENTS, type Client, connectLines } from './connect-lines.ts';
import { ActionButton } from './object-form.tsx';
import {
  changesOf,
  type Draft,
  draftOf,
  fieldNames,
  readDraft,
  type Schema,
  SchemaFields,
  useBodySchema,
} from './schema-form.tsx';
import type { Key } from './shapes.ts';
import { Button, Choice, Code, Conflict, Copy, Dialog, Problem, Spinner, useLoad } from './ui.tsx';

/** Fields that a form of a key shows at once. */
const FIRST = ['user_id', 'name', 'tags', 'plan', 'budgets', 'rpm', 'tpm', 'models', 'expires_at'];

function KeyFields({ schema, draft, set }: { schema: Schema; draft: Draft; set: (draft: Draft) => void }) {
  return <SchemaFields schema={schema} draft={draft} set={set} first={FIRST} />;
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
  const schema = useBodySchema('post', team === undefined ? '/keys' : '/own-teams/{team}/keys');
  const [draft, setDraft] = useState<Draft>(
    kept?.of === of ? kept.draft : { user_id: user || team || (session.value?.user ?? '') },
  );
  const [error, setError] = useState<unknown>();
  const [made, setMade] = useState<string>();
  const set = (typed: Draft): void => {
    kept = { of, draft: typed };
    setDraft(typed);
  };
  const discard = (): void => {
    kept = undefined;
    onClose();
  };
  const submit = (event: Event): void => {
    event.preventDefault();
    setError(undefined);
    change<{ api_key: string }>(
      'POST',
      team === undefined ? '/keys' : `/own-teams/${encodeURIComponent(team)}/keys`,
      readDraft(schema.data ?? {}, draft),
    )
      .then(({ api_key }) => {
        kept = undefined;
        setMade(api_key);
      })
      .catch(setError);
  };
  if (made !== undefined) {
    const { models } = draft;
    return <MadeKey text={made} model={String(models ?? '').split(/[\s,]+/)[0] || 'echo/echo'} onClose={onClose} />;
  }
  return (
    <Dialog title="New key" onClose={discard} isDrawer>
      <Problem error={schema.error} retry={schema.reload} />
      <Spinner of={schema} />
      {schema.data && (
        <form onSubmit={submit}>
          <KeyFields schema={schema.data} draft={draft} set={set} />
          <Problem error={error} />
          <div class="actions">
            <Button kind="main" type="submit">
              Create the key
            </Button>
            <Button onClick={discard}>Cancel</Button>
          </div>
        </form>
      )}
    </Dialog>
  );
}

function MadeKey({ text, model, onClose }: { text: string; model: string; onClose: () => void }) {
  const [client, setClient] = useState<Client>('Claude Code');
  return (
    <Dialog title="Key created" onClose={onClose} isDrawer>
      <p role="status">Store it now: it cannot be shown again.</p>
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

/** Edits a key, except when it was changed meanwhile; typed text stays. */
export function EditKey({ id, onClose }: { id: string; onClose: () => void }) {
  const schema = useBodySchema('patch', '/keys/{id}');
  const loaded = useLoad(id, () => getVersion<Key>(`/keys/${id}`));
  const [typed, setTyped] = useState<Draft>({});
  const [error, setError] = useState<unknown>();
  const before = schema.data && loaded.data && draftOf(schema.data, { ...loaded.data.value });
  const draft = before && { ...before, ...typed };
  const submit = (event: Event): void => {
    event.preventDefault();
    if (!draft) return;
    setError(undefined);
    // Only changed fields are sent.
    const changed = changesOf(schema.data, before, draft);
    if (Object.keys(changed).length === 0) onClose();
    else change('PATCH', `/keys/${id}`, changed, loaded.data.etag).then(onClose, setError);
  };
  return (
    <Dialog title={`Edit ${loaded.data?.value.prefix ?? 'a key'}`} onClose={onClose} isDrawer>
      <Problem error={loaded.error ?? schema.error} retry={loaded.error ? loaded.reload : schema.reload} />
      <Spinner of={loaded} />
      {draft && (
        <form onSubmit={submit}>
          <KeyFields
            schema={schema.data}
            draft={draft}
            set={(next) =>
              setTyped(Object.fromEntries(Object.entries(next).filter(([name, value]) => value !== before[name])))
            }
          />
          <Conflict
            error={error}
            fields={fieldNames(schema.data)}
            known={loaded.data.value}
            load={() => get<Key>(`/keys/${id}`)}
            onReload={() => {
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

/** Rotates or blocks a key, or revokes it after a confirmation. */
function EndKey({ item, onClose }: { item: Key; onClose: () => void }) {
  const [isSure, setSure] = useState(false);
  const [successor, setSuccessor] = useState<string>();
  const [error, setError] = useState<unknown>();
  const path = `/keys/${item.id}`;
  const act = (word: 'unblock' | 'revoke'): void => {
    setError(undefined);
    change('POST', `${path}/${word}`).then(onClose, setError);
  };
  if (successor !== undefined)
    return <MadeKey text={successor} model={item.models?.[0] ?? 'echo/echo'} onClose={onClose} />;
  return (
    <>
      <h3>Replace or stop the key</h3>
      <p class="muted">
        Takes effect within five seconds. A rotated key has a successor with its limits and budgets. A blocked key can
        be unblocked; a revoked key is rejected permanently.
      </p>
      <Problem error={error} />
      <div class="actions">
        <ActionButton
          label="Rotate"
          title={`Rotate ${item.prefix}`}
          route="/keys/{id}/rotate"
          path={`${path}/rotate`}
          first={['overlap_seconds']}
          onDone={({ api_key: key }) => setSuccessor(String(key))}
        />
        {item.blocked_at ? (
          <Button onClick={() => act('unblock')}>Unblock</Button>
        ) : (
          <ActionButton
            label="Block"
            title={`Block ${item.prefix}`}
            route="/keys/{id}/block"
            path={`${path}/block`}
            first={['reason']}
            onDone={onClose}
          />
        )}
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
