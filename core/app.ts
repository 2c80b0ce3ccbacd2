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

/** A gateway that is assembled and listens. */
export interface Gateway {
  /** Such as `http://127.0.0.1:8787`, or `https://…` with `server.tls`. */
  readonly url: string;
  readonly server: Server;
  /**
   * Makes a request to the gateway within this process, with the arguments of `fetch` (a path is enough); all that requests pass holds for it.
   * Works without a port, and as the `fetch` of an SDK.
   */
  readonly inject: (input: string | URL | Request, init?: RequestInit) => Promise<Response>;
  /** What plugins want shown once at start, such as the first API key. */
  readonly announcements: readonly Announcement[];
  /** Ways to sign in, for a banner that a person sees on a terminal. */
  readonly signInLinks: readonly SignInLink[];
  /** Provider instances, and whether each can be called. */
  readonly providers: readonly { readonly name: string; readonly isConfigured: boolean }[];
  readonly models: ModelCatalog;
  readonly openApi: Schema;
  /**
   * Goes on with another configuration: its generation is built beside the running one, new requests go there, and the old one
   * is closed when its last request has ended. Rejects, and changes nothing, when it cannot be built. Store, host, port, workers
   * and log stay.
   */
  use(loaded: LoadedConfig): Promise<void>;
  /** The first half of {@link use}: what it builds takes over by `commit`, or is closed again by `abandon`. */
  prepare(loaded: LoadedConfig): Promise<PreparedGeneration>;
  /** How `POST /api/core/admin/reload` reads the configuration anew; without it that route is switched off. */
  reloadBy(control: ReloadControl): void;
  /** Writes an entry to the audit log of the gateway; rejects when the store does not take it. */
  audit(change: AuditChange): Promise<void>;
  /** What all processes of this gateway know of their targets and retries. */
  routing(): Promise<RoutingState>;
  /** How each process of this gateway does: its store, and what hooks of plugins came to. */
  processStates(): Promise<readonly ProcessState[]>;
  /** What `/readyz` tells about the configuration: why the last reload was refused, or nothing. */
  noteReload(problem: string | undefined): void;
  /** Not ready at once; running responses finish or end in an error frame at the deadline; then everything closes. */
  close(): Promise<void>;
}

export interface GatewayOptions extends ConfigInput, GivenConfig, ExchangeOptions {
  /** The configuration when it is read already, by the same input. */
  readonly loaded?: LoadedConfig;
  /** Asks the other workers, when this is one of several. */
  readonly gatherer?: Gatherer;
  /** Where connections come from; the server's own port unless given. */
  readonly listener?: Listener;
  /** `false` for no port: only `inject` reaches the gateway. */
  readonly listen?: boolean;
  readonly log: Log;
  /** Replaces `server.host` of the configuration. */
  readonly host?: string;
  /** Replaces `server.port` of the configuration; 0 takes any free one. */
  readonly port?: number;
}

/**
 * Starts a gateway: reads the configuration (`config`, `configPath`, else the search in `cwd`), sets the plugins up and listens. `cwd`
 * and `env` are the process's own unless given; without a `log` it writes JSON to stdout, a line each, from `logging.level` on. Rejects
 * with every error named before anything listens.
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
    // What is shown once, such as the first key, of a generation that did not become ready.
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
      ...{ server, basePath: config.basePath, log, memory: deps.memory, maxMessageBytes: config.bodyLimitBytes },
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
      // Without a port nobody sends connections here who would have to notice.
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
      noteReload(problem) {
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

/** A path belongs to this gateway, whatever host it is asked by. */
function readInjected(input: string | URL | Request, init: RequestInit | undefined): Request {
  return new Request(typeof input === 'string' ? new URL(input, 'http://localhost') : input, init);
}

/** A configuration on the store that is open: its folder too is where keys were made with what lies beside them. */
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

/** What a program that embeds the gateway may know of the generation that it started with. */
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
