import type {
  Endpoint,
  FieldRules,
  FieldTable,
  ModelInfo,
  Price,
  PriceRow,
  ProviderEffect,
  ProviderEffects,
  Schema,
} from '../../../contract/index.ts';
import { abilityOf } from '../../../contract/server-tools.ts';
import { loadModelTable, rowsOf } from '../../../models/model-table.ts';
import { PROVIDER_OPTIONS, TURN_ORDER_OPTION } from '../../../plugins/providers/kit/index.ts';
import type { BuiltInProvider } from '../plugins/all-providers.ts';
import { type Arrival, type DialectRuns, newestOf } from './dialect-runs.ts';

const VERBS = {
  passed: 'passed',
  renamed: 'renamed',
  emulated: 'emulated',
  dropped: 'dropped',
  refused: 'refused',
} as const;

/** Arrival of each field, by name; fields without a sample are missing. */
export type Arrivals = Readonly<Record<string, Arrival | undefined>>;

/** Marks of the parts of a page that a person writes: the guide below the title, and notes at the end. */
const GUIDE = /<!-- guide -->[\s\S]*?<!-- \/guide -->\n\n/;
const NOTES = /\n<!-- notes -->[\s\S]*?<!-- \/notes -->\n$/;

/** Puts the written parts of the page so far into the new page. */
export function keepWritten(before: string, page: string): string {
  const [guide = ''] = GUIDE.exec(before) ?? [];
  const [notes = ''] = NOTES.exec(before) ?? [];
  return page.replace('\n\n', () => `\n\n${guide}`) + notes;
}

/** Arrival of each field of the provider's table at its vendor, through a gateway. */
export async function readArrivals(built: BuiltInProvider, runs: Pick<DialectRuns, 'arrivalOf'>): Promise<Arrivals> {
  const arrivals: Record<string, Arrival | undefined> = {};
  for (const field of Object.keys(built.provider.fields?.fields ?? {}))
    if (!WHOLE.has(field)) arrivals[field] = await runs.arrivalOf(built, field);
  return arrivals;
}

/** Fields that every request has. */
const WHOLE: ReadonlySet<string> = new Set(['messages', 'model', 'stream']);

/** `docs/providers/<name>.md`: the provider's own data, and the fields that reached its vendor, for readers. */
export function formatProviderPage({ name, plugin, provider }: BuiltInProvider, arrivals: Arrivals): string {
  const { fields: table, credential, baseUrl } = provider;
  const options = Object.entries(ownOptions(plugin.configSchema)).map(
    ([option, { description }]) => `- \`${option}\`: ${String(description ?? '')}`,
  );
  return [
    `# ${name}`,
    '',
    'Written from the plugin’s own data by `npm run matrix`; `test/docs/provider-pages.slow.test.ts` holds it to that.',
    `What was tested is in [the matrix](matrix.md).`,
    '',
    `- Base URL: \`${baseUrl}\``,
    credential?.placeholder !== undefined
      ? '- Key: `apiKey`, sent in the header that the package writes.'
      : credential?.required === false
        ? '- Key: none needed.'
        : `- Key: \`apiKey\`${credential?.env ? `, usually from \`${credential.env}\`` : ''}, sent as \`${credential?.header}\`.`,
    `- Other operations: ${provider.operations.join(', ') || 'nothing'} ([operations](../plugins/operations.md)). Model list from the vendor: ${provider.listModels ? 'yes' : 'no'}.`,
    '',
    ...(options.length > 0 ? ['Options of its own:', '', ...options, ''] : []),
    ...(table
      ? [
          '## Request fields',
          '',
          table.unknown === 'passed'
            ? 'Fields that are not in the table are passed as they are.'
            : `Other fields of OpenAI’s are passed; fields that OpenAI does not have are dropped${extrasText(table.extras)}.`,
          'A dropped field is named in `x-tollgate-dropped`, a refused one answers 400 with its name in `param`.',
          `The third column says what a scripted vendor got of it for \`${newestOf(name)}\`, from the bytes of a request with and one without the field; other models may differ.`,
          '',
          ...rulesTable(table.fields, { arrivals, model: newestOf(name) }),
          ...(table.variants ?? []).flatMap((variant) => [
            `### ${variant.when}`,
            '',
            'Laid over the table above.',
            '',
            ...rulesTable(variant.fields),
          ]),
          ...effectsSection(provider.effects, table),
          ...keptSection(everyEffect(provider.effects, table), ownOptions(plugin.configSchema), table.fields),
          ...billSection(name),
          ...listOf('What its answers never show', Object.entries(table.lacks ?? {}).map(lackText)),
        ]
      : []),
  ].join('\n');
}

function listOf(title: string, lines: readonly string[]): readonly string[] {
  return lines.length > 0 ? [`## ${title}`, '', ...lines.map((line) => `- ${line}`), ''] : [];
}

