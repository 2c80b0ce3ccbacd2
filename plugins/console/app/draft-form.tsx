import { useEffect, useRef, useState } from 'preact/hooks';
import { change, getVersion, type Versioned } from './api.ts';
import { type Draft, draftOf, fieldNames, readDraft, type Schema, SchemaFields, startOf } from './schema-form.tsx';
import type { Reload } from './shapes.ts';
import { Button, Choice, Code, Conflict, Dialog, Facts, Panel, Text } from './ui.tsx';

/** Entry of the configuration file. */
interface Entry {
  readonly name: string;
  readonly value: Values;
  readonly yaml: string;
  readonly from?: string;
}

export interface SectionView {
  readonly section: string;
  readonly schema: Schema;
  /** Possible names; absent if any name is possible. */
  readonly names?: readonly string[];
  readonly entries: readonly Entry[];
}

export interface ConfigFile {
  readonly file: string;
  readonly can_write: boolean;
  readonly problem?: string;
  readonly sections: readonly SectionView[];
}

export interface DraftReport {
  readonly file: string;
  readonly yaml: string;
  readonly diff: string;
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
  readonly changes: Reload['changes'];
  readonly other_nodes: readonly string[];
}

/** Entry that the form is for; a new one without a name. */
export interface DraftTarget {
  readonly section: string;
  readonly noun: string;
  readonly name?: string;
}

type Values = Readonly<Record<string, unknown>>;

/** Fields shown at once, by section; for guardrails the required ones. */
const FIRST: Readonly<Record<string, readonly string[]>> = Object.freeze({
  models: ['targets', 'strategy'],
  provider_models: ['models'],
  plans: ['rpm', 'tpm', 'models'],
  budgets: ['amount_usd', 'every'],
});

/** Composes one entry, checks it, and writes it where the session may. */
export function DraftForm({
  target: { section, noun, name },
  file,
  onClose,
  onWritten,
}: {
  target: DraftTarget;
  file: Versioned<ConfigFile>;
  onClose: () => void;
  onWritten: (report: DraftReport) => void;
}) {
  const views = file.value.sections.filter((view) => view.section === section);
  const entries = views.flatMap((view) => view.entries);
  const names = views
    .flatMap((view) => view.names ?? [])
    .filter((each) => !entries.some((entry) => entry.name === each));
  const hasNames = views.some((view) => view.names !== undefined);
  const [newName, setNewName] = useState(hasNames ? (names[0] ?? '') : '');
  const [typed, setTyped] = useState<Draft>({});
  const [checked, setChecked] = useState<{ readonly body: string; readonly report: DraftReport }>();
  const [error, setError] = useState<unknown>();
  const id = name ?? newName.trim();
  const view =
    views.find((each) => each.entries.some((entry) => entry.name === id) || each.names?.includes(id)) ?? views[0];
  const schema = view?.schema ?? {};
  // The value at the opening of the form stays, so that changes of others do not mix with typed text.
  const [known, setKnown] = useState(() => entries.find((entry) => entry.name === name)?.value);
  const [etag, setEtag] = useState(file.etag);
  const loaded = known ? draftOf(schema, known) : startOf(schema);
  const draft = { ...loaded, ...typed };
  const readEntry = async (): Promise<Versioned<Values | undefined>> => {
    const now = await getVersion<ConfigFile>('/configuration/file');
    const all = now.value.sections.flatMap((each) => (each.section === section ? each.entries : []));
    return { etag: now.etag, value: all.find((entry) => entry.name === id)?.value };
  };
  const compose = (): Values => withOriginals(readDraft(schema, draft), { schema, known, loaded, draft });
  const body = (value: Values | undefined): object => ({ section, name: id, ...(value && { value }) });
  const isTaken = name === undefined && entries.some((entry) => entry.name === id);

  const check = (value: Values | undefined): void => {
    setError(
      isTaken ? new Error(`The file has the ${noun} "${id}" already. Close this form, and edit it.`) : undefined,
    );
    setChecked(undefined);
    if (isTaken) return;
    const sent = body(value);
    change<DraftReport>('POST', '/configuration/drafts', sent).then(
      (report) => setChecked({ body: JSON.stringify(sent), report }),
      setError,
    );
  };
  const write = (sent: string): void => {
    setError(undefined);
    change<DraftReport>('PUT', '/configuration/file', JSON.parse(sent), etag).then(onWritten, setError);
  };
  const isCurrent =
    checked !== undefined && [body(compose()), body(undefined)].some((each) => JSON.stringify(each) === checked.body);

  return (
    <Dialog title={name === undefined ? `New ${noun}` : `Edit ${name}`} onClose={onClose} isDrawer>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          check(compose());
        }}
      >
        {name === undefined &&
          (hasNames ? (
            <Choice
              label="Name"
              value={newName}
              options={names.map((each) => [each, each] as const)}
              onPick={(next) => {
                setNewName(next);
                setTyped({});
              }}
            />
          ) : (
            <Text label="Name" required value={newName} onType={setNewName} />
          ))}
        <SchemaFields
          key={view?.names?.[0] ?? section}
          schema={schema}
          draft={draft}
          set={(next) =>
            setTyped(Object.fromEntries(Object.entries(next).filter(([field, value]) => value !== loaded[field])))
          }
          first={FIRST[section] ?? schema.required ?? []}
        />
        <Conflict
          error={error}
          fields={fieldNames(schema)}
          known={known ?? {}}
          load={async () => (await readEntry()).value ?? {}}
          onReload={() =>
            void readEntry().then((now) => {
              setKnown(now.value);
              setEtag(now.etag);
              setError(undefined);
              setChecked(undefined);
            }, setError)
          }
        />
        <div class="actions">
          <Button kind="main" type="submit">
            Check
          </Button>
          <Button onClick={onClose}>Cancel</Button>
          {name !== undefined && <Button onClick={() => check(undefined)}>Remove …</Button>}
        </div>
      </form>
      {checked && <Report report={checked.report} />}
      {checked && file.value.can_write && checked.report.problems.length === 0 && (
        <div class="actions">
          {isCurrent ? (
            <Button kind="main" onClick={() => write(checked.body)}>
              Write to {file.value.file} and reload
            </Button>
          ) : (
            <p class="muted">The fields have changed. Check them again to write them.</p>
          )}
        </div>
      )}
    </Dialog>
  );
}

