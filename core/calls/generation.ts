import type { LoadedConfig } from '../../config/load-config.ts';
import { aliasesOf, routesOf } from '../../config/model-routes.ts';
import { VERSION } from '../../config/package-root.ts';
import { fileIdOf } from '../../config/read.ts';
import { createRedactor, listSecrets } from '../../config/redact.ts';
import { type CallHook, CHAT, COUNT, type ModelCatalog, type Operation } from '../../contract/call.ts';
import { CHAT_REQUEST } from '../../contract/chat-schemas.ts';
import type { ServerTools } from '../../contract/chat-tools.ts';
import { isGatewayError } from '../../contract/errors.ts';
import { bodyFactsOf } from '../../contract/facts.ts';
import type { GatewayView } from '../../contract/gateway.ts';
import { isObject } from '../../contract/json.ts';
import {
  createBlockedUsers,
  createPlanFinder,
  type PlanFinder,
  type RefuseBlocked,
  USERS,
  type UserRecord,
} from '../../contract/plans.ts';
import type { GatewaySettings, Log } from '../../contract/plugin.ts';
import type { ModelInfo, Offer, Provider } from '../../contract/provider.ts';
import type { Counters, Records, Store } from '../../contract/store.ts';
import { createHttpClient, credentialHeaders } from '../../egress/http-client.ts';
import { allModels, createCatalog } from '../../models/catalog.ts';
import { createModelProblems, type ModelProblems } from '../../models/model-problems.ts';
import { configuredTargets, namedTargets } from '../../routing/choose-targets.ts';
import {
  createRouting,
  describeRouting,
  type HealthBook,
  type Routing,
  shareHealth,
} from '../../routing/health-book.ts';
import { gatherStates, ROUTING_TOPIC } from '../../routing/routing-states.ts';
import { CORE, enableForThirdParties, Pending, runAttributed } from '../plugins/attribution.ts';
import { type AuditLog, createAuditLog } from '../plugins/audit.ts';
import { compileHooks } from '../plugins/compile-hooks.ts';
import {
  type Foundation,
  locateProblem,
  runClosers,
  runReady,
  runRegistered,
  setUpPlugins,
} from '../plugins/foundation.ts';
import { describeProcess, PROCESS_TOPIC } from '../plugins/gather.ts';
import { DEFAULT_RULES, HookBook, type HookRules } from '../plugins/hook-guard.ts';
import { createScope, type PlanNameOf, verdictHooks } from '../plugins/hook-scope.ts';
import { createInstanceStore, createRecordBook } from '../plugins/instance-store.ts';
import type { CallServices } from '../plugins/plugin-api.ts';
import { addSecrets } from '../plugins/plugin-secrets.ts';
import {
  createRequestSchemas,
  describePlugins,
  PluginError,
  Registry,
  type RequestSchemas,
} from '../plugins/registry.ts';
import { RejectedFields } from './added-fields.ts';
import { readFailedAttempt } from './attempt.ts';
import type { Call } from './call.ts';
import type { CallDeps, OperationParts } from './call-deps.ts';
import { completeOperation, type WholeOperation } from './declared-operation.ts';
import { assertEffects, assertPublicMedia, effectsOf } from './gates.ts';
import { estimateCall, limitOutput } from './meter.ts';
import { callOperation } from './operation.ts';
import { Routes } from './routes.ts';
import { SHUTDOWN, showVerdict } from './run-call.ts';
import { createSeals } from './seals.ts';
import { completePluginChat } from './tool-loop.ts';

/**
 * State of one configuration: plugins, hooks and models. It never changes. Another configuration creates another
 * generation on the same foundation.
 */
export interface Generation {
  readonly loaded: LoadedConfig;
  readonly registry: Registry;
  readonly settings: GatewaySettings;
  readonly foundation: Foundation;
  readonly deps: CallDeps;
  readonly services: CallServices;
  /** Audit log of changes by operators. */
  readonly audit: Pick<AuditLog, 'add'>;
  /** Throws for a user that an operator blocked. */
  readonly refuseBlocked: RefuseBlocked;
  /** Generation as operators see it. */
  readonly gateway: GatewayView;
  /** Compiles the schemas of requests, of calls and of routes. */
  readonly requests: RequestSchemas;
  /** Models of chat. */
  readonly catalog: ModelCatalog;
  /** Problems of the models that the configuration names. */
  readonly modelProblems: ModelProblems;
  /** Runs the plugins' work before the generation serves. */
  ready(): Promise<void>;
  /** Makes this generation answer other workers. */
  takeOver(): void;
  /**
   * Waits for running work, runs the plugins' closers in reverse, and closes what only this generation uses. Each wait
   * has a limit.
   */
  close(): Promise<void>;
}

