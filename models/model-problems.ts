import type { LoadedConfig } from '../config/load-config.ts';
import { mapLeaves } from '../config/schema-at.ts';
import type { ModelCatalog, Target } from '../contract/call.ts';
import { toGatewayError } from '../contract/errors.ts';
import { isObject } from '../contract/json.ts';
import { splitModel } from '../contract/model-names.ts';
import { assertInPlan } from '../contract/plans.ts';
import type { ModelCaller, ModelProblem } from '../contract/plugin.ts';
import { childPointer, formatPath, type ProblemAt } from '../contract/pointers.ts';
import { assertAllowed } from './catalog.ts';
import { namedModels } from './model-ends.ts';

/**
 * Configured models and settings that would make calls fail, with cause and remedy: for `tollgate check`, Home and
 * Models.
 */

type Catalog = Pick<ModelCatalog, 'find' | 'has' | 'isConfigured' | 'priceOf'>;
type Instance = LoadedConfig['config']['instances'][number];

/** Problem at a position of the configuration, and the models affected. */
interface Found extends ProblemAt {
  /** Absent for instances that are not providers. */
  readonly provider?: string | undefined;
  /** Absent if all models of the provider are affected. */
  readonly model?: string;
  readonly stops: boolean;
}

/** Problem of one target, wherever the configuration names it. */
interface TargetProblem {
  /** Cause, without a full stop; follows the name of the model. */
  readonly cause: string;
  readonly hint: string;
  readonly stops: boolean;
  /** True if it also stops an alias that has other targets. */
  readonly stopsAlias?: boolean;
}

/** Rates of known vendors are well within these bounds, in US dollars per million tokens. */
const SMALLEST_RATE = 0.0005;
const LARGEST_RATE = 5000;

/** Ends of base URLs that mistakenly include the path of a call. */
const CALL_PATHS = /\/(?:chat\/completions|completions|responses|messages|embeddings|models)\/?$/;

/** Checks whether models can be called. */
export interface ModelProblems {
  /** Lists all problems of configured models, each with its position. */
  list(): readonly ProblemAt[];
  /** Implements {@link PluginApi.problemOfModel}. */
  of(name: string, caller?: ModelCaller): ModelProblem | undefined;
}

/** Checks the models of a configuration; `catalogs` are those of all operations, with that of chat first. */
export function createModelProblems(loaded: LoadedConfig, catalogs: readonly Catalog[]): ModelProblems {
  const aliases = loaded.config.models;
  const allowsUnknown = allowsUnknownPrice(loaded);
  const limitOf = allowsUnknown ? () => undefined : findMoneyLimit(loaded);
  const problemOf = (target: Target, limit = limitOf(target)): TargetProblem | undefined =>
    unlisted(target, catalogs) ?? unpriced(target, limit, catalogs[0]);
  const inOptions = loaded.config.instances.flatMap((instance, at) =>
    // A disabled section is null.
    isObject(instance.config)
      ? [
          ...addressProblems(instance, loaded.plugins[at + 1]?.configSchema),
          ...keyProblems(instance, loaded.plugins[at + 1]?.configSchema),
          ...rateProblems(instance),
        ].map(
          (problem): Found => ({
            ...problem,
            ...(instance.group === 'providers' && { provider: instance.name }),
          }),
        )
      : [],
  );
  const ofTarget = (target: Target, caller: ModelCaller | undefined): TargetResult | undefined => {
    const limit = caller ? limitOfCaller(caller, target) : limitOf(target);
    const own = (caller && unconfigured(target, catalogs)) ?? problemOf(target, allowsUnknown ? undefined : limit);
    if (own)
      return {
        text: `"${target.provider}/${target.model}" ${own.cause}. ${own.hint}`,
        stops: own.stops,
        stopsAlias: own.stopsAlias === true,
      };
    const found = inOptions.filter(
      ({ provider, model = target.model }) => provider === target.provider && model === target.model,
    );
    const worst = found.find(({ stops }) => stops) ?? found[0];
    return (
      worst && {
        text: `${formatPath(worst.pointer)} ${worst.message}. ${worst.hint ?? ''}`.trim(),
        stops: worst.stops,
        stopsAlias: false,
      }
    );
  };
  return {
    list: () => [
      ...[...namedModels(loaded)].flatMap(([pointer, target]) => {
        const problem = problemOf(target);
        return problem
          ? [
              {
                pointer,
                message: `names "${target.provider}/${target.model}", which ${problem.cause}`,
                hint: problem.hint,
              },
            ]
          : [];
      }),
      ...inOptions,
    ],
    of(name, caller) {
      const targets = (Object.hasOwn(aliases, name) ? (aliases[name] ?? []) : [name]).map(splitModel);
      const refusal = caller && refusalOf(caller, name, targets, catalogs);
      if (refusal !== undefined) return { text: refusal, stops: true };
      const found = targets.map((target) => ofTarget(target, caller));
      const stopper = found.find((problem) => problem?.stopsAlias);
      if (stopper) return { text: stopper.text, stops: true };
      const worst = found.find((problem) => problem?.stops) ?? found.find((problem) => problem !== undefined);
      // An alias still works with its other targets.
      return worst && { text: worst.text, stops: found.every((problem) => problem?.stops === true) };
    },
  };
}

