import type { Schema } from '../contract/json.ts';
import { CORE_PROPERTIES, GROUP_DESCRIPTIONS } from './core-schema.ts';
import { GROUP_NAMES, GROUPS, type Group, INSTANCE_NAME, type PluginSchema } from './groups.ts';
import { isSchema } from './schema-at.ts';
import { sealPluginSchema } from './seal-schema.ts';

/**
 * The whole configuration as one JSON Schema 2020-12, for editors and docs: core's part, and every plugin's under the
 * keys that mean it. `checkConfig` does not use it: it knows which plugin a key means, so its faults need no `if`.
 */
export function composeSchema(plugins: readonly PluginSchema[]): Schema {
  const groups = GROUP_NAMES.map((group) => {
    const members = plugins.filter(({ kind }) => kind === GROUPS[group].kind);
    return { group, members: members.toSorted((a, b) => (a.name < b.name ? -1 : 1)) };
  });
  const definitions = groups.flatMap(({ group, members }) => [
    ...members.map(({ name, schema }) => [definitionName(group, name), definePlugin(group, name, schema)] as const),
    [`${group}.*`, chooseByPlugin(group, members)] as const,
  ]);
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Tollgate configuration',
    type: 'object',
    additionalProperties: false,
    properties: {
      ...CORE_PROPERTIES,
      ...Object.fromEntries(groups.map(({ group, members }) => [group, groupSchema(group, members)])),
    },
    $defs: Object.fromEntries(definitions),
  };
}

function groupSchema(group: Group, members: readonly PluginSchema[]): Schema {
  const named = members.map(({ name, schema }) => [
    name,
    {
      description: schema['description'] ?? `The ${GROUPS[group].noun} \`${name}\`; \`false\` switches it off.`,
      type: ['object', 'boolean', 'null'],
      ...when(
        { type: 'object', properties: { plugin: true }, required: ['plugin'] },
        { $ref: `#/$defs/${group}.*` },
        { $ref: `#/$defs/${definitionName(group, name)}` },
      ),
    },
  ]);
  return {
    description: GROUP_DESCRIPTIONS[group],
    type: 'object',
    propertyNames: { pattern: INSTANCE_NAME.source },
    properties: Object.fromEntries(named),
    additionalProperties: { type: ['object', 'boolean', 'null'], $ref: `#/$defs/${group}.*` },
  };
}

/** Any key: what `plugin:` names decides; a package or path that is not known here takes any options. */
function chooseByPlugin(group: Group, members: readonly PluginSchema[]): Schema {
  const names = members.map(({ name }) => name);
  const plugin: Schema = {
    description: 'A built-in plugin, an npm package or a path.',
    anyOf: [...(names.length > 0 ? [{ type: 'string', enum: names }] : []), { type: 'string', minLength: 1 }],
  };
  const choices = names.map((name) =>
    when(
      { type: 'object', properties: { plugin: { const: name } }, required: ['plugin'] },
      { $ref: `#/$defs/${definitionName(group, name)}` },
    ),
  );
  const options = { type: 'object', properties: { plugin }, ...(choices.length > 0 && { allOf: choices }) };
  return when({ type: 'object' }, options);
}

function when(condition: Schema, then: Schema, otherwise?: Schema): Schema {
  return { if: condition, then, ...(otherwise && { else: otherwise }) };
}

function definitionName(group: Group, name: string): string {
  return `${group}.${name.replace(/[^\w.-]/g, '_')}`;
}

/** The plugin's schema, its local references rebased; `true`, `false` and an empty key need no options. */
function definePlugin(group: Group, name: string, schema: Schema): Schema {
  const base = `#/$defs/${definitionName(group, name)}`;
  return rebase({ ...sealPluginSchema(schema), type: ['object', 'boolean', 'null'] }, base) as Schema;
}

function rebase(node: unknown, base: string): unknown {
  if (Array.isArray(node)) return node.map((item) => rebase(item, base));
  if (!isSchema(node)) return node;
  return Object.fromEntries(
    Object.entries(node).map(([key, value]) => {
      if (key === '$ref' && typeof value === 'string' && value.startsWith('#')) return [key, base + value.slice(1)];
      return [key, rebase(value, base)];
    }),
  );
}
