import type { Schema } from '../contract/json.ts';
import type { PluginKind } from '../contract/plugin.ts';

interface GroupRow {
  readonly kind: PluginKind;
  readonly noun: string;
  /** The built-in ones are on unless the configuration says `false`. */
  readonly isOn?: boolean;
  /** One sentence for editors. */
  readonly description: string;
}

/** The sections of a configuration that name plugins. */
export const GROUPS = Object.freeze({
  policies: {
    kind: 'policy',
    noun: 'policy',
    isOn: true,
    description: 'What stands around every call. The built-in ones are on unless set to `false`.',
  },
  auth: { kind: 'auth', noun: 'auth scheme', description: 'How callers prove who they are.' },
  providers: {
    kind: 'provider',
    noun: 'provider',
    description:
      'Vendors of models. The key is the path segment under `/api/core/` and the first part of `provider/model`.',
  },
  tts: {
    kind: 'tts',
    noun: 'speech vendor',
    description: 'Vendors of speech. The key is the path segment before `/tts`.',
  },
  agents: { kind: 'agent', noun: 'agent plugin', description: 'The multi-agent endpoints.' },
  operations: {
    kind: 'operation',
    noun: 'operation',
    isOn: true,
    description: 'What callers may ask for beside chat. The built-in ones are on unless set to `false`.',
  },
  dialects: {
    kind: 'dialect',
    noun: 'dialect',
    isOn: true,
    description: 'The formats in which callers may write a chat. The built-in ones are on unless set to `false`.',
  },
} as const satisfies Record<string, GroupRow>);

export type Group = keyof typeof GROUPS;

export const GROUP_NAMES = Object.freeze(Object.keys(GROUPS) as Group[]);

/** The row of a group; undefined for any other section. */
export function findGroup(section: string): (GroupRow & { readonly group: Group }) | undefined {
  const group = GROUP_NAMES.find((name) => name === section);
  return group && { group, ...GROUPS[group] };
}

/** What an instance may be called: it becomes a part of URLs, log lines and metric labels. */
export const INSTANCE_NAME = /^(?!\d+$)[a-z0-9][a-z0-9._-]{0,62}$/;

/** A plugin's part of the schema. `name` is what the configuration calls the plugin: a built-in name, package or path. */
export interface PluginSchema {
  readonly kind: PluginKind;
  readonly name: string;
  readonly schema: Schema;
  /** The top-level key of the configuration that holds the plugin's options, instead of its place in the group. */
  readonly section?: string;
}