/** Problem of one target of a name. */
interface TargetResult extends ModelProblem {
  readonly stopsAlias: boolean;
}

/**
 * Runs the checks that a call of this caller takes before its price: its lists, then its plan. A call has more at hand
 * and compiles them by key and route, so it does not ask here; `test/app/callable-models.slow.test.ts` holds both equal.
 */
function refusalOf(
  { principal, plan }: ModelCaller,
  requested: string,
  targets: readonly Target[],
  [catalog]: readonly Catalog[],
): string | undefined {
  if (!catalog) return undefined;
  try {
    assertAllowed(catalog, principal, targets, { requested });
    assertInPlan(catalog, plan, targets, { requested });
    return undefined;
  } catch (error) {
    return toGatewayError(error).message;
  }
}

function limitOfCaller(caller: ModelCaller, target: Target): MoneyLimit | undefined {
  return caller.isLimited(target) ? { why: 'a balance or budget limits its calls', isOfAll: true } : undefined;
}

function unconfigured({ provider }: Target, catalogs: readonly Catalog[]): TargetProblem | undefined {
  const own = catalogs.filter((catalog) => catalog.has(provider));
  if (own.length === 0 || own.some((catalog) => catalog.isConfigured(provider))) return undefined;
  return {
    cause: 'belongs to a provider without its credential, so calls return 503',
    hint: `Set it in providers.${provider}.`,
    stops: true,
  };
}

function unlisted({ provider, model }: Target, catalogs: readonly Catalog[]): TargetProblem | undefined {
  const own = catalogs.filter((catalog) => catalog.has(provider));
  if (own.length === 0 || own.some((catalog) => catalog.find(provider, model) !== undefined)) return undefined;
  return {
    cause: `is not in the list of models of the provider "${provider}", so calls return 404`,
    hint: `Add it to "models" of the provider, or use one of "tollgate models --provider ${provider}".`,
    stops: true,
    // An alias is resolved to all of its targets.
    stopsAlias: true,
  };
}

/** Reason for a spending limit on calls of a target, and whether it covers all of them. */
interface MoneyLimit {
  readonly why: string;
  readonly isOfAll: boolean;
}

/** Problem of a model without a price while the configuration limits the cost of calls. */
function unpriced(target: Target, limit: MoneyLimit | undefined, chat: Catalog | undefined): TargetProblem | undefined {
  const { provider, model } = target;
  if (limit === undefined) return undefined;
  const info = chat?.find(provider, model);
  if (chat === undefined || info === undefined || chat.priceOf(target, info) !== undefined) return undefined;
  return {
    cause: `has no known price, and ${limit.why}, so ${limit.isOfAll ? 'its calls' : 'the limited calls'} return 403`,
    hint: `Set providers.${provider}.prices, such as { "${model}": { input: 1, output: 2 } } in US dollars per million tokens; 0 is free.`,
    stops: limit.isOfAll,
    // The cost of a call is reserved for its most expensive target, so that each needs a price.
    stopsAlias: limit.isOfAll,
  };
}

/** True if limited calls to models without a price are allowed. */
function allowsUnknownPrice({ config, plugins: [, ...plugins] }: LoadedConfig): boolean {
  const accounts = config.instances.find(
    (_, at) => plugins[at]?.configSchema && 'unknownPrice' in propertiesOf(plugins[at].configSchema),
  );
  return isObject(accounts?.config) && accounts.config['unknownPrice'] === 'allow';
}

/** Finds spending limits on calls of a target. */
function findMoneyLimit({
  settings: { billing, budgets, plans },
}: LoadedConfig): (target: Target) => MoneyLimit | undefined {
  if (billing === 'enforce') return () => ({ why: 'billing is "enforce"', isOfAll: true });
  const plan = Object.entries(plans).find(([, { budgets: own = [] }]) => own.length > 0)?.[0];
  return (target) => {
    const covering = budgets.filter(
      ({ provider, model }) =>
        covers(provider, target.provider) && covers(model, `${target.provider}/${target.model}`, target.model),
    );
    const isOfAll = covering.some(({ user, key, tag, plan: ofPlan }) => (user ?? key ?? tag ?? ofPlan) === undefined);
    if (covering.length > 0) return { why: 'a budget limits its calls', isOfAll };
    return plan === undefined ? undefined : { why: `the plan "${plan}" has a budget`, isOfAll: false };
  };
}

