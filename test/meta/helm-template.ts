/**
 * Subset of Helm's templates: `if`, `else if`, `with`, `range`, `define`, `include`, pipelines, and the functions
 * below. Everything else is an error. A value that `values.yaml` lacks is an error too, although Helm would treat it as
 * empty. The subset proves that the chart is complete; only Helm can prove that Helm renders it the same way.
 */
import { createHash } from 'node:crypto';
import { stringify } from 'yaml';

/** Variables of a template: `.Values`, `.Release`, `.Chart`. */
export type Scope = Readonly<Record<string, unknown>>;

type Node =
  | { readonly text: string }
  | { readonly print: string }
  | { readonly block: 'if' | 'with' | 'range'; readonly branches: readonly Branch[] };

interface Branch {
  /** Undefined for `else`. */
  readonly condition: string | undefined;
  readonly body: Node[];
}

/** Renders templates by file name; they may include each other's definitions. */
export function renderTemplates(
  files: Readonly<Record<string, string>>,
  scope: Scope,
): Readonly<Record<string, string>> {
  const definitions = new Map<string, readonly Node[]>();
  const trees = Object.entries(files).map(([name, text]) => [name, parse(text, definitions)] as const);
  const renderer = new Renderer(definitions, scope);
  return Object.fromEntries(trees.map(([name, tree]) => [name, renderer.render(tree, scope)]));
}

/** Splits a template into text and actions, and trims white space next to `{{-` and `-}}`. */
function split(text: string): readonly { readonly text?: string; readonly action?: string }[] {
  const cut = text.replaceAll(/\s*\{\{-\s/g, '{{ ').replaceAll(/\s-\}\}\s*/g, ' }}');
  return cut
    .split(/(\{\{[\s\S]*?\}\})/)
    .map((part) => (part.startsWith('{{') ? { action: part.slice(2, -2).trim() } : { text: part }));
}

function parse(text: string, definitions: Map<string, readonly Node[]>): readonly Node[] {
  const root: Node[] = [];
  const open: { readonly body: Node[]; readonly branches?: Branch[] }[] = [{ body: root }];
  const add = (node: Node): void => void open.at(-1)?.body.push(node);
  for (const { text: plain, action } of split(text)) {
    if (plain !== undefined) add({ text: plain });
    if (action === undefined || action.startsWith('/*')) continue;
    const [, word = '', rest = ''] = /^(if|with|range|define|else|end)?\s*([\s\S]*)$/.exec(action) ?? [];
    const body: Node[] = [];
    if (word === 'if' || word === 'with' || word === 'range') {
      const branches: Branch[] = [{ condition: rest, body }];
      add({ block: word, branches });
      open.push({ body, branches });
    } else if (word === 'define') {
      definitions.set(String(JSON.parse(rest)), body);
      open.push({ body });
    } else if (word === 'else') {
      const { branches } = open.pop() ?? {};
      if (!branches) throw new Error('"else" without "if"');
      branches.push({ condition: rest === '' ? undefined : rest.replace(/^if\s+/, ''), body });
      open.push({ body, branches });
    } else if (word === 'end') {
      if (open.length === 1) throw new Error('"end" without a beginning');
      open.pop();
    } else add({ print: action });
  }
  if (open.length > 1) throw new Error('something has no "end"');
  return root;
}

class Renderer {
  readonly #definitions: ReadonlyMap<string, readonly Node[]>;
  readonly #root: Scope;

  constructor(definitions: ReadonlyMap<string, readonly Node[]>, root: Scope) {
    this.#definitions = definitions;
    this.#root = root;
  }

