import { isDeepStrictEqual } from 'node:util';
import {
  type Document,
  isCollection,
  isMap,
  isPair,
  isScalar,
  isSeq,
  type Node,
  type Pair,
  parseDocument,
  stringify,
  visit,
  type YAMLMap,
  type YAMLSeq,
} from 'yaml';
import { isObject, type Json } from '../contract/json.ts';
import { parseJson, parseYaml, toPlain } from './sources.ts';

/** Formats of configuration files whose text can be changed. */
export type TextFormat = 'yaml' | 'json';

type Values = Readonly<Record<string, Json>>;

/** Thrown if a text cannot be changed without loss; the message is a sentence for operators. */
export class EditError extends Error {
  override readonly name = 'EditError';
}

/**
 * Changes the text of a configuration file to hold these values. In YAML, only the entries that differ are rewritten:
 * comments, order and form of everything else stay byte for byte. JSON keeps its indentation. The result is parsed and
 * compared before it is returned.
 */
export function editText(text: string, format: TextFormat, wanted: Values): string {
  const edited = format === 'json' ? editJson(text, wanted) : editYaml(text, wanted);
  if (!isDeepStrictEqual(valuesOf(edited, format), wanted))
    throw new EditError('The file has a form here that cannot be changed safely. Copy the YAML, and edit the file.');
  return edited;
}

/** Values of a configuration text, without references replaced. */
export function valuesOf(text: string, format: TextFormat): Values {
  const { value } = toPlain((format === 'json' ? parseJson(text) : parseYaml(text)).value);
  return isObject(value) ? (value as Values) : {};
}

/** Writes values as YAML, in the form of a configuration file. */
export function writeYaml(value: unknown): string {
  return stringify(value, STYLE);
}

const STYLE = Object.freeze({ lineWidth: 0, aliasDuplicateObjects: false });

function editJson(text: string, wanted: Values): string {
  const indent = /\n([ \t]+)"/.exec(text)?.[1];
  const isWithEnd = text.endsWith('\n');
  return `${text.startsWith('\uFEFF') ? '\uFEFF' : ''}${JSON.stringify(wanted, null, indent)}${isWithEnd ? '\n' : ''}`;
}

/** Replacement of a part of the text. */
interface Splice {
  readonly from: number;
  readonly to: number;
  readonly text: string;
}

function editYaml(text: string, wanted: Values): string {
  const document = parseDocument(text, { merge: true, stringKeys: true });
  const edit = new YamlEdit(text, document);
  if (!isMap(document.contents) || !edit.changeMap(document.contents, wanted))
    throw new EditError(
      'The file is one map in { }. Write it on lines of its own, or copy the YAML and edit the file.',
    );
  return edit.apply();
}

/** Collects the replacements that turn the values of a document into others. */
class YamlEdit {
  readonly #text: string;
  readonly #document: Document;
  readonly #newline: string;
  readonly #splices: Splice[] = [];

  constructor(text: string, document: Document) {
    this.#text = text;
    this.#document = document;
    this.#newline = text.includes('\r\n') ? '\r\n' : '\n';
  }

  /** Applies the replacements from the end, so that earlier positions stay valid. */
  apply(): string {
    const ordered = this.#splices
      .map((splice, order) => ({ ...splice, order }))
      .toSorted((a, b) => b.from - a.from || b.order - a.order);
    let text = this.#text;
    for (const { from, to, text: added } of ordered) text = text.slice(0, from) + added + text.slice(to);
    return text;
  }