/** Maximum wait of a close for calls and the hooks after them, in milliseconds. */
const PENDING_TIMEOUT_MS = 3000;

/** Maximum wait for aborted calls to be charged, in milliseconds. */
const CUT_TIMEOUT_MS = 1000;

/** Sets up the plugins of a configuration one by one, in its order, and creates the services for calls. */
export async function createGeneration(foundation: Foundation, loaded: LoadedConfig): Promise<Generation> {
  const { log, state, gatherer, egress } = foundation;
  enableForThirdParties(loaded);
  const removeSecrets = addSecrets(loaded);
  const registry = new Registry();
  const { settings } = loaded;
  const readers = new Map<string, () => unknown>();
  const identity = {};
  const ready: { services?: CallServices; routing?: Routing } = {};
  const pending = new Pending();
  const closing = new AbortController();
  const close = (): Promise<void> =>
    closeGeneration(log, pending, closing, () => [...state.release(identity), ...registry.closers]).finally(
      removeSecrets,
    );
  const { keep } = state.userOf(identity, `${CORE}.${CORE}`);
  const book = keep('hooks', () => new HookBook());
  const ownStore = createInstanceStore(() => foundation.store, registry, CORE_INSTANCE);
  const records = createRecordBook(ownStore);
  const audit = createAuditLog({ store: ownStore, keepForMs: loaded.config.auditKeepForMs, log });
  const gateway = viewGateway(foundation, loaded, registry, book, () => ready.routing?.health);
  const apiDeps = {
    registry,
    settings,
    log,
    gatherer,
    readers,
    egress,
    aliases: loaded.config.models,
    redact: createRedactor(() => listSecrets(loaded.config)),
    ...{ store: foundation.store, audit, records, ready },
    openStore: refuseSecondStore,
    stateUser: (instance: string) => state.userOf(identity, instance),
    gateway,
  };
  try {
    await setUpPlugins(loaded, registry, apiDeps);
    for (const { owner, message } of registry.unknownMembers) log.warn({ plugin: owner }, message);
    registry.freeze(loaded.builtins.filter(({ kind }) => kind === 'operation').map(({ name }) => name));
    const requests = createRequestSchemas([...registry.schemas.values()]);
    const routing = keep('routing', () => openRouting(foundation.store, ownStore.counters));
    ready.routing = routing;
    readers.set(PROCESS_TOPIC, () => describeProcess(foundation.store, book, registry));
    const deps = createCallDeps(foundation, registry, loaded, {
      ...{ pending, requests, routing, records, book, closing: closing.signal },
    });
    const { catalog } = deps.partsOf(CHAT);
    const named = namedTargets(deps.routes, catalog, loaded.config.instances);
    const modelProblems = createModelProblems(
      loaded,
      [...deps.allParts()].map((parts) => parts.catalog),
    );
    const services = createServices(deps, modelProblems);
    readers.set(ROUTING_TOPIC, () => describeRouting(routing, named));
    ready.services = services;
    await runRegistered(registry.registered);
    return {
      refuseBlocked: createBlockedUsers(records<UserRecord>(USERS)),
      loaded,
      registry,
      settings,
      foundation,
      deps,
      services,
      audit,
      gateway,
      requests,
      catalog,
      close,
      modelProblems,
      ready: () => runReady(registry.ready).catch((error: unknown) => Promise.reject(locateProblem(error, loaded))),
      takeOver: () => activate(foundation, registry, deps, readers),
    };
  } catch (error) {
    await close();
    throw locateProblem(error, loaded);
  }
}

/** Opens the routing state. Nodes share target health through their store. */
function openRouting({ endsWithProcess }: Store, counters: Counters): Routing {
  return createRouting(endsWithProcess ? undefined : (health: HealthBook) => shareHealth(counters, health));
}

