import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import type { Price } from '../../contract/index.ts';
import { CASES, HELD, LOWERED, SMALL_CALLS } from './vendor-bills.ts';

/**
 * Tables of docs/bills.md: all cases, and the prices they are charged at, with sources. `npm run bills` writes them.
 */

interface Model {
  readonly source: readonly string[];
  readonly price?: Price;
}

interface Table {
  readonly sources: Readonly<Record<string, string>>;
  readonly families: Readonly<Record<string, { readonly fees?: Readonly<Record<string, number>> }>>;
  readonly vendors: Readonly<Record<string, Readonly<Record<string, Model>>>>;
}

const TABLE = JSON.parse(readFileSync(path.join(PACKAGE_ROOT, 'config', 'models.json'), 'utf8')) as Table;

/** US dollars in the gateway's format. */
const usd = (amount: number): string => amount.toFixed(9).replace(/0{1,7}$/, '');
const cells = (...all: readonly string[]): string => `| ${all.join(' | ')} |`;

/** One row per case, ordered by the rows of the defect list. */
export function caseLines(): readonly string[] {
  const priced = CASES.map(({ row, title, model, usd: amount, estimated }) => ({
    row,
    line: cells(row, title, model, `${amount === null ? 'unknown' : usd(amount)}${estimated ? ', estimated' : ''}`),
  }));
  const held = HELD.map(({ row, title, usd: amount }) => ({
    row,
    line: cells(row, `asked for: ${title}`, 'output/m', `${usd(amount)} held`),
  }));
  const lowered = LOWERED.map(({ row, balance, tokens, usd: amount }) => ({
    row,
    line: cells(row, `no limit named, ${balance} left: ${limitText(tokens)}`, 'own/gpt-5.5', usd(amount)),
  }));
  const { row, calls, tokens, price, usd: sum } = SMALL_CALLS;
  const small = { row, line: cells(row, `${calls} embeddings of ${tokens} tokens at ${price}`, 'small/m', usd(sum)) };
  const all = [...priced, ...held, ...lowered, small].sort((a, b) => Number(a.row.slice(1)) - Number(b.row.slice(1)));
  return [cells('Row', 'Reported', 'Model', 'USD'), cells('---', '---', '---', '---'), ...all.map(({ line }) => line)];
}

function limitText(tokens: number | null): string {
  if (tokens === null) return 'all of its output';
  return tokens === 0 ? '402' : `\`max_tokens\` ${tokens}`;
}

/** Prices of the vendors' models used by the cases, each with its source. */
export function priceLines(): readonly string[] {
  const models = [...new Set(CASES.map(({ model }) => model))].sort().flatMap((name) => {
    const [vendor = '', model = ''] = name.split('/');
    const row = findRow(vendor, model);
    if (!row?.price) return [];
    const { tiers = [], service_tiers: services = {}, fees, ...rates } = row.price;
    const long = tiers.map((tier) => `from ${tier.input_tokens_above} on ${ratesText(tier)}`);
    const served = Object.entries(services).map(([tier, price]) => `${tier} ${ratesText(price)}`);
    const all = { ...TABLE.families[vendor]?.fees, ...fees };
    const once = Object.entries(all).map(([unit, fee]) => `${unit} ${fee} each`);
    const sources = [...row.source, ...(once.length > 0 ? [`${vendor}-pricing`] : [])];
    return [cells(name, [ratesText(rates), ...long, ...served, ...once].join('; '), [...new Set(sources)].join(', '))];
  });
  return [cells('Model', 'US dollars a million tokens', 'From'), cells('---', '---', '---'), ...models];
}

/** Sources of those prices. */
export function sourceLines(): readonly string[] {
  const named = new Set(
    priceLines()
      .slice(2)
      .flatMap((line) => line.split(' | ')[2]?.replace(' |', '').split(', ') ?? []),
  );
  const rows = Object.entries(TABLE.sources).filter(([id]) => named.has(id));
  return [cells('Source', 'What'), cells('---', '---'), ...rows.map(([id, what]) => cells(id, what))];
}

/** Row of a model: exact match, otherwise a row whose id is a prefix of the name. */
function findRow(vendor: string, model: string): Model | undefined {
  const rows = Object.entries(TABLE.vendors[vendor] ?? {}).filter(([id]) => model.startsWith(id));
  return rows.sort(([a], [b]) => b.length - a.length)[0]?.[1];
}

const NAMES = Object.freeze([
  ...([
    ['input', 'in'],
    ['cached_input', 'cached'],
    ['cache_write', 'written'],
    ['output', 'out'],
  ] as const),
  ...([
    ['audio_input', 'sound in'],
    ['cached_audio_input', 'sound cached'],
    ['audio_output', 'sound out'],
  ] as const),
  ...([['image_output', 'images out']] as const),
]);

function ratesText(price: Omit<Price, 'service_tiers' | 'tiers'>): string {
  return NAMES.flatMap(([rate, name]) => (price[rate] === undefined ? [] : [`${name} ${price[rate]}`])).join(', ');
}

/** Replaces the tables in the page. */
function writeTables(): void {
  const page = path.join(PACKAGE_ROOT, 'docs', 'bills.md');
  const tables = [caseLines(), priceLines(), sourceLines()];
  const text = readFileSync(page, 'utf8').split('\n');
  for (const lines of tables) {
    const start = text.indexOf(lines[0] ?? '');
    const length = text.slice(start).findIndex((line) => !line.startsWith('| '));
    text.splice(start, length, ...lines);
  }
  writeFileSync(page, text.join('\n'));
}

if (process.argv[1] === import.meta.filename) writeTables();
