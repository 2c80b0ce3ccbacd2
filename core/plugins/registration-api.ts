import { CHAT, COUNT } from '../contract/call.ts';
import type { DialectDefinition } from '../contract/dialect.ts';
import { deepFreeze } from '../contract/json.ts';
import type { OperationDefinition } from '../contract/operation.ts';
import type { Route, WholeApi } from '../contract/plugin.ts';
import type { ApiDeps, ApiInstance } from './api-deps.ts';
import { runOwned } from './attribution.ts';
import { toHookEntry } from './hook-runner.ts';
import { assertSchema, PluginError, type Registry } from './registry.ts';

const OWN_OPERATIONS: readonly string[] = Object.freeze([CHAT, COUNT]);

type Registration = Pick<
  WholeApi,
  | 'route'
  | 'schema'
  | 'provider'
  | 'offer'
  | 'operation'
  | 'dialect'
  | 'agent'
  | 'use'
  | 'store'
  | 'hook'
  | 'command'
  | 'gather'
  | 'announce'
  | 'onRegistered'
  | 'onReady'
  | 'onClose'
>;

/** What a plugin registers while it is set up. */
export function registrationApi(deps: ApiDeps, { group, name, plugin }: ApiInstance): Registration {
  const { registry } = deps;
  const assertKind = (what: string, ...kinds: readonly string[]): void => {
    if (!kinds.includes(plugin.kind))
      throw new PluginError(
        name,
        `is of kind "${plugin.kind}" and registers ${what}, which plugins of kind ${kinds.join(' and ')} do`,
      );
  };
  return {
    route: (route) => registry.addRoute(name, route as unknown as Route),
    schema(schema) {
      assertSchema(name, 'a schema', schema);
      registry.claim(registry.schemas, 'schema $id', schema.$id, name, schema);
    },
    provider(provider) {
      assertKind('a provider', 'provider');
      registry.addOffer(name, CHAT, deepFreeze(provider));
    },
    offer(operation, offer) {
      assertKind('an offer', 'provider', 'tts');
      registry.addOffer(name, operation, deepFreeze(offer));
    },
    operation(definition) {
      assertKind('an operation', 'operation');
      registerOperation(registry, name, definition);
    },
    dialect(definition) {
      assertKind('a dialect', 'dialect');
      registerDialect(registry, name, definition);
    },
    agent: (agent) => registry.claim(registry.agents, 'agent', agent.name, name, deepFreeze(agent)),
    use: (middleware) => registry.addMiddleware(name, middleware),
    store(open, probe) {
      assertKind('a store', 'store');
      deps.openStore(name, open, probe);
    },
    hook: (hookName, hook) => registry.addHook(toHookEntry(name, hookName, hook)),
    command(command) {
      if (!plugin.commands?.some((listed) => listed.name === command.name))
        throw new PluginError(
          name,
          `registers the command "${command.name}" and does not list it: commands: [{ name: '${command.name}', summary: '…' }]`,
        );
      registry.claim(registry.commands, 'command', command.name, name, command);
    },
    gather<T>(topic: string, read: () => T | Promise<T>) {
      const key = `${group}.${name}:${topic}`;
      deps.readers.set(key, () => runOwned(name, read));
      return () => deps.gatherer.gather(key) as Promise<readonly T[]>;
    },
    announce: (announcement) => void registry.announcements.push(announcement),
    onRegistered: (registered) => void registry.registered.push({ owner: name, value: registered }),
    onReady: (ready) => void registry.ready.push({ owner: name, value: ready }),
    onClose: (close) => void registry.closers.push({ owner: name, value: close }),
  };
}

function registerOperation(registry: Registry, owner: string, definition: OperationDefinition): void {
  if (OWN_OPERATIONS.includes(definition.name))
    throw new PluginError(owner, `registers the operation "${definition.name}", which belongs to core`);
  assertSchema(owner, `the request of the operation "${definition.name}"`, definition.request);
  registry.claim(registry.operations, 'operation', definition.name, owner, deepFreeze(definition));
}

function registerDialect(registry: Registry, owner: string, definition: DialectDefinition): void {
  if (!definition.count && definition.routes.some(({ action }) => action === 'count'))
    throw new PluginError(owner, `has a route that counts, and no count(): the dialect "${definition.name}" needs it`);
  assertSchema(owner, `the request of the dialect "${definition.name}"`, definition.request);
  registry.claim(registry.dialects, 'dialect', definition.name, owner, deepFreeze(definition));
}
