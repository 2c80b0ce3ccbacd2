import Router from '@koa/router';
import type { Route } from '../../contract/plugin.ts';
import { openApiPath } from '../../openapi/document.ts';
import { normalisePath } from './lifecycle.ts';

/** What is known of paths that are not those of routes. */
export interface Paths {
  /**
   * Whether all routes that a path may mean call or list models. Their paths are taken as {@link normalisePath} has them, without a
   * redirect, on which clients lose their key or body; all other routes have one spelling, so that rules of a proxy hold for them.
   */
  isForModels(path: string): boolean;
  /** Whether a route has the path, by whichever method. */
  isKnown(path: string): boolean;
  /** The sentence that names the right path; undefined where no route is near. It repeats nothing of the request. */
  hint(method: string, path: string, isKnown: boolean): string | undefined;
  /** What paths begin with for clients; empty where they do not. */
  readonly basePath: string;
}

/** Where no sentence names a path that is not an operator's already. */
const OF_OPERATORS = '/api/core/admin/';

/** Longer paths are no mistakes of a base URL, and looking for them costs time. */
const MAX_LENGTH = 200;
const MAX_PARTS = 10;

/** The part of a route's path that may stand in a base URL. */
const BASE = /^\/(?:api\/core\/:\w+|[^/]+)/;

/** Lays out the paths of all routes without regard to case. */
export function createPaths(routes: readonly Route[], callsModels: (route: Route) => boolean, basePath = ''): Paths {
  const all = new Router();
  const models = new Router();
  const hidden = new Set<unknown>();
  const exact = new Set<unknown>();
  const bases = new Set<string>(['']);
  for (const route of routes) {
    const { method, path, role } = route;
    all.register(path, [method], nothing);
    if (role === 'admin' || path.startsWith(OF_OPERATORS)) hidden.add(path);
    if (callsModels(route)) {
      models.register(path, [method], nothing);
      const base = BASE.exec(path)?.[0] ?? '';
      if (!base.includes(':')) bases.add(base);
    } else exact.add(path);
  }
  /** The first route that may be named, by method or, without one, by its path alone. */
  const find = (router: Router, path: string, method: string | undefined): string | undefined => {
    const matched = router.match(path, method ?? '');
    const layer = (method === undefined ? matched.path : matched.pathAndMethod).find((each) => !hidden.has(each.path));
    return layer && String(layer.path);
  };
  /** The route that the end of a path means, below whichever base. */
  const findEnd = (path: string, method: string | undefined): string | undefined => {
    const [, ...parts] = path.split('/');
    if (parts.length > MAX_PARTS) return undefined;
    const ofProvider = parts[0] === 'api' && parts[1] === 'core' ? [`/api/core/${parts[2]}`] : [];
    for (let at = 0; at < parts.length; at += 1) {
      const end = `/${parts.slice(at).join('/')}`;
      for (const base of [...ofProvider, ...bases]) {
        const found = find(models, normalisePath(base + end), method);
        if (found !== undefined) return found;
      }
    }
    return undefined;
  };
  return {
    basePath,
    isForModels(path) {
      const { path: matched } = all.match(path, '');
      return matched.length > 0 && matched.every((layer) => !exact.has(layer.path));
    },
    isKnown: (path) => all.match(path, '').path.length > 0,
    hint(method, path, isKnown) {
      if (path.length > MAX_LENGTH) return undefined;
      const sent = normalisePath(path);
      for (const wanted of isKnown ? [method] : [method, undefined]) {
        const spelled = find(all, sent, wanted);
        if (spelled !== undefined) return `Did you mean ${basePath}${openApiPath(spelled)}?`;
        const meant = findEnd(sent, wanted);
        if (meant !== undefined) return `Did you mean ${basePath}${openApiPath(meant)}? ${sayBase(meant, basePath)}`;
      }
      return undefined;
    },
  };
}

function nothing(): void {}

/** Some clients add `/v1` to their base URL, others have it in there. */
function sayBase(path: string, basePath: string): string {
  const base = openApiPath(BASE.exec(path)?.[0] ?? '');
  const gateway = `{gateway}${basePath}`;
  return base.includes('{')
    ? `The client's base URL is ${gateway}${base}.`
    : `The client's base URL is ${gateway}${base}, or ${gateway} where the client adds ${base} itself.`;
}
