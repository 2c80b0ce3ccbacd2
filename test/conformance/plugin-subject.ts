import { Ajv2020 } from 'ajv/dist/2020.js';
import type {
  AgentDefinition,
  Call,
  ChatRequest,
  ChatResponse,
  Command,
  Hook,
  HookName,
  HookObject,
  Plugin,
  PluginApi,
  Principal,
  Route,
  WholeApi,
} from '../../contract/index.ts';
import { FORMATS } from '../../contract/schema-formats.ts';
import { createRecordBook } from '../../core/plugins/instance-store.ts';
import { createCatalog } from '../../models/catalog.ts';
import { openMemory } from '../../plugins/stores/memory/index.ts';
import { deepFreeze } from './deep-freeze.ts';
import type { WithRunner } from './runner.ts';

/** Common options of the kits for plugins with hooks. */
export interface PluginKit extends WithRunner {
  readonly plugin: Plugin;
  /** Required options; defaults of `configSchema` are added. */
  readonly config?: Readonly<Record<string, unknown>>;
}

/** Plugin that was set up in isolation, with a store in memory, and its registrations. */
export interface PluginSubject {
  readonly plugin: Plugin;
  readonly routes: readonly Route[];
  readonly commands: readonly Command[];
  readonly agents: readonly AgentDefinition[];
  /** Other registrations: `offer speech`, `operation rerank`, `dialect chat`, `store`. */
  readonly others: readonly string[];
  /** Log entries of the plugin, as JSON. */
  readonly logged: readonly string[];
  hooksOf<N extends HookName>(name: N): readonly HookObject<N>[];
  /** Closes the plugin's resources, as a gateway does at its end. */
  close(): Promise<void>;
}

const SETTINGS: PluginApi['settings'] = Object.freeze({
  billing: 'track',
  plans: {},
  defaultPlan: undefined,
  budgets: [],
  tags: {},
  endUsers: { header: undefined, report: false },
  dataDir: '/nowhere',
  baseDir: '/nowhere',
  url: 'http://127.0.0.1:8787',
  basePath: '',
  version: '0.0.0',
  isDefault: false,
});

const ANY_OPTIONS = Object.freeze({ type: 'object' });

/** Compiled checks by schema, because a kit sets its plugin up for each test. */
const CHECKS = new WeakMap<object, (config: unknown) => string | undefined>();

/**
 * Returns a check of options against a plugin's schema, which also adds defaults. The check returns the problem or
 * undefined.
 */
export function configCheck(plugin: Plugin): (config: unknown) => string | undefined {
  const known = CHECKS.get(plugin.configSchema ?? ANY_OPTIONS);
  if (known) return known;
  const ajv = new Ajv2020({ strict: true, useDefaults: true, allowUnionTypes: true });
  ajv.addVocabulary(['secret']);
  for (const format of Object.keys(FORMATS)) ajv.addFormat(format, true);
  const validate = ajv.compile(plugin.configSchema ?? ANY_OPTIONS);
  const check = (config: unknown) =>
    validate(config) ? undefined : ajv.errorsText(validate.errors, { dataVar: 'config' });
  CHECKS.set(plugin.configSchema ?? ANY_OPTIONS, check);
  return check;
}

