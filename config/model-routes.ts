import { isObject, type Json, type Schema } from '../contract/json.ts';
import type { Timeouts } from '../contract/provider.ts';
import { parseDuration } from '../contract/units.ts';

export const STRATEGIES = Object.freeze(['fallback', 'weighted', 'least-latency'] as const);
export type Strategy = (typeof STRATEGIES)[number];

export const STICKY = Object.freeze(['session', 'user', 'none'] as const);
export type Sticky = (typeof STICKY)[number];

/** One target of an alias. */
export interface RouteTarget {
  /** `provider/model`. */
  readonly to: string;
  readonly weight: number;
  readonly order: number;
  readonly onlyWhenCheaper: boolean;
}

/** Rule for calling a second target concurrently with a slow one. */
export interface HedgeRule {
  /**
   * Milliseconds until the first token (non-streaming: until the response); `p95` is the 95th percentile of the target.
   */
  readonly after: number | 'p95';
  /** Largest share of the alias's calls with a second target. */
  readonly maxExtra: number;
}

/** Rules by which calls of an alias choose a target. */
export interface ModelRoute {
  readonly targets: readonly RouteTarget[];
  readonly strategy: Strategy;
  readonly sticky: Sticky;
  /** `provider/model` for prompts that are too long for the other targets. */
  readonly onOverflow?: string;
  readonly timeouts: Partial<Timeouts>;
  readonly hedge?: HedgeRule;
  /** True if another target resumes an interrupted stream. */
  readonly resume: boolean;
}

const TARGET = { type: 'string', minLength: 1, description: '`provider/model`' } as const;
const DURATION = { type: 'string', format: 'duration' } as const;

/** Time limits of an attempt by their configuration names. */
export const CLOCKS = Object.freeze({
  connect: { ...DURATION, description: 'Timeout for connecting, including TLS.' },
  firstByte: {
    ...DURATION,
    description: 'Timeout until the response begins. A non-streaming response begins when the model has generated it.',
  },
  firstToken: { ...DURATION, description: 'Timeout until the first content of a stream.' },
  idle: { ...DURATION, description: 'Maximum idle time within a response.' },
  total: { ...DURATION, description: 'Timeout of the whole response.' },
});

/** Long form of an alias. */
export const ROUTE_SCHEMA = {
  type: 'object',
  additionalProperties: false,
  required: ['targets'],
  description: 'Long form, with rules for the selection of targets.',
  properties: {
    targets: {
      type: 'array',
      minItems: 1,
      maxItems: 16,
      description: 'Targets: `provider/model`, or a map with `to`.',
      items: {
        anyOf: [
          TARGET,
          {
            type: 'object',
            additionalProperties: false,
            required: ['to'],
            properties: {
              to: TARGET,
              weight: {
                type: 'number',
                minimum: 0,
                maximum: 1_000_000,
                description: 'Share with `weighted`; 0 is used only if the others fail. Default: 1.',
              },
              order: {
                type: 'integer',
                minimum: 1,
                maximum: 16,
                description: 'Priority group; targets of group 1 are tried before those of group 2. Default: 1.',
              },
              onlyWhenCheaper: {
                type: 'boolean',
                description: 'Uses the target only for requests that cost less there than at every other target.',
              },
            },
          },
        ],
      },
    },
    strategy: {
      type: 'string',
      enum: STRATEGIES,
      description:
        'Selection within a group: `fallback` (order of the list), `weighted` (by `weight`) or `least-latency` (the faster of two random targets). Default: `fallback`.',
    },
    sticky: {
      type: 'string',
      enum: STICKY,
      description:
        'Affinity to a healthy target, for prompt caches: by `session` (header, otherwise system messages and tools), by `user`, or none. Default: `session`.',
    },
    onOverflow: { ...TARGET, description: 'Target (`provider/model`) for prompts that are too long for the others.' },
    hedge: {
      type: 'object',
      additionalProperties: false,
      description:
        'Sends the request to a second target if the first one is slow. The first response is used, and both are charged. Chats only.',
      properties: {
        after: {
          anyOf: [{ const: 'p95' }, DURATION],
          description:
            'Delay before the second request: `p95` (95th percentile latency of the target) or a duration. Default: `p95`.',
        },
        maxExtra: {
          type: 'string',
          pattern: '^(?:\\d|[1-9]\\d)(?:\\.\\d{1,3})?%$|^100%$',
          description: 'Maximum share of hedged calls. Default: `5%`.',
        },
      },
    },
    resume: {
      type: 'boolean',
      description:
        'Resumes an interrupted stream at the next target whose vendor supports it. Plain text only; both targets are charged. Default: `false`.',
    },
    timeouts: {
      type: 'object',
      additionalProperties: false,
      description: 'Deadlines of one attempt, before those of the provider.',
      properties: CLOCKS,
    },
  },
} as const satisfies Schema;

/** Alias as written in the configuration. */
export type AliasValue = string | readonly string[] | RouteValue;

