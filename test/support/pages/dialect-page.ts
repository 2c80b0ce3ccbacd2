import { listBuiltins } from '../../../config/import-plugin.ts';
import { type DialectDefinition, isGatewayError, type Plugin } from '../../../core/index.ts';
import { setUpDialect } from '../../conformance/dialect-subject.ts';
import { dialectOptions } from '../formats/dialect-kits.ts';
import type { BuiltInProvider } from '../plugins/all-providers.ts';
import { DIALECT_FEATURES, type DialectFeature } from './dialect-features.ts';

/** What is between these lines of a page is written by `npm run matrix`. */
const BEGIN = '<!-- written by npm run matrix -->';
const END = '<!-- end of what npm run matrix writes -->';

/** A model of each provider that its own table knows most of. */
const MODELS: Readonly<Record<string, string>> = Object.freeze({
  anthropic: 'claude-sonnet-4-5',
  azure: 'gpt-4.1',
  gemini: 'gemini-3.8-flash',
  openai: 'gpt-4.1',
  xai: 'grok-4',
});

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

/** A page with its table written anew, at its end unless it has one already. */
export function writeTable(page: string, dialect: BuiltInDialect, providers: readonly BuiltInProvider[]): string {
  const table = [BEGIN, '', ...tableOf(dialect, providers), '', END].join('\n');
  const [before = '', rest] = page.split(BEGIN);
  return rest === undefined ? `${page.trimEnd()}\n\n${table}\n` : `${before}${table}${rest.split(END)[1] ?? '\n'}`;
}

function tableOf(dialect: BuiltInDialect, providers: readonly BuiltInProvider[]): readonly string[] {
  const { features } = DIALECT_FEATURES[dialect.name] ?? { features: [] };
  return [
    '## What providers make of it',
    '',
    '**native**: the body goes on as it is. **translated**: it says the same there. **emulated**: it gets something that comes to the same.',
    '**left out**: told in `x-tollgate-dropped`, but for hints such as `cache_control`. **refused**: 400 that names it. Written by `npm run matrix`, which asks each codec; models differ: see the',
    'provider’s own page.',
    '',
    `| | ${providers.map(({ name }) => `[${name}](../providers/${name}.md)`).join(' | ')} |`,
    `|---|${providers.map(() => '---').join('|')}|`,
    ...features.map(
      (feature) =>
        `| ${[feature.title, ...providers.map((provider) => cellOf(dialect, provider, feature))].join(' | ')} |`,
    ),
  ];
}

type Cell = 'native' | 'translated' | 'emulated' | 'left out' | 'refused';

/** What one provider makes of one request, found by reading it and handing it to the codec. */
export function cellOf(
  { name, dialect }: BuiltInDialect,
  { name: vendor, provider }: BuiltInProvider,
  feature: DialectFeature,
): Cell {
  const model = MODELS[vendor] ?? 'some-model';
  const { plain = {} } = DIALECT_FEATURES[name] ?? {};
  const [route] = dialect.routes.filter(({ path }) => !path.includes(':provider'));
  if (!route) throw new Error(`${name} has no route`);
  const body = { model, ...plain, ...feature.body };
  const input = { body, params: { model }, query: {}, headers: {}, route };
  if (provider.native?.(model, false)[name] && dialect.native) return 'native';
  try {
    let sentBody = '';
    const told = (of: object): ReadonlySet<string> => {
      const { request, dropped = [], needs = [] } = dialect.read({ ...input, body: of });
      if (needs.some(({ optional }) => optional !== true)) throw REFUSED;
      const call = { model, stream: false, created: 0, id: 'page' };
      const sent = provider.chat?.request({ ...request, model }, { ...call, request });
      // What stands there unread by the vendor is not kept.
      sentBody = JSON.stringify(sent?.body, (key, value: unknown) => (key === 'dialect_fields' ? undefined : value));
      return new Set([...dropped, ...needs.map((need) => need.name), ...(sent?.dropped ?? [])]);
    };
    const usual = told({ model, ...plain });
    if ([...told(body)].some((one) => !usual.has(one))) return 'left out';
    if (feature.kept && !feature.kept.test(sentBody)) return 'left out';
  } catch (error) {
    if (error === REFUSED || (isGatewayError(error) && error.status === 400)) return 'refused';
    throw error;
  }
  const rule = feature.field === undefined ? undefined : provider.fields?.fields[feature.field];
  return rule?.rule === 'emulated' ? 'emulated' : 'translated';
}

const REFUSED = new Error('a need that only a vendor of the format has');
