import { setImmediate } from 'node:timers/promises';
import { type CallRow, GatewayError, type Ledger } from '../../../contract/index.ts';
import { type Counted, type Days, type Quantities, tierName, type VendorBill } from './vendors.ts';

/** Compares our call records with a vendor's usage and charges: finds differences and explains them. */

/** Cause of a difference in the sum of a day and model. */
export type Cause =
  | 'ledger_lacks_calls'
  | 'vendor_lacks_calls'
  | 'quantity'
  | 'tier'
  | 'price'
  | 'no_price'
  | 'unknown_cost'
  | 'unexplained';

/** Explanation for a part of a difference. */
export interface Explanation {
  readonly cause: Cause;
  /** Readable sentence. */
  readonly text: string;
  /** Unit, if it concerns only one. */
  readonly unit?: string;
  readonly here?: number;
  readonly vendor?: number;
  /** US dollars that the vendor charges more for this reason; negative for less. */
  readonly usd: number;
}

/** One side of a row. */
export interface Side {
  /** Undefined if calls are not counted. */
  readonly calls: number | undefined;
  readonly units: Quantities;
  readonly usd: number;
}

export interface Row {
  readonly day: string;
  readonly model: string;
  readonly here: Side;
  readonly vendor: Side;
  /** Vendor projects and keys that contributed. */
  readonly owners: readonly (Pick<Side, 'calls' | 'units'> & { readonly name: string })[];
  readonly explanations: readonly Explanation[];
}

/** Sums of one day and model, on one side. */
interface Sums {
  calls: number | undefined;
  readonly units: Record<string, number>;
  /** US dollars by unit; for a unit without a price the known part. */
  readonly usd: Record<string, number>;
  /** Total US dollars. */
  total: number;
  /** Quantities without a price. */
  readonly unpriced: Record<string, number>;
  readonly tiers: Record<string, number>;
  readonly owners: Record<string, Sums>;
  /** Calls of unknown cost, their charge, and the part of it beyond the known costs. */
  held: number;
  heldCharged: number;
  heldUsd: number;
  estimated: number;
}

const noSums = (): Sums => ({
  calls: 0,
  units: {},
  usd: {},
  total: 0,
  unpriced: {},
  tiers: {},
  owners: {},
  held: 0,
  heldCharged: 0,
  heldUsd: 0,
  estimated: 0,
});

/** Sums by day and model. */
type Book = Map<string, Sums>;

function sumsAt(book: Book, day: string, model: string): Sums {
  const key = `${day} ${model}`;
  const known = book.get(key);
  if (known) return known;
  const made = noSums();
  book.set(key, made);
  return made;
}

function add(to: Record<string, number>, name: string, value: number): void {
  to[name] = (to[name] ?? 0) + value;
}

/** Maximum records read for one command. */
const MOST_RECORDS = 5_000_000;
const PAGE = 1000;
/** Longest delay between the time of a record and its settlement. */
const LONGEST_LAG_MS = 3_600_000;
const NANO = 1e9;

/** Sums of our records, and the number of calls without a record. */
interface Records {
  readonly book: Book;
  readonly missing: number;
  readonly skipped: number;
}

/** Reads the records of calls to the given providers. */
async function readRecords(
  ledger: Pick<Ledger, 'calls' | 'report'>,
  providers: readonly string[],
  { from, to }: Days,
  isCoarse: boolean,
): Promise<Records> {
  const book: Book = new Map();
  let [seen, skipped, counted] = [0, 0, 0];
  for (const provider of providers) {
    for (const { requests } of await ledger.report({ provider, edges: [from, to], by: [] })) counted += requests;
    for (let after: string | undefined; ; ) {
      const range = { from, to: to + LONGEST_LAG_MS, limit: PAGE };
      const page = await ledger.calls({ provider, ...range, ...(after !== undefined && { after }) });
      for (const call of page.calls) {
        if (call.countedAt < from || call.countedAt >= to) continue;
        seen += 1;
        if (call.operation === 'speech') skipped += 1;
        else recordCall(book, call, isCoarse);
      }
      after = page.next;
      if (after === undefined) break;
      if (seen > MOST_RECORDS)
        throw new GatewayError('invalid_request', `more than ${MOST_RECORDS} records found\nUse fewer days.`);
      // A store may reply synchronously: let an interrupt in first.
      await setImmediate();
    }
  }
  return { book, missing: Math.max(counted - seen, 0), skipped };
}

