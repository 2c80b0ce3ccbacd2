import { isIP } from 'node:net';
import { crc32 } from 'node:zlib';
import type { CallFacts, CallQuery } from '../../../contract/index.ts';
import { factText } from './facts.ts';

/**
 * Terms: values of records that a search can name, such as an error code or an address. A store remembers in which parts
 * of a day a term occurs, so a search reads the records of these parts only. A part that many calls share is written
 * once per term: the more calls arrive, the less a record costs.
 *
 * A term is a hash. Two values with the same hash only make a search read more records, each of which is compared.
 */

/** Length of a part of a day. */
export const PART_MS = 10_000;
const DAY_MS = 86_400_000;
export const LAST_PART = DAY_MS / PART_MS - 1;

/** Day and part of a time. */
export function partOf(at: number): { readonly day: number; readonly part: number } {
  const day = Math.floor(at / DAY_MS);
  return { day, part: Math.floor((at - day * DAY_MS) / PART_MS) };
}

/** First millisecond of a part. */
export function startOfPart(day: number, part: number): number {
  return day * DAY_MS + part * PART_MS;
}

type TermFacts = Pick<CallFacts, 'tags' | 'operation' | 'provider' | 'model' | 'outcome' | 'durationMs'> &
  Partial<Pick<CallFacts, 'requested' | 'errorCode' | 'endUser' | 'address' | 'attempts'>>;

/** Conditions of a search, by the first letter of their terms. */
const KINDS = Object.freeze({
  model: 'm',
  provider: 'p',
  operation: 'o',
  requested: 'r',
  cost: 'c',
  duration: 'd',
  outcome: 'x',
  errorCode: 'e',
  endUser: 'u',
  tag: 't',
  status: 's',
  address: 'a',
} as const);
/** First letter of the terms of networks, which a search may name in place of an address. */
const NETWORK = 'n';

type Kind = keyof typeof KINDS;
type Value = string | number;

/** Value of a record that a search can name. */
export interface Term {
  readonly kind: Kind;
  readonly value: Value;
}

/** Calls `visit` for the terms of a record. Creates no objects: it runs for each call. */
function visitTerms(facts: TermFacts, cost: number, visit: (kind: Kind, value: Value) => void): void {
  const { tags, operation, provider, model, outcome, errorCode, endUser, address, attempts } = facts;
  visit('model', model);
  visit('provider', provider);
  visit('operation', operation);
  visit('requested', facts.requested ?? model);
  visit('cost', magnitude(cost));
  visit('duration', magnitude(facts.durationMs));
  if (outcome !== 'ok') visit('outcome', outcome);
  if (errorCode !== undefined) visit('errorCode', errorCode);
  if (endUser !== undefined) visit('endUser', endUser);
  for (let at = 0; at < tags.length; at += 1) visit('tag', tags[at] ?? '');
  for (let at = 0; attempts && at < attempts.length; at += 1) {
    const status = attempts[at]?.status;
    if (status !== undefined) visit('status', status);
  }
  if (address !== undefined) visit('address', address);
}

/** Returns the terms of a record. */
export function termsOf(facts: TermFacts, cost: number): readonly Term[] {
  const terms: Term[] = [];
  visitTerms(facts, cost, (kind, value) => terms.push({ kind, value }));
  return terms;
}

function hashesOf({ kind, value }: Term): readonly number[] {
  const texts = kind === 'address' ? termsOfAddress(String(value)) : [`${KINDS[kind]}${value}`];
  return texts.map((text) => crc32(text));
}

/** Row of a table of terms. */
interface TermRow {
  readonly day: number;
  readonly term: number;
  readonly part: number;
}

/** Returns the rows of terms of a record. */
export function termRows(at: number, terms: readonly Term[]): readonly TermRow[] {
  const place = partOf(at);
  return terms.flatMap((term) => hashesOf(term).map((hash) => ({ ...place, term: hash })));
}

/** Number of the power of two below a value: records of at least a value have this one or a higher one. */
function magnitude(value: number): number {
  if (value < 2 ** 31) return 32 - Math.clz32(value);
  return Math.floor(Math.log2(value)) + 1;
}

/** Highest magnitude of a safe integer. */
const MOST_MAGNITUDES = 54;

function fromMagnitude(kind: Kind, value: number): readonly string[] {
  const first = magnitude(value);
  return Array.from({ length: Math.max(0, MOST_MAGNITUDES - first) }, (_, at) => `${KINDS[kind]}${first + at}`);
}

/**
 * Returns the terms of a query, most selective conditions first: a record that matches has at least one term of each list.
 * A store compares records itself.
 */
