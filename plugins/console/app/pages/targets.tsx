import { useState } from 'preact/hooks';
import { change, get, may, type Page } from '../api.ts';
import { count, milliseconds, percent, until } from '../format.ts';
import { linkTo } from '../routing.ts';
import type { GatewayNode, Target, Usage } from '../shapes.ts';
import { type Hour, Sparkline } from '../sparkline.tsx';
import { StateBadge, TargetState, urgencyOf } from '../target-state.tsx';
import { Button, Name, PageHead, Panel, Problem, Spinner, Table, Time, useLoad } from '../ui.tsx';

interface Targets extends Page<Target> {
  readonly retries: { readonly running: number; readonly allowed: number; readonly refused: number };
  readonly drained: readonly string[];
}

const CAUSES: Readonly<Record<string, string>> = Object.freeze({
  rate_limit: 'rate limit of the vendor',
  credential: 'key rejected by the vendor',
  failures: 'too many failures',
  shared: 'reported by another process',
});

function Retries({ of: { running, allowed, refused } }: { of: NonNullable<Targets['retries']> }) {
  return (
    <p class="muted">
      Retries: {running} running, {allowed} allowed, {refused} rejected, to limit the load on a failing vendor.
    </p>
  );
}

/** Actions on a target; the page reloads after each. */
function useOrders(reload: () => void) {
  const [failed, setFailed] = useState<unknown>();
  const order = (target: string, word: string): void => {
    change('POST', `/targets/${encodeURIComponent(target)}/${word}`).then(
      () => {
        setFailed(undefined);
        reload();
      },
      (error: unknown) => setFailed(error),
    );
  };
  return { order, failed };
}

/** State of every target over all workers, failing ones first. */
export function Targets() {
  const targets = useLoad('targets', () => get<Targets>('/targets', { limit: 1000 }));
  const hours = useLoad(may('usage:read') ? 'hours' : undefined, () =>
    get<Usage>('/usage', { last: '24h', by: 'hour,provider,model', tz: 'UTC', limit: 1000 }),
  );
  const ofTarget = hours.data && callsByHour(hours.data);
  const reload = (): void => {
    targets.reload();
    hours.reload();
  };
  const { retries, drained = [] } = targets.data ?? {};
  const { order, failed } = useOrders(targets.reload);
  return (
    <>
      <PageHead
        title="Targets"
        note="Sum over all processes on the store. An unhealthy target is skipped for a while, then retried; a reset retries it immediately. A drained target gets no new calls."
      >
        <Button onClick={reload}>Refresh</Button>
      </PageHead>
      <Problem error={targets.error} retry={targets.reload} />
      <Problem error={failed} />
      <Spinner of={targets} />
      {targets.data && (
        <Table
          label="Targets"
          rows={targets.data.data.toSorted((a, b) => urgencyOf(b) - urgencyOf(a))}
          keyOf={({ target }) => target}
          empty="No target is configured, and none was used since the start."
          columns={[
            { name: 'Target', cell: ({ target }) => <Name text={target} /> },
            { name: 'State', cell: (target) => <StateAndCause target={target} /> },
            {
              name: 'Last 24 hours',
              isExtra: true,
              cell: ({ provider, model }) => <Sparkline hours={ofTarget?.get(`${provider}/${model}`)} />,
            },
            { name: 'Error rate', isNumber: true, cell: ({ error_ratio }) => percent(error_ratio) },
            { name: 'Attempts', isNumber: true, isWide: true, cell: ({ attempts }) => count(attempts) },
            { name: 'First token', isNumber: true, cell: ({ first_token_ms }) => milliseconds(first_token_ms) },
            { name: 'Duration', isNumber: true, isExtra: true, cell: ({ whole_ms }) => milliseconds(whole_ms) },
            { name: 'Last error', cell: ({ last_error }) => last_error && <LastError error={last_error} /> },
            ...(may('targets:write')
              ? [
                  {
                    name: 'Actions',
                    isQuiet: true,
                    cell: (target: Target) => <Orders target={target} drained={drained} order={order} />,
                  },
                ]
              : []),
          ]}
        />
      )}
      {retries && <Retries of={retries} />}
      <Nodes />
    </>
  );
}

