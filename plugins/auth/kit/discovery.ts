import { type Fetch, fetchJson, parseSafeUrl } from './fetch-json.ts';

/** What an OpenID provider says of itself; only what is asked for is looked at. */
export type DiscoveryDocument = Readonly<Record<string, unknown>>;

/** Where an issuer's discovery document is (OpenID Connect Discovery, section 4.1). */
export function discoveryUrl(issuer: URL): URL {
  const url = new URL(issuer);
  url.pathname = `${url.pathname.replace(/\/$/, '')}/.well-known/openid-configuration`;
  return url;
}

/** A discovery document that is the issuer's own (OpenID Connect Discovery, section 4.3). */
export async function fetchDiscovery(url: URL, issuer: string, fetchBy: Fetch): Promise<DiscoveryDocument> {
  const document = (await fetchJson(url, fetchBy)) as DiscoveryDocument | null;
  if (document?.['issuer'] !== issuer) {
    throw new Error(`${url.href} belongs to the issuer ${JSON.stringify(document?.['issuer'])}, not to ${issuer}`);
  }
  return document;
}

/** An address that the document names; throws an Error, for the log, where it names none that may be asked. */
export function readEndpoint(url: URL, document: DiscoveryDocument, name: string): URL {
  const value = document[name];
  const endpoint = typeof value === 'string' ? parseSafeUrl(value) : undefined;
  if (endpoint) return endpoint;
  throw new Error(`${url.href} has no ${name} that is an https URL`);
}
