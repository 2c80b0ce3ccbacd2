import {
  type AuditActor,
  type Command,
  type CommandInput,
  type CommandIo,
  definePlugin,
  GatewayError,
  isLoopback,
  type ModelTable,
  nearest,
  OptionError,
  type PluginApi,
  type Price,
  type Provider,
  parseDuration,
  problemsOf,
  type Route,
} from '../../../contract/index.ts';
import { describeAge, FOR_OPERATORS, listOf, PAGE_QUERY, readPage, sendList } from '../kit/index.ts';
import { type Change, type Plan, planList, planTable, reasonOf, storedAt, useStored } from './updates.ts';

/** Longer timers overflow and fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Published table: the newest edition in this format, which is the major version of the package. */
const PUBLISHED_TABLE = 'https://cdn.jsdelivr.net/npm/tollgate-models@1/models.json';

/** Parsed options. */
interface Options {
  readonly table: string;
  /** True if the operator named no table. */
  readonly isDefaultTable: boolean;
  readonly everyMs?: number | undefined;
  readonly acceptDearer: boolean;
}

/**
 * Updates model data from vendors' lists and a published table. At first it loads stored data. If a timer is set and
 * the data is old, it fetches the sources in the background. The command `models` shows the catalog and updates it.
 */
export default definePlugin({
  name: 'model-refresh',
  kind: 'policy',
  apiVersion: 1,
  permissions: ['operators'],
  hosts: [new URL(PUBLISHED_TABLE).host],
  configSchema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      table: {
        type: 'string',
        format: 'url',
        description:
          'URL (https) of a newer `config/models.json`. Its rows replace those of the package; the configuration overrides both. Default: the npm package `tollgate-models`, by jsDelivr.',
      },
      refresh: {
        type: 'string',
        format: 'duration',
        description:
          'Interval at which the table is fetched, such as `24h`. Default: only by `tollgate models update`.',
      },
      acceptDearer: {
        type: 'boolean',
        default: false,
        description: 'Accepts higher prices in automatic updates. Default: off, higher prices are only logged.',
      },
    },
  },
  check: (config) => problemsOf(() => readOptions(config)),
  commands: [{ name: 'models', summary: 'List models with prices and end dates, and update the table' }],
  setup(api, config) {
    const options = readOptions(config);
    api.command(modelsCommand(api, options));
    api.route(modelsRoute(api));
    api.onReady(async () => {
      await useStored(api).catch((error: unknown) => warn(api, 'the stored updates of models', error));
      const { everyMs } = options;
      if (everyMs !== undefined) keepUp(api, options, undefined, everyMs);
      for (const [name, provider] of api.models.offers('chat'))
        if (canListModels(provider) && provider.refreshModelsMs !== undefined)
          keepUp(api, options, name, provider.refreshModelsMs);
    });
  },
});

function readOptions(config: Readonly<Record<string, unknown>>): Options {
  const { table, refresh, acceptDearer } = config;
  const url = typeof table === 'string' ? new URL(table) : undefined;
  if (url && url.protocol !== 'https:' && !isLoopback(url.hostname))
    throw new OptionError('/table', 'is not an https URL', 'Use https, since prices determine charges.');
  return {
    table: url?.href ?? PUBLISHED_TABLE,
    isDefaultTable: url === undefined,
    everyMs: typeof refresh === 'string' ? parseDuration(refresh) : undefined,
    acceptDearer: acceptDearer === true,
  };
}

/**
 * True if the vendor's list can be fetched: the provider supports it, is not in this process, and has the key it needs.
 */
function canListModels({ listModels, credential, transport }: Provider): boolean {
  return (
    listModels !== undefined && transport === undefined && !(credential?.required && credential.value === undefined)
  );
}

/** Fetches one source, a provider's list or the table, whenever its stored data is old. */
function keepUp(api: PluginApi, options: Options, provider: string | undefined, everyMs: number): void {
  const refresh = () => void refreshOne(api, options, provider, everyMs);
  refresh();
  const timer = setInterval(refresh, Math.min(everyMs, MAX_TIMER_MS));
  timer.unref();
  api.onClose(() => clearInterval(timer));
}