/** Sets a plugin up as a gateway does. Throws the errors of `setup` and of the options' schema. */
export async function setUpPlugin({ plugin, config = {} }: PluginKit): Promise<PluginSubject> {
  const options = structuredClone(config);
  const wrong = configCheck(plugin)(options);
  if (wrong !== undefined) throw new Error(`the kit's \`config\` does not fit the plugin's \`configSchema\`: ${wrong}`);
  const store = await openMemory();
  const hooks = new Map<HookName, HookObject<HookName>[]>();
  const routes: Route[] = [];
  const commands: Command[] = [];
  const agents: AgentDefinition[] = [];
  const others: string[] = [];
  const readies: (() => unknown)[] = [];
  const closes: (() => unknown)[] = [];
  const logged: string[] = [];
  const write = (fields: unknown, message?: string) => void logged.push(JSON.stringify([fields, message]));
  const log = { debug: write, info: write, warn: write, error: write, child: () => log };
  const nothing = (): undefined => undefined;
  const none = (): readonly never[] => [];
  const api: Partial<Record<keyof WholeApi, unknown>> = {
    ...{ instance: plugin.name, log, settings: SETTINGS, redact: (text: string) => text },
    ...{ upgrade: nothing, schema: nothing, use: nothing, keyv: (name: string) => store.keyv(name) },
    keep: (_name: string, make: () => unknown) => make(),
    http: refuseNetwork,
    fetch: refuseNetwork,
    stores: {
      ...{ ...store, stored: store.stored(plugin.name), personalData: nothing },
      ...{ share: (name: string) => store.keyv(name), shared: (name: string) => store.keyv(name) },
    },
    models: {
      ...{ list: none, aliases: none, alias: nothing, offers: () => new Map(), listAtProvider: async () => [] },
      ...{ routing: () => ({ targets: [], retries: {} }), catalog: createCatalog(new Map()), call: refuseNetwork },
    },
    books: {
      ...{ ledger: store.ledger, records: createRecordBook(store), limitOutput: nothing },
      estimate: () => ({ units: {}, cost: undefined }),
    },
    operators: {
      ...{ gauge: nothing, gauges: none, watchStore: nothing, watchRefusals: nothing, announce: nothing },
      reportParts: nothing,
      ...{ offerSignIn: nothing, audit: async () => undefined, auditLog: async () => ({ entries: [] }) },
      ...{ allPersonalData: none, useModelTable: nothing },
      gather: (_topic: string, read: () => unknown) => async () => [await read()],
      gateway: {
        routing: async () => ({ targets: [], retries: {} }),
        plugins: none,
        reloads: nothing,
        reloadProblem: nothing,
      },
    },
    provide: (service: string) => void others.push(`service ${service}`),
    provider: () => void others.push('provider'),
    offer: (operation: string) => void others.push(`offer ${operation}`),
    operation: ({ name }: { readonly name: string }) => void others.push(`operation ${name}`),
    dialect: ({ name }: { readonly name: string }) => void others.push(`dialect ${name}`),
    store: () => void others.push('store'),
    chat: async (request: ChatRequest) => responseOf(request.model, [{ content: 'Yes.' }]),
    route: (route: Route) => void routes.push(route),
    command: (command: Command) => void commands.push(command),
    agent: (agent: AgentDefinition) => void agents.push(agent),
    agents: () => agents,
    hook<N extends HookName>(name: N, hook: Hook<N>) {
      const object = (typeof hook === 'function' ? { handler: hook } : hook) as unknown as HookObject<HookName>;
      hooks.set(name, [...(hooks.get(name) ?? []), object]);
    },
    onRegistered: (work: () => unknown) => void readies.push(work),
    onReady: (work: () => unknown) => void readies.push(work),
    onClose: (work: () => unknown) => void closes.unshift(work),
  };
  await plugin.setup(api as never, deepFreeze(options) as never);
  for (const work of readies) await work();
  return {
    ...{ plugin, routes, commands, agents, others, logged },
    hooksOf: <N extends HookName>(name: N) =>
      (hooks.get(name) ?? []).filter(
        ({ operations }) => operations === undefined || (operations as readonly string[]).includes('chat'),
      ) as unknown as readonly HookObject<N>[],
    async close() {
      for (const work of closes.splice(0)) await work();
      await store.close();
    },
  };
}

async function refuseNetwork(): Promise<never> {
  throw new Error('a kit has no network: give the plugin options by which it needs none');
}

export const PRINCIPAL: Principal = Object.freeze({ credential: 'key', userId: 'ann', account: 'ann', keyId: 'key-1' });

const TARGET = Object.freeze({ provider: 'echo', model: 'echo' });

/** Chat call of a caller, as hooks see it. */
export function callOf(request: ChatRequest, fields: Partial<Call<'chat'>> = {}): Call<'chat'> {
  const id = fields.id ?? 'call_1';
  return {
    ...{ id, operation: 'chat', requestId: `req_${id}`, principal: PRINCIPAL, tags: [], targets: [TARGET] },
    ...{
      trace: { traceId: '0af7651916cd43dd8448eb211c80319c' },
      stream: request.stream === true,
      startedAt: 1_790_000_000_000,
    },
    ...{ signal: new AbortController().signal, skip: new Set<never>(), state: new Map(), headers: new Map() },
    request: deepFreeze(request),
    ...fields,
  };
}

/** Message of one choice. */
export type ScriptedOutput = Partial<ChatResponse['choices'][number]['message']>;

/** Complete response with these choices. */
export function responseOf(model: string, choices: readonly ScriptedOutput[]): ChatResponse {
  return {
    ...{ id: 'chatcmpl-1', object: 'chat.completion', created: 1_790_000_000, model },
    choices: choices.map((said, index) => ({
      index,
      message: { role: 'assistant', content: null, refusal: null, ...said },
      logprobs: null,
      finish_reason: said.tool_calls ? 'tool_calls' : 'stop',
    })),
    usage: { prompt_tokens: 9, completion_tokens: 9, total_tokens: 18 },
  };
}
