import type { Server } from 'node:http';
import { type Assembly, assemble } from './assemble.ts';
import { runReady } from './boot.ts';
import { type ModelCatalog, createCatalog, readVendorTable } from './catalog.ts';
import type { ConfigInput } from './config/read.ts';
import { compileHooks } from './hook-runner.ts';
import { createKoa } from './http/koa.ts';
import { Lifecycle } from './http/lifecycle.ts';
import { createRouter } from './http/router.ts';
import { createHttpServer, listen } from './http/server.ts';
import { loadConfig } from './load-config.ts';
import type { Log } from './log.ts';
import { createOpenApi } from './openapi.ts';
import { completeChat, streamChat } from './pipeline/chat.ts';
import { embed } from './pipeline/embed.ts';
import type { PipelineDeps } from './pipeline/run.ts';
import type { Aliases } from './pipeline/targets.ts';
import type { Announcement, Route } from './plugin.ts';
import type { Owned } from './registry.ts';
import { chatRoutes } from './routes/chat.ts';
import { docsRoutes } from './routes/docs.ts';
import { embeddingRoutes } from './routes/embeddings.ts';
import { healthRoutes } from './routes/health.ts';
import { modelRoutes } from './routes/models.ts';
import { createServices } from './services.ts';
import type { Operation } from './types/call.ts';
import type { Schema } from './types/json.ts';
import { createUpstream } from './upstream.ts';

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
  readonly log: Log;
  /** Replaces `server.host` and `server.port` of the configuration. */
  readonly host?: string;
  readonly port?: number;
}

/** Reads the configuration, boots the plugins and listens. Rejects with every fault named before anything listens. */
export async function createGateway(options: GatewayOptions): Promise<Gateway> {
  const assembly = await assemble(await loadConfig(options), options.log);
  try {
    return await start(assembly, options);
  } catch (error) {
    await assembly.close();
    throw error;
  }
}

async function start(assembly: Assembly, { host, port }: GatewayOptions): Promise<Gateway> {
  const { registry, log, settings, loaded } = assembly;
  const { server: serverConfig, models } = loaded.config;
  const catalog = createCatalog(valuesOf(registry.providers), readVendorTable());
  const aliases: Aliases = new Map(Object.entries(models));
  const upstream = createUpstream({ log });
  const deps = createPipelineDeps(assembly, upstream, catalog);
  assembly.provide({ ...createServices(deps, catalog, aliases), speak: () => Promise.reject(new TypeError('no speech vendor is configured')) });

  const lifecycle = new Lifecycle();
  const routes: Owned<Route>[] = [];
  let openApiText = '';
  const surface = {
    catalog,
    aliases,
    keepAliveMs: serverConfig.sseKeepAliveMs,
    created: Math.floor(Date.now() / 1000),
    complete: (ask, init) => completeChat(deps, ask, init),
    stream: (ask, init) => streamChat(deps, ask, init),
    embed: (ask, init) => embed(deps, ask, init),
  } satisfies Parameters<typeof chatRoutes>[0] & Parameters<typeof embeddingRoutes>[0] & Parameters<typeof modelRoutes>[0];
  const own = [
    ...chatRoutes(surface),
    ...embeddingRoutes(surface),
    ...modelRoutes(surface),
    ...healthRoutes({ phase: () => lifecycle.phase, storeHealth: () => assembly.store.health(), openApi: () => openApiText }),
    ...docsRoutes(),
  ];
  routes.push(...own.map((value) => ({ owner: 'core', value: value as Route })), ...registry.routes.values());
  const schemas = [...registry.schemas.values()].map(({ value }) => value);
  const openApi = createOpenApi(routes, schemas, settings.version);
  openApiText = JSON.stringify(openApi);

  const router = createRouter({ routes, schemas, authenticate: deps.hooks.chat.authenticate as never, lifecycle, maxBodyBytes: serverConfig.bodyLimitBytes });
  const koa = createKoa([...registry.middleware.map(({ value }) => value), router], lifecycle, log);
  const server = createHttpServer(koa.callback(), { host: host ?? serverConfig.host, port: port ?? serverConfig.port, requestTimeoutMs: serverConfig.requestTimeoutMs, keepAliveMs: serverConfig.keepAliveMs, maxConnections: serverConfig.maxConnections });
  await runReady(registry);
  const boundHost = host ?? serverConfig.host;
  const boundPort = await listen(server, boundHost, port ?? serverConfig.port);
  lifecycle.phase = 'ready';

  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    await lifecycle.drain(server, { delayMs: serverConfig.drainDelayMs, deadlineMs: serverConfig.drainTimeoutMs });
    await Promise.allSettled(deps.pending);
    await upstream.close();
    await assembly.close();
  };
  return {
    url: `http://${boundHost.includes(':') ? `[${boundHost}]` : boundHost}:${boundPort}`,
    server,
    announcements: registry.announcements,
    providers: [...registry.providers].map(([name, { value }]) => ({ name, isConfigured: !value.credential?.required || value.credential.value !== undefined })),
    models: catalog,
    openApi,
    close: () => (closing ??= close()),
  };
}

function createPipelineDeps({ registry, log }: Assembly, upstream: PipelineDeps['upstream'], catalog: ModelCatalog): PipelineDeps {
  const onFinishError = (owner: string, error: unknown): void => log.error({ plugin: owner, err: error }, 'a finish hook failed');
  const compile = (operation: Operation) => compileHooks(registry.hooks, operation, onFinishError);
  return {
    upstream,
    catalog,
    hooks: { chat: compile('chat'), embeddings: compile('embeddings'), speech: compile('speech') },
    providers: valuesOf(registry.providers),
    speech: valuesOf(registry.speech),
    log,
    pending: new Set(),
  };
}

function valuesOf<T>(owned: ReadonlyMap<string, Owned<T>>): ReadonlyMap<string, T> {
  return new Map([...owned].map(([name, { value }]) => [name, value]));
}
