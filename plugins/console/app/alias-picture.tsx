import { get, may, type Page } from './api.ts';
import { linkTo } from './routing.ts';
import type { Configuration, Model, Target } from './shapes.ts';
import { TargetState } from './target-state.tsx';
import { Panel, useLoad } from './ui.tsx';

/** Target of an alias, as configured. */
interface Member {
  readonly to: string;
  readonly weight: number;
  readonly order: number;
}

/** Strategy and targets of an alias; the targets are in groups that are tried in order. */
interface Shown {
  readonly strategy: string;
  readonly groups: readonly (readonly Member[])[];
}

const HOW: Readonly<Record<string, string>> = Object.freeze({
  fallback: 'the first that works',
  weighted: 'by weight',
  'least-latency': 'the faster of two',
});

/** Draws each alias: its name, its targets, and their state. */
export function Aliases({ aliases }: { aliases: readonly Model[] }) {
  const configuration = useLoad(may('config:read') ? 'configuration' : undefined, () =>
    get<Configuration>('/configuration'),
  );
  const targets = useLoad(may('targets:read') ? 'targets' : undefined, () =>
    get<Page<Target>>('/targets', { limit: 1000 }),
  );
  const known = configuration.data?.configuration['models'];
  const states = new Map(targets.data?.data.map((target) => [target.target, target]));
  return (
    <Panel title="Aliases" note="names that stand for targets">
      <ul class="lines">
        {aliases.map((alias) => (
          <li key={alias.id}>
            <Alias alias={alias} shown={shownOf(alias, fieldOf(known, alias.id))} states={states} />
          </li>
        ))}
      </ul>
    </Panel>
  );
}

function Alias({
  alias: { id, is_callable, problem },
  shown: { strategy, groups },
  states,
}: {
  alias: Model;
  shown: Shown;
  states: ReadonlyMap<string, Target>;
}) {
  return (
    <div class="alias">
      <div class="alias-name">
        <b>{id}</b>
        {is_callable && (
          <a href={linkTo('playground', { model: id })} aria-label={`Try it: ${id}`}>
            Try it
          </a>
        )}
        {problem && <p>{problem}</p>}
      </div>
      <ol class="alias-groups">
        {groups.map((group, place) => (
          <li key={place}>
            <p class="muted">
              {place === 0 ? '' : 'when those fail, '}
              {group.length > 1 ? (HOW[strategy] ?? strategy) : 'this one'}
            </p>
            <ol class={`alias-targets ${strategy}`}>
              {group.map(({ to, weight }) => {
                const state = states.get(to);
                const whole = group.reduce((sum, each) => sum + each.weight, 0);
                return (
                  <li key={to}>
                    {state && <TargetState target={state} />} {to}
                    {strategy === 'weighted' && group.length > 1 && (
                      <span class="muted"> {Math.round((weight / whole) * 100)} %</span>
                    )}
                  </li>
                );
              })}
            </ol>
          </li>
        ))}
      </ol>
    </div>
  );
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Object.entries(value).find(([key]) => key === name)?.[1] : value;
}

/** From the configuration if the session may read it, else the names alone. */
function shownOf({ targets }: Model, value: unknown): Shown {
  const strategy = fieldOf(value, 'strategy');
  const said = fieldOf(value, 'targets');
  const members = (Array.isArray(said) ? said : (targets ?? [])).flatMap(memberOf);
  const orders = [...new Set(members.map(({ order }) => order))].sort((a, b) => a - b);
  return {
    strategy: typeof strategy === 'string' ? strategy : 'fallback',
    groups: orders.map((order) => members.filter((member) => member.order === order)),
  };
}

function memberOf(value: unknown): readonly Member[] {
  if (typeof value === 'string') return [{ to: value, weight: 1, order: 1 }];
  const to = fieldOf(value, 'to');
  const number = (name: string): number => {
    const found = fieldOf(value, name);
    return typeof found === 'number' ? found : 1;
  };
  return typeof to === 'string' ? [{ to, weight: number('weight'), order: number('order') }] : [];
}
