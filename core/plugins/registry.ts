import type Koa from 'koa';
import { nearest } from '../config/nearest.ts';
import type { AgentDefinition } from '../contract/agent.ts';
import { HOOKS, type HookName } from '../contract/hooks.ts';
import type { Schema } from '../contract/json.ts';
import type { Announcement, Command, Route } from '../contract/plugin.ts';
import type { Provider, SpeechProvider } from '../contract/provider.ts';
import type { HookEntry } from './hook-runner.ts';

/** A fault of a plugin that stops the start; its message names the plugin. */
export class PluginFault extends Error {
  override readonly name = 'PluginFault';
  readonly plugin: string;
  constructor(plugin: string, message: string, options?: ErrorOptions) {
    super(`plugin "${plugin}": ${message}`, options);
    this.plugin = plugin;
  }
}

export interface Owned<T> {
  readonly owner: string;
  readonly value: T;
}

/**
 * Everything that plugins registered, and who registered it. Open during boot, frozen before the gateway listens;
 * two plugins that claim one thing are told so, both by name.
 */
export class Registry {
  readonly providers = new Map<string, Owned<Provider>>();
  readonly speech = new Map<string, Owned<SpeechProvider>>();
  readonly agents = new Map<string, Owned<AgentDefinition>>();
  readonly commands = new Map<string, Owned<Command>>();
  readonly routes = new Map<string, Owned<Route>>();
  readonly schemas = new Map<string, Owned<Schema>>();
  readonly middleware: Owned<Koa.Middleware>[] = [];
  readonly hooks: HookEntry[] = [];
  readonly ready: Owned<() => void | Promise<void>>[] = [];
  readonly closers: Owned<() => void | Promise<void>>[] = [];
  readonly announcements: Announcement[] = [];
  #frozen = false;

  /** Ends registration; only `closers` and `announcements` may grow after this. */
  freeze(): void {
    this.#frozen = true;
  }

  claim<T>(table: Map<string, Owned<T>>, what: string, key: string, owner: string, value: T, label = key): void {
    this.#assertOpen(owner, what);
    const taken = table.get(key);
    if (taken) {
      throw new PluginFault(
        owner,
        `plugin_conflict: ${what} "${label}" is already registered by plugin "${taken.owner}". Remove one of the two, or give one another instance name.`,
      );
    }
    table.set(key, { owner, value });
  }

  addRoute(owner: string, route: Route): void {
    this.claim(this.routes, 'route', routeShape(route), owner, route, `${route.method} ${route.path}`);
  }

  /** Refuses plugins' routes that core has itself; which of two would answer is nobody's guess. */
  refuseRoutesOf(core: readonly Route[]): void {
    const own = new Set(core.map(routeShape));
    for (const { owner, value } of this.routes.values())
      if (own.has(routeShape(value)))
        throw new PluginFault(owner, `plugin_conflict: route "${value.method} ${value.path}" belongs to core`);
  }

  addMiddleware(owner: string, middleware: Koa.Middleware): void {
    this.#assertOpen(owner, 'middleware');
    if (typeof middleware !== 'function') throw new PluginFault(owner, 'api.use() takes a Koa middleware function');
    this.middleware.push({ owner, value: middleware });
  }

  addHook(entry: HookEntry): void {
    this.#assertOpen(entry.owner, `hook "${entry.name}"`);
    if (!Object.hasOwn(HOOKS, entry.name)) {
      const names = Object.keys(HOOKS);
      const [meant] = nearest(entry.name, names);
      throw new PluginFault(
        entry.owner,
        `there is no hook "${entry.name}"${meant ? `; did you mean "${meant}"?` : ''} Hooks are: ${names.join(', ')}.`,
      );
    }
    // oxlint-disable-next-line typescript/no-unnecessary-condition -- a plugin in JavaScript may pass anything
    const handler = typeof entry.hook === 'function' ? entry.hook : entry.hook?.handler;
    if (typeof handler !== 'function') throw new PluginFault(entry.owner, `hook "${entry.name}" has no function`);
    if (entry.name === 'chunk' && handler.constructor.name === 'AsyncFunction') {
      throw new PluginFault(entry.owner, 'the chunk hook is synchronous: an async function would reorder the stream');
    }
    this.hooks.push(entry);
  }

  hookOwners(name: HookName): readonly string[] {
    return this.hooks.filter((entry) => entry.name === name).map((entry) => entry.owner);
  }

  #assertOpen(owner: string, what: string): void {
    if (this.#frozen) throw new PluginFault(owner, `registers ${what} after the start; registration ends with setup()`);
  }
}

/** What a route matches, whatever its parameters are called. */
function routeShape({ method, path }: Route): string {
  return `${method} ${path.replaceAll(/([:*])\w+/g, '$1')}`;
}