/** Gateway of a generation for its operators. */
function viewGateway(
  foundation: Foundation,
  loaded: LoadedConfig,
  registry: Registry,
  book: HookBook,
  health: () => HealthBook | undefined,
): GatewayView {
  const { file, isDefault, printable, sources } = loaded.config;
  return {
    routing: () => gatherStates(foundation.gatherer),
    drain(names) {
      const found = health();
      if (found) found.drained = names;
    },
    reset: (target) => health()?.reset(target),
    configuration: { file, isDefault, fileId: fileIdOf(loaded.raw), printable, sources },
    plugins: () => describePlugins(loaded, registry, book),
    reloads: () => foundation.reloads,
    reloadProblem: () => foundation.reloadProblem,
  };
}

/** Makes a generation answer other workers, and updates the keys and targets of routing. */
function activate(
  { gatherer, storeWatch }: Foundation,
  registry: Registry,
  deps: CallDeps,
  readers: ReadonlyMap<string, () => unknown>,
): void {
  gatherer.serve(readers);
  storeWatch.watchers = registry.storeWatchers;
  deps.routing.health.useKeys(keysOf(registry));
  deps.routing.health.useTargets(configuredTargets(deps.routes, deps.partsOf(CHAT).catalog));
}

/** Waits for running work, aborts calls that take too long, and runs the closers of the plugins. */
async function closeGeneration(
  log: Log,
  pending: Pending,
  closing: AbortController,
  closersOf: () => Parameters<typeof runClosers>[0],
): Promise<void> {
  let waiting = await pending.idle(PENDING_TIMEOUT_MS);
  if (waiting.length > 0) {
    closing.abort(SHUTDOWN);
    waiting = await pending.idle(CUT_TIMEOUT_MS);
  }
  if (waiting.length > 0) log.error({ waiting }, 'closing before all work of plugins has ended');
  await runClosers(closersOf(), (error) => log.error({ err: error }, 'a plugin failed to close'));
}

const isChatResponse = (value: unknown): boolean =>
  isObject(value) &&
  typeof value['id'] === 'string' &&
  Array.isArray(value['choices']) &&
  value['choices'].every((choice) => isObject(choice) && isObject(choice['message']));

const isInputCount = (value: unknown): boolean =>
  isObject(value) &&
  typeof value['inputTokens'] === 'number' &&
  Number.isSafeInteger(value['inputTokens']) &&
  value['inputTokens'] >= 0 &&
  typeof value['estimated'] === 'boolean';

/** Instance that owns core's documents and counters. */
const CORE_INSTANCE = Object.freeze({ group: CORE, name: CORE });

function refuseSecondStore(owner: string): never {
  throw new PluginError(owner, 'plugin_conflict: a store is registered already');
}

/** Keys of providers by instance. An instance with several offers has all of their keys. */
function keysOf({ offers }: Registry): ReadonlyMap<string, string> {
  const keys = new Map<string, string>();
  for (const { owner, value } of offers.values()) {
    const { credential, keys: several = [] } = value.offer;
    const all = [credential, ...several.map((key) => key.credential)].map((each) => each?.value ?? '');
    keys.set(owner, `${keys.get(owner) ?? ''}${all.join('\n')}\n`);
  }
  return keys;
}