interface RouteValue {
  readonly targets: readonly (
    | string
    | { readonly to: string; readonly weight?: number; readonly order?: number; readonly onlyWhenCheaper?: boolean }
  )[];
  readonly strategy?: Strategy;
  readonly sticky?: Sticky;
  readonly onOverflow?: string;
  readonly timeouts?: { readonly [K in keyof typeof CLOCKS]?: string };
  readonly hedge?: { readonly after?: string; readonly maxExtra?: string };
  readonly resume?: boolean;
}

/** Reads an alias of any form and fills in defaults. */
export function readModelRoute(alias: AliasValue): ModelRoute {
  const value: RouteValue = isRoute(alias) ? alias : { targets: [alias].flat() };
  const {
    targets,
    strategy = 'fallback',
    sticky = 'session',
    onOverflow,
    timeouts = {},
    hedge,
    resume = false,
  } = value;
  return {
    targets: targets.map((target) => ({
      weight: 1,
      order: 1,
      onlyWhenCheaper: false,
      ...(typeof target === 'string' ? { to: target } : target),
    })),
    strategy,
    sticky,
    timeouts: readClocks(timeouts),
    resume,
    ...(onOverflow !== undefined && { onOverflow }),
    ...(hedge && { hedge: readHedge(hedge) }),
  };
}

function readHedge({ after = 'p95', maxExtra = '5%' }: NonNullable<RouteValue['hedge']>): HedgeRule {
  return { after: after === 'p95' ? after : parseDuration(after), maxExtra: Number.parseFloat(maxExtra) / 100 };
}

function isRoute(alias: AliasValue): alias is RouteValue {
  return typeof alias === 'object' && 'targets' in alias;
}

/** Lists all targets of an alias in order; the target for long prompts comes last. */
export function targetNames({ targets, onOverflow }: ModelRoute): readonly string[] {
  return [...new Set([...targets.map(({ to }) => to), ...(onOverflow === undefined ? [] : [onOverflow])])];
}

function readClocks(timeouts: NonNullable<RouteValue['timeouts']>): Partial<Timeouts> {
  return Object.fromEntries(Object.entries(timeouts).map(([name, text]) => [`${name}Ms`, parseDuration(text)]));
}

/**
 * Aliases by name. A name that ends in `*` is a pattern: it matches every name with this prefix that has no alias of
 * its own.
 */
class AliasMap<T> extends Map<string, T> {
  readonly #patterns: readonly (readonly [start: string, value: T])[];
  readonly #fill: (value: T, name: string) => T;

  constructor(aliases: Readonly<Record<string, T>>, fill: (value: T, name: string) => T) {
    const entries = Object.entries(aliases);
    // Patterns are not model names: lists of models omit them.
    super(entries.filter(([name]) => !name.endsWith('*')));
    this.#fill = fill;
    this.#patterns = entries
      .flatMap(([name, value]) => (name.endsWith('*') ? [[name.slice(0, -1), value] as const] : []))
      .sort(([one], [other]) => other.length - one.length);
  }

  /** Returns the alias of a name, else the pattern with the longest prefix, its targets filled in. */
  override get(name: string): T | undefined {
    const own = super.get(name);
    if (own !== undefined || this.#patterns.length === 0) return own;
    const [start, value] = this.#patterns.find(([each]) => name.startsWith(each)) ?? [];
    if (start === undefined || value === undefined) return undefined;
    return this.#fill(value, name.slice(start.lastIndexOf('/') + 1));
  }
}

const fillTarget = (to: string, name: string): string => to.replace('*', () => name);

/** Targets by alias: `provider/model` in the order of attempts. */
export function aliasesOf(models: Readonly<Record<string, readonly string[]>>): ReadonlyMap<string, readonly string[]> {
  return new AliasMap(models, (targets, name) => targets.map((to) => fillTarget(to, name)));
}

/** Rules by alias. */
export function routesOf(routes: Readonly<Record<string, ModelRoute>>): ReadonlyMap<string, ModelRoute> {
  return new AliasMap(routes, (route, name) => ({
    ...route,
    targets: route.targets.map((target) => ({ ...target, to: fillTarget(target.to, name) })),
    ...(route.onOverflow !== undefined && { onOverflow: fillTarget(route.onOverflow, name) }),
  }));
}

/**
 * Lists the texts of an alias that name targets, with their position below it. The alias may be of any shape before
 * validation.
 */
export function targetTexts(alias: unknown): readonly (readonly [place: readonly (string | number)[], text: string])[] {
  const found = (place: readonly (string | number)[], text: unknown) =>
    typeof text === 'string' ? [[place, text] as const] : [];
  if (Array.isArray(alias)) return alias.flatMap((text: unknown, at) => found([at], text));
  if (!isObject(alias)) return found([], alias);
  const targets: readonly Json[] = Array.isArray(alias['targets']) ? alias['targets'] : [];
  return [
    ...targets.flatMap((target, at) =>
      isObject(target) ? found(['targets', at, 'to'], target['to']) : found(['targets', at], target),
    ),
    ...found(['onOverflow'], alias['onOverflow']),
  ];
}