/**
 * Adds a call that a vendor bills to the operator. Skips refused calls, cached responses, and calls paid by the
 * caller's own subscription.
 */
function recordCall(book: Book, call: CallRow, isCoarse: boolean): void {
  const { countedAt, model, units, costParts = [], cost, priced, outcome, estimated, saved } = call;
  const isExpired = outcome === 'expired';
  if (saved !== undefined || (Object.keys(units).length === 0 && !isExpired)) return;
  if (costParts.some(({ unit }) => unit === 'own_subscription')) return;
  const sums = sumsAt(book, new Date(countedAt).toISOString().slice(0, 10), model);
  sums.calls = (sums.calls ?? 0) + 1;
  if (estimated) sums.estimated += 1;
  let known = 0;
  for (const { unit, quantity, usd } of costParts) {
    known += usd ?? 0;
    if (isCoarse) continue;
    add(sums.units, unit, quantity);
    if (usd === null) add(sums.unpriced, unit, quantity);
    else add(sums.usd, unit, usd);
  }
  const { prompt_tokens: prompt = 0, completion_tokens: written = 0 } = units;
  if (isCoarse) {
    add(sums.units, 'prompt_tokens', prompt);
    add(sums.units, 'completion_tokens', written);
  }
  add(sums.tiers, tierName(call.serviceTier ?? ''), prompt + written);
  sums.total += cost / NANO;
  if (priced && !isExpired) return;
  sums.held += 1;
  sums.heldCharged += cost / NANO;
  sums.heldUsd += cost / NANO - known;
}

/** Reads the vendor's data under the names of our records. */
function readVendor({ counted, charged }: VendorBill, ours: Book): Book {
  const named = new Set([...ours.keys()].map((key) => key.slice(key.indexOf(' ') + 1)));
  const nameOf = (model: string): string => {
    const plain = model.replace(/-(?:20\d\d-\d\d-\d\d|20\d{6})$/, '');
    return !named.has(model) && named.has(plain) ? plain : model;
  };
  const book: Book = new Map();
  for (const row of counted) recordCounted(sumsAt(book, row.day, nameOf(row.model)), row);
  for (const { day, model, unit, usd } of charged) {
    const shares = model === '' && unit !== undefined ? sharesOf(counted, day, unit) : [];
    const all: readonly (readonly [string, number])[] = shares.length > 0 ? shares : [[model, 1]];
    for (const [name, share] of all) {
      const sums = sumsAt(book, day, nameOf(name));
      if (unit !== undefined) add(sums.usd, unit, usd * share);
      sums.total += usd * share;
    }
  }
  return book;
}

function recordCounted(sums: Sums, { owner, tier, calls, units }: Counted): void {
  sums.owners[owner] ??= noSums();
  for (const each of [sums, sums.owners[owner]]) {
    each.calls = calls === undefined || each.calls === undefined ? undefined : each.calls + calls;
    for (const [unit, quantity] of Object.entries(units)) add(each.units, unit, quantity);
  }
  const tokens = Object.entries(units).filter(([unit]) => unit.endsWith('_tokens'));
  const sum = tokens.reduce((total, [, quantity]) => total + quantity, 0);
  if (sum > 0) add(sums.tiers, tier, sum);
}

/** Distributes charges for all models together, such as searches, by each model's share of the quantity. */
function sharesOf(counted: readonly Counted[], day: string, unit: string): readonly (readonly [string, number])[] {
  const rows = counted.filter((row) => row.day === day && (row.units[unit] ?? 0) > 0);
  const all = rows.reduce((sum, { units }) => sum + (units[unit] ?? 0), 0);
  return rows.map(({ model, units }) => [model, (units[unit] ?? 0) / all]);
}

/** Smallest relevant difference: half of the smallest unit. */
const LEAST_USD = 0.5 / NANO;