function lackText([feature, why]: readonly [string, string]): string {
  return `${sentence(feature).slice(0, -1)}: ${why}.`;
}

interface Seen {
  readonly arrivals: Arrivals;
  readonly model: string;
}

function rulesTable(fields: FieldRules, seen?: Seen): readonly string[] {
  const rows = Object.entries(fields)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([field, rule]) => {
      const does = `${VERBS[rule.rule]}${rule.to === undefined ? '' : ` to \`${rule.to}\``}`;
      const range = rule.min === undefined && rule.max === undefined ? '' : `${rule.min} to ${rule.max}. `;
      const neutral = rule.neutral
        ? ` Not for ${rule.neutral.map((value) => `\`${JSON.stringify(value)}\``).join(', ')}.`
        : '';
      const arrived = seen ? ` ${arrivalText(seen.arrivals[field])} |` : '';
      return `| \`${field}\` | ${does} |${arrived} ${`${range}${sentence(rule.note)}${neutral}`.trim()} |`;
    });
  return seen
    ? [`| Field | Rule | Arrives at \`${seen.model}\` | |`, '|---|---|---|---|', ...rows, '']
    : ['| Field | Rule | |', '|---|---|---|', ...rows, ''];
}

function arrivalText(arrival: Arrival | undefined): string {
  if (!arrival) return '';
  const { is, at } = arrival;
  const places = at.map((place) => (place.includes(' ') ? place : `\`${place}\``)).join(', ');
  if (is === 'rewritten') return places === '' ? 'nothing, which comes to the same' : `in ${places}`;
  return is === 'left out' && at.length > 0 ? `${is}, but ${places}` : is;
}

/** Effects of sent fields: one table, or one per API of the vendor. */
function effectsSection(declared: Endpoint['effects'], { fields, variants = [] }: FieldTable): readonly string[] {
  const head = [
    ...['## What a caller can make this vendor do', ''],
    'Looked for in every request as it is sent, whichever way it came ([security](../security.md#what-a-vendor-may-be-made-to-do)).',
    '',
  ];
  if (typeof declared !== 'function') {
    const rows = effectsTable(declared, fields);
    return rows.length > 0 ? [...head, ...rows] : [];
  }
  const others = declared('');
  const own = variants.filter(({ example }) => declared(example.model) !== others);
  return [
    ...head,
    ...effectsTable(others, fields),
    ...own.flatMap(({ when, example, fields: its }) => [
      ...[`### Effects of ${when}`, '', 'In place of the table above.', ''],
      ...effectsTable(declared(example.model), { ...fields, ...its }),
    ]),
  ];
}

function effectsTable(effects: ProviderEffects = {}, fields: FieldRules): readonly string[] {
  const rows = Object.entries(effects)
    .filter(([field]) => !/^(?:dropped|refused)$/.test(fields[field]?.rule ?? ''))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([field, rules]) => rules.map((rule) => effectRow(field, rule)));
  return rows.length === 0 ? [] : ['| Field | Values | What it does, and who may |', '|---|---|---|', ...rows, ''];
}

/** Effects of all APIs of the vendor. */
function everyEffect(declared: Endpoint['effects'], { variants = [] }: FieldTable): ProviderEffects {
  if (typeof declared !== 'function') return declared ?? {};
  return Object.assign({}, declared(''), ...variants.map(({ example }) => declared(example.model))) as ProviderEffects;
}

function effectRow(field: string, rule: ProviderEffect): string {
  const { at, values, note } = rule;
  const place = at === undefined ? field : `${field}.${at}`.replaceAll('.[]', '[]');
  const texts = values ? `\`${values.source.replaceAll('|', '\\|')}\`` : 'any';
  return `| \`${place}\` | ${texts} | ${[gateOf(rule), note].map(sentence).join(' ').trim()} |`;
}

/** Consequence of an effect, in words. */
function gateOf({ does, name }: ProviderEffect): string {
  if (does === 'tool') return `runs a tool: 403 without ${permissionsFor(name)} in \`serverTools\``;
  if (does === 'model') return `calls ${name === '*' ? 'any' : 'that'} model: 403 where the key may not use it`;
  if (does === 'stores')
    return 'keeps what is sent and written: dropped and reported, or 400 where it would be sent unchanged';
  return does === 'price' ? 'changes the price' : 'says where, or by whom, a request is processed';
}

/** Permissions that allow a tool; undefined for a tool that the value names. */
function permissionsFor(name: string | undefined): string {
  if (name === undefined) return 'its ability or name';
  const ability = abilityOf(name);
  return ability === undefined || ability === name ? `\`${name}\`` : `\`${ability}\` or \`${name}\``;
}

