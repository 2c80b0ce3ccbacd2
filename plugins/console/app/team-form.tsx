import { useState } from 'preact/hooks';
import { change, get, getVersion, type Versioned } from './api.ts';
import { type Draft, draftOf, readDraft, SchemaFields, useBodySchema } from './schema-form.tsx';
import type { Team } from './shapes.ts';
import { Button, Conflict, Dialog, Problem, Spinner, Text, useLoad } from './ui.tsx';

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

/** Fields that the form shows at once. */
const FIRST = ['owners', 'members', 'budget', 'models'];

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
  const schema = useBodySchema('put', '/teams/{name}');
  const [tag, setTag] = useState(before?.tag ?? '');
  const [typed, setTyped] = useState<Draft>({});
  const [isSure, setSure] = useState(false);
  const [error, setError] = useState<unknown>();
  const path = `/teams/${encodeURIComponent(tag.trim())}`;
  const loaded = schema.data && draftOf(schema.data, { ...before });
  const draft = { ...loaded, ...typed };
  const submit = (event: Event): void => {
    event.preventDefault();
    setError(undefined);
    change('PUT', path, readDraft(schema.data ?? {}, draft), known?.etag).then(onClose, setError);
  };
  return (
    <Dialog title={before ? `Edit ${before.tag}` : 'New team'} onClose={onClose} isDrawer>
      <Problem error={schema.error} retry={schema.reload} />
      <Spinner of={schema} />
      {schema.data && (
        <form onSubmit={submit}>
          {!before && (
            <Text label="Tag" hint="Such as team=search." required maxLength={129} value={tag} onType={setTag} />
          )}
          <SchemaFields
            schema={schema.data}
            draft={draft}
            first={FIRST}
            set={(next) =>
              setTyped(Object.fromEntries(Object.entries(next).filter(([name, value]) => value !== loaded?.[name])))
            }
          />
          <Conflict
            error={error}
            fields={Object.keys(schema.data.properties ?? {})}
            known={before ?? {}}
            load={() => get<Team>(path)}
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
                <Button
                  kind="danger"
                  onClick={() => void change('DELETE', path, undefined, known.etag).then(onClose, setError)}
                >
                  Delete the team; its keys and budgets stay
                </Button>
              ) : (
                <Button onClick={() => setSure(true)}>Delete …</Button>
              ))}
          </div>
        </form>
      )}
    </Dialog>
  );
}
