import type { Schema } from '../contract/json.ts';
import type { PluginKind } from '../contract/plugin.ts';

/** The sections of a configuration that name plugins, and the folder each built-in lives in. */
export const GROUPS = Object.freeze({
  policies: { kind: 'policy', noun: 'policy' },
  auth: { kind: 'auth', noun: 'auth scheme' },
  providers: { kind: 'provider', noun: 'provider' },
  tts: { kind: 'tts', noun: 'speech vendor' },
  agents: { kind: 'agent', noun: 'agent plugin' },
} as const satisfies Record<string, { readonly kind: PluginKind; readonly noun: string }>);

export type Group = keyof typeof GROUPS;

export const GROUP_NAMES = Object.freeze(Object.keys(GROUPS) as Group[]);

/** What an instance may be called: it becomes a part of URLs, log lines and metric labels. */
export const INSTANCE_NAME = /^(?!\d+$)[a-z0-9][a-z0-9._-]{0,62}$/;

/** A plugin's part of the schema. `name` is what the configuration calls the plugin: a built-in name, package or path. */
export interface PluginSchema {
  readonly kind: PluginKind;
  readonly name: string;
  readonly schema: Schema;
}
