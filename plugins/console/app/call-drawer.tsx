import { get, may } from './api.ts';
import { Outcome, targetOf } from './calls-table.tsx';
import { count, milliseconds, unknownCost, wholeTime } from './format.ts';
import { nextStep } from './next-steps.ts';
import { linkTo } from './routing.ts';
import type { Attempt, CallHook, OneCall } from './shapes.ts';
import { Bar, Code, Copy, Dialog, Facts, Problem, Spinner, Table, Usd, useLoad } from './ui.tsx';

/** Details of a call. */
export function CallDrawer({ id, onClose }: { id: string; onClose: () => void }) {
  const loaded = useLoad(id, () => get<OneCall>(`/calls/${encodeURIComponent(id)}`));
  return (
    <Dialog title="Call" onClose={onClose} isDrawer>
      <Problem error={loaded.error} retry={loaded.reload} />
      <Spinner of={loaded} />
      {loaded.data && <WholeCall call={loaded.data} />}
    </Dialog>
  );
}

function WholeCall({ call }: { call: OneCall }) {
  const step = nextStep(call.error_code);
  const model = call.requested ?? targetOf(call);
  return (
    <>
      <p>
        <Outcome call={call} /> {targetOf(call)}
      </p>
      {(call.error_message ?? step) && (
        <div class="problem">
          {call.error_message && <p>{call.error_message}</p>}
          {call.error_message === null && !may('bodies:read') && (
            <p>
              The message may quote content. It needs the scope <code>bodies:read</code>, which your session lacks.
            </p>
          )}
          {call.refused_by && <p>Rejected by: {call.refused_by}</p>}
          {step && <p class="muted">{step}</p>}
        </div>
      )}
      <CallFacts call={call} model={model} />
      <h3>Time</h3>
      <Attempts call={call} />
      <Phases call={call} />
      {call.hooks && call.hooks.length > 0 && <Hooks hooks={call.hooks} />}
      <h3>Cost</h3>
      <Costs call={call} />
      <h3>Request and response</h3>
      {call.bodies ? (
        <Code text={JSON.stringify(call.bodies, null, 2)} />
      ) : (
        <p class="muted">
          Not stored, or your session lacks the scope bodies:read. The option calls.bodies of the configuration stores
          them.
        </p>
      )}
      <p>
        {call.bodies && call.operation === 'chat' ? (
          <a class="button plain" href={linkTo('playground', { model, call: call.id })}>
            Repeat in the playground
          </a>
        ) : (
          <a class="button plain" href={linkTo('playground', { model })}>
            Try {model} in the playground
          </a>
        )}
      </p>
    </>
  );
}

/** User, key and parameters of a call; links lead to similar calls. */
function CallFacts({ call, model }: { call: OneCall; model: string }) {
  const alike = (word: 'user' | 'key' | 'session' | 'address' | 'end_user', value: string) => (
    <a key={word} href={linkTo('calls', { [word]: value })}>
      {value}
    </a>
  );
  const how = [call.operation, call.stream ? 'streamed' : 'not streamed', call.lane].filter(Boolean).join(', ');
  const request = (
    <span key="request">
      <code>{call.request_id}</code> <Copy text={call.request_id} />
    </span>
  );
  return (
    <Facts
      rows={[
        ['Ended', wholeTime(call.at)],
        ['Request', request],
        ['Trace', call.trace_id && <code>{call.trace_id}</code>],
        ['User', alike('user', call.user_id)],
        ['Account', call.account],
        ['Key', call.key === '-' ? 'none' : alike('key', call.key)],
        ['End user', call.end_user && alike('end_user', call.end_user)],
        ['Address', call.address && alike('address', call.address)],
        ['Requested', model],
        ['How', how],
        ['Session', call.session && alike('session', call.session)],
        ['Tags', call.tags.join(', ') || '–'],
      ]}
    />
  );
}

type UnitRow = readonly [unit: string, amount: number, cost: string | null];

