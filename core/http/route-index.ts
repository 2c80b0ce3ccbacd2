/** Finds routes by the segments of a path: what it costs does not grow with their number. */
export interface RouteIndex<T> {
  /** False, and nothing added, for a path that is more than names and `:parameters`. */
  add(method: string, path: string, value: T): boolean;
  /** The route of this path, the first added where several match; undefined also where only another spelling matches. */
  find(method: string, path: string): FoundRoute<T> | undefined;
}

export interface FoundRoute<T> {
  readonly value: T;
  /** Percent-decoded. */
  readonly params: Readonly<Record<string, string>>;
}

interface End<T> {
  readonly order: number;
  readonly value: T;
  readonly parameters: readonly { readonly name: string; readonly at: number }[];
}

interface Node<T> {
  readonly named: Map<string, Node<T>>;
  parameter: Node<T> | undefined;
  readonly ends: Map<string, End<T>>;
}

const SIMPLE = /^(?:\/(?:[\w.~-]+|:\w+))+$/;

export function createRouteIndex<T>(): RouteIndex<T> {
  const root: Node<T> = createNode();
  let order = 0;
  return {
    add(method, path, value) {
      if (!SIMPLE.test(path)) return false;
      let node = root;
      const parameters: { name: string; at: number }[] = [];
      for (const [at, segment] of path.slice(1).split('/').entries()) {
        const isParameter = segment.startsWith(':');
        if (isParameter) parameters.push({ name: segment.slice(1), at });
        node = isParameter ? parameterOf(node) : childOf(node, segment);
      }
      if (!node.ends.has(method)) node.ends.set(method, { order, value, parameters });
      order += 1;
      return true;
    },
    find(method, path) {
      const segments = path.slice(1).split('/');
      const found = search(root, segments, 0, method);
      const params = found && readParams(found, segments);
      return found && params && { value: found.value, params };
    },
  };
}

function createNode<T>(): Node<T> {
  return { named: new Map(), parameter: undefined, ends: new Map() };
}

function parameterOf<T>(node: Node<T>): Node<T> {
  node.parameter ??= createNode();
  return node.parameter;
}

function childOf<T>(node: Node<T>, segment: string): Node<T> {
  let child = node.named.get(segment);
  if (!child) {
    child = createNode();
    node.named.set(segment, child);
  }
  return child;
}

/** Both ways are looked at: a parameter that was added before a name wins, as it would in a list. */
function search<T>(node: Node<T>, segments: readonly string[], at: number, method: string): End<T> | undefined {
  const segment = segments[at];
  if (segment === undefined) return node.ends.get(method);
  const child = node.named.get(segment);
  const named = child && search(child, segments, at + 1, method);
  const open = node.parameter && segment !== '' ? search(node.parameter, segments, at + 1, method) : undefined;
  return named && open ? (named.order < open.order ? named : open) : (named ?? open);
}

/** Undefined when a segment cannot be decoded, which is for the slow way to judge. */
function readParams<T>(end: End<T>, segments: readonly string[]): Readonly<Record<string, string>> | undefined {
  const params: Record<string, string> = {};
  try {
    for (const { name, at } of end.parameters) {
      const segment = segments[at] ?? '';
      params[name] = segment.includes('%') ? decodeURIComponent(segment) : segment;
    }
  } catch {
    return undefined;
  }
  return params;
}