/** Explains the difference between the vendor's charge and our records. */
function explain(here: Sums, vendor: Sums, isCoarse: boolean): readonly Explanation[] {
  const found: Explanation[] = [];
  if (here.held > 0)
    found.push({
      cause: 'unknown_cost',
      here: here.held,
      usd: 0 - here.heldUsd,
      text: `${plural(here.held, 'call')} without a known cost here, charged ${round(here.heldCharged)} USD`,
    });
  const { quantities, unpriced, prices } = explainUnits(here, vendor, isCoarse);
  found.push(...unpriced, ...explainCalls(here, vendor, quantities));
  const moved = isCoarse ? undefined : movedTier(here.tiers, vendor.tiers);
  if (moved !== undefined && prices.length > 0)
    found.push({ cause: 'tier', text: `another service tier: ${moved}`, usd: sumOf(prices) });
  else found.push(...prices);
  const rest = vendor.total - here.total - sumOf(found);
  // Each call is rounded up, to a whole nano-dollar.
  if (Math.abs(rest) <= ((here.calls ?? 0) + 1) / NANO) return found;
  if (!isCoarse)
    return [...found, { cause: 'unexplained', usd: rest, text: 'no explanation found in the data of both sides' }];
  const at = found.findLastIndex(({ cause }) => cause !== 'unknown_cost');
  const last = found[at];
  if (!last)
    return [
      ...found,
      { cause: 'price', usd: rest, text: 'prices: the same number of tokens has another cost at the vendor' },
    ];
  // A sum over all units cannot be split, so all of it is attributed to the units counted differently.
  return found.with(at, { ...last, usd: rest });
}

const sumOf = (all: readonly Explanation[]): number => all.reduce((sum, { usd }) => sum + usd, 0);

interface ByUnit {
  readonly quantities: readonly Explanation[];
  readonly unpriced: readonly Explanation[];
  readonly prices: readonly Explanation[];
}

/** Explains each unit by its quantity and its price. */
function explainUnits(here: Sums, vendor: Sums, isCoarse: boolean): ByUnit {
  const quantities: Explanation[] = [];
  const unpriced: Explanation[] = [];
  const prices: Explanation[] = [];
  const units = new Set([...Object.keys(here.units), ...Object.keys(vendor.units), ...Object.keys(vendor.usd)]);
  for (const unit of units) {
    const [ours, theirs] = [here.units[unit] ?? 0, vendor.units[unit] ?? 0];
    const free = here.unpriced[unit] ?? 0;
    const priced = ours - free;
    const own = priced > 0 && !isCoarse ? (here.usd[unit] ?? 0) / priced : undefined;
    const charged = vendor.usd[unit] ?? 0;
    const price = theirs > 0 && !isCoarse ? charged / theirs : (own ?? 0);
    const at = { unit, here: ours, vendor: theirs };
    const what = `${unit}: ${ours} here, ${theirs} at the vendor`;
    if (ours !== theirs) quantities.push({ cause: 'quantity', ...at, usd: (theirs - ours) * price, text: what });
    else if (theirs === 0 && Math.abs(charged) > LEAST_USD)
      quantities.push({
        cause: 'quantity',
        ...at,
        usd: charged,
        text: `${unit}: counted by neither side, charged by the vendor`,
      });
    if (free > 0)
      unpriced.push({
        cause: 'no_price',
        ...at,
        usd: free * price,
        text: `${free} ${unit} have no price in the gateway`,
      });
    const more = own === undefined ? 0 : priced * (price - own);
    if (own !== undefined && Math.abs(more) > LEAST_USD)
      prices.push({
        cause: 'price',
        unit,
        here: own,
        vendor: price,
        usd: more,
        text: `the price of ${unit}: ${priceText(unit, own)} here, ${priceText(unit, price)} at the vendor`,
      });
  }
  return { quantities, unpriced, prices };
}

function priceText(unit: string, usd: number): string {
  return unit.endsWith('_tokens') ? `${round(usd * 1e6)} USD a million` : `${round(usd)} USD`;
}

const round = (value: number): string => String(Number(value.toPrecision(6)));
const plural = (number: number, noun: string): string => `${number} ${noun}${number === 1 ? '' : 's'}`;

