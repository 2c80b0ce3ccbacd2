import { isObject, type Schema } from '../core/contract/json.ts';

/** A schema's properties as a Markdown table, nested ones as `cors.origins`; empty when it has none. */
export function schemaTable(schema: Schema): string {
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