export function termsOfQuery(query: CallQuery): readonly (readonly number[])[] {
  const { endUser, address, errorCode, status, requested, tag, minCost = 0, minDurationMs = 0 } = query;
  const { model, provider, operation, outcome } = query;
  const exact = (kind: Kind, value: Value | undefined): readonly string[] =>
    value === undefined ? [] : [`${KINDS[kind]}${typeof value === 'string' ? factText(value) : value}`];
  const lists = [
    exact('endUser', endUser),
    address === undefined ? [] : termsOfNetwork(address),
    exact('errorCode', errorCode),
    exact('status', status),
    exact('requested', requested),
    exact('tag', tag),
    minCost > 0 ? fromMagnitude('cost', minCost) : [],
    minDurationMs > 0 ? fromMagnitude('duration', minDurationMs) : [],
    exact('model', model),
    exact('provider', provider),
    exact('operation', operation),
    outcome === 'ok' ? [] : exact('outcome', outcome),
  ];
  return lists.filter((list) => list.length > 0).map((list) => [...new Set(list.map((term) => crc32(term)))]);
}

/** IPv4 addresses are terms, and the /24 networks of them; of IPv6 addresses, the /64 networks. */
function termsOfAddress(address: string): readonly string[] {
  const parts = readAddress(address);
  if (!parts) return [];
  if (parts.length === 4) return [`${KINDS.address}${parts.join('.')}`, `${NETWORK}${parts.slice(0, 3).join('.')}`];
  return [`${NETWORK}${parts.slice(0, 4).join(':')}`];
}

/** Terms of an address or a network; none for a network larger than the networks that are terms, or too many of them. */
function termsOfNetwork(wanted: string): readonly string[] {
  const [address = '', bits] = wanted.split('/');
  const parts = readAddress(address);
  if (!parts) return [];
  const isV4 = parts.length === 4;
  // An IPv4 address in the notation of IPv6.
  const length = bits === undefined ? undefined : Number(bits) - (isV4 && address.includes(':') ? 96 : 0);
  if (!isV4) return length === undefined || length >= 64 ? [`${NETWORK}${parts.slice(0, 4).join(':')}`] : [];
  if (length === undefined || length === 32) return [`${KINDS.address}${parts.join('.')}`];
  if (length < 16) return [];
  const [first = 0, second = 0, third = 0] = parts;
  const count = length >= 24 ? 1 : 2 ** (24 - length);
  const start = third - (third % count);
  return Array.from({ length: count }, (_, at) => `${NETWORK}${first}.${second}.${start + at}`);
}

/** Four numbers of an IPv4 address, eight of an IPv6 address; undefined for other texts. */
function readAddress(text: string): readonly number[] | undefined {
  const family = isIP(text);
  if (family === 0) return undefined;
  if (family === 4) return text.split('.').map(Number);
  const tail = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(text.split('%')[0] ?? '');
  const pair = (high: string | undefined, low: string | undefined): string =>
    (Number(high) * 256 + Number(low)).toString(16);
  const plain = tail ? `${tail[1]}${pair(tail[2], tail[3])}:${pair(tail[4], tail[5])}` : (text.split('%')[0] ?? '');
  const [left = '', right] = plain.split('::');
  const read = (groups: string): readonly number[] =>
    groups === '' ? [] : groups.split(':').map((group) => Number.parseInt(group, 16));
  const [before, after] = [read(left), read(right ?? '')];
  const zeros = Array.from({ length: right === undefined ? 0 : 8 - before.length - after.length }, () => 0);
  const groups = [...before, ...zeros, ...after];
  const [mapped, high = 0, low = 0] = groups.slice(5);
  if (mapped === 0xffff && groups.slice(0, 5).every((group) => group === 0))
    return [high >> 8, high & 255, low >> 8, low & 255];
  return groups;
}

/** Parts that one process noted lately; calls that end together share them. */
const MOST_PARTS = 8;

type NotedPart = Readonly<Record<Kind, Set<Value>>>;

function createPart(): NotedPart {
  return {
    model: new Set(),
    provider: new Set(),
    operation: new Set(),
    requested: new Set(),
    cost: new Set(),
    duration: new Set(),
    outcome: new Set(),
    errorCode: new Set(),
    endUser: new Set(),
    tag: new Set(),
    status: new Set(),
    address: new Set(),
  };
}

/** Terms that this process has written for the latest parts, so that it writes each once. */
export class NotedTerms {
  #parts = new Map<number, NotedPart>();

  /** Returns the terms of a record that are new in its part. */
  findNew(at: number, facts: TermFacts, cost: number): readonly Term[] {
    const noted = this.#partAt(at);
    const news: Term[] = [];
    visitTerms(facts, cost, (kind, value) => {
      if (!noted[kind].has(value)) news.push({ kind, value });
    });
    return news;
  }

  /** Remembers terms of a record, which are written. */
  keep(at: number, terms: readonly Term[]): void {
    const noted = this.#partAt(at);
    for (const { kind, value } of terms) noted[kind].add(value);
  }

  /** Forgets everything: what was written may have been undone. */
  clear(): void {
    this.#parts = new Map();
  }

  #partAt(at: number): NotedPart {
    const key = Math.floor(at / PART_MS);
    const known = this.#parts.get(key);
    if (known) return known;
    const noted = createPart();
    if (this.#parts.size >= MOST_PARTS) this.#parts = new Map();
    this.#parts.set(key, noted);
    return noted;
  }
}
