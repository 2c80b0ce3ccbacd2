import { useEffect, useRef, useState } from 'preact/hooks';
import { change, get, getSome, may, type Page, session } from '../api.ts';
import { KeySpending } from '../budget-line.tsx';
import { targetOf } from '../calls-table.tsx';
import { CLIENTS, type Client, connectLines } from '../connect-lines.ts';
import { count, percent, until, usd, zone } from '../format.ts';
import { useFeed, useLiveCalls } from '../live-calls.ts';
import { groupByProblem } from '../model-state.tsx';
import { nextStep } from '../next-steps.ts';
import { Causes, OverTime, useOverview } from '../overview.tsx';
import { linkTo } from '../routing.ts';
import type { Call, Key, Model, NearBudget, Target, Usage } from '../shapes.ts';
import { TargetState, urgencyOf } from '../target-state.tsx';
import {
  Badge,
  Bar,
  Button,
  Code,
  Copy,
  type Loaded,
  PageHead,
  Panel,
  Problem,
  Spinner,
  Text,
  Time,
  Usd,
  useLoad,
} from '../ui.tsx';

/** Overview: health, spend, failures, and how to connect. */
export function Home() {
  // Data that the session may not see is neither loaded nor shown.
  const ifMay = (scope: string, key: string): string | undefined => (may(scope) ? key : undefined);
  const targets = useLoad(ifMay('targets:read', 'targets'), () => get<Page<Target>>('/targets'));
  const catalog = useLoad(ifMay('models:read', 'catalog'), () => get<Page<Model>>('/catalog', { limit: 1000 }));
  const tz = zone.value;
  const today = useLoad(ifMay('usage:read', tz), () =>
    get<Usage>('/usage', { period: 'today', by: 'provider', sort: 'cost', limit: 5, tz }),
  );
  const budgets = useLoad(ifMay('budgets:read', 'budgets'), () => get<Page<NearBudget>>('/near-budgets'));
  const calls = (name: string): string | undefined => ifMay('calls:read', name);
  const errors = useLoad(calls('errors'), () => getSome<Call>('/calls', { outcome: 'error' }, 3));
  const refusals = useLoad(calls('refusals'), () => getSome<Call>('/calls', { outcome: 'refused' }, 3));
  const overview = useOverview(may('calls:read'));
  const any = useLoad(calls('any'), () => get<Page<Call>>('/calls', { limit: 1 }));
  const problems = [...groupByProblem(catalog.data?.data ?? [])];
  const [hasBegun, setBegun] = useState(false);
  const reload = (): void => {
    for (const each of [targets, catalog, today, budgets, errors, refusals, overview]) each.reload();
  };
  const begin = (): void => {
    setBegun(true);
    reload();
  };
  const isEmpty = any.data?.data.length === 0 && !any.data.has_more;
  return (
    <>
      <PageHead title="Overview">
        <Button onClick={reload}>Refresh</Button>
      </PageHead>
      {problems.length > 0 && <ModelProblems problems={problems} />}
      {(!isEmpty || hasBegun) && may('calls:read') && <OverTime overview={overview} />}
      {(!isEmpty || hasBegun) && (
        <div class="grid">
          {may('targets:read') && <Works targets={targets} hasProblems={problems.length > 0} />}
          {may('usage:read') && <Costs today={today} budgets={budgets} />}
          {may('calls:read') && (
            <>
              <Causes overview={overview} />
              <div class="stack">
                <Fails
                  title="Recent errors"
                  outcome="error"
                  calls={errors}
                  onNew={reload}
                  empty="No call has failed."
                />
                <Fails
                  title="Rejected requests"
                  outcome="refused"
                  calls={refusals}
                  onNew={reload}
                  empty="No call was rejected."
                />
              </div>
            </>
          )}
        </div>
      )}
      {/* The same element before and after the first call, because a new key is shown only once. */}
      <Connect catalog={catalog} isFirst={isEmpty} onFirst={begin} />
    </>
  );
}

/** Maximum model problems on Home; Models shows all. */
const MAX_PROBLEMS = 5;

/** Problems of configured models, in the words of `tollgate check`. */
function ModelProblems({ problems }: { problems: readonly (readonly [problem: string, models: readonly string[]])[] }) {
  return (
    <Panel title="Models with a problem" actions={<a href={linkTo('models')}>All models</a>}>
      <ul class="lines">
        {problems.slice(0, MAX_PROBLEMS).map(([problem, ids]) => (
          <li key={problem}>
            <Badge tone="warn">check</Badge> <b>{ids[0]}</b>
            {ids.length > 1 && <span class="muted"> and {ids.length - 1} more</span>}
            <p>{problem}</p>
          </li>
        ))}
        {problems.length > MAX_PROBLEMS && (
          <li class="muted">
            and {problems.length - MAX_PROBLEMS} more: see <a href={linkTo('models')}>Models</a>
          </li>
        )}
      </ul>
    </Panel>
  );
}