/** Differences of quantities: missing calls of one side if they explain everything, else each unit. */
function explainCalls(here: Sums, vendor: Sums, quantities: readonly Explanation[]): readonly Explanation[] {
  const more = vendor.calls === undefined ? undefined : vendor.calls - (here.calls ?? 0);
  // A vendor without call counts may still have usage on a day for which we have none.
  const isLacking = more === undefined ? here.calls === 0 && quantities.length > 0 : more > 0;
  if (more === 0 || (more === undefined && !isLacking)) {
    const guess = here.estimated > 0 ? `; ${plural(here.estimated, 'call')} here estimated` : '';
    return quantities.map((each) => ({ ...each, text: each.text + guess }));
  }
  const isAll = quantities.every(({ here: ours = 0, vendor: theirs = 0 }) => theirs > ours === isLacking);
  const units: Quantities = Object.fromEntries(
    quantities.map(({ unit = '', here: ours = 0, vendor: theirs = 0 }) => [unit, Math.abs(theirs - ours)]),
  );
  const parts = Object.entries(units).map(([unit, quantity]) => `${quantity} ${unit}`);
  const number = more === undefined ? 'calls' : plural(Math.abs(more), 'call');
  const whose = isLacking ? ownerOf(vendor, more, units) : undefined;
  const explained: Explanation = {
    cause: isLacking ? 'ledger_lacks_calls' : 'vendor_lacks_calls',
    text: `the ${isLacking ? 'ledger' : 'vendor'} lacks ${number}${isAll && parts.length > 0 ? ` (${parts.join(', ')})` : ''}${whose === undefined ? '' : `, as many as ${whose} has`}`,
    ...(more !== undefined && { here: here.calls ?? 0, vendor: vendor.calls ?? 0 }),
    usd: isAll ? sumOf(quantities) : 0,
  };
  return isAll ? [explained] : [explained, ...quantities];
}

/** Vendor project and key, one of several, whose usage exactly matches the calls missing in the ledger. */
function ownerOf({ owners }: Sums, calls: number | undefined, units: Quantities): string | undefined {
  const all = Object.entries(owners);
  if (all.length < 2) return undefined;
  return all.find(
    ([, own]) =>
      (calls === undefined || own.calls === calls) &&
      Object.entries(own.units).every(([unit, quantity]) => units[unit] === quantity) &&
      Object.keys(units).length === Object.keys(own.units).length,
  )?.[0];
}

/** Tokens that the vendor served in another tier than in our records; undefined if there are no such tokens. */
function movedTier(here: Quantities, vendor: Quantities): string | undefined {
  const names = [...new Set([...Object.keys(here), ...Object.keys(vendor)])];
  const more = names.map((name) => ({ name, by: (vendor[name] ?? 0) - (here[name] ?? 0) })).sort((a, b) => a.by - b.by);
  const [from, to] = [more[0], more.at(-1)];
  if (!from || !to || from.by >= 0 || to.by <= 0) return undefined;
  return `${from.name} here, ${to.name} at the vendor, of ${Math.min(-from.by, to.by)} tokens`;
}

export interface Comparison {
  readonly rows: readonly Row[];
  readonly notes: readonly string[];
}

/** Compares the records of calls to the given providers with their vendor's bill, by day and model. */
export async function compareWith(
  bill: VendorBill,
  ledger: Pick<Ledger, 'calls' | 'report'>,
  providers: readonly string[],
  days: Days,
): Promise<Comparison> {
  const { book, missing, skipped } = await readRecords(ledger, providers, days, bill.isCoarse);
  const theirs = readVendor(bill, book);
  const rows = [...new Set([...book.keys(), ...theirs.keys()])].sort().map((key): Row => {
    const here = book.get(key) ?? noSums();
    const vendor = theirs.get(key) ?? noSums();
    if (!bill.isPriced) priceAsHere(vendor, here);
    const owners = Object.entries(vendor.owners).map(([name, { calls, units }]) => ({ name, calls, units }));
    const [day = '', model = ''] = [key.slice(0, key.indexOf(' ')), key.slice(key.indexOf(' ') + 1)];
    const isSum = bill.isCoarse || (Object.keys(vendor.usd).length === 0 && vendor.total !== 0);
    const explanations = explain(here, vendor, isSum);
    return { day, model, here: sideOf(here), vendor: sideOf(vendor), owners, explanations };
  });
  const notes = [...bill.notes];
  if (missing > 0)
    notes.push(
      `${plural(missing, 'call')} of these days have no records (policies.accounts.keepCalls) and are missing.`,
    );
  if (skipped > 0) notes.push(`${plural(skipped, 'call')} of speech are not compared.`);
  return { rows, notes };
}

/** Applies our prices to a vendor without costs, so that only quantities are compared. */
function priceAsHere(vendor: Sums, here: Sums): void {
  for (const [unit, quantity] of Object.entries(vendor.units)) {
    const ours = here.units[unit] ?? 0;
    const usd = ours === 0 ? 0 : (quantity * (here.usd[unit] ?? 0)) / ours;
    vendor.usd[unit] = usd;
    vendor.total += usd;
  }
}

const sideOf = ({ calls, units, total }: Sums): Side => ({ calls, units, usd: total });
