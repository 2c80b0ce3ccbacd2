import { isObject } from '../../../contract/json.ts';
import type { ModelTable } from '../../../contract/provider.ts';

/** Text of the table: a line for each model, source and family. */
export function formatTable(table: ModelTable): string {
  const parts = Object.entries(table).map(([key, value]) => {
    if (key === 'vendors') return [key, formatBlock(value, '  ', formatRows)] as const;
    return [key, isObject(value) ? formatBlock(value, '  ', formatLine) : formatLine(value)] as const;
  });
  return `${formatBlock(Object.fromEntries(parts), '', String)}\n`;
}

/** npm package `tollgate-models`, by file name. Its major version is the version of the format. */
export function packageOf(table: ModelTable): Readonly<Record<string, string>> {
  const manifest = {
    name: 'tollgate-models',
    version: `1.${table.version ?? 0}.0`,
    description: 'Models and prices for the gateway Tollgate, which `tollgate models update` reads.',
    license: 'MIT',
    files: ['models.json'],
  };
  return {
    'models.json': formatTable(table),
    'package.json': `${JSON.stringify(manifest, undefined, 2)}\n`,
    'README.md': `# tollgate-models\n\n${manifest.description} Edition ${table.version} of ${table.date}.\n`,
  };
}

function formatRows(rows: unknown): string {
  return isObject(rows) ? formatBlock(rows, '    ', formatLine) : formatLine(rows);
}

function formatBlock(members: object, indent: string, format: (value: unknown) => string): string {
  const lines = Object.entries(members).map(([key, value]) => `${indent}  ${JSON.stringify(key)}: ${format(value)}`);
  return lines.length === 0 ? '{}' : `{\n${lines.join(',\n')}\n${indent}}`;
}

function formatLine(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(formatLine).join(', ')}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const members = Object.entries(value).map(([key, each]) => `${JSON.stringify(key)}: ${formatLine(each)}`);
  return `{${members.join(', ')}}`;
}
