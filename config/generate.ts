import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { composeSchema, topLevel } from '../core/config/compose-schema.ts';
import type { PluginSchema } from '../core/config/core-schema.ts';
import { ROUTE_SCHEMA } from '../core/config/model-routes.ts';
import { isObject, type Schema } from '../core/contract/json.ts';
import { PLUGIN_KINDS } from '../core/contract/plugin.ts';
import { readBuiltinSchemas } from '../core/plugins/load-config.ts';
import { PROVIDER_OPTIONS } from '../plugins/providers/kit/options.ts';

/** A schema's properties as a Markdown table, nested ones as `cors.origins`; empty when it has none. */
function schemaTable(schema: Schema): string {
  const rows = rowsOf(schema, '');
  if (rows.length === 0) return '';
  return ['| Key | Value | Default | What |', '|---|---|---|---|', ...rows].join('\n');
}

function rowsOf(schema: Schema, prefix: string): readonly string[] {
  const properties = asSchema(schema['properties']) ?? {};
  const required = Array.isArray(schema['required']) ? schema['required'] : [];
  return Object.entries(properties).flatMap(([name, value]) => {
    const property = asSchema(value) ?? {};
    const key = `${prefix}${name}`;
    const nested = asSchema(property['properties']) ? rowsOf(property, `${key}.`) : [];
    const members = asSchema(property['additionalProperties']);
    const inner = members && asSchema(members['properties']) ? rowsOf(members, `${key}.*.`) : [];
    const about = cell(`${property['description'] ?? ''}${required.includes(name) ? ' Required.' : ''}`);
    const item = mapOfItems(asSchema(property['items']));
    const items = item ? rowsOf(item, `${key}[].`) : [];
    const shown = property['default'];
    const hasDefault = shown !== undefined && shown !== '' && JSON.stringify(shown) !== '{}';
    const row = `| \`${key}\` | ${cell(describeValue(property))} | ${hasDefault ? `\`${cell(asText(shown))}\`` : ''} | ${about.trim()} |`;
    return [...(nested.length > 0 && about.trim() === '' ? [] : [row]), ...nested, ...inner, ...items];
  });
}

/** What an item of a list has, where it may be a map. */
function mapOfItems(items: Schema | undefined): Schema | undefined {
  const branches = Array.isArray(items?.['anyOf']) ? items['anyOf'] : [];
  return branches.map(asSchema).find((branch) => asSchema(branch?.['properties']) !== undefined);
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

function asText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ');
}

/**
 * Writes what follows from the plugins' schemas: `config/tollgate.schema.json` and the tables of `docs/config.md`.
 * `--check` writes nothing and fails when something is out of date. Run by `npm run schema` and `npm run schema:check`.
 */

const SCHEMA_FILE = fileURLToPath(new URL('./tollgate.schema.json', import.meta.url));
const DOCS_FILE = fileURLToPath(new URL('../docs/config.md', import.meta.url));
const TABLE = /(<!-- table: (\S+) -->\n)[\s\S]*?(<!-- end -->)/g;

const plugins = await readBuiltinSchemas();
const files = [
  { file: SCHEMA_FILE, text: `${JSON.stringify(composeSchema(plugins), null, 2)}\n` },
  { file: DOCS_FILE, text: fillTables(readFileSync(DOCS_FILE, 'utf8'), plugins) },
];
for (const { file, text } of files) writeOrCheck(file, text, process.argv.includes('--check'));

function fillTables(text: string, described: readonly PluginSchema[]): string {
  const shared = { properties: PROVIDER_OPTIONS };
  const core = topLevel(described);
  const tables: Readonly<Record<string, () => string>> = {
    top: () => schemaTable({ properties: withoutMembers({ ...core, ...sectionsOf(described) }) }),
    server: () => schemaTable(core['server'] ?? {}),
    logging: () => schemaTable(core['logging'] ?? {}),
    models: () => schemaTable({ properties: { models: { additionalProperties: ROUTE_SCHEMA } } }),
    plans: () => schemaTable({ properties: { plans: core['plans'] } }),
    'provider-options': () => schemaTable(shared),
    ...Object.fromEntries(
      PLUGIN_KINDS.map((kind) => [kind, () => pluginTables(described.filter((plugin) => plugin.kind === kind))]),
    ),
  };
  return text.replaceAll(TABLE, (_, start: string, name: string, end: string) => {
    const table = tables[name];
    if (!table) throw new Error(`docs/config.md has a table "${name}" that nobody makes`);
    return `${start}\n${table()}\n\n${end}`;
  });
}

/** What plugins have at the top level. */
function sectionsOf(described: readonly PluginSchema[]): Readonly<Record<string, Schema>> {
  return Object.fromEntries(
    described.flatMap(({ schema, section }) => (section === undefined ? [] : [[section, schema]])),
  );
}

/** Sections have tables of their own. */
function withoutMembers(properties: Readonly<Record<string, Schema>>): Readonly<Record<string, Schema>> {
  return Object.fromEntries(
    Object.entries(properties).map(([name, { properties: _own, additionalProperties: _members, ...schema }]) => [
      name,
      schema,
    ]),
  );
}

/** One table a plugin; what every provider takes has its own and is left out here. */
function pluginTables(described: readonly PluginSchema[]): string {
  const own = described.map(({ name, schema, section }) => ({ name, section, table: schemaTable(ownOptions(schema)) }));
  const tables = own
    .filter(({ table }) => table !== '')
    .map(({ name, section, table }) => `### \`${name}\`${section ? `, under \`${section}\`` : ''}\n\n${table}`);
  const plain = own.filter(({ table }) => table === '').map(({ name }) => `\`${name}\``);
  const rest = plain.length > 0 ? [`${tables.length > 0 ? 'Nothing more: ' : 'No options: '}${plain.join(', ')}.`] : [];
  return [...tables, ...rest].join('\n\n') || 'None.';
}

function ownOptions(schema: Schema): Schema {
  const shared: Readonly<Record<string, unknown>> = PROVIDER_OPTIONS;
  const properties = Object.entries((schema['properties'] ?? {}) as Readonly<Record<string, unknown>>);
  const own = properties.filter(([name, property]) => !isDeepStrictEqual(property, shared[name]));
  return { ...schema, properties: Object.fromEntries(own) };
}

function writeOrCheck(file: string, text: string, check: boolean): void {
  if (!check) {
    writeFileSync(file, text);
    return;
  }
  let current = '';
  try {
    current = readFileSync(file, 'utf8');
  } catch {
    // A file that is missing is out of date.
  }
  if (current === text) return;
  process.stderr.write(`${file} is out of date. Run: npm run schema\n`);
  process.exitCode = 1;
}
