import Router from '@koa/router';
import type { Route } from '../../contract/plugin.ts';
import { openApiPath } from '../../openapi/document.ts';
import { adviseOnPath } from './known-paths.ts';
import { normalisePath } from './lifecycle.ts';

/** Matching of paths that differ from those of routes. */
export interface Paths {
  /**
   * Returns whether all routes that a path may mean call or list models. Their paths are normalized by {@link normalisePath}
   * without a redirect, on which clients lose their key or body. All other routes have one spelling, so that proxy rules apply to
   * them.
   */
  isForModels(path: string): boolean;
  /** Returns whether a route has the path, with any method. */
  isKnown(path: string): boolean;
  /** Returns a sentence with the right path; undefined if no route is similar. It quotes nothing of the request. */
  hint(method: string, path: string, isKnown: boolean): string | undefined;
  /** Path prefix for clients; empty for none. */
  readonly basePath: string;
}

/** Prefix of operator routes, which are suggested only for paths with this prefix. */
const OF_OPERATORS = '/api/core/admin/';

/** Longer paths are not mistakes of a base URL, and searching them costs time. */
const MAX_LENGTH = 200;
const MAX_PARTS = 10;

/** Part of a route's path that may be in a base URL. */
const BASE = /^\/(?:api\/core\/:\w+|[^/]+)/;

/** Compiles the paths of all routes, ignoring case. */
export function createPaths(routes: readonly Route[], callsModels: (route: Route) => boolean, basePath = ''): Paths {
  const hidden = new Set<unknown>();
  const exact = new Set<unknown>();
  const bases = new Set<string>(['']);
  const forModels: Route[] = [];
  for (const route of routes) {
    const { path, role } = route;
    if (role === 'admin' || path.startsWith(OF_OPERATORS)) hidden.add(path);
    if (callsModels(route)) {
      forModels.push(route);
      const base = BASE.exec(path)?.[0] ?? '';
      if (!base.includes(':')) bases.add(base);
    } else exact.add(path);
  }
  const all = compileOnce(routes);
  const models = compileOnce(forModels);
  /** Finds the first route that may be suggested, by path and optionally by method. */
  const find = (router: Router, path: string, method: string | undefined): string | undefined => {
    const matched = router.match(path, method ?? '');
    const layer = (method === undefined ? matched.path : matched.pathAndMethod).find((each) => !hidden.has(each.path));
    return layer && String(layer.path);
  };
  /** Finds the route that matches the end of a path, below any base. */
  const findEnd = (path: string, method: string | undefined): string | undefined => {
    const [, ...parts] = path.split('/');
    if (parts.length > MAX_PARTS) return undefined;
    const ofProvider = parts[0] === 'api' && parts[1] === 'core' ? [`/api/core/${parts[2]}`] : [];
    for (let at = 0; at < parts.length; at += 1) {
      const end = `/${parts.slice(at).join('/')}`;
      for (const base of [...ofProvider, ...bases]) {
        const found = find(models(), normalisePath(base + end), method);
        if (found !== undefined) return found;
      }
    }
    return undefined;
  };
  return {
    basePath,
    isForModels(path) {
      const { path: matched } = all().match(path, '');
      return matched.length > 0 && matched.every((layer) => !exact.has(layer.path));
    },
    isKnown: (path) => all().match(path, '').path.length > 0,
    hint(method, path, isKnown) {
      if (path.length > MAX_LENGTH) return undefined;
      const sent = normalisePath(path);
      // A method after a model, such as `:predict`, has the path of the model itself.
      const isServed = !/:[a-z]+$/i.test(sent) && (isKnown || find(all(), sent, undefined) !== undefined);
      const advice = isServed ? undefined : adviseOnPath(sent, basePath);
      if (advice !== undefined) return advice;
      for (const wanted of isKnown ? [method] : [method, undefined]) {
        const spelled = find(all(), sent, wanted);
        if (spelled !== undefined) return `Did you mean ${basePath}${openApiPath(spelled)}?`;
        const meant = findEnd(sent, wanted);
        if (meant !== undefined) return `Did you mean ${basePath}${openApiPath(meant)}? ${sayBase(meant, basePath)}`;
      }
      return undefined;
    },
  };
}

/** Returns a router of these routes, compiled when it is first needed: paths that match a route exactly need none. */
function compileOnce(routes: readonly Route[]): () => Router {
  let router: Router | undefined;
  return () => {
    if (router) return router;
    router = new Router();
    for (const { method, path } of routes) router.register(path, [method], nothing);
    return router;
  };
}

function nothing(): void {}

/** Describes the base URL: some clients append `/v1`, others expect it to be included. */
function sayBase(path: string, basePath: string): string {
  const base = openApiPath(BASE.exec(path)?.[0] ?? '');
  const gateway = `{gateway}${basePath}`;
  return base.includes('{')
    ? `The client's base URL is ${gateway}${base}.`
    : `The client's base URL is ${gateway}${base}, or ${gateway} where the client adds ${base} itself.`;
}
