import { isObject, type Schema } from '../contract/json.ts';
import {
  CORE_PROPERTIES,
  coreOptionsOf,
  GROUP_NAMES,
  GROUPS,
  type Group,
  INSTANCE_NAME,
  type PluginSchema,
} from './core-schema.ts';
import { shareOptions } from './share-options.ts';
import { listForms } from './store-url.ts';

/** Keywords that join schemas. */
export const COMBINATORS = [
  'allOf',
  'anyOf',
  'oneOf',
  'not',
  'if',
  'then',
  'else',
  '$ref',
  'dependentSchemas',
] as const;
const OPEN = ['additionalProperties', 'unevaluatedProperties', 'patternProperties', '$dynamicRef'] as const;
/** Types of a group or section: options, `true`, `false` or empty. */
const OPTIONAL = Object.freeze(['object', 'boolean', 'null']);
/** Keywords that a text with a reference may violate although its value does not (except `minLength: 1`). */
const NARROWING = ['enum', 'const', 'pattern', 'minLength', 'maxLength'] as const;
const pattern = '\\$\\{';
const REFERENCE: Schema = Object.freeze({
  // biome-ignore lint/suspicious/noTemplateCurlyInString: shows what to write.
  description: 'Text with a reference, such as `${NAME}`, `${NAME:-default}` or `${file:/path}`.',
  type: 'string',
  pattern,
});
/** Keywords whose members are each a schema. */
const MAPS: readonly string[] = ['properties', '$defs', 'patternProperties', 'definitions'];

/**
 * Adapts a plugin's schema to the configuration. Adds the key `plugin`, except in a section, which belongs to one
 * plugin. Closes objects so that misspelt keys are reported; a schema keeps an object open with `additionalProperties`.
 */
export function sealPluginSchema({
  schema,
  section,
  kind,
}: Pick<PluginSchema, 'schema' | 'section'> & Partial<Pick<PluginSchema, 'kind'>>): Schema {
  const { $schema: _dialect, $id: _id, examples: _examples, ...own } = schema;
  const plugin = { type: 'string', minLength: 1, description: 'Plugin, if the key is not its name.' };
  const properties = isObject(schema['properties']) ? schema['properties'] : {};
  if (section !== undefined) return closeObjects({ type: 'object', ...own, properties });
  const core = { plugin, ...coreOptionsOf({ schema, ...(kind && { kind }) }) };
  return closeObjects({ ...own, type: 'object', properties: { ...core, ...properties } });
}

function closeObjects(schema: Schema): Schema {
  const close = (member: unknown): unknown => (isObject(member) ? closeObjects(member) : member);
  const closed = Object.fromEntries(
    Object.entries(schema).map(([keyword, value]) => {
      if (keyword === 'items' || keyword === 'additionalProperties') return [keyword, close(value)];
      return [keyword, MAPS.includes(keyword) ? mapValues(value, close) : value];
    }),
  );
  if (!isObject(schema['properties']) || OPEN.some((keyword) => keyword in schema)) return closed;
  // Next to a combinator only `unevaluatedProperties` includes the properties of its branches.
  const combined = COMBINATORS.some((keyword) => keyword in schema);
  return { ...closed, [combined ? 'unevaluatedProperties' : 'additionalProperties']: false };
}

/**
 * Composes one JSON Schema 2020-12 of the configuration for editors and docs: core's part, and each plugin's under its
 * keys. `checkConfig` does not use it: it knows the plugin of each key, so its problems need no `if`. This schema sees
 * the file before references are replaced, so every value may be a text with a reference.
 */
export function composeSchema(plugins: readonly PluginSchema[]): Schema {
  const groups = GROUP_NAMES.map((group) => {
    const members = plugins.filter(({ kind }) => kind === GROUPS[group].kind);
    return { group, members: members.toSorted((a, b) => (a.name < b.name ? -1 : 1)) };
  });
  const definitions = groups.flatMap(({ group, members }) => [
    ...members.map((member) => [definitionName(group, member.name), definePlugin(group, member)] as const),
    [`${group}.*`, chooseByPlugin(group, members)] as const,
  ]);
  return shareOptions({
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Tollgate configuration',
    type: 'object',
    additionalProperties: false,
    properties: {
      ...mapValues(topLevel(plugins), takeReferences),
      ...Object.fromEntries(groups.map(({ group, members }) => [group, groupSchema(group, members)])),
      ...Object.fromEntries(plugins.flatMap(sectionsOf)),
    },
    $defs: { reference: REFERENCE, ...Object.fromEntries(definitions) },
  });
}

