import type { AgentDefinition, Plugin, Principal, Store } from '../../../contract/index.ts';
import { createKoa, createRouter } from '../../../core/http/koa.ts';
import { Lifecycle } from '../../../core/http/lifecycle.ts';
import { createHttpServer, listen } from '../../../core/http/server.ts';
import { createLocalGatherer } from '../../../core/plugins/gather.ts';
import { type CallServices, createPluginApi } from '../../../core/plugins/plugin-api.ts';
import { createRequestSchemas, Registry } from '../../../core/plugins/registry.ts';
import { createProxyRoute, withProxyRoute } from '../../../egress/way.ts';
import { openMemory } from '../../../plugins/stores/memory/index.ts';
import { createSilentLog } from '../log.ts';
import { withDefaults } from '../plugins/with-defaults.ts';
import type { ScriptedModel } from './scripted-model.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
type Loose = any;

export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Loose;
}

export interface AgentGateway {
  readonly url: string;
  readonly store: Store;
  /** All log output as text. */
  readonly logged: () => string;
  post(path: string, body: unknown, user?: string): Promise<Reply>;
  delete(path: string, user?: string): Promise<Reply>;
  /** Events of a streamed response. */
  stream(
    path: string,
    body: object,
    user?: string,
  ): Promise<{ status: number; events: { event: string; data: Loose }[] }>;
  close(): Promise<void>;
}

export interface Setup {
  // biome-ignore lint/suspicious/noExplicitAny: a plugin of any config
  readonly plugins: readonly { readonly plugin: Plugin<any>; readonly config: object; readonly instance?: string }[];
  readonly model: Pick<ScriptedModel, 'chat'>;
  /** Agents in the form that third-party plugins publish. */
  readonly agents?: readonly AgentDefinition[];
  readonly store?: Store;
}

/** Agent plugins behind core's own router on a loopback port, with a scripted model in place of the call pipeline. */
export async function openAgentGateway({ plugins, model, agents = [], store: given }: Setup): Promise<AgentGateway> {
  const registry = new Registry();
  const log = createSilentLog();
  const store = given ?? (await openMemory());
  const services = { chat: model.chat } as unknown as CallServices;
  const settings = { billing: 'off', plans: {}, version: '0.0.0' } as never;
  const deps = {
    gatherer: createLocalGatherer(),
    readers: new Map(),
    aliases: {},
    redact: (text: string) => text,
    stateUser: () => ({ keep: <T>(_name: string, make: () => T) => make() }),
    registry,
    settings,
    log,
    ...{ store, ready: { services }, egress: { proxyRouteOf: createProxyRoute, outfit: withProxyRoute } },
    openStore: () => {},
  };
  for (const agent of agents) registry.claim(registry.agents, 'agent', agent.name, 'third-party', agent);
  for (const { plugin, config, instance = plugin.name } of plugins) {
    const checked = withDefaults(plugin.configSchema, config) as Record<string, unknown>;
    const own = { group: 'agents', name: instance, plugin: plugin as Plugin, config: checked };
    await plugin.setup(createPluginApi(deps, own), checked as never);
  }
  for (const { value } of registry.ready) await value();
  const lifecycle = new Lifecycle();
  const router = createRouter({
    routes: [...registry.routes.values()],
    requests: createRequestSchemas([]),
    authenticate: async ({ credential }) => principalOf(credential),
    lifecycle,
    maxBodyBytes: 20 * 1024 * 1024,
  });
  const options = { host: '127.0.0.1', port: 0, requestTimeoutMs: 10_000, keepAliveMs: 1000 };
  const server = createHttpServer(createKoa([router], { lifecycle, log }).callback(), options);
  const url = `http://127.0.0.1:${await listen(server, options.host, 0)}`;
  const send = async (method: string, path: string, user: string, body?: unknown) =>
    fetch(`${url}${path}`, {
      method,
      headers: { 'x-api-key': `key-${user}`, ...(body !== undefined && { 'content-type': 'application/json' }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  const read = async (response: Response): Promise<Reply> => ({
    status: response.status,
    headers: response.headers,
    body: await response.json(),
  });
  return {
    url,
    store,
    logged: () => JSON.stringify(log.lines, (_, value) => (value instanceof Error ? String(value.stack) : value)),
    post: async (path, body, user = 'ann') => read(await send('POST', path, user, body)),
    delete: async (path, user = 'ann') => read(await send('DELETE', path, user)),
    async stream(path, body, user = 'ann') {
      const response = await send('POST', path, user, { ...body, stream: true });
      const text = await response.text();
      if (response.status !== 200)
        return { status: response.status, events: [{ event: 'error', data: JSON.parse(text) }] };
      return { status: 200, events: readFrames(text) };
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      for (const { value } of registry.closers) await value();
      if (!given) await store.close();
    },
  };
}

/** `key-ann` is the user ann; `key-ann@acme` is ann in the account acme. */
function principalOf(credential: string): Principal | undefined {
  const [, user, account] = /^key-(\w+)(?:@(\w+))?$/.exec(credential) ?? [];
  return user === undefined ? undefined : { credential: 'key', userId: user, account: account ?? user, keyId: user };
}
export function readFrames(text: string): { event: string; data: Loose }[] {
  return text
    .split('\n\n')
    .filter((frame) => frame.startsWith('event: '))
    .map((frame) => {
      const [event = '', data = ''] = frame.split('\n');
      return { event: event.slice('event: '.length), data: JSON.parse(data.slice('data: '.length)) };
    });
}
