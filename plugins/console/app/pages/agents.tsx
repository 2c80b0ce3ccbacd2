import { useEffect, useRef, useState } from 'preact/hooks';
import { call, get, hasRoute, readEvents, session } from '../api.ts';
import { count, milliseconds } from '../format.ts';
import { linkTo } from '../routing.ts';
import type { AgentTeam } from '../shapes.ts';
import {
  Badge,
  Button,
  Code,
  Field,
  PageHead,
  Panel,
  Problem,
  Spinner,
  Table,
  Text,
  type Tone,
  Usd,
  useLoad,
} from '../ui.tsx';

/** Work of one agent; times are from the start of the request by this browser's clock. */
interface Step {
  readonly agent: string;
  readonly round: number | undefined;
  readonly beganMs: number;
  /** End of the previously reported work, before which it cannot have started. */
  readonly notBeforeMs?: number;
  readonly endedMs?: number;
  /** Undefined while it works. */
  readonly status?: string;
  readonly error?: string | undefined;
}

interface Finding {
  readonly agent: string;
  readonly text: string;
}

interface Result {
  readonly content: Readonly<Record<string, unknown>>;
  readonly usage: { readonly prompt_tokens: number; readonly completion_tokens: number };
  readonly model: string;
  readonly cost_usd: string;
}

interface Run {
  readonly steps: readonly Step[];
  readonly findings: readonly Finding[];
  readonly result?: Result;
  readonly error?: unknown;
  readonly request: string;
  /** Duration so far, or in total. */
  readonly ms: number;
  readonly isOver: boolean;
}

const NOTHING_YET: Run = { steps: [], findings: [], request: '', ms: 0, isOver: false };

/** Page of a request to the team of agents, with the timeline of their work. */
export function Agents() {
  const team = useLoad('agents', async () => ({
    team: (await hasRoute('/agent')) ? await get<AgentTeam>('/agent') : undefined,
  }));
  return (
    <>
      <PageHead title="Agents" note={`Calls are made and charged as ${session.value?.user}. No key is needed.`} />
      <Problem error={team.error} retry={team.reload} />
      <Spinner of={team} />
      {team.data && !team.data.team && (
        <Panel title="No team of agents is configured">
          <p>Add one with its model to the configuration, and reload:</p>
          <Code text={'agents:\n  team:\n    model: PROVIDER/MODEL'} />
        </Panel>
      )}
      {team.data?.team && <TeamRun team={team.data.team} />}
    </>
  );
}

/** State of a team run, with functions to start and stop it. */
function useRun() {
  const [run, setRun] = useState<Run>();
  const abort = useRef<AbortController | undefined>(undefined);
  useEffect(() => () => abort.current?.abort(), []);
  const begin = async ({ message, context, model }: Draft): Promise<void> => {
    const controller = new AbortController();
    const { signal } = controller;
    abort.current = controller;
    setRun(NOTHING_YET);
    const began = performance.now();
    const put = (change: (before: Run) => Run): void =>
      setRun((before) => ({ ...change(before ?? NOTHING_YET), ms: performance.now() - began }));
    // Running work grows in the chart over time.
    const clock = setInterval(() => put((before) => before), 250);
    try {
      const body = {
        message,
        ...(context.trim() !== '' && { context }),
        ...(model.trim() !== '' && { model: model.trim() }),
        // Test runs neither use nor store memory.
        session: null,
        stream: true,
      };
      await readRun(body, signal, began, put);
    } catch (error) {
      if (!signal.aborted) put((before) => ({ ...before, error }));
    }
    clearInterval(clock);
    put((before) => ({ ...before, isOver: true }));
  };
  return { run, begin, stop: () => abort.current?.abort() };
}

interface Draft {
  readonly message: string;
  readonly context: string;
  readonly model: string;
}

function TeamRun({ team }: { team: AgentTeam }) {
  const [draft, setDraft] = useState<Draft>({ message: '', context: '', model: '' });
  const { run, begin, stop } = useRun();
  const isBusy = run !== undefined && !run.isOver;
  const set = (part: Partial<Draft>): void => setDraft({ ...draft, ...part });
  return (
    <>
      <form
        class="panel"
        onSubmit={(event) => {
          event.preventDefault();
          void begin(draft);
        }}
      >
        <Field label="Message">
          <textarea required value={draft.message} onInput={(event) => set({ message: event.currentTarget.value })} />
        </Field>
        <div class="pair">
          <Field label="Context, which every agent sees">
            <textarea value={draft.context} onInput={(event) => set({ context: event.currentTarget.value })} />
          </Field>
          <Text label="Model" placeholder={team.model} value={draft.model} onType={(model) => set({ model })} />
        </div>
        <div class="actions">
          <Button kind="main" type="submit" disabled={isBusy}>
            Send to the team
          </Button>
          {isBusy && <Button onClick={stop}>Stop</Button>}
        </div>
      </form>
      {run && <Timeline run={run} />}
      {run && (run.result || run.findings.length > 0 || run.error !== undefined) && <Outcome run={run} />}
      <Members team={team} />
    </>
  );
}

function Members({ team }: { team: AgentTeam }) {
  return (
    <Panel title="Who is in the team" note="The router chooses by what each is for.">
      <Table
        label="The team"
        rows={team.agents}
        keyOf={({ name }) => name}
        empty="No specialists: the writer responds alone."
        columns={[
          { name: 'Agent', cell: ({ name }) => <b>{name}</b> },
          { name: 'For', cell: ({ when }) => <span class="wrap">{when}</span> },
          { name: 'Model', isExtra: true, cell: ({ model }) => model ?? team.model },
        ]}
      />
    </Panel>
  );
}

