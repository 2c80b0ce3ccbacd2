import { useState } from 'preact/hooks';
import { get, may, type Page, change as send, session } from '../api.ts';
import { LoadedList } from '../list.tsx';
import { linkTo, route, setWords } from '../routing.ts';
import type { ProposedChange } from '../shapes.ts';
import {
  Badge,
  Button,
  Code,
  type Column,
  Dialog,
  Facts,
  PageHead,
  Problem,
  Time,
  type Tone,
  useLoad,
} from '../ui.tsx';

const TONES: Readonly<Record<ProposedChange['state'], Tone>> = Object.freeze({
  open: 'warn',
  confirmed: 'good',
  rejected: 'dim',
  failed: 'bad',
});

/** Changes that programs proposed over MCP, until an operator decides. */
export function Changes() {
  const changes = useLoad('changes', () => get<Page<ProposedChange>>('/changes'));
  const { id } = route.value.query;
  const opened = changes.data?.data.find((each) => each.id === id);
  return (
    <>
      <PageHead
        title="Changes"
        note="Proposed by programs over MCP. Nothing changes until an operator confirms it; a proposal ends after an hour."
      >
        <Button onClick={changes.reload}>Refresh</Button>
      </PageHead>
      <LoadedList
        name="changes"
        label="Proposed changes"
        path="/changes"
        query={{}}
        list={changes}
        keyOf={(change) => change.id}
        isCurrent={(change) => change.id === id}
        empty="No changes are proposed."
        columns={COLUMNS}
      />
      {opened && <Decision change={opened} onDecided={changes.reload} onClose={() => setWords({ id: undefined })} />}
    </>
  );
}

const COLUMNS: readonly Column<ProposedChange>[] = [
  {
    name: 'Change',
    value: ({ summary }) => summary,
    cell: ({ id, summary }) => <a href={linkTo('changes', { id })}>{summary}</a>,
  },
  {
    name: 'State',
    value: ({ state }) => state,
    cell: ({ state }) => <Badge tone={TONES[state]}>{state}</Badge>,
  },
  {
    name: 'Object',
    value: ({ path }) => path,
    cell: ({ path }) => (
      <div class="wrap">
        <code>{path.replace('/api/core/admin/', '')}</code>
      </div>
    ),
  },
  {
    name: 'Proposed by',
    value: ({ proposed_by }) => proposed_by.user_id,
    cell: ({ proposed_by }) => proposed_by.user_id,
  },
  {
    name: 'Reason',
    isExtra: true,
    value: ({ reason }) => reason,
    cell: ({ reason }) => <div class="wrap">{reason ?? '–'}</div>,
  },
  { name: 'Expires', value: ({ expires_at }) => expires_at, cell: ({ expires_at }) => <Time at={expires_at} /> },
];

/** Effect of a change, and the decision about it. */
function Decision({
  change,
  onDecided,
  onClose,
}: {
  change: ProposedChange;
  onDecided: () => void;
  onClose: () => void;
}) {
  const [failed, setFailed] = useState<unknown>();
  const [result, setResult] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const decide = async (word: 'confirm' | 'reject'): Promise<void> => {
    setBusy(true);
    try {
      const reply = await send<{ readonly result?: unknown }>('POST', `/changes/${change.id}/${word}`);
      setFailed(undefined);
      setResult(reply.result);
    } catch (error) {
      setFailed(error);
    }
    setBusy(false);
    onDecided();
  };
  const { method, path, state, reason, proposed_by: by, decided_by: decider, problem } = change;
  return (
    <Dialog title={change.summary} onClose={onClose} isDrawer>
      <Facts
        rows={[
          [
            'State',
            <Badge key="state" tone={TONES[state]}>
              {state}
            </Badge>,
          ],
          ['Request', <code key="path">{`${method} ${path}`}</code>],
          ['Proposed by', by.key_id === null ? by.user_id : `${by.user_id}, key tg_${by.key_id}`],
          ['Reason', reason ?? '–'],
          ['Expires', <Time key="expires" at={change.expires_at} />],
          ...(decider ? ([['Decided by', decider.user_id]] as const) : []),
          ...(problem === null ? [] : ([['Problem', problem]] as const)),
        ]}
      />
      <Difference change={change} />
      <Problem error={failed} />
      {state === 'open' && (
        <div class="actions">
          {may(change.scope) && !isOwn(change) && (
            <Button kind="main" disabled={isBusy} onClick={() => void decide('confirm')}>
              Confirm
            </Button>
          )}
          <Button disabled={isBusy} onClick={() => void decide('reject')}>
            Reject
          </Button>
        </div>
      )}
      {result !== undefined && (
        <>
          <p role="status">The change was made. Its response is shown here once.</p>
          <Code text={JSON.stringify(result, undefined, 2)} />
        </>
      )}
    </Dialog>
  );
}

/** A session of the key that proposed a change cannot confirm it. */
function isOwn({ proposed_by: { key_id } }: ProposedChange): boolean {
  return key_id !== null && session.value?.key === key_id;
}

function Difference({ change: { method, differences, body, before } }: { change: ProposedChange }) {
  if (differences.length > 0)
    return (
      <table>
        <caption class="unseen">Changed fields</caption>
        <thead>
          <tr>
            <th scope="col">Field</th>
            <th scope="col">Before</th>
            <th scope="col">After</th>
          </tr>
        </thead>
        <tbody>
          {differences.map(({ field, before: was, after }) => (
            <tr key={field}>
              <th scope="row">{field}</th>
              <td class="wrap">{JSON.stringify(was)}</td>
              <td class="wrap">{JSON.stringify(after)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    );
  const shown = body ?? (method === 'DELETE' ? before : null);
  if (shown === null) return null;
  return <Code text={JSON.stringify(shown, undefined, 2)} />;
}
