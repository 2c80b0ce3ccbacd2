import type { ApiOfKind } from './api.ts';
import type { CredentialKind } from './call.ts';
import type { FromSchema } from './from-schema.ts';
import type { GatewaySettings } from './settings.ts';

export type * from './api.ts';
export type * from './command.ts';
export type * from './route.ts';
export type * from './settings.ts';

export const API_VERSION = 1;

export const PLUGIN_KINDS = Object.freeze([
  'provider',
  'auth',
  'agent',
  'tts',
  'operation',
  'dialect',
  'store',
  'policy',
] as const satisfies readonly (keyof ApiOfKind)[]);
export type PluginKind = (typeof PLUGIN_KINDS)[number];

/**
 * What a plugin is: data and one `setup` function. `configSchema` is a JSON Schema of type object; beside the standard
 * keywords it may say `secret: true` (masked wherever the configuration is shown), `format: "duration"` (`30s`,
 * `500ms`, `2m`), `format: "money"` (US dollars as a decimal string or number), `format: "size"` (`20mb`), `format: "url"`
 * and `format: "path"` (a relative path becomes absolute, under the folder of the configuration file).
 */
export interface Plugin<S extends object = object, K extends PluginKind = PluginKind> {
  /** The folder or file name, and the instance name unless the configuration gives another. */
  readonly name: string;
  readonly kind: K;
  readonly apiVersion: 1;
  readonly configSchema?: S;
  /** Hosts (`name` or `name:port`) that it may connect to, beside those of its config's `format: "url"` options. */
  readonly hosts?: readonly string[];
  /** Plugins (by name) without which it does not work: missing ones are an error at start. */
  readonly requires?: readonly string[];
  /** Store plugins only: `one` when what must be atomic lives in one process, so that workers cannot share it; `many` unless set. */
  readonly processes?: 'one' | 'many';
  /**
   * A top-level key of the configuration that holds this plugin's options, instead of its place among the other plugins of
   * its kind. Without that key the plugin gets `{}`, or null when its schema also takes null.
   */
  readonly section?: string;
  /** What `setup` would refuse, without side effects; `tollgate check` runs it. */
  check?(config: PluginConfig<S>, context: CheckContext): readonly Problem[] | Promise<readonly Problem[]>;
  /** Auth plugins only: the kinds of credentials that it knows; keys and tokens unless set. */
  readonly credentials?: readonly CredentialKind[];
  /**
   * Auth plugins only: whether a text has the shape of its credentials, right or wrong. Callers send placeholders beside the right
   * one; without this anything may be a credential, and two different ones are refused.
   */
  isCredential?(text: string): boolean;
  /** The commands that it registers with `api.command`, for `tollgate --help`. */
  readonly commands?: readonly { readonly name: string; readonly summary: string }[];
  /** Registers everything; registration ends when boot does. The config is validated, interpolated and frozen. */
  setup(api: ApiOfKind[K], config: PluginConfig<S>): void | Promise<void>;
}

/** Something that a plugin's `check` finds wrong with its configuration. */
export interface Problem {
  /** A JSON pointer into the plugin's config, such as `/models/0`; the whole config unless set. */
  readonly path?: string;
  /** What is wrong, as the end of a sentence that begins with the place. Holds no secret. */
  readonly message: string;
  /** What to do, a whole sentence. */
  readonly hint?: string;
}

/** What a plugin's `check` may know beside its own configuration. */
export interface CheckContext {
  /** What relative paths are relative to. Absolute. */
  readonly baseDir: string;
  readonly settings: GatewaySettings;
}

/**
 * The type of a validated config: {@link FromSchema} of its schema, or an open object. The tuple keeps TypeScript from
 * expanding `FromSchema<object>` while it infers S: that ends in TS2589 for any schema with `required`.
 */
export type PluginConfig<S extends object> = object extends S
  ? Readonly<Record<string, unknown>>
  : [S] extends [object]
    ? FromSchema<S>
    : never;

/** Returns its argument; gives `config` its type, which is the plugin's own concern: to all others it is a plugin of its kind. */
export function definePlugin<const S extends object, const K extends PluginKind = PluginKind>(
  plugin: Plugin<S, K>,
): Plugin<object, K>;
export function definePlugin(plugin: Plugin): Plugin {
  return plugin;
}
