import type { Plan, PluginKind } from '../contract/plugin.ts';
import type { CoreValues } from './core-schema.ts';
import type { Group } from './groups.ts';

type ServerValues = CoreValues['server'];

/** `server:`, with durations in milliseconds and sizes in bytes. */
export interface ServerConfig extends Pick<ServerValues, 'host' | 'port' | 'maxConnections' | 'cors' | 'workers'> {
  readonly bodyLimitBytes: number;
  readonly requestTimeoutMs: number;
  readonly drainTimeoutMs: number;
  readonly drainDelayMs: number;
  readonly keepAliveMs: number;
  readonly sseKeepAliveMs: number;
  /** How many proxies in front are believed about the client's address; 0 is none. */
  readonly trustProxy: number;
}

/** A plugin's place in the configuration. */
export interface InstanceRef {
  /** The section it stands in; `plugins` is the list of those without options. */
  readonly group: Group | 'plugins' | 'store';
  readonly kind: PluginKind;
  /** The instance's name: its key. */
  readonly name: string;
  /** What to import: a built-in name, an npm package, a path or a URL. */
  readonly plugin: string;
  /** A JSON pointer to its options. */
  readonly pointer: string;
}

/** One plugin to set up. */
export interface PluginInstance extends InstanceRef {
  /** Interpolated, validated, defaults applied, frozen; without the `plugin` key. */
  readonly config: Readonly<Record<string, unknown>>;
}

/** A configuration without problems: interpolated, validated, defaults applied, frozen. */
export interface GatewayConfig extends Pick<CoreValues, 'logging' | 'billing'> {
  /** The file's name for people. */
  readonly file: string;
  readonly isDefault: boolean;
  /** What relative paths are relative to. Absolute. */
  readonly baseDir: string;
  readonly server: ServerConfig;
  /** The store's plugin and its options. */
  readonly store: PluginInstance;
  /** Aliases; every value is a list of `provider/model`, in the order to try. */
  readonly models: Readonly<Record<string, readonly string[]>>;
  readonly plans: Readonly<Record<string, Plan>>;
  readonly defaultPlan: string | undefined;
  /** In the order of the file; built-in ones that are on without being mentioned come first. */
  readonly instances: readonly PluginInstance[];
  /** What `config print` shows: the whole configuration as it counts, secrets masked. */
  readonly printable: () => Readonly<Record<string, unknown>>;
  /** Where values came from, by JSON pointer: `env PORT`, `file /run/secrets/key`; else the file or a default. */
  readonly sources: ReadonlyMap<string, string>;
}
