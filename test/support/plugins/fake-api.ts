import type { Ajv2020 } from 'ajv/dist/2020.js';
import { createCatalog } from '../../../core/calls/model-catalog.ts';
import {
  type Announcement,
  type AuditPage,
  type AuditQuery,
  type Command,
  type CommandInput,
  type ErrorBody,
  GatewayError,
  type GatewaySettings,
  type Hook,
  type HookFunctions,
  type HookName,
  type HookObject,
  isGatewayError,
  type Log,
  type ModelRow,
  type Offer,
  type Plugin,
  type PluginApi,
  type Principal,
  type Route,
  type Store,
  toGatewayError,
} from '../../../core/index.ts';
import { createAuditLog } from '../../../core/plugins/audit.ts';
import { createRecordBook } from '../../../core/plugins/records.ts';
import { fakeIo } from './fake-io.ts';
import { createConfigAjv, withDefaults } from './with-defaults.ts';

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  readonly body: any;
}

export interface Sent {
  readonly bearer?: string;
  readonly apiKey?: string;
  readonly body?: unknown;
  readonly query?: Readonly<Record<string, string>>;
}

export interface LogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly fields: object;
  readonly message: string | undefined;
}

/** Plugins on a store, without a core: what they registered, and the steps core would take with it. */
export interface FakeGateway {
  readonly routes: readonly Route[];
  readonly announcements: readonly Announcement[];
  readonly logs: readonly LogLine[];
  authenticate(credential: string, options?: { bearer?: boolean; now?: number }): Promise<Principal>;
  request(method: Route['method'], path: string, sent?: Sent): Promise<Answer>;
  /** Runs a command as the command line would; answers what went to stdout and stderr. */
  run(
    line: readonly string[],
    options?: CommandInput['options'],
  ): Promise<{ out: string; json: unknown; talk: string }>;
  /** What was written down of changes. */
  audit(query: AuditQuery): Promise<AuditPage>;
  ready(): Promise<void>;
  close(): Promise<void>;
}

export interface FakeOptions {
  readonly settings?: Partial<GatewaySettings>;
  readonly models?: readonly ModelRow[];
  /** The providers, each with its models; one named openai that takes any unless given. */
  readonly offers?: Readonly<Record<string, Pick<Offer, 'models' | 'anyModel'>>>;
}

const SETTINGS: GatewaySettings = {
  billing: 'track',
  plans: { pro: {} },
  defaultPlan: undefined,
  budgets: [],
  tags: {},
  dataDir: '/nowhere',
  baseDir: '/nowhere',
  version: '0.0.0',
  isDefault: false,
};

const ACTOR = Object.freeze({ via: 'cli', userId: 'operator' });

/** A plugin of any config. */
export type AnyPlugin = Omit<Plugin, 'configSchema' | 'setup'> & {
  readonly configSchema?: object;
  setup(api: PluginApi, config: never): void | Promise<void>;
};

