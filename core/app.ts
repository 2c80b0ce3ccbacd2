import type { Server } from 'node:http';
import { type GivenConfig, type LoadedConfig, listenUrl, loadConfig, localUrl } from '../config/load-config.ts';
import type { ConfigInput } from '../config/read.ts';
import type { AuditChange } from '../contract/audit.ts';
import type { ModelCatalog, RoutingState } from '../contract/call.ts';
import type { ReloadControl } from '../contract/gateway.ts';
import type { Schema } from '../contract/json.ts';
import type { Announcement, Log, SignInLink } from '../contract/plugin.ts';
import type { ExchangeOptions } from '../egress/egress.ts';
import { connect } from '../egress/http-client.ts';
import { gatherStates } from '../routing/routing-states.ts';
import { createGeneration } from './calls/generation.ts';
import { InnerRequests, injectRequest } from './http/inner-requests.ts';
import { Lifecycle, type Listener } from './http/lifecycle.ts';
import { createMemory } from './http/memory.ts';
import { createAdminRate } from './http/operator-rights.ts';
import { LiveGeneration, type PreparedGeneration } from './http/serve.ts';
import {
  createHttpServer,
  listenBelow,
  NO_PORT,
  OWN_PORT,
  renewTls,
  setServerOptions,
  watchHandshakes,
} from './http/server.ts';
import { Upgrades } from './http/upgrades.ts';
import { createLogger } from './logger.ts';
import { openFoundation } from './plugins/foundation.ts';
import { type Gatherer, PROCESS_TOPIC, type ProcessState } from './plugins/gather.ts';
import { setUpIsolated } from './plugins/registry.ts';

/** Assembled and listening gateway. */
export interface Gateway {
  /** Such as `http://127.0.0.1:8787`, or `https://…` with `server.tls`. */
  readonly url: string;
  readonly server: Server;
  /**
   * Sends a request to the gateway within this process, with the arguments of `fetch` (a path is enough). All checks of requests
   * apply. Works without a port, and as the `fetch` of an SDK.
   */
  readonly inject: (input: string | URL | Request, init?: RequestInit) => Promise<Response>;
  /** Lines of plugins for the start banner, such as the first API key. */
  readonly announcements: readonly Announcement[];
  /** Sign-in links, for a banner that a person sees on a terminal. */
  readonly signInLinks: readonly SignInLink[];
  /** Provider instances, and whether each is configured. */
  readonly providers: readonly { readonly name: string; readonly isConfigured: boolean }[];
  readonly models: ModelCatalog;
  readonly openApi: Schema;
  /**
   * Switches to another configuration. Its generation is built while the old one runs; new requests use it, and the old one closes
   * after its last request. Rejects without any change if it cannot be built. Store, host, port, workers and log stay.
   */
  use(loaded: LoadedConfig): Promise<void>;
  /** First half of {@link use}: the result takes over by `commit`, or is closed by `abandon`. */
  prepare(loaded: LoadedConfig): Promise<PreparedGeneration>;
  /** Sets how `POST /api/core/admin/reload` reloads the configuration; without it that route is disabled. */
  reloadBy(control: ReloadControl): void;
  /** Writes an entry to the gateway's audit log; rejects if the store does not accept it. */
  audit(change: AuditChange): Promise<void>;
  /** Returns targets and retries of all processes of this gateway. */
  routing(): Promise<RoutingState>;
  /** Returns the state of each process of this gateway: its store, and its hook counts. */
  processStates(): Promise<readonly ProcessState[]>;
  /** Sets the problem of the configuration in `/readyz`: why the last reload was rejected, or nothing. */
  recordReload(problem: string | undefined): void;
  /** Becomes not ready at once. Running responses finish, or end in an error frame at the deadline; then everything closes. */
  close(): Promise<void>;
}

export interface GatewayOptions extends ConfigInput, GivenConfig, ExchangeOptions {
  /** Configuration from the same input, if already loaded. */
  readonly loaded?: LoadedConfig;
  /** Queries the other workers, if there are several. */
  readonly gatherer?: Gatherer;
  /** Source of connections; default: the server's own port. */
  readonly listener?: Listener;
  /** `false` for no port: only `inject` reaches the gateway. */
  readonly listen?: boolean;
  readonly log: Log;
  /** Overrides `server.host`. */
  readonly host?: string;
  /** Overrides `server.port`; 0 selects any free port. */
  readonly port?: number;
}

/**
 * Starts a gateway: reads the configuration (`config`, `configPath`, else the search in `cwd`), sets up the plugins and listens.
 * `cwd` and `env` default to those of the process. The default `log` writes JSON lines to stdout, from `logging.level` on. Rejects
 * before listening, with an error that names every problem.
 */
