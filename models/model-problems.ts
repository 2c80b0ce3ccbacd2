import type { LoadedConfig } from '../config/load-config.ts';
import { childPointer, type ProblemAt } from '../config/problems.ts';
import { mapLeaves } from '../config/schema-at.ts';
import type { ModelCatalog, Target } from '../core/contract/call.ts';
import { isObject } from '../core/contract/json.ts';
import { namedModels } from './model-ends.ts';

/** Warnings of `tollgate check`: what a configuration names and no call can use as it stands, with the cause and a remedy. */

type Catalog = Pick<ModelCatalog, 'find' | 'has' | 'priceOf'>;

/** Rates of known vendors are well within these bounds, in US dollars per million tokens. */
const SMALLEST_RATE = 0.0005;
const LARGEST_RATE = 5000;

/** Ends of addresses that name one kind of call. */
const CALL_PATHS = /\/(?:chat\/completions|completions|responses|messages|embeddings|models)\/?$/;

/** Finds what cannot be called; `catalogs` are those of all operations, that of chat first. */
export function findModelProblems(loaded: LoadedConfig, catalogs: readonly Catalog[]): readonly ProblemAt[] {
  const named = namedModels(loaded);
  return [
    ...unlistedModels(named, catalogs),
    ...unpricedModels(loaded, named, catalogs),
    ...loaded.config.instances.flatMap((instance, at) =>
      // A section that is switched off is null.
      isObject(instance.config)
        ? [
            ...addressProblems(instance, loaded.plugins[at + 1]?.configSchema),
            ...keyProblems(instance, loaded.plugins[at + 1]?.configSchema),
            ...rateProblems(instance),
          ]
        : [],
    ),
  ];
}

type Instance = LoadedConfig['config']['instances'][number];
type NamedModels = ReturnType<typeof namedModels>;

function unlistedModels(named: NamedModels, catalogs: readonly Catalog[]): readonly ProblemAt[] {
  return [...named].flatMap(([pointer, { provider, model }]) => {
    const own = catalogs.filter((catalog) => catalog.has(provider));
    if (own.length === 0 || own.some((catalog) => catalog.find(provider, model) !== undefined)) return [];
    return [
      {
        pointer,
        message: `names "${provider}/${model}", which the provider "${provider}" does not list: calls of it are 404`,
        hint: `Add it to "models" of the provider, or name one of: tollgate models --provider ${provider}.`,
      },
    ];
  });
}

/** Models without a price where the configuration limits what calls may cost. */
function unpricedModels(
  { config, plugins: [, ...plugins], settings }: LoadedConfig,
  named: NamedModels,
  [chat]: readonly Catalog[],
): readonly ProblemAt[] {
  const accounts = config.instances.find(
    (_, at) => plugins[at]?.configSchema && 'unknownPrice' in propertiesOf(plugins[at].configSchema),
  );
  if (!chat || (isObject(accounts?.config) && accounts.config['unknownPrice'] === 'allow')) return [];
  const limit = (target: Target): string | undefined => {
    if (settings.billing === 'enforce') return 'billing is "enforce"';
    const budget = settings.budgets.find(
      ({ provider, model }) =>
        covers(provider, target.provider) && covers(model, `${target.provider}/${target.model}`, target.model),
    );
    if (budget) return 'a budget limits its calls';
    const plan = Object.entries(settings.plans).find(([, { budgets = [] }]) => budgets.length > 0);
    return plan && `the plan "${plan[0]}" has a budget`;
  };
  return [...named].flatMap(([pointer, target]) => {
    const info = chat.find(target.provider, target.model);
    const cause = limit(target);
    if (cause === undefined || info === undefined || chat.priceOf(target, info) !== undefined) return [];
    const name = `${target.provider}/${target.model}`;
    return [
      {
        pointer,
        message: `names "${name}", which has no known price, and ${cause}: calls that money limits are 403`,
        hint: `Set providers.${target.provider}.prices, such as { "${target.model}": { input: 1, output: 2 } } in US dollars per million tokens; 0 is free.`,
      },
    ];
  });
}