/** True if a filter of a budget matches one of these texts; without a filter all match. */
function covers(filter: string | readonly string[] | undefined, ...texts: readonly string[]): boolean {
  if (filter === undefined) return true;
  return [filter]
    .flat()
    .some((each) => texts.some((text) => (each.endsWith('*') ? text.startsWith(each.slice(0, -1)) : text === each)));
}

/** Base URLs that already contain the path of a call, or lack the version that the provider's paths begin with. */
function addressProblems({ config, pointer: at }: Instance, schema: object | undefined): readonly Found[] {
  const { baseUrl } = config;
  if (typeof baseUrl !== 'string' || !URL.canParse(baseUrl)) return [];
  const pointer = childPointer(at, 'baseUrl');
  const { pathname } = new URL(baseUrl);
  const end = CALL_PATHS.exec(pathname);
  if (end)
    return [
      {
        pointer,
        message: `ends with "${end[0]}", which the gateway appends itself: calls would go to ${pathname.replace(/\/$/, '')}${end[0]}`,
        hint: `Write ${withPath(baseUrl, pathname.slice(0, end.index))}.`,
        stops: true,
      },
    ];
  const { examples } = propertiesOf(schema)['baseUrl'] ?? {};
  const usual: unknown = Array.isArray(examples) ? examples[0] : undefined;
  const version =
    typeof usual === 'string' && URL.canParse(usual)
      ? /\/v\d\w*(?=\/|$)/.exec(new URL(usual).pathname)?.[0]
      : undefined;
  if (pathname !== '/' || version === undefined) return [];
  return [
    {
      pointer,
      message: `has no path, and addresses of this provider have "${version}", as ${String(usual)} has: calls may be 404`,
      hint: `Write ${withPath(baseUrl, version)}, unless the server has its paths without it.`,
      stops: false,
    },
  ];
}

/** Returns the address with another path, and without credentials and query, which may hold secrets. */
function withPath(address: string, pathname: string): string {
  return `${new URL(address).origin}${pathname}`;
}

function propertiesOf(
  schema: object | undefined,
): Readonly<Record<string, Readonly<Record<string, unknown>> | undefined>> {
  const { properties } = (schema ?? {}) as { readonly properties?: unknown };
  return isObject(properties) ? (properties as Readonly<Record<string, Readonly<Record<string, unknown>>>>) : {};
}

/** Secrets that still have the quotes or line end of their source file. The secret is never shown. */
function keyProblems({ config, pointer }: Instance, schema: object | undefined): readonly Found[] {
  const problems: Found[] = [];
  mapLeaves(config, { ...schema }, pointer, (leaf, { pointer: place, isInSecret }) => {
    const what = isInSecret && typeof leaf === 'string' ? strayCharacters(leaf) : undefined;
    if (what !== undefined)
      problems.push({
        pointer: place,
        message: `has ${what}, so the vendor would reject it`,
        hint: 'Remove them where it is set. A file for docker --env-file has values without quotes.',
        stops: true,
      });
    return undefined;
  });
  return problems;
}

function strayCharacters(secret: string): string | undefined {
  // Keys with several lines, such as PEM, contain line ends.
  if (secret.startsWith('-----BEGIN') || secret.startsWith('{')) return undefined;
  if (/^(["'`]).*\1\s*$/s.test(secret)) return 'quotes around it';
  if (/[\r\n]/.test(secret)) return 'line ends';
  return secret === secret.trim() ? undefined : 'spaces around it';
}

/** Prices per token or in millionths, in place of US dollars per million tokens. */
function rateProblems({ config, pointer }: Instance): readonly Found[] {
  const { prices } = config;
  return Object.entries(isObject(prices) ? prices : {}).flatMap(([model, given]) =>
    [given].flat().flatMap((row: unknown, index): readonly Found[] => {
      const place = [model, ...(Array.isArray(given) ? [String(index)] : [])].reduce(childPointer, `${pointer}/prices`);
      return ['input', 'output'].flatMap((name) => {
        const rate = isObject(row) ? row[name] : undefined;
        if (typeof rate !== 'number' || rate === 0 || (rate >= SMALLEST_RATE && rate <= LARGEST_RATE)) return [];
        const isSmall = rate < SMALLEST_RATE;
        const likely = Number((isSmall ? rate * 1e6 : rate / 1e6).toPrecision(6));
        return [
          {
            pointer: childPointer(place, name),
            message: `is ${rate} US dollars per million tokens, which is far too ${isSmall ? 'low' : 'high'} for a model`,
            hint: `Prices are per million tokens: ${isSmall ? 'if it is per token, ' : ''}write ${likely}.`,
            model,
            stops: false,
          },
        ];
      });
    }),
  );
}