/**
 * Value of the form with the originals of fields that were not changed: the form shows numbers as text and lists in one
 * line, which must not change how the file writes them.
 */
function withOriginals(
  value: Values,
  { schema, known, loaded, draft }: { schema: Schema; known: Values | undefined; loaded: Draft; draft: Draft },
): Values {
  const entries = Object.keys(schema.properties ?? {}).flatMap((field) => {
    const isSame = known?.[field] !== undefined && JSON.stringify(draft[field]) === JSON.stringify(loaded[field]);
    const found = isSame ? known[field] : value[field];
    return found === undefined ? [] : [[field, found] as const];
  });
  return Object.fromEntries(entries);
}

/** Result of a check: problems, YAML and differences. */
function Report({ report: { yaml, diff, problems, warnings, changes } }: { report: DraftReport }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => box.current?.scrollIntoView({ block: 'nearest' }), [diff, problems.length]);
  return (
    <div ref={box} class="report">
      {problems.length > 0 ? (
        <div class="problem" role="alert">
          <p>A start would refuse the configuration with this draft:</p>
          <Lines texts={problems} />
        </div>
      ) : (
        <p role="status">Valid: a start would accept the configuration with this draft.</p>
      )}
      {warnings.length > 0 && (
        <Panel title="Warnings">
          <Lines texts={warnings} />
        </Panel>
      )}
      {yaml !== '' && (
        <Panel title="YAML">
          <Code text={yaml} />
        </Panel>
      )}
      <Panel title="Differences in the file">
        {diff === '' ? <p class="muted">None: the file has this entry.</p> : <Code text={diff} />}
      </Panel>
      {changes.length > 0 && (
        <Panel title="Changes of a reload">
          <Facts
            rows={changes.map(({ path, before, after }) => [path, `${before ?? '–'} → ${after ?? '–'}`] as const)}
          />
        </Panel>
      )}
    </div>
  );
}

function Lines({ texts }: { texts: readonly string[] }) {
  return (
    <ul class="lines">
      {texts.map((text) => (
        <li key={text}>{text}</li>
      ))}
    </ul>
  );
}
