import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { change, get, getVersion, NEW } from './api.ts';
import {
  changesOf,
  type Draft,
  draftOf,
  fieldNames,
  readDraft,
  SchemaFields,
  startOf,
  useBodySchema,
} from './schema-form.tsx';
import { Button, Conflict, Dialog, Problem, Spinner, Text, useLoad } from './ui.tsx';

/** Forms of whole objects and of their actions, with the fields of the API's schema. */

interface ObjectFormProps {
  /** Name of the object; undefined for a new one. */
  readonly id?: string | undefined;
  /** Kind of the object, such as `budget`. */
  readonly noun: string;
  /** Path of the objects, such as `/budgets`. */
  readonly path: string;
  /** The same in the API's description. Default: `path`. */
  readonly route?: string;
  /** Field for the name of a new object. */
  readonly name: { readonly label: string; readonly hint?: string };
  /** Fields that the form shows at once. */
  readonly first: readonly string[];
  /** Text of the button that deletes the object. */
  readonly removal?: string;
  readonly onClose: () => void;
}

type Values = Readonly<Record<string, unknown>>;

/** Creates an object, or replaces or deletes one, except when someone else changed it meanwhile. */
export function ObjectForm({ id, noun, path, route = path, name, first, removal, onClose }: ObjectFormProps) {
  const schema = useBodySchema('put', `${route}/{name}`);
  const [newId, setNewId] = useState('');
  const where = `${path}/${encodeURIComponent(id ?? newId.trim())}`;
  const known = useLoad(id, () => getVersion<Values>(where));
  const [isGone, setGone] = useState(false);
  const [typed, setTyped] = useState<Draft>({});
  const [isSure, setSure] = useState(false);
  const [error, setError] = useState<unknown>();
  const isReady = schema.data && (id === undefined || known.data);
  const loaded = isReady && (known.data ? draftOf(schema.data, known.data.value) : startOf(schema.data));
  const draft = { ...loaded, ...typed };
  const etag = id === undefined || isGone ? NEW : known.data?.etag;
  const submit = (event: Event): void => {
    event.preventDefault();
    setError(undefined);
    change('PUT', where, readDraft(schema.data ?? {}, draft), etag).then(onClose, setError);
  };
  return (
    <Dialog title={id === undefined ? `New ${noun}` : `Edit ${id}`} onClose={onClose} isDrawer>
      <Problem error={schema.error} retry={schema.reload} />
      <Problem error={known.error} retry={known.reload} />
      <Spinner of={schema} />
      {loaded && (
        <form onSubmit={submit}>
          {id === undefined && <Text {...name} required value={newId} onType={setNewId} />}
          <SchemaFields
            schema={schema.data}
            draft={draft}
            first={first}
            set={(next) =>
              setTyped(Object.fromEntries(Object.entries(next).filter(([field, value]) => value !== loaded[field])))
            }
          />
          <Conflict
            error={error}
            fields={fieldNames(schema.data)}
            known={etag === NEW ? undefined : known.data?.value}
            load={() => get<Values>(where)}
            onReload={() => {
              setError(undefined);
              known.reload();
            }}
            onGone={() => {
              setError(undefined);
              setGone(true);
            }}
          />
          <div class="actions">
            <Button kind="main" type="submit">
              {isGone ? 'Create it again' : 'Save'}
            </Button>
            <Button onClick={onClose}>Cancel</Button>
            {removal !== undefined &&
              id !== undefined &&
              (isSure ? (
                <Button
                  kind="danger"
                  onClick={() => void change('DELETE', where, undefined, etag).then(onClose, setError)}
                >
                  {removal}
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

interface Action {
  readonly title: string;
  readonly method?: 'post' | 'put' | 'patch';
  /** Route by its path in the API's description, such as `/budgets/{name}/raises`. */
  readonly route: string;
  /** Path of this object's action. */
  readonly path: string;
  readonly first: readonly string[];
  readonly start?: Values;
  readonly note?: ComponentChildren;
}

const METHODS = Object.freeze({ post: 'POST', put: 'PUT', patch: 'PATCH' } as const);

interface ActionFormProps extends Action {
  readonly button: string;
  readonly onClose: () => void;
  readonly onDone: (response: Values) => void;
}

/** Form of an action with the fields of its request. */
function ActionForm({
  title,
  method = 'post',
  route,
  path,
  first,
  start,
  note,
  button,
  onClose,
  onDone,
}: ActionFormProps) {
  const schema = useBodySchema(method, route);
  const [typed, setTyped] = useState<Draft>();
  const [error, setError] = useState<unknown>();
  const before: Draft = schema.data ? { ...startOf(schema.data), ...draftOf(schema.data, start ?? {}) } : {};
  const draft = typed ?? before;
  const submit = (event: Event): void => {
    event.preventDefault();
    if (!schema.data) return;
    setError(undefined);
    const body = method === 'patch' ? changesOf(schema.data, before, draft) : readDraft(schema.data, draft);
    change<Values>(METHODS[method], path, body).then(onDone, setError);
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <Problem error={schema.error} retry={schema.reload} />
      <Spinner of={schema} />
      {schema.data && (
        <form onSubmit={submit}>
          {note && <p>{note}</p>}
          <SchemaFields schema={schema.data} draft={draft} first={first} set={setTyped} />
          <Problem error={error} />
          <div class="actions">
            <Button kind="main" type="submit">
              {button}
            </Button>
            <Button onClick={onClose}>Cancel</Button>
          </div>
        </form>
      )}
    </Dialog>
  );
}

interface ActionButtonProps extends Action {
  readonly label: string;
  readonly isQuiet?: boolean;
  readonly onDone: (response: Values) => void;
}

/** Button that opens the form of an action. */
export function ActionButton({ label, isQuiet = false, onDone, ...action }: ActionButtonProps) {
  const [isOpen, setOpen] = useState(false);
  const close = (): void => setOpen(false);
  return (
    <>
      <Button
        kind={isQuiet ? 'quiet' : 'plain'}
        {...(isQuiet && { 'aria-label': action.title })}
        onClick={() => setOpen(true)}
      >
        {label}
      </Button>
      {isOpen && (
        <ActionForm
          {...action}
          button={label}
          onClose={close}
          onDone={(response) => {
            close();
            onDone(response);
          }}
        />
      )}
    </>
  );
}