function Works({ targets, hasProblems }: { targets: Loaded<Page<Target>>; hasProblems: boolean }) {
  // Failing targets first.
  const rows = (targets.data?.data ?? []).toSorted((a, b) => urgencyOf(b) - urgencyOf(a));
  const broken = rows.filter(({ state }) => state !== 'closed').length;
  const note =
    rows.length === 0 || (broken === 0 && hasProblems)
      ? undefined
      : `${rows.length - broken} of ${rows.length} healthy`;
  return (
    <Panel title="Targets" note={note} actions={<a href={linkTo('targets')}>All targets</a>}>
      <Problem error={targets.error} retry={targets.reload} />
      <Spinner of={targets} />
      {targets.data && (
        <ul class="lines">
          {rows.slice(0, 12).map((target) => (
            <li key={target.target}>
              <TargetState target={target} /> <b>{target.target}</b>
              {target.state !== 'closed' && (
                <p>
                  {target.last_error?.message ?? target.last_error?.class ?? target.cause}
                  {target.state === 'open' && target.open_until && (
                    <span class="muted">; next retry {until(target.open_until)}</span>
                  )}
                </p>
              )}
              {target.state === 'closed' && target.error_ratio > 0 && (
                <span class="muted"> {percent(target.error_ratio)} of its recent attempts failed</span>
              )}
            </li>
          ))}
          {rows.length > 12 && <li class="muted">and {rows.length - 12} more</li>}
          {rows.length === 0 && <li class="muted">No target is configured, and none was used since the start.</li>}
        </ul>
      )}
    </Panel>
  );
}

function Costs({ today, budgets }: { today: Loaded<Usage>; budgets: Loaded<Page<NearBudget>> }) {
  const totals = today.data?.totals;
  return (
    <Panel
      title="Spend today"
      note={today.data && `since midnight ${today.data.tz}`}
      actions={<a href={linkTo('usage')}>Usage</a>}
    >
      <Problem error={today.error ?? budgets.error} retry={today.reload} />
      <Spinner of={today} />
      {totals && (
        <p class="figures">
          <span>
            <b class="big">
              <Usd of={totals.cost_usd} />
            </b>{' '}
            spent
          </span>
          <span>
            <b>{count(totals.requests)}</b> calls
          </span>
          <span>
            <b>{count(totals.errors)}</b> failed
          </span>
        </p>
      )}
      <ul class="lines">
        {budgets.data?.data.slice(0, 5).map((budget) => (
          <li key={`${budget.budget} ${budget.whose} ${budget.plan ?? ''}`}>
            <NearLine budget={budget} />
          </li>
        ))}
        {budgets.data?.data.length === 0 && (
          <li class="muted">
            No budget is shared by several keys. <a href={linkTo('budgets')}>Create one</a> to limit spending.
          </li>
        )}
      </ul>
    </Panel>
  );
}

/** Budget with its spent share and the time of its reset. */
function NearLine({
  budget: { budget, of, whose, plan, used, spent_usd, left_usd, amount_usd, resets_at, forecast_usd, runs_out_at },
}: {
  budget: NearBudget;
}) {
  const tone = used >= 1 ? 'bad' : used >= 0.8 ? 'warn' : 'good';
  return (
    <>
      <div class="spread">
        <span>
          <b>{budget}</b> {of !== 'all' && whose !== budget && <span class="muted">{`of ${of} ${whose}`}</span>}
          {plan !== undefined && <span class="muted">{`, plan ${plan}`}</span>}
        </span>
        <span>
          <Usd of={spent_usd} /> of <Usd of={amount_usd} />
          {resets_at && <span class="muted">, resets {until(resets_at)}</span>}
        </span>
      </div>
      <Bar share={used} tone={tone} label={`${budget}: ${percent(used)} spent, ${usd(left_usd)} left`} />
      {forecast_usd !== null && used < 1 && (
        <p class="muted">
          Forecast: <Usd of={forecast_usd} /> at the reset
          {runs_out_at && (
            <b>
              , runs out <Time at={runs_out_at} />
            </b>
          )}
        </p>
      )}
    </>
  );
}

/** Delay that groups calls which end together into one reload. */
const GATHER_MS = 500;

interface Failing {
  readonly title: string;
  readonly outcome: string;
  readonly calls: Loaded<Page<Call>>;
  readonly onNew: () => void;
  readonly empty: string;
}