/** Data that a request can make the vendor store, and its use. */
function keptSection(
  effects: ProviderEffects = {},
  options: Readonly<Record<string, Schema>>,
  fields: FieldRules,
): readonly string[] {
  const keeping = Object.keys(effects).filter((field) => effects[field]?.some(({ does }) => does === 'stores'));
  const names = keeping.sort().map((field) => `\`${field}\``);
  const store = fields.store?.rule === 'emulated' ? ' `store: false` is written into every request.' : '';
  return [
    ...['## What is kept', ''],
    names.length === 0
      ? `No field of a request makes this vendor keep what is sent.${store}`
      : `Fields that would make this vendor keep what is sent and written do not go to it: ${names.join(', ')}.${store}`,
    ...('store' in options ? ['The option `store` lets callers decide.'] : []),
    'What a vendor logs by its own terms no request can change. What the gateway itself keeps is in [personal data](../security.md#personal-data).',
    '',
  ];
}

const TABLE = loadModelTable();
/** Rates with a column. */
const SHOWN: ReadonlySet<string> = new Set(['input', 'output', 'cached_input']);
const HEAD = [
  '| Model | Context | Input | From its cache | Output | Other prices | Holds |',
  '|---|---|---|---|---|---|---|',
];

/** Models and prices of a vendor in the package, as of the date of its table. */
function billSection(name: string): readonly string[] {
  const { accepts, fees, regions } = TABLE.families?.[name] ?? {};
  const rows = rowsOf(name, TABLE).filter(({ shutdown }) => shutdown === undefined || shutdown > (TABLE.date ?? ''));
  const other = [
    ...Object.entries(fees ?? {}).map(([unit, usd]) => `${unit} ${usd} USD each`),
    ...Object.entries(regions ?? {}).map(
      ([region, factor]) => `in the region \`${region}\` ${factor} times the prices`,
    ),
  ];
  return [
    ...['## What is served and billed', ''],
    rows.length === 0
      ? 'The package has no prices for it: set `prices` ([money](../money.md#where-prices-come-from)); without, the cost of a call is reported as unknown.'
      : `Prices of the package’s table of ${TABLE.date}, in USD a million tokens; yours go before them ([money](../money.md#where-prices-come-from)). What the response says was used is charged.`,
    ...(accepts
      ? [
          `Other names are served when they begin with ${accepts.map((name) => `\`${name}\``).join(', ')}; their cost is unknown until they have a price.`,
        ]
      : []),
    ...(other.length > 0 ? [`Besides: ${other.join(', ')}.`] : []),
    ...['', ...(rows.length > 0 ? [...HEAD, ...rows.flatMap(billRows), ''] : [])],
  ];
}

function billRows({ id, contextWindow, shutdown, price }: ModelInfo): readonly string[] {
  const prices: readonly Partial<PriceRow>[] = isRows(price) ? price : [price ?? {}];
  return prices.map((row) => {
    const { input, output, cached_input: cached, from, until, hours, tiers = [], service_tiers: services = {} } = row;
    const other = [
      ...Object.entries(row)
        .filter(([part, rate]) => typeof rate === 'number' && !SHOWN.has(part))
        .map(([part, rate]) => `${part.replaceAll('_', ' ')} ${rate}`),
      ...tiers.map((tier) => `over ${tier.input_tokens_above} tokens ${tier.input} / ${tier.output}`),
      ...Object.entries(services).map(([service, rates]) => `\`${service}\` ${rates.input} / ${rates.output}`),
    ];
    const holds = [from && `from ${from}`, until && `until ${until}`, hours, shutdown && `ends ${shutdown}`].filter(
      Boolean,
    );
    const cells = [
      contextWindow,
      price === undefined ? 'unknown' : input,
      cached,
      output,
      other.join('; '),
      holds.join(', '),
    ];
    return `| \`${id}\` | ${cells.map((cell) => cell ?? '').join(' | ')} |`;
  });
}

const isRows = (price: Price | readonly PriceRow[] | undefined): price is readonly PriceRow[] => Array.isArray(price);

function sentence(note = ''): string {
  if (note === '') return '';
  const begun = note.startsWith('`') ? note : `${note.charAt(0).toUpperCase()}${note.slice(1)}`;
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
}

function extrasText(extras: readonly string[] | undefined): string {
  return extras && extras.length > 0 ? `, but for ${extras.map((field) => `\`${field}\``).join(', ')}` : '';
}

function ownOptions(schema: object | undefined): Readonly<Record<string, Schema>> {
  const { properties = {} } = (schema ?? {}) as { readonly properties?: Readonly<Record<string, Schema>> };
  const common = { ...PROVIDER_OPTIONS, ...TURN_ORDER_OPTION };
  return Object.fromEntries(Object.entries(properties).filter(([option]) => !(option in common)));
}
