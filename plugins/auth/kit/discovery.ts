import { type Fetch, fetchJson, parseSafeUrl } from './fetch-json.ts';

/** Discovery document of an OpenID provider; only requested fields are checked. */
export type DiscoveryDocument = Readonly<Record<string, unknown>>;

/** URL of an issuer's discovery document (OpenID Connect Discovery, section 4.1). */
export function discoveryUrl(issuer: URL): URL {
  const url = new URL(issuer);
  url.pathname = `${url.pathname.replace(/\/$/, '')}/.well-known/openid-configuration`;
  return url;
}

/** Fetches a discovery document and checks its issuer (OpenID Connect Discovery, section 4.3). */
export async function fetchDiscovery(url: URL, issuer: string, fetchBy: Fetch): Promise<DiscoveryDocument> {
  const document = (await fetchJson(url, fetchBy)) as DiscoveryDocument | null;
  if (document?.['issuer'] !== issuer) {
    throw new Error(`${url.href} belongs to the issuer ${JSON.stringify(document?.['issuer'])}, not to ${issuer}`);
  }
  return document;
}

/** Reads an endpoint of the document; throws an Error, for the log, if it is missing or unsafe. */
export function readEndpoint(url: URL, document: DiscoveryDocument, name: string): URL {
  const value = document[name];
  const endpoint = typeof value === 'string' ? parseSafeUrl(value) : undefined;
  if (endpoint) return endpoint;
  throw new Error(`${url.href} has no ${name} that is an https URL`);
}