/** Core's own top-level keys, with additions of the given plugins. */
export function topLevel(plugins: readonly PluginSchema[]): Readonly<Record<string, Schema>> {
  const forms = listForms(
    plugins.filter(({ kind }) => kind === 'store').toSorted((a, b) => (a.name < b.name ? -1 : 1)),
  );
  const { store } = CORE_PROPERTIES;
  return { ...CORE_PROPERTIES, store: { ...store, description: `${store.description}: ${forms}.` } };
}

function groupSchema(group: Group, members: readonly PluginSchema[]): Schema {
  const { noun, description } = GROUPS[group];
  const named = members.map(({ name, schema }) => [
    name,
    {
      description: schema['description'] ?? `The ${noun} \`${name}\`; \`false\` disables it.`,
      type: OPTIONAL,
      ...when(
        { type: 'object', properties: { plugin: true }, required: ['plugin'] },
        { $ref: `#/$defs/${group}.*` },
        { $ref: `#/$defs/${definitionName(group, name)}` },
      ),
    },
  ]);
  return {
    description,
    type: 'object',
    propertyNames: { pattern: INSTANCE_NAME.source },
    properties: Object.fromEntries(named),
    additionalProperties: { type: OPTIONAL, $ref: `#/$defs/${group}.*` },
  };
}

/** Schema of other keys: `plugin:` decides; an unknown package or path accepts any options. */
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

/**
 * Options of a plugin in its group. `true`, `false` and an empty key set no options, nor does a plugin with a section.
 */
function definePlugin(group: Group, { name, kind, schema, section }: PluginSchema): Schema {
  const sealed = sealPluginSchema(section === undefined ? { kind, schema } : { schema: {} });
  return placeAt(`#/$defs/${definitionName(group, name)}`, { ...sealed, type: OPTIONAL });
}

function sectionsOf({ schema, section }: PluginSchema): readonly (readonly [string, Schema])[] {
  if (section === undefined) return [];
  const sealed = sealPluginSchema({ schema, section });
  return [[section, placeAt(`#/properties/${section}`, { ...sealed, type: OPTIONAL })]];
}

/**
 * Embeds a schema in another one: rebases its local references, and accepts a text with a reference for every value.
 */
function placeAt(base: string, schema: Schema): Schema {
  return takeReferences(rebase(schema, base)) as Schema;
}

function rebase(node: unknown, base: string): unknown {
  if (Array.isArray(node)) return node.map((item) => rebase(item, base));
  if (!isObject(node)) return node;
  return Object.fromEntries(
    Object.entries(node).map(([key, value]) => {
      if (key === '$ref' && typeof value === 'string' && value.startsWith('#')) return [key, base + value.slice(1)];
      return [key, rebase(value, base)];
    }),
  );
}

/** Extends a schema to accept a text with a reference for numbers, booleans and constrained texts. */
function takeReferences(schema: unknown): unknown {
  if (!isObject(schema)) return schema;
  const types = [schema['type'] ?? []].flat();
  const isScalar = !types.includes('object') && !types.includes('array');
  if (isScalar && NARROWING.some((keyword) => (schema[keyword] ?? 1) !== 1)) {
    const { description, default: value, secret, ...rest } = schema;
    const notes = Object.entries({ description, default: value, secret }).filter(([, note]) => note !== undefined);
    return { ...Object.fromEntries(notes), anyOf: [rest, { $ref: '#/$defs/reference' }] };
  }
  // A pattern applies to texts alone, as bounds apply to numbers alone.
  if (isScalar && types.length > 0 && !types.includes('string'))
    return { ...schema, type: [...types, 'string'], pattern };
  return Object.fromEntries(
    Object.entries(schema).map(([keyword, value]) => {
      if (MAPS.includes(keyword)) return [keyword, mapValues(value, takeReferences)];
      if (keyword === 'anyOf' || keyword === 'allOf') return [keyword, [value].flat().map(takeReferences)];
      return [keyword, keyword === 'items' || keyword === 'additionalProperties' ? takeReferences(value) : value];
    }),
  );
}

function mapValues(members: unknown, change: (member: unknown) => unknown): Readonly<Record<string, unknown>> {
  const entries = Object.entries(isObject(members) ? members : {});
  return Object.fromEntries(entries.map(([name, member]) => [name, change(member)]));
}