/** Options to compile the hooks of all operations. */
function hookParts(log: Log, { config }: LoadedConfig, book: HookBook, pending: Pending, planOf: PlanFinder) {
  const planNameOf: PlanNameOf = (principal) => {
    const plan = planOf(principal);
    return plan instanceof Promise ? plan.then((known) => known?.name) : plan?.name;
  };
  const shown = new Set(config.instances.filter(({ scope }) => scope?.showVerdicts).map(({ name }) => name));
  const onActed = (call: unknown, acted: CallHook): void => {
    (call as Call).record.hooks.push(acted);
    if (shown.has(acted.plugin)) showVerdict(call as Call, acted);
  };
  const onVerdict = (call: unknown, verdict: CallHook, error?: unknown): void => {
    const { plugin, hook, action } = verdict;
    onActed(call, verdict);
    const reason = isGatewayError(error) ? error.refusedBy : error;
    log.info({ request_id: (call as Call).requestId, plugin, hook, verdict: action, reason }, 'policy in log mode');
  };
  const providers = config.instances.filter(({ kind }) => kind !== 'policy').map(({ name }) => name);
  const rules = new Map(config.instances.map(({ name, hooks }) => [name, { ...DEFAULT_RULES, ...hooks }]));
  const scopes = new Map(
    config.instances.map(({ name, scope = {} }) => {
      const unknown = scope.when?.providers?.find(
        (provider) => !provider.endsWith('*') && !providers.includes(provider),
      );
      if (unknown !== undefined)
        throw new PluginError(name, `has "when" with the provider "${unknown}", which is not configured`);
      return [name, createScope(scope, { planNameOf, onVerdict })] as const;
    }),
  );
  return {
    book,
    pending,
    rulesOf: (owner: string): HookRules => rules.get(owner) ?? DEFAULT_RULES,
    bindOf: (owner: string) => scopes.get(owner),
    onIgnored: (plugin: string, hook: string, error: unknown) =>
      log.error({ plugin, hook, err: error }, `a ${hook} hook failed`),
    onActed,
    onTimed(
      call: unknown,
      { owner: plugin, name: hook }: { readonly owner: string; readonly name: string },
      ms: number,
    ) {
      const { record, elapsedMs } = call as Call;
      record.hookTimes ??= [];
      record.hookTimes.push({ plugin, hook, startMs: Math.max(elapsedMs - ms, 0), ms });
    },
    onPause: (plugin: string, hook: string, isPaused: boolean) =>
      isPaused
        ? log.error({ plugin, hook }, `a ${hook} hook timed out repeatedly; it is skipped for a time`)
        : log.info({ plugin, hook }, `a ${hook} hook is no longer skipped`),
  };
}

function createCallDeps(
  { log, egress, store }: Foundation,
  registry: Registry,
  loaded: LoadedConfig,
  {
    pending,
    requests,
    routing,
    records,
    book,
    closing,
  }: Pick<CallDeps, 'pending' | 'routing' | 'closing'> & {
    readonly requests: RequestSchemas;
    readonly book: HookBook;
    readonly records: <T>(name: string) => Records<T>;
  },
): CallDeps {
  const { shared } = createInstanceStore(() => store, registry, CORE_INSTANCE);
  const planOf = createPlanFinder({ settings: loaded.settings, stores: { shared }, books: { records } });
  const allHooks = [...registry.hooks, ...verdictHooks(loaded.config.instances)];
  const everyHook = hookParts(log, loaded, book, pending, planOf);
  const hooksOf = (
    operation: Operation,
    owner: string,
    isResponse: (value: unknown) => boolean,
    definition?: WholeOperation,
  ) => {
    const isRequest = requests.compile(owner, definition?.request ?? CHAT_REQUEST, `the request of "${operation}"`);
    const offers: ReadonlyMap<unknown, Offer> = registry.offersOf(operation === COUNT ? CHAT : operation);
    const isProvider = (name: unknown): boolean => offers.has(name);
    return compileHooks(allHooks, { operation, isRequest, isResponse, isProvider, ...everyHook });
  };
  const aliases = aliasesOf(loaded.config.models);
  const rules = routesOf(loaded.config.routes);
  const offersOf = (operation: Operation): Pick<OperationParts, 'offers' | 'catalog' | 'routes'> => {
    const offers: ReadonlyMap<string, Offer> = registry.offersOf(operation);
    const catalog = createCatalog(offers);
    return { offers, catalog, routes: new Routes({ catalog, offers, aliases, rules }) };
  };
  const chat = offersOf(CHAT);
  const parts = new Map<string, OperationParts>([
    [CHAT, { ...chat, hooks: hooksOf(CHAT, CORE, isChatResponse) }],
    [COUNT, { ...chat, hooks: hooksOf(COUNT, CORE, isInputCount) }],
  ]);
  for (const [name, { owner, value }] of registry.operations) {
    const { response } = value;
    const matches = response && requests.compile(owner, response, `the response of "${name}"`);
    const definition = completeOperation(value, matches);
    const hooks = hooksOf(definition.name, owner, (result) => definition.isResponse(result), definition);
    parts.set(name, { ...offersOf(definition.name), hooks, definition });
  }
  return {
    ...{ upstream: egress.upstream, log, pending, routing, closing, aliases },
    routes: rules,
    seals: createSeals(() => store.sets),
    rejected: new RejectedFields(),
    planOf,
    serverTools: serverToolsOf(registry),
    tagsEndUsers: loaded.settings.endUsers.report,
    allParts: () => parts.values(),
    partsOf(operation) {
      const found = parts.get(operation);
      if (!found)
        throw new TypeError(
          `the operation "${operation}" does not exist; registered are ${[...parts.keys()].join(', ')}`,
        );
      return found;
    },
  };
}