/** A source that is unavailable or sends invalid data changes nothing. */
async function refreshOne(
  api: PluginApi,
  { table, acceptDearer }: Options,
  provider: string | undefined,
  everyMs: number,
): Promise<void> {
  try {
    // Another worker may have fetched it.
    const inUse = await useStored(api);
    if (Date.now() - ((await storedAt(api, provider)) ?? 0) < everyMs) return;
    const plan = await (provider === undefined ? planTable(api, table, inUse) : planList(api, provider));
    await plan.take(acceptDearer);
    await useStored(api);
    const dearer = acceptDearer ? [] : dearerIn(plan);
    const facts = { source: plan.source, differences: plan.changes.length };
    if (dearer.length === 0) api.log.info(facts, 'fetched updates of models');
    else
      api.log.warn(
        { ...facts, dearer: dearer.slice(0, 20) },
        'higher prices were not applied; apply them with tollgate models update --accept-dearer',
      );
  } catch (error) {
    warn(api, provider === undefined ? 'the table of models' : `the list of ${provider}`, error);
  }
}

function warn(api: PluginApi, source: string, error: unknown): void {
  api.log.warn({ source, reason: reasonOf(error) }, 'updates of models could not be fetched; known data stays in use');
}

/** Models whose prices would rise. */
function dearerIn({ changes }: Plan): readonly string[] {
  return [...new Set(changes.flatMap(({ model, is_dearer: isDearer }) => (isDearer ? [model] : [])))];
}

const NUMBER_OR_NULL = { type: ['number', 'null'] } as const;
const MODEL = {
  type: 'object',
  required: ['id', 'provider', 'is_callable', 'problem', 'targets', 'context_window', 'max_output', 'price'],
  properties: {
    id: { type: 'string', description: '`provider/model`, or an alias.' },
    provider: { type: ['string', 'null'] },
    is_callable: {
      type: 'boolean',
      description:
        'True if its provider, or that of a target, is configured and no configuration problem blocks all calls.',
    },
    problem: {
      type: ['string', 'null'],
      description:
        'Problem that blocks calls or causes failures or wrong costs, with its solution, as in `tollgate check`.',
    },
    targets: {
      type: ['array', 'null'],
      items: { type: 'string' },
      description: 'Targets of an alias, in order of use.',
    },
    context_window: NUMBER_OR_NULL,
    max_output: NUMBER_OR_NULL,
    input_modalities: { type: ['array', 'null'], items: { type: 'string' }, description: 'Input types.' },
    output_modalities: { type: ['array', 'null'], items: { type: 'string' }, description: 'Output types.' },
    shutdown: { type: ['string', 'null'], description: 'Shutdown day of the model at its vendor.' },
    price: { type: ['object', 'null'], description: 'US dollars per million tokens; null if unknown.' },
  },
} as const;

/**
 * `GET /api/core/admin/catalog` (`/api/core/<provider>/models` is a provider's list): same data as `tollgate models`,
 * with the models callable now.
 */
function modelsRoute(api: PluginApi): Route {
  return {
    ...FOR_OPERATORS,
    method: 'GET',
    path: '/api/core/admin/catalog',
    scope: 'models:read',
    summary: 'List models and aliases with availability, context windows and prices',
    query: { type: 'object', additionalProperties: false, properties: PAGE_QUERY },
    responses: { 200: { description: 'Aliases, then models by provider.', schema: listOf(MODEL) } },
    handler(ctx) {
      const { limit, after } = readPage(ctx);
      const {
        models: { catalog },
      } = api;
      const canCall = (target: string): boolean => catalog.isConfigured(target.split('/', 1)[0] ?? '');
      const describeState = (id: string, isConfigured: boolean) => {
        const problem = api.models.problemOf(id);
        return { is_callable: isConfigured && problem?.stops !== true, problem: problem?.text ?? null };
      };
      const aliases = api.models.aliases().map(([id, targets]) => ({
        id,
        provider: null,
        targets,
        ...describeState(id, targets.some(canCall)),
        context_window: null,
        max_output: null,
        price: null,
        input_modalities: null,
        output_modalities: null,
        shutdown: null,
      }));
      const models = catalog.providers().flatMap((provider) =>
        modelsOf(api, provider).map(({ id, ...facts }) => ({
          id,
          provider,
          targets: null,
          ...describeState(id, catalog.isConfigured(provider)),
          ...facts,
        })),
      );
      const all = [...aliases, ...models];
      const from = after === undefined ? 0 : all.findIndex(({ id }) => id === after) + 1;
      const page = all.slice(from, from + limit);
      sendList(ctx, page, from + limit < all.length ? page.at(-1)?.id : undefined);
    },
  };
}