/** Calls with this outcome, newest first; `onNew` is called for a new one. */
function Fails({ title, outcome, calls, onNew, empty }: Failing) {
  const newest = useRef<string | undefined>(undefined);
  newest.current = calls.data && (calls.data.data[0]?.at ?? '');
  const timer = useRef(0);
  const tell = (): void => {
    timer.current = 0;
    onNew();
  };
  const look = (fresh: readonly Call[]): void => {
    const { current: shown } = newest;
    if (timer.current === 0 && shown !== undefined && fresh.some(({ at }) => at > shown))
      timer.current = window.setTimeout(tell, GATHER_MS);
  };
  useFeed({ outcome }, true, look, calls.reload);
  return (
    <Panel title={title} actions={<a href={linkTo('calls', { outcome })}>View all</a>}>
      <Problem error={calls.error} retry={calls.reload} />
      <Spinner of={calls} />
      <ul class="lines">
        {calls.data?.data.map((call) => (
          <li key={call.id}>
            <a href={linkTo('calls', { outcome, id: call.id })}>
              <Time at={call.at} /> {call.error_code ?? call.outcome}
            </a>{' '}
            <span class="muted">
              {targetOf(call)}, {call.user_id}
            </span>
            <p>{call.attempts.findLast((attempt) => attempt.reason)?.reason ?? call.error_message}</p>
            {nextStep(call.error_code) && <p class="muted">{nextStep(call.error_code)}</p>}
          </li>
        ))}
        {calls.data?.data.length === 0 && (
          <li class="muted">
            {calls.data.has_more ? 'None of the latest calls. “View all” shows older ones.' : empty}
          </li>
        )}
      </ul>
    </Panel>
  );
}

/** Key in the form shown once. */
interface MadeKey {
  readonly api_key: string;
  readonly api_key_info: Pick<Key, 'id' | 'prefix' | 'budgets'>;
}

/** Model that works without a vendor. */
const ECHO = 'echo/echo';

function Connect({
  catalog,
  isFirst,
  onFirst,
}: {
  catalog: Loaded<Page<Model>>;
  isFirst: boolean;
  onFirst: () => void;
}) {
  const [client, setClient] = useState<Client>('curl');
  const [typed, setModel] = useState<string>();
  const models = catalog.data?.data.filter(({ is_callable }) => is_callable) ?? [];
  const hasEcho = models.some(({ id }) => id === ECHO);
  // Aliases come first. If the models are hidden, propose the one that works without a vendor.
  const model = typed ?? (isFirst && hasEcho ? ECHO : (models[0]?.id ?? ECHO));
  const [amount, setAmount] = useState('');
  const [made, setMade] = useState<MadeKey>();
  const [error, setError] = useState<unknown>();
  const makeKey = (event: Event): void => {
    event.preventDefault();
    setError(undefined);
    const budgets = amount.trim() === '' ? {} : { budgets: [{ amount_usd: amount.trim(), every: 'day' }] };
    change<MadeKey>('POST', '/keys', { user_id: session.value?.user, name: `console: ${client}`, ...budgets })
      .then(setMade)
      .catch(setError);
  };
  const text = connectLines(client, made?.api_key, model.trim() || 'MODEL');
  return (
    <Panel
      title={isFirst ? 'Make the first call' : 'How to connect'}
      note={hasEcho && `The model ${ECHO} answers with your own words, without a vendor.`}
    >
      <form class="spread low" onSubmit={makeKey}>
        <fieldset class="actions">
          <legend class="unseen">Client</legend>
          {CLIENTS.map((each) => (
            <Button key={each} kind="quiet" aria-pressed={each === client} onClick={() => setClient(each)}>
              {each}
            </Button>
          ))}
        </fieldset>
        <div class="filters">
          <Text label="Model" value={model} onType={setModel} />
          {may('keys:write') && (
            <>
              <Text label="Budget, US dollars a day" placeholder="none" value={amount} onType={setAmount} />
              <Button kind={made ? 'plain' : 'main'} type="submit">
                {made ? 'Create another key' : 'Create a key for me'}
              </Button>
            </>
          )}
        </div>
      </form>
      <Problem error={error} />
      {made && (
        <p role="status">
          The key is in the lines below and is shown only once. <Copy text={made.api_key} label="Copy the key" />
        </p>
      )}
      <Code text={text} />
      {made?.api_key_info.budgets && <KeySpending key={made.api_key_info.id} {...made.api_key_info} />}
      {isFirst && may('calls:read') && <FirstCall onCall={onFirst} />}
    </Panel>
  );
}

/** Waits for the first call, with any key. */
function FirstCall({ onCall }: { onCall: () => void }) {
  const call = useLiveCalls({}, true).calls.at(-1);
  const hasCome = call !== undefined;
  useEffect(() => {
    if (hasCome) onCall();
  }, [hasCome]);
  return (
    <p role="status" class={call ? undefined : 'muted'}>
      {call ? (
        <>
          First call: {targetOf(call)}, {call.outcome}. <a href={linkTo('calls', { id: call.id })}>Details</a>
        </>
      ) : (
        'Your first call appears here.'
      )}
    </p>
  );
}
