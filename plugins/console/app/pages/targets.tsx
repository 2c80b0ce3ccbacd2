import { get, type Page } from '../api.ts';
import { milliseconds, percent, until } from '../format.ts';
import { linkTo } from '../routing.ts';
import type { Target } from '../shapes.ts';
import { TargetState } from '../target-state.tsx';
import { Button, PageHead, Problem, Spinner, Table, Time, useLoad } from '../ui.tsx';

interface Targets extends Page<Target> {
  readonly retries: { readonly running: number; readonly allowed: number; readonly refused: number };
}

const CAUSES: Readonly<Record<string, string>> = Object.freeze({
  rate_limit: 'the vendor’s rate limit',
  credential: 'the vendor refused the key',
  failures: 'too many failures',
  shared: 'another process found it so',
});

/** The state of every target that was tried, over all workers. */
export function Targets() {
  const targets = useLoad('targets', () => get<Targets>('/targets', { limit: 1000 }));
  const retries = targets.data?.retries;
  return (
    <>
      <PageHead
        title="Targets"
        note="Those that were tried since the start. A target that fails is left alone for a while, then tried again by itself."
      >
        <Button onClick={targets.reload}>Refresh</Button>
      </PageHead>
      <Problem error={targets.error} retry={targets.reload} />
      <Spinner of={targets} />
      {targets.data && (
        <Table
          label="Targets"
          rows={targets.data.data}
          keyOf={({ target }) => target}
          empty="No target was tried since the gateway started."
          columns={[
            { name: 'Target', cell: ({ target }) => <b>{target}</b> },
            {
              name: 'State',
              cell: (target) => (
                <div class="wrap">
                  <TargetState target={target} /> {target.cause && <span>{CAUSES[target.cause] ?? target.cause}</span>}
                  {target.open_until && <span class="muted">, tried again {until(target.open_until)}</span>}
                </div>
              ),
            },
            { name: 'Failed lately', isNumber: true, cell: ({ error_ratio }) => percent(error_ratio) },
            { name: 'Attempts', isNumber: true, cell: ({ attempts }) => attempts },
            { name: 'First token', isNumber: true, cell: ({ first_token_ms }) => milliseconds(first_token_ms) },
            { name: 'Whole', isNumber: true, cell: ({ whole_ms }) => milliseconds(whole_ms) },
            {
              name: 'Last error',
              cell: ({ last_error }) =>
                last_error && (
                  <div class="wrap">
                    <Time at={last_error.at} /> {last_error.status} {last_error.message}{' '}
                    {last_error.request_id && (
                      <a href={linkTo('calls', { request: last_error.request_id })}>the call</a>
                    )}
                  </div>
                ),
            },
          ]}
        />
      )}
      {retries && (
        <p class="muted">
          Retries: {retries.running} running, {retries.allowed} allowed, {retries.refused} refused, so that a vendor
          that fails does not get more load.
        </p>
      )}
    </>
  );
}