/** Facts of the models of a provider. */
function modelsOf({ models: { catalog } }: Pick<PluginApi, 'models'>, provider: string) {
  return catalog.list(provider).map((model) => {
    const info = catalog.find(provider, model);
    return {
      id: `${provider}/${model}`,
      context_window: info?.contextWindow ?? null,
      max_output: info?.maxOutput ?? null,
      input_modalities: info?.inputModalities ?? null,
      output_modalities: info?.outputModalities ?? null,
      shutdown: info?.shutdown ?? null,
      price: catalog.priceOf({ provider, model }, info) ?? null,
    };
  });
}

/**
 * `tollgate models`: names, context windows, shutdown dates, and prices in US dollars per million tokens; `models
 * update` updates them.
 */
function modelsCommand(api: PluginApi, options: Options): Command {
  const ofOne = { flags: '--provider <name>', summary: 'only models of this provider' };
  return {
    name: 'models',
    summary: 'List models with context windows, prices and end dates',
    changesStore: false,
    options: [ofOne],
    async run({ options: { provider }, io }) {
      const names = providersOf(api, provider);
      const table = await useStored(api);
      showModels(api, names, provider === undefined, io);
      io.note(`The table of models is version ${table.version} of ${describeAge(table.date)}. ${countChecks(table)}`);
    },
    subcommands: [
      {
        name: 'update',
        summary: 'Update models and prices from vendors’ lists and the configured table, and show the changes',
        options: [
          ofOne,
          {
            flags: '--check',
            summary: 'show changes without applying them; exit code 4 if there are any',
          },
          { flags: '--accept-dearer', summary: 'apply higher prices too (default: keep the old ones)' },
        ],
        run: (input) => updateModels(api, options, input),
      },
    ],
  };
}

/** States how many prices two sources confirm. */
function countChecks({ vendors }: ModelTable): string {
  const rows = Object.values(vendors).flatMap((models) => (typeof models === 'string' ? [] : Object.values(models)));
  const priced = rows.filter(({ price }) => price !== undefined);
  const countOf = (check: string): number => priced.filter(({ priceCheck }) => priceCheck === check).length;
  return `Of ${priced.length} prices ${countOf('one source')} have one source, and sources differ on ${countOf('sources differ')}.`;
}

/** Providers selected for a command. */
function providersOf({ models: { catalog } }: PluginApi, wanted: unknown): readonly string[] {
  if (typeof wanted !== 'string') return catalog.providers();
  if (catalog.has(wanted)) return [wanted];
  const near = nearest(wanted, catalog.providers());
  const hint =
    near.length > 0 ? `Did you mean ${near.join(' or ')}?` : `Configured are: ${catalog.providers().join(', ')}.`;
  throw new GatewayError('unsupported_provider', `provider "${wanted}" not found in the configuration\n${hint}`);
}

/** Name of the table among the sources. */
const TABLE = 'the table of models';

/** Exit codes of `--check` if data differs, and of an update if a source failed. */
const EXIT = Object.freeze({ differs: 4, failed: 69 });

async function updateModels(api: PluginApi, { table, isDefaultTable }: Options, input: CommandInput): Promise<number> {
  const { options, io, actor } = input;
  const isCheck = options['check'] === true;
  const acceptDearer = options['acceptDearer'] === true;
  if (!isCheck && api.stores.kind === 'memory')
    throw new GatewayError(
      'invalid_request',
      'updates would be lost when this command ends, since the store is memory:\nConfigure a persistent store, or use --check.',
    );
  const names = providersOf(api, options['provider']);
  const inUse = await useStored(api);
  const offers = api.models.offers('chat');
  const sources: readonly (readonly [string, () => Promise<Plan>])[] = [
    ...(options['provider'] === undefined ? [[TABLE, () => planTable(api, table, inUse)] as const] : []),
    ...names.flatMap((name) => {
      const provider = offers.get(name);
      return provider && canListModels(provider) ? [[`the list of ${name}`, () => planList(api, name)] as const] : [];
    }),
  ];
  if (sources.length === 0)
    throw new GatewayError(
      'invalid_request',
      'no source of updates: this provider has no model list, or needs a key for it\nSet its key, or update without --provider.',
    );
  const all = await planAll(sources, io);
  const { plans } = all;
  // Without a network the table of the package stays in use: the published one is a default.
  const failed = all.failed.filter(({ source }) => !(isDefaultTable && source === TABLE));
  if (failed.length < all.failed.length) io.note(`The table of ${describeAge(inUse.date)} stays in use.`);
  if (!isCheck) for (const plan of plans) await takeOver(api, plan, acceptDearer, actor);
  showChanges(plans, failed, { isCheck, acceptDearer }, io);
  if (failed.length > 0) return EXIT.failed;
  return isCheck && plans.some(({ changes }) => changes.length > 0) ? EXIT.differs : 0;
}