/** Tools of servers that a plugin provides; its errors name it. */
function serverToolsOf({ services }: Registry): ServerTools | undefined {
  const provided = services.get('server-tools');
  if (!provided) return undefined;
  const { owner } = provided;
  // A service registered under a name has that name's type.
  const tools = provided.value as ServerTools;
  return {
    bounds: tools.bounds,
    has: (server) => tools.has(server),
    toolName: (server, tool) => tools.toolName(server, tool),
    list: (servers, caller) => runAttributed(owner, () => tools.list(servers, caller)),
    call: (tool, args, context) => runAttributed(owner, () => tools.call(tool, args, context)),
  };
}

/**
 * Creates the services for calls by plugins. These calls take the same path as requests, with the principal that the
 * plugin acts for.
 */
export function createServices(deps: CallDeps, modelProblems: Pick<ModelProblems, 'of'>): CallServices {
  const { aliases } = deps;
  return {
    chat: (request, context) => completePluginChat(deps, request, context),
    hasServer: (name) => deps.serverTools?.has(name) === true,
    call: (operation, request, context) => callOperation(deps, operation, request, context),
    draft: () => Promise.reject(new TypeError('requests of clients are read once the gateway serves')),
    async sendTo(operation, name, request, signal = deps.closing) {
      const offer = deps.partsOf(operation).offers.get(name);
      if (!offer) throw new TypeError(`the provider "${name}" does not exist`);
      try {
        return await deps.upstream.send(offer, request, { signal, maxBytes: MAX_FILE_BYTES });
      } catch (error) {
        throw readFailedAttempt(error, { provider: name, model: '' }, offer).error;
      }
    },
    async checkEffects(operation, target, body, principal) {
      assertPublicMedia(bodyFactsOf(body, {}).media);
      const needs = effectsOf(deps.partsOf(operation).offers.get(target.provider)?.effects, target, { path: '', body });
      await assertEffects(deps, { principal, operation }, needs, [target]);
    },
    estimate: estimateCall.bind(undefined, deps),
    limitOutput,
    get catalog() {
      return deps.partsOf('chat').catalog;
    },
    async listModels(name) {
      const provider = deps.partsOf('chat').offers.get(name);
      if (!provider) throw new TypeError(`the provider "${name}" does not exist`);
      return fetchModels(provider);
    },
    useModelTable(table) {
      for (const { catalog } of deps.allParts()) catalog.use(table);
    },
    routing: () => describeRouting(deps.routing),
    models: (principal) => allModels({ catalog: deps.partsOf('chat').catalog, aliases }, principal),
    problemOfModel: (name, caller) => modelProblems.of(name, caller),
  };
}

/** Maximum size of a vendor's file, which is read line by line. */
const MAX_FILE_BYTES = 1024 ** 3;

/** Maximum number of models that one vendor may list, and maximum length of a model name. */
const MAX_MODELS = 5000;
const MAX_ID = 200;

/**
 * Fetches the models that a vendor lists with the control-plane client. The key is sent to the base URL's host only.
 */
async function fetchModels(provider: Provider): Promise<readonly ModelInfo[]> {
  const { listModels, baseUrl, credential, headers, hosts = [], proxyRoute } = provider;
  if (!listModels) throw new TypeError('this provider has no list of models to fetch');
  const request = listModels.request();
  const client = await createHttpClient(new Set([new URL(baseUrl).host, ...hosts]), VERSION, proxyRoute);
  const sent = { ...headers, ...request.headers };
  const url = `${baseUrl}${request.path}`;
  const key = await credentialHeaders(credential, { method: 'GET', url, headers: sent, body: null });
  const body: unknown = await client.get(url, { headers: { ...sent, ...key } }).json();
  return listModels
    .response(body)
    .filter(({ id }) => id.length <= MAX_ID)
    .slice(0, MAX_MODELS);
}