  render(nodes: readonly Node[], dot: unknown): string {
    return nodes.map((node) => this.#renderNode(node, dot)).join('');
  }

  #renderNode(node: Node, dot: unknown): string {
    if ('text' in node) return node.text;
    if ('print' in node) return asText(this.#evaluate(node.print, dot));
    for (const { condition, body } of node.branches) {
      const value = condition === undefined ? true : this.#evaluate(condition, dot);
      if (isEmpty(value)) continue;
      if (node.block === 'range' && condition !== undefined) {
        if (!Array.isArray(value)) throw new Error(`range over something else than a list: ${condition}`);
        return value.map((item: unknown) => this.render(body, item)).join('');
      }
      return this.render(body, node.block === 'with' && condition !== undefined ? value : dot);
    }
    return '';
  }

  /** The value of a pipeline. */
  #evaluate(text: string, dot: unknown): unknown {
    const tokens = text.match(/"(?:[^"\\]|\\.)*"|\(|\)|\||[^\s()|]+/g) ?? [];
    let at = 0;
    const operand = (token: string): unknown => {
      if (token === '(') {
        const value = pipeline();
        if (tokens[at++] !== ')') throw new Error(`a bracket is not closed: ${text}`);
        return value;
      }
      if (token.startsWith('"')) return JSON.parse(token);
      if (/^-?\d+$/.test(token)) return Number(token);
      if (token.startsWith('$')) return lookUp(this.#root, token.slice(1));
      if (token.startsWith('.')) return lookUp(dot, token);
      throw new Error(`what is "${token}" in: ${text}`);
    };
    const command = (piped: readonly unknown[]): unknown => {
      const name = tokens[at++] ?? '';
      const isFunction = /^[a-zA-Z]\w*$/.test(name);
      if (!isFunction) {
        if (piped.length > 0) throw new Error(`only a function can be piped into: ${text}`);
        return operand(name);
      }
      const given: unknown[] = [];
      while (at < tokens.length && tokens[at] !== '|' && tokens[at] !== ')') given.push(operand(tokens[at++] ?? ''));
      return this.#call(name, [...given, ...piped]);
    };
    const pipeline = (): unknown => {
      let value = command([]);
      while (tokens[at] === '|') {
        at += 1;
        value = command([value]);
      }
      return value;
    };
    const value = pipeline();
    if (at < tokens.length) throw new Error(`"${tokens[at]}" is one too many in: ${text}`);
    return value;
  }

  #call(name: string, args: readonly unknown[]): unknown {
    if (name === 'include') {
      const definition = this.#definitions.get(String(args[0]));
      if (!definition) throw new Error(`nothing is defined as "${String(args[0])}"`);
      return this.render(definition, args[1]);
    }
    const found = FUNCTIONS[name];
    if (!found) throw new Error(`the function "${name}" is not in this subset`);
    return found(...args);
  }
}

const indent = (spaces: unknown, text: unknown): string => String(text).replaceAll(/^/gm, ' '.repeat(Number(spaces)));

/** Functions as documented by Helm and the library Sprig. */
const FUNCTIONS: Readonly<Record<string, (...args: readonly unknown[]) => unknown>> = Object.freeze({
  and: (...args) => args.find(isEmpty) ?? args.at(-1),
  or: (...args) => args.find((arg) => !isEmpty(arg)) ?? args.at(-1),
  not: (value) => isEmpty(value),
  gt: (a, b) => Number(a) > Number(b),
  int: (value) => Math.trunc(Number(value)),
  toString: (value: unknown) => asText(value),
  default: (fallback, value) => (isEmpty(value) ? fallback : value),
  hasPrefix: (prefix, text) => String(text).startsWith(String(prefix)),
  contains: (part, text) => String(text).includes(String(part)),
  trunc: (length, text) => String(text).slice(0, Number(length)),
  trimSuffix: (suffix, text) =>
    String(text).endsWith(String(suffix)) ? String(text).slice(0, -String(suffix).length) : text,
  printf: (format, ...args) => args.reduce<string>((text, arg) => text.replace('%s', asText(arg)), String(format)),
  quote: (value) => JSON.stringify(asText(value)),
  toYaml: (value) => stringify(value, { lineWidth: 0 }).trimEnd(),
  nindent: (spaces, text) => `\n${indent(spaces, text)}`,
  sha256sum: (text) => createHash('sha256').update(String(text)).digest('hex'),
  required(message, value) {
    if (value === null || value === '') throw new Error(String(message));
    return value;
  },
  fail(message) {
    throw new Error(String(message));
  },
});

/** Returns a nested value; a missing value is an error. */
function lookUp(from: unknown, path: string): unknown {
  let value = from;
  for (const key of path.split('.').filter(Boolean)) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key))
      throw new Error(`there is no value ${path}`);
    value = (value as Readonly<Record<string, unknown>>)[key];
  }
  return value;
}

function isEmpty(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) return Object.keys(value).length === 0;
  return value === undefined || value === null || value === false || value === 0 || value === '';
}

function asText(value: unknown): string {
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
