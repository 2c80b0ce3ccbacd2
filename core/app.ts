import type { RequestListener, Server } from 'node:http';
import { createGeneration, type Generation } from './calls/generation.ts';
import { createLogger } from './cli/logger.ts';
import type { ConfigInput } from './config/read.ts';
import type { ModelCatalog } from './contract/catalog.ts';
import type { Schema } from './contract/json.ts';
import type { Log } from './contract/log.ts';
import type { Announcement } from './contract/plugin.ts';
import { createBodyBudget } from './http/body-budget.ts';
import { Lifecycle } from './http/lifecycle.ts';
import { type Served, serveGeneration } from './http/serve.ts';
import { createHttpServer, listen } from './http/server.ts';
import { type SocketRules, Websockets } from './http/websockets.ts';
import { openFoundation } from './plugins/foundation.ts';
import type { Gatherer } from './plugins/gather.ts';
import { type LoadedConfig, loadConfig } from './plugins/load-config.ts';

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
  /**
   * Goes on with another configuration: its generation is built beside the running one, new requests go there, and the old one
   * is closed when its last request has ended. Rejects, and changes nothing, when it cannot be built. Store, host, port and
   * workers stay.
   */
  use(loaded: LoadedConfig): Promise<void>;
  /** Not ready at once; running responses finish or end in an error frame at the deadline; then everything closes. */
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

/**
 * Starts a gateway: reads the configuration (`configPath`, else the search in `cwd`), sets the plugins up and listens. `cwd`
 * and `env` are the process's own unless given; without a `log` it logs as `tollgate start` does. Rejects with every error
 * named before anything listens.
 */
export async function createGateway(given: Partial<GatewayOptions> = {}): Promise<Gateway> {
  const log = given.log ?? createLogger({ level: 'info', format: 'auto', isTerminal: process.stdout.isTTY });
  const options = { cwd: process.cwd(), env: process.env, ...given, log };
  const loaded = options.loaded ?? (await loadConfig(options));
  const foundation = await openFoundation(loaded, log, options.gatherer);
  const { server: config } = loaded.config;
  const deps = { lifecycle: new Lifecycle(), budget: createBodyBudget() };
  const live = new LiveGeneration();
  try {
    await live.use(await createGeneration(foundation, loaded), deps);
    const server = createHttpServer(live.listener, config);
    const sockets = new Websockets({
      ...{ server, log, maxMessageBytes: config.bodyLimitBytes },
      rules: () => live.sockets,
      isDraining: () => deps.lifecycle.draining,
    });
    const host = options.host ?? config.host;
    const port = await listen(server, host, options.port ?? config.port);
    deps.lifecycle.phase = 'ready';
    const close = async (): Promise<void> => {
      await deps.lifecycle.drain(server, { delayMs: config.drainDelayMs, deadlineMs: config.drainTimeoutMs, sockets });
      sockets.close();
      await live.close();
      await foundation.close();
    };
    let closing: Promise<void> | undefined;
    return {
      url: `http://${host.includes(':') ? `[${host}]` : host}:${port}`,
      server,
      ...describeGeneration(live),
      use: async (next) => live.use(await createGeneration(foundation, next), deps),
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

/** The generation that new requests go to; the ones before it close when their last request has ended. */
class LiveGeneration {
  #current: { readonly generation: Generation; readonly served: Served } | undefined;
  #running = new Map<Generation, number>();
  readonly #closing = new Set<Promise<void>>();

  /** For the server: it never changes, what it leads to does. */
  readonly listener: RequestListener = (request, response) => {
    const current = this.#current;
    if (!current) return void response.destroy();
    const { generation } = current;
    this.#running.set(generation, (this.#running.get(generation) ?? 0) + 1);
    response.once('close', () => this.#leave(generation));
    current.served.listener(request, response);
  };

  get generation(): Generation {
    if (!this.#current) throw new TypeError('no generation is running');
    return this.#current.generation;
  }

  /** The rules of the generation that serves now. */
  get sockets(): SocketRules {
    if (!this.#current) throw new TypeError('no generation is running');
    return this.#current.served.sockets;
  }

  get openApi(): Schema {
    return this.#current?.served.openApi ?? {};
  }

  /** Makes a generation ready and swaps it in. One that does not become ready is closed and changes nothing. */
  async use(generation: Generation, deps: Parameters<typeof serveGeneration>[1]): Promise<void> {
    const before = this.#current;
    try {
      const served = serveGeneration(generation, deps);
      await generation.ready();
      this.#current = { generation, served };
    } catch (error) {
      await generation.close();
      throw error;
    }
    if (before && !this.#running.get(before.generation)) this.#close(before.generation);
  }

  async close(): Promise<void> {
    const current = this.#current;
    this.#current = undefined;
    if (current) this.#close(current.generation);
    await Promise.all(this.#closing);
  }

  #leave(generation: Generation): void {
    const left = (this.#running.get(generation) ?? 1) - 1;
    this.#running.set(generation, left);
    if (left === 0 && generation !== this.#current?.generation) this.#close(generation);
  }

  #close(generation: Generation): void {
    this.#running.delete(generation);
    const closing = generation.close();
    this.#closing.add(closing);
    void closing.finally(() => this.#closing.delete(closing));
  }
}

/** What a program that embeds the gateway may know of the generation that it started with. */
function describeGeneration({
  generation,
  openApi,
}: LiveGeneration): Omit<Gateway, 'url' | 'server' | 'use' | 'close'> {
  const { registry, catalog } = generation;
  return {
    announcements: registry.announcements,
    providers: catalog.providers().map((name) => ({ name, isConfigured: catalog.isConfigured(name) })),
    models: catalog,
    openApi,
  };
}