export async function createGateway(given: Partial<GatewayOptions> = {}): Promise<Gateway> {
  const options = { cwd: process.cwd(), env: process.env, connect, ...given };
  const loaded = options.loaded ?? (await loadConfig(options));
  const log = options.log ?? createLogger({ level: loaded.config.logging.level });
  const foundation = await openFoundation(loaded, log, options.gatherer, options);
  const { server: config } = loaded.config;
  const deps = {
    lifecycle: new Lifecycle(),
    memory: createMemory(),
    countAdmin: createAdminRate(),
    inner: new InnerRequests(),
    url: (): string | undefined => url,
  };
  let url: string | undefined;
  const live = new LiveGeneration();
  try {
    await foundation.store.begin?.();
    // Announcements, such as the first key, of a generation that did not become ready.
    const announced: Announcement[] = [];
    const build = (next: LoadedConfig): Promise<PreparedGeneration> =>
      setUpIsolated(next, log, async (each) => {
        const generation = await createGeneration(foundation, each);
        const { announcements } = generation.registry;
        announcements.unshift(...announced.splice(0));
        return await live.prepare(generation, deps).catch((error: unknown) => {
          announced.push(...announcements);
          throw error;
        });
      });
    (await build(loaded)).commit();
    const server = createHttpServer(listenBelow(config.basePath, live.listener), config);
    const handshakes = watchHandshakes(server, log);
    deps.inner.attach(server, config.basePath);
    const upgrades = new Upgrades({
      server,
      basePath: config.basePath,
      log,
      memory: deps.memory,
      maxMessageBytes: config.bodyLimitBytes,
      rules: () => live.upgrades,
      isDraining: () => deps.lifecycle.draining,
    });
    const host = options.host ?? config.host;
    const { listener = options.listen === false ? NO_PORT : OWN_PORT } = options;
    const port = await listener.listen(server, host, options.port ?? config.port);
    url = localUrl({ ...config, host, port });
    deps.lifecycle.phase = 'ready';
    const prepare = async (next: LoadedConfig): Promise<PreparedGeneration> => {
      const prepared = await build(onStoreOf(loaded, next));
      return {
        abandon: prepared.abandon,
        commit() {
          prepared.commit();
          setServerOptions(server, next.config.server);
          renewTls(server, config.tls, next.config.server.tls);
        },
      };
    };
    const close = async (): Promise<void> => {
      const { drainDelayMs, drainTimeoutMs: deadlineMs } = live.generation.loaded.config.server;
      // Without a port, no load balancer has to notice the drain.
      const delayMs = options.listen === false ? 0 : drainDelayMs;
      await deps.lifecycle.drain(server, { delayMs, deadlineMs, listener, sockets: [handshakes, upgrades] });
      upgrades.close();
      await live.close();
      await foundation.close();
    };
    const { openApi } = live;
    let closing: Promise<void> | undefined;
    return {
      url: listenUrl({ ...config, host, port }),
      server,
      inject: (input, init) => injectRequest(server, readInjected(input, init)),
      ...describeGeneration(live),
      get openApi() {
        return openApi();
      },
      prepare,
      use: async (next) => (await prepare(next)).commit(),
      reloadBy(control) {
        foundation.reloads = control;
      },
      routing: () => gatherStates(foundation.gatherer),
      processStates: async () => (await foundation.gatherer.gather(PROCESS_TOPIC)) as readonly ProcessState[],
      audit: (change) => live.generation.audit.add(change),
      recordReload(problem) {
        foundation.reloadProblem = problem;
      },
      close() {
        closing ??= close();
        return closing;
      },
    };
  } catch (error) {
    await live.close();
    await foundation.close();
    throw error;
  }
}

/** Creates a request from a path, for any host. */
function readInjected(input: string | URL | Request, init: RequestInit | undefined): Request {
  return new Request(typeof input === 'string' ? new URL(input, 'http://localhost') : input, init);
}

/** Returns a configuration with the open store. The store's folder also stays, because keys were created with the files in it. */
function onStoreOf(first: LoadedConfig, next: LoadedConfig): LoadedConfig {
  const [store] = first.plugins;
  const [, ...others] = next.plugins;
  const { dataDir, url, basePath } = first.settings;
  return {
    ...next,
    config: { ...next.config, store: first.config.store },
    settings: Object.freeze({ ...next.settings, dataDir, url, basePath }),
    plugins: [...(store ? [store] : []), ...others],
  };
}

/** Returns the description of the initial generation for embedding programs. */
function describeGeneration({
  generation,
}: LiveGeneration): Pick<Gateway, 'announcements' | 'signInLinks' | 'providers' | 'models'> {
  const { registry, catalog } = generation;
  return {
    announcements: registry.announcements,
    signInLinks: registry.signInLinks,
    providers: catalog.providers().map((name) => ({ name, isConfigured: catalog.isConfigured(name) })),
    models: catalog,
  };
}
