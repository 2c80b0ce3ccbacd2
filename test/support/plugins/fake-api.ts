import type {
  Announcement,
  Command,
  GatewaySettings,
  Hook,
  HookName,
  HookObject,
  ModelRow,
  Offer,
  Plugin,
  PluginApi,
  Route,
  Store,
} from '../../../contract/index.ts';
import { createAuditLog } from '../../../core/plugins/audit.ts';
import { createRecordBook } from '../../../core/plugins/instance-store.ts';
import { createCatalog } from '../../../models/catalog.ts';
import { createSilentLog } from '../log.ts';
import { withDefaults } from './with-defaults.ts';

export interface FakeOptions {
  readonly settings?: Partial<GatewaySettings>;
  readonly models?: readonly ModelRow[];
  /** Providers with their models. Default: one named openai with any model. */
  readonly offers?: Readonly<Record<string, Pick<Offer, 'models' | 'anyModel'>>>;
}

const SETTINGS: GatewaySettings = {
  billing: 'track',
  plans: { pro: {} },
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
};

/** Plugin of any configuration. */
export type AnyPlugin = Omit<Plugin, 'configSchema' | 'setup'> & {
  readonly configSchema?: object;
  setup(api: PluginApi, config: never): void | Promise<void>;
};

export interface ConfiguredPlugin {
  readonly plugin: AnyPlugin;
  readonly config?: object;
  readonly instance?: string;
}

type Work = () => void | Promise<void>;

/** Registers plugins on a store without a core. As in core, defaults are applied and the schema is enforced. */
export async function registerPlugins(store: Store, plugins: readonly ConfiguredPlugin[], options: FakeOptions) {
  const log = createSilentLog();
  const registered = {
    ...{ log, audit: createAuditLog({ store, keepForMs: 86_400_000, log }) },
    routes: [] as Route[],
    commands: [] as Command[],
    announcements: [] as Announcement[],
    hooks: [] as HookObject<'authenticate'>[],
    readies: [] as Work[],
    closes: [] as Work[],
  };
  const own = apiOf(store, registered, options);
  for (const { plugin, config = {}, instance = plugin.name } of plugins) {
    const checked = withDefaults(plugin.configSchema, config);
    await plugin.setup({ instance, ...own } as unknown as PluginApi, checked as never);
  }
  return registered;
}

export type Registered = Awaited<ReturnType<typeof registerPlugins>>;

/** API of every plugin, except its own name. */
function apiOf(store: Store, registered: Registered, options: FakeOptions) {
  const { log, audit, routes, commands, announcements, hooks, readies, closes } = registered;
  const offers = (options.offers ?? { openai: { anyModel: true } }) as Readonly<Record<string, Offer>>;
  const vendors = Object.entries(offers).map(([name, offer]) => [name, { ...offer, vendor: name }] as const);
  return {
    log,
    settings: { ...SETTINGS, ...options.settings },
    stores: {
      ...store,
      stored: store.stored('fake'),
      share: (name: string) => store.keyv(name),
      shared: (name: string) => store.keyv(name),
      personalData: () => undefined,
    },
    books: { ledger: store.ledger, records: createRecordBook(store) },
    operators: {
      gateway: {},
      gather: () => async () => [],
      gauge: () => undefined,
      audit: audit.add,
      auditLog: audit.list,
      announce: (announcement: Announcement) => void announcements.push(announcement),
      offerSignIn: () => undefined,
      allPersonalData: () => [],
    },
    models: {
      list: () => options.models ?? [],
      aliases: () => [],
      offers: (operation: string) => new Map(operation === 'chat' ? Object.entries(offers) : []),
      catalog: createCatalog(new Map(vendors)),
    },
    redact: (text: string) => text,
    keyv: (namespace: string) => store.keyv(namespace),
    route: (route: Route) => void routes.push(route),
    command: (command: Command) => void commands.push(command),
    hook<N extends HookName>(name: N, hook: Hook<N>) {
      if (name !== 'authenticate') throw new Error(`the fake has no hook ${name}`);
      const object = typeof hook === 'function' ? { handler: hook } : hook;
      hooks.push(object as unknown as HookObject<'authenticate'>);
    },
    onRegistered: (work: Work) => void readies.push(work),
    onReady: (work: Work) => void readies.push(work),
    onClose: (work: Work) => void closes.unshift(work),
  };
}