interface FailedSource {
  readonly source: string;
  readonly reason: string;
}

/** Reads the sources one by one with progress; failed ones are reported and skipped. */
async function planAll(sources: readonly (readonly [string, () => Promise<Plan>])[], io: CommandIo) {
  const plans: Plan[] = [];
  const failed: FailedSource[] = [];
  for (const [at, [source, plan]] of sources.entries()) {
    const step = `${at + 1} of ${sources.length}: ${source}`;
    try {
      const made = await plan();
      plans.push(made);
      io.note(`${step} … ${made.changes.length} differences`);
    } catch (error) {
      failed.push({ source, reason: reasonOf(error) });
      io.note(`${step} … failed: ${reasonOf(error)}`);
    }
  }
  return { plans, failed };
}

async function takeOver(api: PluginApi, plan: Plan, acceptDearer: boolean, actor: AuditActor): Promise<void> {
  await plan.take(acceptDearer);
  const differences = plan.changes.length;
  const dearer = dearerIn(plan).length;
  if (differences > 0)
    await api.operators.audit({
      actor,
      action: 'models.update',
      subject: plan.source,
      after: { differences, dearer, acceptDearer },
    });
}

function showChanges(
  plans: readonly Plan[],
  failed: readonly FailedSource[],
  { isCheck, acceptDearer }: { readonly isCheck: boolean; readonly acceptDearer: boolean },
  io: CommandIo,
): void {
  const changes = plans.flatMap((plan) => plan.changes);
  const remark = ({ is_dearer: isDearer }: Change): string =>
    !isDearer
      ? ''
      : acceptDearer
        ? 'dearer'
        : isCheck
          ? 'higher price: --accept-dearer would apply it'
          : 'higher price: not applied';
  const rows = changes.map((change) => [
    ...[change.model, change.field, change.before ?? '-', change.after ?? '-'],
    remark(change),
  ]);
  const text = rows.length === 0 ? '' : io.table(['MODEL', 'WHAT', 'BEFORE', 'AFTER', ''], rows);
  io.result({ differences: changes, failed, taken: !isCheck }, text);
  const dearer = new Set(plans.flatMap(dearerIn)).size;
  if (dearer > 0 && !acceptDearer)
    io.note(`${dearer} models have higher prices, which were not applied. Add --accept-dearer to apply them.`);
  if (!isCheck && changes.length > 0) io.note('Running gateways apply it at the next reload: tollgate reload.');
}

function showModels(api: PluginApi, names: readonly string[], withAliases: boolean, io: CommandIo): void {
  const aliases = withAliases ? api.models.aliases().map(([id, targets]) => ({ id, alias_of: targets })) : [];
  const rows = names.flatMap((provider) => modelsOf(api, provider));
  const table = io.table(
    ['MODEL', 'CONTEXT TOKENS', 'ENDS', 'INPUT USD/M TOKENS', 'CACHED USD/M TOKENS', 'OUTPUT USD/M TOKENS'],
    [
      ...aliases.map(({ id, alias_of }) => [id, '', '', '', '', `-> ${alias_of.join(', ')}`]),
      ...rows.map(({ id, context_window, shutdown, price }) => [
        ...[id, context_window === null ? '?' : String(context_window), shutdown ?? ''],
        ...showPrices(price),
      ]),
    ],
  );
  io.result([...aliases, ...rows], table);
}

function showPrices(price: Price | null): readonly string[] {
  return [price?.input, price?.cached_input, price?.output].map((amount) =>
    amount === undefined ? '?' : String(amount),
  );
}