/** State of a target in each process. */
function TargetNodes({ nodes }: Pick<Target, 'nodes'>) {
  if (nodes.length < 2) return null;
  return (
    <details>
      <summary>{nodes.length} processes</summary>
      <ul class="lines">
        {nodes.map(({ node, state, error_ratio, attempts, first_token_ms }) => (
          <li key={node}>
            <b>{node}</b> <StateBadge state={state} ratio={error_ratio} />{' '}
            <span class="muted">
              {count(attempts)} attempts, {percent(error_ratio)} failed
              {first_token_ms !== undefined && `, first token ${milliseconds(first_token_ms)}`}
            </span>
          </li>
        ))}
      </ul>
    </details>
  );
}

function StateAndCause({ target }: { target: Target }) {
  const { state, cause, open_until } = target;
  return (
    <div class="wrap">
      <TargetState target={target} /> {cause && <span>{CAUSES[cause] ?? cause}</span>}
      {state === 'open' && open_until && <span class="muted">; next retry {until(open_until)}</span>}
      <TargetNodes nodes={target.nodes} />
    </div>
  );
}

/** Actions of an operator on a target; single keys of a provider have none. */
function Orders({
  target: { target, provider, key, state },
  drained,
  order,
}: {
  target: Target;
  drained: readonly string[];
  order: (target: string, word: string) => void;
}) {
  if (key !== undefined) return null;
  const say = (word: string, label: string, of = target) => (
    <Button kind="quiet" onClick={() => order(of, word)} aria-label={`${label} ${of}`}>
      {label}
    </Button>
  );
  if (drained.includes(provider)) return say('undrain', 'Undrain all of', provider);
  return (
    <div class="actions">
      {drained.includes(target) ? say('undrain', 'Undrain') : say('drain', 'Drain')}
      {(state === 'open' || state === 'half-open') && say('reset', 'Reset')}
    </div>
  );
}

function LastError({ error }: { error: NonNullable<Target['last_error']> }) {
  return (
    <div class="wrap">
      <Time at={error.at} /> {error.status} {error.message}{' '}
      {error.request_id && <a href={linkTo('calls', { request: error.request_id })}>the call</a>}
    </div>
  );
}

/** Calls and failures of each target in the last 24 hours, by hour, as counted by the gateway. */
function callsByHour({ data, to }: Usage): ReadonlyMap<string, readonly Hour[]> {
  const last = Math.floor((Date.parse(to) - 1) / HOUR_MS);
  const found = new Map<string, Hour[]>();
  for (const row of data) {
    const name = `${row['provider']}/${row['model']}`;
    const hours = found.get(name) ?? Array.from({ length: 24 }, () => ({ calls: 0, failed: 0 }));
    found.set(name, hours);
    const at = 23 - (last - Math.floor(Date.parse(startOf(String(row['hour']))) / HOUR_MS));
    if (at >= 0 && at < 24) hours[at] = { calls: row.requests, failed: row.errors };
  }
  return found;
}

const HOUR_MS = 3_600_000;

/** Start of an hour, which the gateway names in UTC here. */
function startOf(hour: string): string {
  return `${hour.slice(0, 13)}:00:00Z`;
}

/** Running processes on all machines of the store. */
function Nodes() {
  const nodes = useLoad('nodes', () => get<Page<GatewayNode>>('/nodes'));
  return (
    <Panel title="Gateway processes" note="all gateways on this store">
      <Problem error={nodes.error} retry={nodes.reload} />
      <Spinner of={nodes} />
      {nodes.data && (
        <Table
          label="Processes"
          rows={nodes.data.data}
          keyOf={({ id }) => id}
          empty="No process is registered in the store yet."
          columns={[
            {
              name: 'Process',
              cell: ({ host, pid }) => (
                <>
                  <b>{host}</b> {pid}
                </>
              ),
            },
            { name: 'Version', cell: ({ version }) => version },
            { name: 'Since', cell: ({ started_at }) => <Time at={started_at} /> },
            { name: 'Configurations', isNumber: true, isExtra: true, cell: ({ generation }) => count(generation) },
            {
              name: 'Unhealthy targets',
              isNumber: true,
              cell: ({ targets }) => count(targets['open'] ?? 0),
            },
            { name: 'Seen', isExtra: true, cell: ({ seen_at }) => <Time at={seen_at} /> },
          ]}
        />
      )}
    </Panel>
  );
}