function Costs({ call }: { call: OneCall }) {
  // With the cost of each part if known, else the units alone.
  const parts = call.cost_parts?.map(({ unit, quantity, usd: cost }): UnitRow => [unit, quantity, cost ?? 'no price']);
  const units = parts ?? Object.entries(call.units).map(([unit, number]): UnitRow => [unit, number, null]);
  return (
    <>
      {units.length > 0 && (
        <Table
          label="Units and cost"
          rows={units}
          keyOf={([unit]) => unit}
          columns={[
            { name: 'Unit', cell: ([unit]) => unit.replaceAll('_', ' ') },
            { name: 'Amount', isNumber: true, cell: ([, amount]) => count(amount) },
            { name: 'Cost', isNumber: true, cell: ([, , cost]) => <Usd of={cost} /> },
          ]}
        />
      )}
      <p>
        <b>{call.priced ? <Usd of={call.cost_usd} /> : unknownCost(call)}</b> <span class="muted">charged</span>
      </p>
      {call.estimated && <p class="muted">The units are an estimate: the provider reported none.</p>}
      {call.saved_usd && (
        <p class="muted">
          Served from the cache: <Usd of={call.saved_usd} /> saved.
        </p>
      )}
    </>
  );
}

/** Durations of the attempts, as bars and as text. */
function Attempts({ call }: { call: OneCall }) {
  const whole = Math.max(call.duration_ms, 1);
  if (call.attempts.length === 0)
    return <p class="muted">No target was tried. The whole call took {milliseconds(call.duration_ms)}.</p>;
  return (
    <>
      <ol class="lines">
        {call.attempts.map((attempt, place) => (
          <li key={place}>
            <div class="spread">
              <b>
                {attempt.target}
                {attempt.key && ` by the key ${attempt.key}`}
              </b>
              <span>
                {tellAttempt(attempt)}, {milliseconds(attempt.ms)}
              </span>
            </div>
            <Bar
              share={attempt.ms / whole}
              tone={attempt.class ? 'bad' : 'good'}
              label={`${milliseconds(attempt.ms)} of ${milliseconds(whole)}`}
            />
            {attempt.reason && <p>{attempt.reason}</p>}
          </li>
        ))}
      </ol>
      <p class="muted">
        Whole call {milliseconds(call.duration_ms)}
        {call.first_byte_ms !== null && `, first byte after ${milliseconds(call.first_byte_ms)}`}.
      </p>
    </>
  );
}

/** Names of the phases of a call, in order. */
const PHASES = Object.freeze({
  queue_ms: 'Queue of the account',
  receive_ms: 'Authentication and body',
  hooks_ms: 'Plugins',
  store_ms: 'Store',
  retry_wait_ms: 'Waits before retries',
  vendor_ms: 'Vendor',
  gateway_ms: 'Gateway',
});

/** Where the time of the call went, by phase; plugins by name. */
function Phases({ call: { phases, hook_times: hooks } }: { call: OneCall }) {
  if (!phases) return null;
  const rows = Object.entries(PHASES).filter(([name]) => (phases[name] ?? 0) > 0);
  if (rows.length === 0) return null;
  return (
    <>
      <h3>Phases</h3>
      <ul class="lines">
        {rows.map(([name, label]) => (
          <li key={name}>
            <div class="spread">
              <span>{label}</span>
              <span>{milliseconds(phases[name] ?? 0)}</span>
            </div>
            {name === 'hooks_ms' && hooks && (
              <p class="muted">
                {hooks.map(({ plugin, hook, ms }) => `${plugin} ${hook} ${milliseconds(ms)}`).join(', ')}
              </p>
            )}
          </li>
        ))}
      </ul>
    </>
  );
}

/** Hook actions on the call, in order. */
function Hooks({ hooks }: { hooks: readonly CallHook[] }) {
  return (
    <>
      <h3>Plugins</h3>
      <ul class="lines">
        {hooks.map(({ plugin, hook, action, ms }, place) => (
          <li key={place} class="spread">
            <span>
              <b>{plugin}</b> {action} it in <code>{hook}</code>
            </span>
            <span>{ms !== undefined && milliseconds(ms)}</span>
          </li>
        ))}
      </ul>
    </>
  );
}

function tellAttempt({ status, class: failure }: Attempt): string {
  if (failure) return `${failure.replaceAll('_', ' ')}${status === undefined ? '' : ` (${status})`}`;
  return status === undefined ? 'left' : `answered ${status}`;
}
