import type { CancelableRequest, Got } from 'got';
import { VERSION } from '../config/package-root.ts';
import type { Connect } from '../config/read.ts';
import { parseJson } from '../contract/json.ts';
import type { Credential, CredentialHeaders, CredentialRequest, ProxyRoute } from '../contract/provider.ts';
import { agentsOf, createProxyRoute } from './way.ts';

/** Opens the client before plugins exist, for secrets managers. */
export const connect: Connect = (hosts, rules) => createHttpClient(hosts, VERSION, createProxyRoute(rules));

/** Maximum size of a control-plane response in bytes: model and voice lists. */
const MAX_BYTES = 16 * 1024 * 1024;

/**
 * Creates the client for control-plane calls (model lists, voices): got with limits on time and size. It never follows a redirect,
 * which would forward the vendor's key, and reaches only the given hosts, by their instance's route. The hot path does not use it.
 */
export async function createHttpClient(hosts: ReadonlySet<string>, version: string, route?: ProxyRoute): Promise<Got> {
  const { got } = await import('got');
  const agent = agentsOf(route);
  return got.extend({
    followRedirect: false,
    retry: { limit: 1, methods: ['GET'], maxRetryAfter: 2000 },
    timeout: { lookup: 5000, connect: 5000, secureConnect: 5000, response: 15_000, request: 30_000 },
    headers: { 'user-agent': `tollgate/${version}`, accept: 'application/json' },
    enableUnixSockets: false,
    ...(agent && { agent }),
    parseJson: parseResponse,
    hooks: {
      beforeRequest: [
        (options) => {
          const host = options.url instanceof URL ? options.url.host : undefined;
          if (host === undefined || !hosts.has(host))
            throw new Error(
              `control-plane calls go to ${[...hosts].join(', ') || 'no host'} only, not to ${host ?? 'this address'}: a plugin declares its "hosts", or has an option of the format "url"`,
            );
        },
      ],
    },
    handlers: [
      (options, next) => {
        const request = next(options);
        if (!options.isStream) {
          const pending = request as CancelableRequest;
          void pending.on('downloadProgress', ({ transferred }) => {
            if (transferred > MAX_BYTES) pending.cancel();
          });
        }
        return request;
      },
    ],
  });
}

function parseResponse(text: string): unknown {
  const value = parseJson(text);
  if (value === undefined) throw new Error('the response is not JSON, or has too many values or levels');
  return value;
}

/** Returns the authentication headers of a control-plane request; none without a key. */
export async function credentialHeaders(
  credential: Credential | undefined,
  request: CredentialRequest,
): Promise<CredentialHeaders> {
  if (credential?.headers) return credential.headers(request);
  if (credential?.value === undefined) return {};
  return { [credential.header]: `${credential.prefix ?? ''}${credential.value}` };
}
