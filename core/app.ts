import type { Server } from 'node:http';
import type { ModelCatalog } from './calls/model-catalog.ts';
import { type FetchedList, MODEL_LISTS, startModelRefresh } from './calls/model-refresh.ts';
import { createRuntime } from './calls/runtime.ts';
import type { ConfigInput } from './config/read.ts';
import type { Schema } from './contract/json.ts';
import type { Log } from './contract/log.ts';
import type { Announcement } from './contract/plugin.ts';
import { createKoa } from './http/koa.ts';
import { Lifecycle } from './http/lifecycle.ts';
import { createOpenApi } from './http/openapi.ts';
import { createRouter } from './http/router.ts';
import { coreRoutes } from './http/routes/index.ts';
import { createHttpServer, listen } from './http/server.ts';
import { type Assembly, assemble } from './plugins/assemble.ts';
import type { Gatherer } from './plugins/gather.ts';
import { type LoadedConfig, loadConfig } from './plugins/load-config.ts';
import { runReady } from './plugins/set-up.ts';

/** A gateway that is assembled and listens. */
export interface Gateway {
  /** Such as `http://127.0.0.1:8787`. */
  readonly url: string;
  readonly server: Server;
  /** What plugins want shown once at start, such as the first API key. */
  readonly announcements: readonly Announcement[];
  /** Provider instances, and whether each can be called. */
  readonly providers: readonly { readonly name: string; readonly isConfigured: boolean }[];
  readonly models: ModelCatalog;
  readonly openApi: Schema;
  /** Not ready at once; running answers finish or end in an error frame at the deadline; then everything closes. */
  close(): Promise<void>;
}

export interface GatewayOptions extends ConfigInput {
  /** The configuration when it is read already, by the same input. */
  readonly loaded?: LoadedConfig;
  /** Asks the other workers, when this is one of several. */
  readonly gatherer?: Gatherer;
  readonly log: Log;
  /** Replaces `server.host` of the configuration. */
  readonly host?: string;
  /** Replaces `server.port` of the configuration; 0 takes any free one. */
  readonly port?: number;
}

/** Reads the configuration, boots the plugins and listens. Rejects with every fault named before anything listens. */
export async function createGateway(options: GatewayOptions): Promise<Gateway> {
  const assembly = await assemble(options.loaded ?? (await loadConfig(options)), options.log, options.gatherer);
  const runtime = createRuntime(assembly);
  try {
    return await start(assembly, runtime, options);
  } catch (error) {
    await runtime.close();
    throw error;
  }
}

async function start(
  assembly: Assembly,
  runtime: ReturnType<typeof createRuntime>,
  options: GatewayOptions,
): Promise<Gateway> {
  const { registry, log, settings, loaded, store } = assembly;
  const config = loaded.config.server;
  const host = options.host ?? config.host;
  const lifecycle = new Lifecycle();
  let openApiText = '';
  const own = coreRoutes({
    ...runtime,
    keepAliveMs: config.sseKeepAliveMs,
    phase: () => lifecycle.phase,
    storeHealth: () => store.health(),
    openApi: () => openApiText,
    isTaken: (key) => registry.routes.has(key),
  });
  registry.refuseRoutesOf(own);
  const routes = [...own.map((value) => ({ owner: 'core', value })), ...registry.routes.values()];
  const schemas = [...registry.schemas.values()].map(({ value }) => value);
  const openApi = createOpenApi(routes, schemas, settings.version);
  openApiText = JSON.stringify(openApi);

  const router = createRouter({
    routes,
    schemas,
    authenticate: runtime.deps.hooks.chat.authenticate,
    lifecycle,
    maxBodyBytes: config.bodyLimitBytes,
  });
  const koa = createKoa([...registry.middleware.map(({ value }) => value), router], { ...config, lifecycle, log });
  const server = createHttpServer(koa.callback(), config);
  await runReady(registry);
  const lists = store.keyv<FetchedList>(MODEL_LISTS);
  const stopRefresh = startModelRefresh(runtime.deps.providers, runtime.catalog, lists, log);
  const port = await listen(server, host, options.port ?? config.port);
  lifecycle.phase = 'ready';

  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    stopRefresh();
    await lifecycle.drain(server, { delayMs: config.drainDelayMs, deadlineMs: config.drainTimeoutMs });
    await runtime.close();
  };
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${port}`,
    server,
    announcements: registry.announcements,
    providers: [...runtime.deps.providers].map(([name, { credential }]) => ({
      name,
      isConfigured: !credential?.required || credential.value !== undefined,
    })),
    models: runtime.catalog,
    openApi,
    close: () => (closing ??= close()),
  };
}
