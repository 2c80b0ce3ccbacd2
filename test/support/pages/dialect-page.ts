import { listBuiltins } from '../../../config/import-plugin.ts';
import type { DialectDefinition, Plugin } from '../../../contract/index.ts';
import { setUpDialect } from '../../conformance/dialect-subject.ts';
import { dialectOptions } from '../formats/dialect-kits.ts';
import type { BuiltInProvider } from '../plugins/all-providers.ts';
import { DIALECT_FEATURES } from './dialect-features.ts';
import { type DialectRuns, NEWEST } from './dialect-runs.ts';

/** `npm run matrix` writes the text between these lines of a page. */
const BEGIN = '<!-- written by npm run matrix -->';
const END = '<!-- end of what npm run matrix writes -->';

export interface BuiltInDialect {
  readonly name: string;
  readonly dialect: DialectDefinition;
}

export async function loadDialects(): Promise<readonly BuiltInDialect[]> {
  const found = listBuiltins().filter(({ kind }) => kind === 'dialect');
  return Promise.all(
    found.map(async ({ name, url }) => {
      const { default: plugin } = (await import(url)) as { readonly default: Plugin };
      return { name, dialect: setUpDialect(plugin, dialectOptions(name).config) };
    }),
  );
}

/** Returns a page with its table replaced, or added at its end. */
export async function writeTable(
  page: string,
  { name }: BuiltInDialect,
  providers: readonly BuiltInProvider[],
  runs: DialectRuns,
): Promise<string> {
  const table = [BEGIN, '', ...(await tableOf(name, providers, runs)), '', END].join('\n');
  const [before = '', rest] = page.split(BEGIN);
  return rest === undefined ? `${page.trimEnd()}\n\n${table}\n` : `${before}${table}${rest.split(END)[1] ?? '\n'}`;
}

async function tableOf(
  dialect: string,
  providers: readonly BuiltInProvider[],
  runs: DialectRuns,
): Promise<readonly string[]> {
  const { features } = DIALECT_FEATURES[dialect] ?? { features: [] };
  const rows: string[] = [];
  for (const feature of features) {
    const cells: string[] = [feature.title];
    for (const provider of providers) cells.push(await runs.cellOf(dialect, provider, feature));
    rows.push(`| ${cells.join(' | ')} |`);
  }
  const models = Object.entries(NEWEST).map(([name, model]) => `${name} \`${model}\``);
  return [
    '## Provider support',
    '',
    '**native**: the body goes on as it is. **translated**: it says the same there. **emulated**: it gets something that comes to the same.',
    '**left out**: reported in `x-tollgate-dropped`, but for hints such as `cache_control`. **refused**: 400 that names it. Written by `npm run matrix`, which sends each',
    'request through a gateway and looks at the bytes that the vendor gets, for its newest model; other models differ: see the provider’s own page.',
    `Models: ${models.join(', ')}.`,
    '',
    `| | ${providers.map(({ name }) => `[${name}](../providers/${name}.md)`).join(' | ')} |`,
    `|---|${providers.map(() => '---').join('|')}|`,
    ...rows,
  ];
}
