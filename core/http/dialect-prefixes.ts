import type { IncomingHttpHeaders } from 'node:http';
import type { DialectDefinition } from '../contract/dialect.ts';

/** Where a credential may be put beside `authorization` and `x-api-key`. */
export interface CredentialPlaces {
  readonly headers: readonly string[];
  readonly query: readonly string[];
}

/** What dialects say of paths, whether a route is there or not. */
export interface DialectPrefixes {
  /** The format that a request's errors are written in; OpenAI's when undefined. */
  dialectAt(path: string, headers: IncomingHttpHeaders): DialectDefinition | undefined;
  /** The places of credentials below a path, beside those of all paths. */
  placesAt(path: string): CredentialPlaces;
  /** Names of query parameters that hold a credential somewhere. */
  readonly queryNames: ReadonlySet<string>;
}

/** The list of models that is there in every format, by header. */
export const MODELS_PATH = '/v1/models';

/** A name that SDKs put credentials under, whether or not a dialect here takes it. */
const KEY = 'key';

const NO_PLACES: CredentialPlaces = Object.freeze({ headers: [], query: [] });

/** Lays out what dialects say of paths; the longest prefix decides. */
export function createDialectPrefixes(dialects: readonly DialectDefinition[]): DialectPrefixes {
  const rows = dialects
    .flatMap((dialect) => (dialect.prefixes ?? []).map((prefix) => ({ prefix: prefix.toLowerCase(), dialect })))
    .toSorted((a, b) => b.prefix.length - a.prefix.length);
  // Routes match whatever the case is, so prefixes do.
  const find = (path: string): DialectDefinition | undefined => {
    if (rows.length === 0) return undefined;
    const lower = path.toLowerCase();
    return rows.find(({ prefix }) => isBelow(lower, prefix))?.dialect;
  };
  return {
    dialectAt: (path, headers) =>
      (isBelow(path.toLowerCase(), MODELS_PATH) ? dialectOfList(dialects, headers) : undefined) ?? find(path),
    placesAt(path) {
      // Clients of any format call these paths: newer ones of Google's by `/v1/models/…:generateContent`.
      if (isBelow(path.toLowerCase(), MODELS_PATH))
        return { headers: dialects.flatMap(({ credentials }) => credentials?.headers ?? []), query: [] };
      const credentials = find(path)?.credentials;
      return credentials ? { ...NO_PLACES, ...credentials } : NO_PLACES;
    },
    queryNames: new Set([KEY, ...dialects.flatMap(({ credentials }) => credentials?.query ?? [])]),
  };
}

/** The dialect whose list of models a request wants, by the header that its clients send. */
export function dialectOfList(
  dialects: readonly DialectDefinition[],
  headers: IncomingHttpHeaders,
): DialectDefinition | undefined {
  return dialects.find(({ models }) => models?.header !== undefined && headers[models.header] !== undefined);
}

function isBelow(path: string, prefix: string): boolean {
  return path.startsWith(prefix) && (path.length === prefix.length || path[prefix.length] === '/');
}
