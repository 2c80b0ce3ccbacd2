import type Keyv from 'keyv';
import type { Call, Principal } from '../contract/call.ts';
import type { ChatChunk, ChatRequest, ChatResponse, EmbeddingRequest, EmbeddingResponse } from '../contract/chat.ts';
import type { Log } from '../contract/log.ts';
import type {
  CallContext,
  GatewaySettings,
  ModelRow,
  Plugin,
  PluginApi,
  Route,
  SpeechAnswer,
} from '../contract/plugin.ts';
import type { Endpoint } from '../contract/provider.ts';
import type { SpeechRequest } from '../contract/speech.ts';
import type { Store } from '../contract/store.ts';
import { createHttpClient } from '../upstream/http-client.ts';
import { ALONE, type Gatherer } from './gather.ts';
import { PluginFault, type Registry } from './registry.ts';

/** What the gateway offers plugins once it is assembled; until then a plugin may register, but not call models. */
export interface GatewayServices {
  chat(request: ChatRequest, context: CallContext): Promise<ChatResponse | AsyncIterable<ChatChunk>>;
  embed(request: EmbeddingRequest, context: CallContext): Promise<EmbeddingResponse>;
  speak(vendor: string, request: SpeechRequest, context: CallContext): Promise<SpeechAnswer>;
  estimate(call: Call): number | undefined;
  models(principal?: Principal): readonly ModelRow[];
}

export interface ApiDeps {
  /** One process alone, unless told. */
  readonly gatherer?: Gatherer;
  readonly registry: Registry;
  readonly settings: GatewaySettings;
  readonly log: Log;
  /** The opened store; undefined while the store plugin itself is set up. */
  readonly store: () => Store | undefined;
  readonly services: () => GatewayServices | undefined;
  readonly openStore: (owner: string, open: () => Promise<Store>) => void;
}

const NAMESPACE = /^[a-z][a-z0-9-]{0,40}$/;

/** The API of one plugin instance; everything it registers is filed under the instance's name. */
export function createPluginApi(deps: ApiDeps, plugin: Plugin, instance: string): PluginApi {
  const { registry, settings } = deps;
  const store = (): Store => deps.store() ?? fault('uses the store before it is open; store plugins register only');
  const services = (): GatewayServices =>
    deps.services() ?? fault('calls a model before the gateway has started; do that in a route, a hook or onReady');
  const fault = (message: string): never => {
    throw new PluginFault(instance, message);
  };
  const endpoints: Endpoint[] = [];
  const api: PluginApi = {
    instance,
    settings,
    log: deps.log.child({ plugin: instance }),
    route: (route) => registry.addRoute(instance, route as unknown as Route),
    schema: (schema) => registry.claim(registry.schemas, 'schema $id', schema.$id, instance, schema),
    provider(provider) {
      if (plugin.kind !== 'provider') fault(`is of kind "${plugin.kind}" and registers a provider`);
      endpoints.push(provider);
      registry.claim(registry.providers, 'provider', instance, instance, Object.freeze(provider));
    },
    speech(voice) {
      endpoints.push(voice);
      registry.claim(registry.speech, 'speech vendor', instance, instance, Object.freeze(voice));
    },
    agent: (agent) => registry.claim(registry.agents, 'agent', agent.name, instance, Object.freeze(agent)),
    agents: () => [...registry.agents.values()].map(({ value }) => value),
    use: (middleware) => registry.addMiddleware(instance, middleware),
    store(open) {
      if (plugin.kind !== 'store') fault(`is of kind "${plugin.kind}" and registers a store`);
      deps.openStore(instance, open);
    },
    hook: (name, hook) => registry.addHook({ owner: instance, name, hook: hook as never }),
    keyv<T>(namespace: string): Keyv<T> {
      if (!NAMESPACE.test(namespace))
        fault(`asks for the document namespace "${namespace}"; a name is ${NAMESPACE.source}`);
      return store().keyv<T>(namespace);
    },
    get stores() {
      return store();
    },
    get ledger() {
      return store().ledger;
    },
    http: () => createHttpClient(endpoints, settings.version),
    chat: ((request: ChatRequest, context: CallContext) => services().chat(request, context)) as PluginApi['chat'],
    embed: (request, context) => services().embed(request, context),
    speak: (vendor, request, context) => services().speak(vendor, request, context),
    estimate: (call) => services().estimate(call),
    models: (principal) => services().models(principal),
    command: (command) => registry.claim(registry.commands, 'command', command.name, instance, command),
    gather: (topic, read) => (deps.gatherer ?? ALONE).gather(`${instance}:${topic}`, read),
    announce: (announcement) => void registry.announcements.push(announcement),
    onReady: (ready) => void registry.ready.push({ owner: instance, value: ready }),
    onClose: (close) => void registry.closers.push({ owner: instance, value: close }),
  };
  return Object.freeze(api);
}