/** Sets the plugins up in order. Config defaults are applied and its schema enforced, as core does. */
export async function setUpPlugins(
  store: Store,
  plugins: readonly { readonly plugin: AnyPlugin; readonly config?: object; readonly instance?: string }[],
  options: FakeOptions = {},
): Promise<FakeGateway> {
  const ajv = createConfigAjv();
  const offers = (options.offers ?? { openai: { anyModel: true } }) as Readonly<Record<string, Offer>>;
  const catalog = createCatalog(
    new Map(Object.entries(offers).map(([name, offer]) => [name, { ...offer, vendor: name }])),
  );

  const routes: Route[] = [];
  const commands: Command[] = [];
  const announcements: Announcement[] = [];
  const logs: LogLine[] = [];
  const hooks: HookObject<'authenticate'>[] = [];
  const readies: (() => void | Promise<void>)[] = [];
  const closes: (() => void | Promise<void>)[] = [];

  const write = (level: LogLine['level']) => (fields: object, message?: string) =>
    void logs.push({ level, fields, message });
  const log: Log = {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    child: () => log,
  };

  const records = createRecordBook(store);
  const audit = createAuditLog({ store, keepForMs: 86_400_000, log });
  for (const { plugin, config = {}, instance = plugin.name } of plugins) {
    const checked = withDefaults(ajv, plugin.configSchema, config);
    const api = {
      instance,
      log,
      settings: { ...SETTINGS, ...options.settings },
      stores: store,
      ledger: store.ledger,
      records,
      redact: (text: string) => text,
      audit: audit.add,
      auditLog: audit.list,
      keyv: (namespace: string) => store.keyv(namespace),
      share: (name: string) => store.keyv(name),
      shared: (name: string) => store.keyv(name),
      route: (route: Route) => void routes.push(route),
      command: (command: Command) => void commands.push(command),
      announce: (announcement: Announcement) => void announcements.push(announcement),
      models: () => options.models ?? [],
      aliases: () => [],
      offers: (operation: string) => new Map(operation === 'chat' ? Object.entries(offers) : []),
      catalog,
      hook<N extends HookName>(name: N, hook: Hook<N>) {
        if (name !== 'authenticate') throw new Error(`the fake has no hook ${name}`);
        const object = typeof hook === 'function' ? { handler: hook } : hook;
        hooks.push(object as unknown as HookObject<'authenticate'>);
      },
      onRegistered: (registered: () => void) => void readies.push(registered),
      onReady: (ready: () => void) => void readies.push(ready),
      onClose: (close: () => void) => void closes.unshift(close),
    };
    await plugin.setup(api as unknown as PluginApi, checked as never);
  }

  const ordered = (['pre', undefined, 'post'] as const).flatMap((order) =>
    hooks.filter((hook) => hook.order === order),
  );
  const authenticate = async (request: Parameters<HookFunctions['authenticate']>[0]): Promise<Principal> => {
    for (const { handler } of ordered) {
      const principal = await handler(request);
      if (principal) return principal;
    }
    throw new GatewayError('invalid_api_key', 'Nobody knows this credential.');
  };

  const handle = async (method: string, path: string, sent: Sent): Promise<Answer> => {
    const route = routes.find((each) => each.method === method && each.path === path);
    if (!route) throw new GatewayError('unknown_url', 'No route has this path.');
    const credential = sent.bearer ?? sent.apiKey;
    if (credential === undefined) throw new GatewayError('missing_api_key', 'No credential came.');
    const principal = await authenticate(authRequest(credential, sent.bearer !== undefined, Date.now()));
    if (route.auth !== 'none' && !(route.auth as readonly string[]).includes(principal.credential)) {
      throw new GatewayError('invalid_api_key', 'This route takes another kind of credential.');
    }
    const { permission } = route;
    if (permission && principal.credential === 'token' && !principal.permissions?.includes(permission)) {
      throw new GatewayError('permission_denied', `The token lacks the permission ${permission}.`);
    }
    if (sent.body !== undefined || !route.bodyOptional) check(ajv, route.body, sent.body);
    check(ajv, route.query, sent.query ?? {});

    const headers: Record<string, string> = {};
    const ctx = {
      state: {
        ip: '192.0.2.7',
        principal,
        body: sent.body,
        requestId: 'request',
        signal: new AbortController().signal,
      },
      querystring: new URLSearchParams({ ...sent.query }).toString(),
      params: {},
      status: 200,
      body: undefined,
      set: (name: string, value: string) => void Object.assign(headers, { [name.toLowerCase()]: value }),
    };
    await route.handler(ctx as never);
    return { status: ctx.status, headers, body: JSON.parse(JSON.stringify(ctx.body)) };
  };

  return {
    routes,
    announcements,
    logs,
    authenticate: (credential, { bearer = true, now = Date.now() } = {}) =>
      authenticate(authRequest(credential, bearer, now)),
    async request(method, path, sent = {}) {
      try {
        return await handle(method, path, sent);
      } catch (thrown) {
        if (!isGatewayError(thrown)) throw thrown;
        const error = toGatewayError(thrown);
        return { status: error.status, headers: error.headers, body: error.toBody() satisfies ErrorBody };
      }
    },
    async run([name, sub, ...args], flags = {}) {
      const subcommand = commands.find((each) => each.name === name)?.subcommands?.find((each) => each.name === sub);
      if (!subcommand) throw new Error(`no command ${name} ${sub}`);
      let out = '';
      let json: unknown;
      let talk = '';
      const io = fakeIo({
        write(bytes) {
          out += String(bytes);
        },
        result(value, text) {
          json = JSON.parse(JSON.stringify(value));
          out += text;
        },
        note(text) {
          talk += `${text}\n`;
        },
      });
      await subcommand.run({ args, options: flags, io, signal: new AbortController().signal, actor: ACTOR });
      return { out, json, talk };
    },
    audit: audit.list,
    async ready() {
      for (const ready of readies) await ready();
    },
    async close() {
      for (const close of closes) await close();
    },
  };
}

function authRequest(credential: string, bearer: boolean, now: number): Parameters<HookFunctions['authenticate']>[0] {
  const rawBody = async () => new Uint8Array();
  return { credential, bearer, now, method: 'POST', path: '/', headers: {}, address: '127.0.0.1', rawBody };
}

function check(ajv: Ajv2020, schema: object | undefined, value: unknown): void {
  if (!schema) {
    if (value !== undefined && Object.keys(value as object).length > 0) {
      throw new GatewayError('invalid_request', 'Nothing is taken here.');
    }
    return;
  }
  const validate = ajv.compile(schema);
  if (!validate(value)) throw new GatewayError('invalid_request', ajv.errorsText(validate.errors));
}
