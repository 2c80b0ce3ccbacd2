import type { Call, Operation, Principal, RequestOf } from '../contract/call.ts';
import type { ModelCatalog } from '../contract/catalog.ts';
import type { ChatChunk, ChatRequest, ChatResponse } from '../contract/chat.ts';
import type { StoreWatcher } from '../contract/figures.ts';
import type { Log } from '../contract/log.ts';
import type { CallResult, Metered } from '../contract/operation.ts';
import type { CallContext, GatewaySettings, ModelRow, OperationContext, Plugin } from '../contract/plugin.ts';
import type { Records } from '../contract/records.ts';
import type { RoutingState } from '../contract/routing.ts';
import type { Store } from '../contract/store.ts';
import type { AuditLog } from './audit.ts';
import type { Gatherer } from './gather.ts';
import type { KeptUser } from './kept.ts';
import type { Registry } from './registry.ts';

/** What calls offer plugins once a generation is assembled; until then a plugin may register, but not call models. */
export interface CallServices {
  chat(request: ChatRequest, context: CallContext): Promise<ChatResponse | AsyncIterable<ChatChunk>>;
  call<O extends Operation>(operation: O, request: RequestOf<O>, context: OperationContext): Promise<CallResult<O>>;
  estimate(call: Call): Metered;
  models(principal?: Principal): readonly ModelRow[];
  readonly catalog: ModelCatalog;
  listModels(provider: string): Promise<readonly string[]>;
  routing(): RoutingState;
}

/** Opens the store; it tells the watcher of each of its operations. */
export type OpenStore = (observe: StoreWatcher) => Promise<Store>;

/** What the APIs of all instances of a generation are made with. */
export interface ApiDeps {
  readonly registry: Registry;
  readonly settings: GatewaySettings;
  readonly aliases: Readonly<Record<string, readonly string[]>>;
  readonly log: Log;
  readonly gatherer: Gatherer;
  /** What this process answers when workers gather, filled in while plugins are set up. */
  readonly readers: Map<string, () => unknown>;
  /** The opened store; undefined while the store plugin itself is set up. */
  readonly store: () => Store | undefined;
  /** What operators changed; absent while the store plugin itself is set up. */
  readonly audit?: AuditLog;
  /** The gateway's own records; absent as `audit` is. */
  readonly records?: <T>(name: string) => Records<T>;
  readonly services: () => CallServices | undefined;
  readonly openStore: (owner: string, open: OpenStore, probe?: () => Promise<string>) => void;
  readonly keptUser: (instance: string) => KeptUser;
  readonly redact: (text: string) => string;
}

/** An instance as its API is made for it. */
export interface ApiInstance {
  readonly group: string;
  readonly name: string;
  readonly plugin: Plugin;
  readonly config: Readonly<Record<string, unknown>>;
}
