/** Matched route, with its path parameters. */
export interface FoundRoute<H> {
  /** Position among all routes: the first one wins. */
  readonly order: number;
  readonly handler: H;
  readonly params: Record<string, string>;
}

interface Entry<H> {
  readonly order: number;
  readonly handler: H;
  readonly names: readonly string[];
}

/** Continuations of a path part. */
interface Node<H> {
  readonly literals: Map<string, Node<H>>;
  parameter: Node<H> | undefined;
  entry: Entry<H> | undefined;
}

/** Limits on the number and length of cached paths: callers can invent paths. */
const MAX_REMEMBERED = 1000;
const MAX_REMEMBERED_LENGTH = 200;

const LITERAL = /^[\w.-]*$/;
const PARAMETER = /^:([A-Za-z_]\w*)$/;

/** Routes by path parts, built once at startup: a lookup costs as much as the path has parts. */
export class RouteIndex<H> {
  readonly #methods = new Map<string, Node<H>>();
  /** Recent matches: callers use the same few paths. */
  #found = new Map<string, FoundRoute<H>>();

  /** Adds a route; returns false for a path with anything but literal parts and whole parameters. */
  add(method: string, path: string, order: number, handler: H): boolean {
    const parts = path.split('/');
    if (!parts.every((part) => LITERAL.test(part) || PARAMETER.test(part))) return false;
    let node = this.#methods.get(method);
    if (!node) {
      node = newNode();
      this.#methods.set(method, node);
    }
    const names: string[] = [];
    for (const part of parts) {
      const name = PARAMETER.exec(part)?.[1];
      if (name === undefined) {
        let next: Node<H> | undefined = node.literals.get(part);
        if (!next) {
          next = newNode();
          node.literals.set(part, next);
        }
        node = next;
      } else {
        names.push(name);
        node.parameter ??= newNode();
        node = node.parameter;
      }
    }
    node.entry ??= { order, handler, names };
    this.#found = new Map();
    return true;
  }

  /** Returns the first route for a method and path; undefined if none matches. */
  find(method: string, path: string): FoundRoute<H> | undefined {
    const key = `${method} ${path}`;
    const known = this.#found.get(key);
    if (known) return known;
    const found = this.#search(method, path);
    if (found && key.length <= MAX_REMEMBERED_LENGTH) {
      if (this.#found.size >= MAX_REMEMBERED) this.#found = new Map();
      this.#found.set(key, found);
    }
    return found;
  }

  #search(method: string, path: string): FoundRoute<H> | undefined {
    const root = this.#methods.get(method);
    if (!root) return undefined;
    const parts = path.split('/');
    const values: string[] = [];
    let found: Entry<H> | undefined;
    let foundValues: readonly string[] = NO_VALUES;
    const visit = (node: Node<H>, at: number): void => {
      const part = parts[at];
      if (part === undefined) {
        const { entry } = node;
        if (!entry || (found && found.order < entry.order)) return;
        found = entry;
        foundValues = values.length === 0 ? NO_VALUES : [...values];
        return;
      }
      const literal = node.literals.get(part);
      if (literal) visit(literal, at + 1);
      if (!node.parameter || part === '') return;
      values.push(part);
      visit(node.parameter, at + 1);
      values.pop();
    };
    visit(root, 0);
    if (!found) return undefined;
    const { order, handler, names } = found;
    const params: Record<string, string> = {};
    for (let at = 0; at < names.length; at += 1) params[names[at] ?? ''] = decoded(foundValues[at] ?? '');
    return { order, handler, params: Object.freeze(params) };
  }
}

const NO_VALUES: readonly string[] = Object.freeze([]);

function newNode<H>(): Node<H> {
  return { literals: new Map(), parameter: undefined, entry: undefined };
}

/** Decodes a part as the router does: invalid percent-encoding stays unchanged. */
function decoded(part: string): string {
  if (!part.includes('%')) return part;
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
