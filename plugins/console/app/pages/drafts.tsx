import { useState } from 'preact/hooks';
import { getVersion } from '../api.ts';
import { type ConfigFile, DraftForm, type DraftReport, type DraftTarget, type SectionView } from '../draft-form.tsx';
import { Badge, Button, Code, Name, PageHead, Panel, Problem, Spinner, Table, useLoad } from '../ui.tsx';

interface SectionText {
  readonly title: string;
  /** One entry, in the name of buttons. */
  readonly noun: string;
  readonly note: string;
}

/** Parts of the file, in the order of the page. */
const SECTIONS: Readonly<Record<string, SectionText>> = Object.freeze({
  models: { title: 'Aliases', noun: 'alias', note: 'names for one or more models' },
  provider_models: { title: 'Model lists', noun: 'model list', note: 'models of a provider of the file' },
  plans: { title: 'Plans', noun: 'plan', note: 'limits of users' },
  budgets: { title: 'Budgets', noun: 'budget', note: 'shared by all calls that match' },
  guardrails: { title: 'Guardrails', noun: 'guardrail', note: 'built-in ones without an address' },
});

/** Entries of the configuration file, to compose as YAML and, where allowed, to write. */
export function Drafts() {
  const file = useLoad('configuration file', () => getVersion<ConfigFile>('/configuration/file'));
  const [target, setTarget] = useState<DraftTarget>();
  const [written, setWritten] = useState<DraftReport>();
  const known = file.data?.value;
  const done = (report: DraftReport): void => {
    setTarget(undefined);
    setWritten(report);
    file.reload();
  };
  return (
    <>
      <PageHead
        title="Drafts"
        note={
          known && (
            <>
              <Badge tone={known.can_write ? 'good' : 'dim'}>{known.can_write ? 'writes' : 'to copy'}</Badge> Compose
              entries of {known.file}, check them, and copy them as YAML
              {known.can_write ? ', or write them to the file.' : '.'} {known.problem}
            </>
          )
        }
      />
      <Problem error={file.error} retry={file.reload} />
      {written && <Written report={written} />}
      <Spinner of={file} />
      {known &&
        Object.entries(SECTIONS).map(([section, text]) => (
          <Section
            key={section}
            text={text}
            views={known.sections.filter((view) => view.section === section)}
            onPick={(name) => {
              setWritten(undefined);
              setTarget({ section, noun: text.noun, ...(name !== undefined && { name }) });
            }}
          />
        ))}
      {target && file.data && (
        <DraftForm
          target={target}
          file={file.data}
          onClose={() => {
            setTarget(undefined);
            file.reload();
          }}
          onWritten={done}
        />
      )}
    </>
  );
}

function Written({ report: { file, other_nodes: others } }: { report: DraftReport }) {
  return (
    <p class="empty" role="status">
      Written to {file}, and in use.
      {others.length > 0 && ` These processes read the same file; reload them too: ${others.join(', ')}.`}
    </p>
  );
}

function Section({
  text,
  views,
  onPick,
}: {
  text: SectionText;
  views: readonly SectionView[];
  onPick: (name?: string) => void;
}) {
  const entries = views.flatMap((view) => view.entries);
  const isOpen = views.some(
    ({ names }) => names === undefined || names.some((name) => !entries.some((entry) => entry.name === name)),
  );
  return (
    <Panel
      title={text.title}
      note={text.note}
      actions={isOpen && <Button onClick={() => onPick()}>{`New ${text.noun}`}</Button>}
    >
      <Table
        label={`${text.title} of the file`}
        rows={entries}
        keyOf={({ name }) => name}
        empty="None in the file."
        columns={[
          { name: 'Name', cell: ({ name }) => <Name text={name} /> },
          { name: 'YAML', cell: ({ yaml }) => <Code text={yaml} /> },
          {
            name: 'Actions',
            isQuiet: true,
            cell: ({ name, from }) =>
              from === undefined ? (
                <Button kind="quiet" aria-label={`Edit the ${text.noun} ${name}`} onClick={() => onPick(name)}>
                  Edit
                </Button>
              ) : (
                <span class="muted">in {from}</span>
              ),
          },
        ]}
      />
    </Panel>
  );
}