const TONES: Readonly<Record<string, Tone>> = Object.freeze({
  ok: 'good',
  failed: 'bad',
  late: 'warn',
  skipped: 'dim',
});

function Timeline({ run }: { run: Run }) {
  const whole = Math.max(run.ms, ...run.steps.map(({ endedMs = 0 }) => endedMs), 1);
  return (
    <Panel
      title="Who worked"
      note={<span role="status">{run.isOver ? `Over after ${milliseconds(run.ms)}` : 'The team works …'}</span>}
    >
      <Table
        label="Steps of the team"
        rows={run.steps.map((step, place) => ({ ...step, place }))}
        keyOf={({ place }) => String(place)}
        empty={run.isOver ? 'No agent started.' : 'Steps are shown once the first agent is done.'}
        columns={[
          {
            name: 'Agent',
            cell: ({ agent, round }) => (
              <>
                <b>{agent}</b> {round !== undefined && round > 1 && <span class="muted">round {round}</span>}
              </>
            ),
          },
          {
            name: 'State',
            cell: ({ status, error }) => (
              <>
                <Badge tone={TONES[status ?? ''] ?? 'dim'}>{status ?? (run.isOver ? 'stopped' : 'works')}</Badge>
                {error && <code class="code-name">{error}</code>}
              </>
            ),
          },
          { name: 'Began', isNumber: true, isExtra: true, cell: ({ beganMs }) => milliseconds(beganMs) },
          {
            name: 'Took',
            isNumber: true,
            cell: ({ beganMs, endedMs }) => (endedMs === undefined ? '–' : milliseconds(endedMs - beganMs)),
          },
          {
            name: 'When',
            cell: ({ beganMs, endedMs = run.ms, status }) => (
              <Lane from={beganMs / whole} to={endedMs / whole} tone={TONES[status ?? ''] ?? 'dim'} />
            ),
          },
        ]}
      />
    </Panel>
  );
}

/** Segment of the timeline; its numbers are next to it. */
function Lane({ from, to, tone }: { from: number; to: number; tone: Tone }) {
  return (
    <div class={`bar lane ${tone}`} aria-hidden="true">
      <span
        ref={(element) => {
          element?.style.setProperty('margin-left', `${Math.min(from, 1) * 100}%`);
          element?.style.setProperty('width', `${Math.max(Math.min(to, 1) - from, 0) * 100}%`);
        }}
      />
    </div>
  );
}

function Outcome({ run: { result, findings, error, request } }: { run: Run }) {
  const text = result?.content['answer'];
  return (
    <div class="grid">
      <Panel title="The result">
        <Problem error={error} />
        {result &&
          (typeof text === 'string' && Object.keys(result.content).length === 1 ? (
            <p class="said">{text}</p>
          ) : (
            <Code text={JSON.stringify(result.content, null, 2)} />
          ))}
        {result && (
          <p class="muted">
            {count(result.usage.prompt_tokens)} tokens in, {count(result.usage.completion_tokens)} out,{' '}
            {result.cost_usd === 'unknown' ? 'cost unknown' : <Usd of={result.cost_usd} />}, written by {result.model}.{' '}
            <a href={linkTo('calls', { request })}>Its calls</a>
          </p>
        )}
      </Panel>
      {findings.length > 0 && (
        <Panel title="What they found">
          <ul class="lines">
            {findings.map(({ agent, text }, place) => (
              <li key={place}>
                <b>{agent}</b>
                <p class="said">{text}</p>
              </li>
            ))}
          </ul>
        </Panel>
      )}
    </div>
  );
}

interface AgentEvent {
  readonly agent: string;
  readonly round?: number;
  readonly status?: string;
  readonly ms?: number;
  readonly error?: string;
  readonly text?: string;
  readonly data?: unknown;
}

/** Reads the events of a team, and reports each as a change of the state. */
async function readRun(
  body: object,
  signal: AbortSignal,
  began: number,
  put: (change: (before: Run) => Run) => void,
): Promise<void> {
  const response = await call('/agent', body, signal);
  put((before) => ({ ...before, request: response.headers.get('x-request-id') ?? '' }));
  for await (const { name, data } of readEvents(response)) {
    const now = performance.now() - began;
    const event = data as AgentEvent;
    switch (name) {
      case 'agent.started':
        put((before) => ({
          ...before,
          steps: [...before.steps, begin(before.steps, event, now)],
        }));
        break;
      case 'agent.finished':
        put((before) => ({ ...before, steps: finish(before.steps, event, now) }));
        break;
      case 'agent.message': {
        const text = event.text ?? JSON.stringify(event.data);
        put((before) => ({ ...before, findings: [...before.findings, { agent: event.agent, text }] }));
        break;
      }
      case 'result':
        put((before) => ({ ...before, result: data as Result }));
        break;
      case 'error':
        throw new Error((data as { error: { message: string } }).error.message);
    }
  }
}

function begin(steps: readonly Step[], { agent, round }: AgentEvent, now: number): Step {
  const notBeforeMs = Math.max(0, ...steps.map(({ endedMs = 0 }) => endedMs));
  return { agent, round, beganMs: Math.max(now, notBeforeMs), notBeforeMs };
}

/**
 * Ends the first matching step. The gateway holds back the first events and may send some together, so the duration is
 * the gateway's value.
 */
function finish(
  steps: readonly Step[],
  { agent, round, status = 'ok', ms = 0, error }: AgentEvent,
  now: number,
): readonly Step[] {
  const place = steps.findIndex((step) => step.agent === agent && step.round === round && step.status === undefined);
  return steps.map((step, at) => {
    if (at !== place) return step;
    const beganMs = Math.max(now - ms, step.notBeforeMs ?? 0);
    return { ...step, status, error, beganMs, endedMs: beganMs + ms };
  });
}
