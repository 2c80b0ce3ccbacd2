import { isDeepStrictEqual } from 'node:util';
import { topLevel } from '../../config/compose-schema.ts';
import { GROUP_NAMES, GROUPS, type PluginSchema } from '../../config/core-schema.ts';
import { ROUTE_SCHEMA } from '../../config/model-routes.ts';
import { isObject, type Schema } from '../../contract/json.ts';
import { PROVIDER_OPTIONS } from '../../plugins/formats/kit/options.ts';

const STYLE =
  'body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:72rem;padding:0 1rem}table{border-collapse:collapse;width:100%}td,th{border:1px solid #ccc;padding:.3rem .5rem;text-align:left;vertical-align:top}code{font-size:.9em}';

/** Renders the configuration keys as HTML: one table for core's keys, and one per built-in plugin with options. */
export function renderConfigPage(plugins: readonly PluginSchema[]): string {
  const tables = Object.entries(listSections(plugins))
    .map(([title, schema]) => ({ title, rows: rowsOf(schema, '') }))
    .filter(({ rows }) => rows.length > 0);
  const links = tables.map(({ title }) => `<a href="#${title}">${title}</a>`);
  const head = row(['Key', 'Value', 'Default', 'What'], 'th');
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Tollgate configuration</title><style>${STYLE}</style></head>
<body>
<h1>Configuration</h1>
<p>All keys of the gateway and its built-in plugins. A <code>*</code> in a key stands for any name. Every provider has the keys of <a href="#providers">providers</a>.</p>
<p>${links.join(' · ')}</p>
${tables.map(({ title, rows }) => `<h2 id="${title}">${title}</h2>\n<table>\n${head}${rows.join('')}</table>\n`).join('')}</body>
</html>
`;
}

/**
 * Lists sections by title: a key of core, or a plugin such as `providers.openai`. Options of every provider are omitted
 * at each one.
 */
function listSections(plugins: readonly PluginSchema[]): Readonly<Record<string, Schema>> {
  const core = topLevel(plugins);
  const groupOf = (kind: string) => GROUP_NAMES.find((group) => GROUPS[group].kind === kind) ?? kind;
  const own = plugins.map(({ kind, name, schema, section }) => ({
    title: section ?? `${groupOf(kind)}.${name}`,
    schema: ownOptions(schema),
    section,
  }));
  const atTop = own.flatMap(({ section, schema }) => (section === undefined ? [] : [[section, schema] as const]));
  return {
    'top-level': { properties: withoutMembers({ ...core, ...Object.fromEntries(atTop) }) },
    server: core['server'] ?? {},
    logging: core['logging'] ?? {},
    models: { properties: { models: { additionalProperties: ROUTE_SCHEMA } } },
    plans: { properties: { plans: core['plans'] } },
    providers: { properties: PROVIDER_OPTIONS },
    ...Object.fromEntries(own.map(({ title, schema }) => [title, schema])),
  };
}

/** Table rows of the properties; nested ones are named like `cors.origins`. */
function rowsOf(schema: Schema, prefix: string): readonly string[] {
  const properties = asSchema(schema['properties']) ?? {};
  const required = Array.isArray(schema['required']) ? schema['required'] : [];
  return Object.entries(properties).flatMap(([name, value]) => {
    const property = asSchema(value) ?? {};
    const key = `${prefix}${name}`;
    const nested = asSchema(property['properties']) ? rowsOf(property, `${key}.`) : [];
    const members = asSchema(property['additionalProperties']);
    const inner = members && asSchema(members['properties']) ? rowsOf(members, `${key}.*.`) : [];
    const about = `${property['description'] ?? ''}${required.includes(name) ? ' Required.' : ''}`.trim();
    const branches = asSchema(property['items'])?.['anyOf'];
    const items = (Array.isArray(branches) ? branches : []).flatMap((item) =>
      rowsOf(asSchema(item) ?? {}, `${key}[].`),
    );
    const shown = property['default'];
    const hasDefault = shown !== undefined && shown !== '' && JSON.stringify(shown) !== '{}';
    const own = row([
      `\`${key}\``,
      describeValue(property),
      hasDefault ? `\`${typeof shown === 'string' ? shown : JSON.stringify(shown)}\`` : '',
      about,
    ]);
    return [...(nested.length > 0 && about === '' ? [] : [own]), ...nested, ...inner, ...items];
  });
}

function describeValue(schema: Schema): string {
  if (Array.isArray(schema['enum'])) return schema['enum'].map((value) => `\`${String(value)}\``).join(', ');
  if (schema['const'] !== undefined) return `\`${String(schema['const'])}\``;
  const branches = schema['anyOf'] ?? schema['oneOf'];
  if (Array.isArray(branches)) {
    return [...new Set(branches.map((branch) => describeValue(asSchema(branch) ?? {})))].filter(Boolean).join(' or ');
  }
  if (typeof schema['format'] === 'string') return schema['format'];
  const items = asSchema(schema['items']);
  if (schema['type'] === 'array') return items ? `list of ${describeValue(items) || 'values'}` : 'list';
  const types = [schema['type']].flat().filter((type) => type !== undefined);
  const range = [schema['minimum'], schema['maximum']];
  const bounds = range.some((bound) => bound !== undefined) ? ` ${range.map((bound) => bound ?? '').join('…')}` : '';
  return `${types.map((type) => NOUNS[String(type)] ?? String(type)).join(' or ')}${bounds}${schema['secret'] ? ', secret' : ''}`;
}

const NOUNS: Readonly<Record<string, string>> = Object.freeze({
  string: 'text',
  object: 'map',
  array: 'list',
  integer: 'whole number',
});

function asSchema(value: unknown): Schema | undefined {
  return isObject(value) ? value : undefined;
}

function row(cells: readonly string[], tag = 'td'): string {
  return `<tr>${cells.map((cell) => `<${tag}>${toHtml(cell)}</${tag}>`).join('')}</tr>\n`;
}

/** Converts text with `code` in backticks to HTML. */
function toHtml(text: string): string {
  const escaped = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  return escaped.replaceAll(/`([^`]*)`/g, '<code>$1</code>');
}

/** Removes properties that have a table of their own. */
function withoutMembers(properties: Readonly<Record<string, Schema>>): Readonly<Record<string, Schema>> {
  const own = Object.entries(properties).map(([name, schema]) => [
    name,
    { ...schema, properties: {}, additionalProperties: true },
  ]);
  return Object.fromEntries(own) as Readonly<Record<string, Schema>>;
}

function ownOptions(schema: Schema): Schema {
  const shared: Readonly<Record<string, unknown>> = PROVIDER_OPTIONS;
  const properties = Object.entries((schema['properties'] ?? {}) as Readonly<Record<string, unknown>>);
  const own = properties.filter(([name, property]) => !isDeepStrictEqual(property, shared[name]));
  return { ...schema, properties: Object.fromEntries(own) };
}