/** Whether a filter of a budget takes one of these texts; without a filter it takes all. */
function covers(filter: string | readonly string[] | undefined, ...texts: readonly string[]): boolean {
  if (filter === undefined) return true;
  return [filter]
    .flat()
    .some((each) => texts.some((text) => (each.endsWith('*') ? text.startsWith(each.slice(0, -1)) : text === each)));
}

/** An address that has the path of a call already, or lacks the version that the paths of the provider begin with. */
function addressProblems({ config, pointer: at }: Instance, schema: object | undefined): readonly ProblemAt[] {
  const { baseUrl } = config;
  if (typeof baseUrl !== 'string' || !URL.canParse(baseUrl)) return [];
  const pointer = childPointer(at, 'baseUrl');
  const { pathname } = new URL(baseUrl);
  const end = CALL_PATHS.exec(pathname);
  if (end)
    return [
      {
        pointer,
        message: `ends with "${end[0]}", which the gateway adds itself: calls would go to ${pathname.replace(/\/$/, '')}${end[0]}`,
        hint: `Write ${baseUrl.slice(0, baseUrl.lastIndexOf(end[0]))}.`,
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
      hint: `Write ${baseUrl.replace(/\/$/, '')}${version}, unless the server has its paths without it.`,
    },
  ];
}

function propertiesOf(
  schema: object | undefined,
): Readonly<Record<string, Readonly<Record<string, unknown>> | undefined>> {
  const { properties } = (schema ?? {}) as { readonly properties?: unknown };
  return isObject(properties) ? (properties as Readonly<Record<string, Readonly<Record<string, unknown>>>>) : {};
}

/** Secrets that still have the quotes or the line end of the file that they come from. The text itself is never shown. */
function keyProblems({ config, pointer }: Instance, schema: object | undefined): readonly ProblemAt[] {
  const problems: ProblemAt[] = [];
  mapLeaves(config, { ...schema }, pointer, (leaf, { pointer: place, isInSecret }) => {
    const what = isInSecret && typeof leaf === 'string' ? strayCharacters(leaf) : undefined;
    if (what !== undefined)
      problems.push({
        pointer: place,
        message: `has ${what}, which are sent as a part of it: calls would be refused`,
        hint: 'Remove them where it is set; a file for docker --env-file takes values without quotes.',
      });
    return undefined;
  });
  return problems;
}

function strayCharacters(secret: string): string | undefined {
  // A key of several lines, such as a PEM, has line ends of its own.
  if (secret.startsWith('-----BEGIN') || secret.startsWith('{')) return undefined;
  if (/^(["'`]).*\1\s*$/s.test(secret)) return 'quotes around it';
  if (/[\r\n]/.test(secret)) return 'line ends';
  return secret === secret.trim() ? undefined : 'spaces around it';
}

/** Prices by the token or in millionths, where US dollars per million tokens are meant. */
function rateProblems({ config, pointer }: Instance): readonly ProblemAt[] {
  const { prices } = config;
  return Object.entries(isObject(prices) ? prices : {}).flatMap(([model, given]) =>
    [given].flat().flatMap((row: unknown, index): readonly ProblemAt[] => {
      const place = [model, ...(Array.isArray(given) ? [String(index)] : [])].reduce(childPointer, `${pointer}/prices`);
      return ['input', 'output'].flatMap((name) => {
        const rate = isObject(row) ? row[name] : undefined;
        if (typeof rate !== 'number' || rate === 0 || (rate >= SMALLEST_RATE && rate <= LARGEST_RATE)) return [];
        const isSmall = rate < SMALLEST_RATE;
        const likely = Number((isSmall ? rate * 1e6 : rate / 1e6).toPrecision(6));
        return [
          {
            pointer: childPointer(place, name),
            message: `is ${rate} US dollars per million tokens, which is far too ${isSmall ? 'little' : 'much'} for a model`,
            hint: `Prices are per million tokens: ${isSmall ? 'if it is per token, ' : ''}write ${likely}.`,
          },
        ];
      });
    }),
  );
}