  /** Changes a map entry by entry; returns false, without a change, if it has to be rewritten as a whole. */
  changeMap(map: YAMLMap, wanted: Values): boolean {
    const pairs = map.items.filter((item): item is Pair<Node, Node | null> => isPair(item) && isScalar(item.key));
    if (map.flow === true || pairs.length !== map.items.length) return false;
    const nameOf = ({ key }: Pair<Node>): string => String(isScalar(key) ? key.value : '');
    const [kept, removed] = split(pairs, (pair) => Object.hasOwn(wanted, nameOf(pair)));
    const last = kept.at(-1);
    if (last === undefined || removed.some((pair) => !this.#isAlone(startOf(pair.key)))) return false;
    for (const pair of removed) this.#remove(startOf(pair.key), this.#endOfPair(pair));
    for (const pair of kept) {
      const value = wanted[nameOf(pair)];
      if (value !== undefined && !isDeepStrictEqual(this.#plain(pair.value), value)) this.#changePair(pair, value);
    }
    const column = this.#columnOf(startOf(last.key));
    const known = new Set(pairs.map(nameOf));
    const added = Object.entries(wanted).filter(([name]) => !known.has(name));
    const lines = added.map(
      ([name, value]) => this.#newline + ' '.repeat(column) + this.#block({ [name]: value }, column),
    );
    this.#insert(this.#endOfPair(last), lines);
    return true;
  }

  #changePair(pair: Pair<Node, Node | null>, value: Json): void {
    const { value: node } = pair;
    if (node && this.#changeInside(node, value)) return;
    const start = startOf(pair.key);
    const name = isScalar(pair.key) ? String(pair.key.value) : '';
    const isInFlow = isCollection(node) && node.flow === true && node.items.length > 0;
    const text = isInFlow
      ? stringify({ [name]: this.#flow(value) }, STYLE).trimEnd()
      : this.#block({ [name]: value }, this.#columnOf(start));
    this.#splices.push({ from: start, to: this.#endOfPair(pair), text });
  }

  /** Changes a value without its key; returns false if key and value have to be rewritten. */
  #changeInside(node: Node, value: Json): boolean {
    if (isMap(node) && isObject(value)) {
      if (this.changeMap(node, value as Values)) return true;
      refuseComments(node);
    }
    if (isSeq(node) && Array.isArray(value)) {
      if (this.#changeList(node, value)) return true;
      refuseComments(node);
    }
    if (!isScalar(node) || typeof value === 'object' || !node.range) return false;
    const [from, to] = [startOf(node), this.#endOf(node)];
    const text = writeYaml(value).trimEnd();
    if (from === to || text.includes('\n') || this.#text.slice(from, to).includes('\n')) return false;
    this.#splices.push({ from, to, text });
    return true;
  }

  /** Changes a list; items that are equal at its start and end stay. */
  #changeList(list: YAMLSeq, wanted: readonly Json[]): boolean {
    const items = list.items.filter((item): item is Node => typeof item === 'object' && item !== null && !isPair(item));
    if (list.flow === true || items.length !== list.items.length || items.length === 0) return false;
    const dashes = items.map((item) => this.#dashOf(item));
    if (dashes.includes(undefined)) return false;
    const values = items.map((item) => this.#plain(item));
    const first = countEqual(values, wanted);
    const last = Math.min(
      countEqual(values.toReversed(), wanted.toReversed()),
      values.length - first,
      wanted.length - first,
    );
    const middle = items.slice(first, items.length - last);
    const next = wanted.slice(first, wanted.length - last);
    const changed = Math.min(middle.length, next.length);
    const before = items[first + changed - 1];
    if (before === undefined) return false;
    for (const [at, item] of middle.slice(0, changed).entries()) this.#changeItem(item, next[at] ?? null);
    for (const [at, item] of middle.slice(changed).entries())
      this.#remove(dashes[first + changed + at] ?? startOf(item), this.#endOf(item));
    const column = this.#columnOf(dashes[0] ?? 0);
    const added = next.slice(changed).map((value) => this.#newline + ' '.repeat(column) + this.#block([value], column));
    this.#insert(this.#endOf(before), added);
    return true;
  }

  #changeItem(item: Node, value: Json): void {
    if (this.#changeInside(item, value)) return;
    const from = startOf(item);
    const isInFlow = isCollection(item) && item.flow === true;
    const text = isInFlow ? writeYaml(this.#flow(value)).trimEnd() : this.#block(value, this.#columnOf(from));
    this.#splices.push({ from, to: this.#endOf(item), text });
  }

  /** Text of a value in lines; all but the first are indented. */
  #block(value: unknown, column: number): string {
    const [first = '', ...others] = writeYaml(value).replace(/\n$/, '').split('\n');
    return [first, ...others.map((line) => (line === '' ? line : ' '.repeat(column) + line))].join(this.#newline);
  }

  /** Node that is written in brackets. */
  #flow(value: Json): Node {
    const node = this.#document.createNode(value, { flow: true });
    visit(node, {
      Collection(_key, each) {
        each.flow = true;
      },
    });
    return node;
  }

  #plain(node: Node | null | undefined): Json {
    return toPlain(node?.toJS(this.#document) ?? null).value;
  }

  /** Inserts lines after the line of an offset. */
  #insert(after: number, lines: readonly string[]): void {
    const at = this.#lineEnd(after);
    if (lines.length > 0) this.#splices.push({ from: at, to: at, text: lines.join('') });
  }

  /** Removes whole lines. */
  #remove(from: number, to: number): void {
    const start = this.#lineStart(from);
    const next = this.#text.indexOf('\n', to);
    if (next !== -1) this.#splices.push({ from: start, to: next + 1, text: '' });
    else this.#splices.push({ from: Math.max(start - this.#newline.length, 0), to: this.#text.length, text: '' });
  }

  /** Offset of an item's dash, if it begins a line. */
  #dashOf(item: Node): number | undefined {
    const start = this.#lineStart(startOf(item));
    const [before = ''] = /^\s*- */.exec(this.#text.slice(start)) ?? [];
    return start + before.length === startOf(item) ? start + before.indexOf('-') : undefined;
  }

  #endOfPair({ key, value }: Pair<Node, Node | null>): number {
    const end = value ? this.#endOf(value) : 0;
    if (end > startOf(key)) return end;
    return this.#endOf(key) + (/^\s*:/.exec(this.#text.slice(this.#endOf(key)))?.[0].length ?? 0);
  }

  /** End of the last visible character of a node. */
  #endOf(node: Node): number {
    if ((isMap(node) || isSeq(node)) && node.flow !== true) {
      const last: unknown = node.items.at(-1);
      if (isPair<Node, Node | null>(last)) return this.#endOfPair(last);
      if (last !== undefined && last !== null) return this.#endOf(last as Node);
    }
    const [from, to] = node.range ?? [0, 0];
    return from + this.#text.slice(from, to).trimEnd().length;
  }

  #isAlone(offset: number): boolean {
    return this.#text.slice(this.#lineStart(offset), offset).trim() === '';
  }

  #columnOf(offset: number): number {
    return offset - this.#lineStart(offset);
  }

  #lineStart(offset: number): number {
    return this.#text.lastIndexOf('\n', offset - 1) + 1;
  }

  #lineEnd(offset: number): number {
    const end = this.#text.indexOf('\n', offset);
    if (end === -1) return this.#text.length;
    return this.#text[end - 1] === '\r' ? end - 1 : end;
  }
}

function startOf(node: Node | undefined): number {
  return node?.range?.[0] ?? 0;
}

/** Refuses to rewrite a list or map whose comments would be lost. */
function refuseComments(node: Node): void {
  const comments: string[] = [];
  const note = (each: Node): void => {
    if (each.comment || each.commentBefore) comments.push(each.comment ?? each.commentBefore ?? '');
  };
  visit(node, { Scalar: (_key, each) => note(each), Collection: (_key, each) => note(each) });
  if (comments.length > 0)
    throw new EditError('The entry has comments that would be lost. Copy the YAML, and edit the file.');
}

function split<T>(all: readonly T[], isFirst: (one: T) => boolean): readonly [readonly T[], readonly T[]] {
  return [all.filter(isFirst), all.filter((one) => !isFirst(one))];
}

/** Number of equal items at the start of two lists. */
function countEqual(one: readonly Json[], other: readonly Json[]): number {
  const at = one.findIndex((value, index) => index >= other.length || !isDeepStrictEqual(value, other[index]));
  return at === -1 ? one.length : at;
}
