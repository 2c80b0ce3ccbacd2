import { isObject, type Schema } from '../contract/json.ts';
import type { ProblemAt } from '../contract/pointers.ts';
import type { Lookup } from './interpolate.ts';
import { mapLeaves } from './schema-at.ts';
import { checkCertificates, readPem } from './tls.ts';

/** Proxy for outbound connections. */
export interface ProxyAddress {
  readonly isTls: boolean;
  readonly hostname: string;
  readonly port: number;
  /** Value of `proxy-authorization`, if the address has a user. */
  readonly authorization?: string;
}

/** Rules for outbound connections: proxy and certificates. Contains secrets. */
export interface EgressRules {
  /** `false` disables proxies, whatever the environment sets; undefined uses the environment. */
  readonly proxy?: ProxyAddress | false;
  /** Proxies of the environment by URL scheme, and the hosts without one. */
  readonly environment?: {
    readonly https?: ProxyAddress;
    readonly http?: ProxyAddress;
    readonly direct: readonly string[];
  };
  /** PEM texts, and the server name of the certificate if it differs from the host. */
  readonly tls?: {
    readonly ca?: string;
    readonly cert?: string;
    readonly key?: string;
    readonly passphrase?: string;
    readonly servername?: string;
  };
}

const NAME = { type: 'string', minLength: 1 } as const;
const PEM_NOTE = 'PEM: the path of a file, or the text by `$' + '{file:…}`';

/** Options of an instance that connects to a configured address, in addition to the plugin's own. */
const EGRESS_OPTIONS: Readonly<Record<string, Schema>> = Object.freeze({
  proxy: {
    type: ['string', 'boolean'],
    description:
      'Proxy for its connections, such as `http://user:password@proxy.example:3128`; `false` uses none. Default: `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` of the environment.',
  },
  tls: {
    type: 'object',
    additionalProperties: false,
    description: 'TLS settings of its connections. A reload reads the files again.',
    properties: {
      ca: { ...NAME, description: `Trusted certificate authorities instead of the default ones. ${PEM_NOTE}.` },
      cert: {
        ...NAME,
        description: `Client certificate of the gateway, followed by intermediate certificates. ${PEM_NOTE}.`,
      },
      key: { ...NAME, secret: true, description: `Private key of the certificate. ${PEM_NOTE}.` },
      passphrase: { ...NAME, secret: true, description: 'Passphrase of the key.' },
      servername: {
        ...NAME,
        description: 'Expected name in the server’s certificate. Default: the host of the address.',
      },
    },
  },
});

/** Core options for an instance with outbound connections: one of its options is an address. */
export function egressOptionsOf(schema: Schema): Readonly<Record<string, Schema>> {
  const own = isObject(schema['properties']) ? schema['properties'] : {};
  const goesOut = JSON.stringify(own).includes('"format":"url"');
  return goesOut
    ? Object.fromEntries(Object.entries(EGRESS_OPTIONS).filter(([name]) => !Object.hasOwn(own, name)))
    : {};
}

/**
 * Reads the rules for outbound connections from options that {@link checkEgress} accepted; undefined for direct
 * connections.
 */
export function readEgress(
  { proxy, tls }: Readonly<Record<string, unknown>>,
  environment: EgressRules['environment'],
  files: Pick<Lookup, 'file'>,
): EgressRules | undefined {
  const own = typeof proxy === 'string' ? parseProxy(proxy) : proxy === false ? false : undefined;
  const address = typeof own === 'string' ? undefined : own;
  const texts = isObject(tls) ? (tls as NonNullable<EgressRules['tls']>) : undefined;
  if (address === undefined && environment === undefined && texts === undefined) return undefined;
  const pem = (text: string): string => readPem(text, files);
  return {
    ...(address !== undefined && { proxy: address }),
    ...(address === undefined && environment && { environment }),
    ...(texts && {
      tls: {
        ...texts,
        ...(texts.ca !== undefined && { ca: pem(texts.ca) }),
        ...(texts.cert !== undefined && { cert: pem(texts.cert) }),
        ...(texts.key !== undefined && { key: pem(texts.key) }),
      },
    }),
  };
}

/** Reads the proxies of the environment, lower-case names first as in other programs; undefined for none. */
export function readEnvironment(env: Lookup['env']): EgressRules['environment'] {
  const find = (scheme: 'https' | 'http'): ProxyAddress | undefined => {
    const text = findVariable(env, `${scheme}_proxy`)?.text;
    const address = text === undefined ? undefined : parseProxy(text);
    return typeof address === 'object' ? address : undefined;
  };
  const [https, http] = [find('https'), find('http')];
  if (!https && !http) return undefined;
  const direct = (findVariable(env, 'no_proxy')?.text ?? '').split(/[\s,]+/).filter(Boolean);
  return { ...(https && { https }), ...(http && { http }), direct };
}

/** Finds invalid proxies in the environment. A direct connection in their place might violate network rules. */
export function checkEnvironment(env: Lookup['env']): readonly ProblemAt[] {
  return ['https_proxy', 'http_proxy'].flatMap((variable): readonly ProblemAt[] => {
    const found = findVariable(env, variable);
    const problem = found && parseProxy(found.text);
    if (typeof problem !== 'string') return [];
    return [
      {
        pointer: '',
        message: `needs a proxy in the environment variable ${found?.name}, which ${problem}`,
        hint: HINT,
      },
    ];
  });
}

function findVariable(env: Lookup['env'], name: string): { readonly name: string; readonly text: string } | undefined {
  for (const spelling of [name, name.toUpperCase()]) {
    const text = env(spelling)?.trim();
    if (text) return { name: spelling, text };
  }
  return undefined;
}

const HINT = 'Use http://host:port or https://host:port, with user:password@ before the host if required.';

/** Parses a proxy's address. Returns a problem as text, which never shows the address: it may hold a password. */
function parseProxy(text: string): ProxyAddress | string {
  const whole = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`;
  const url = URL.canParse(whole) ? new URL(whole) : undefined;
  if (!url) return 'is not a valid proxy URL';
  const { protocol, hostname, port, username, password, pathname, search, hash } = url;
  if (protocol.startsWith('socks')) return 'is a SOCKS proxy; only HTTP proxies with CONNECT are supported';
  if (protocol !== 'http:' && protocol !== 'https:') return 'is not the URL of an HTTP proxy';
  if (pathname !== '/' || search !== '' || hash !== '') return 'has more than a host and a port';
  const isTls = protocol === 'https:';
  try {
    const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
    return {
      isTls,
      hostname: hostname.replace(/^\[|\]$/g, ''),
      port: Number(port || (isTls ? 443 : 80)),
      ...(pair !== ':' && { authorization: `Basic ${Buffer.from(pair).toString('base64')}` }),
    };
  } catch {
    return 'has an invalid % in the user or password; use %25';
  }
}

/** Checks `proxy` and `tls` of an instance: the address, the files, their content, and whether they match. */
export function checkEgress(
  pointer: string,
  { proxy, tls }: Readonly<Record<string, unknown>>,
  files: Pick<Lookup, 'file'>,
): readonly ProblemAt[] {
  const found = proxy === true ? 'is true' : typeof proxy === 'string' ? parseProxy(proxy) : undefined;
  const problems: readonly ProblemAt[] =
    typeof found === 'string' ? [{ pointer: `${pointer}/proxy`, message: found, hint: HINT }] : [];
  if (!isObject(tls)) return problems;
  const { cert, key } = tls;
  const at = `${pointer}/tls`;
  if ((cert === undefined) !== (key === undefined)) {
    const [has, lacks] = cert === undefined ? ['key', 'cert'] : ['cert', 'key'];
    const hint = 'Set both the certificate and its private key, or neither.';
    return [...problems, { pointer: `${at}/${has}`, message: `needs ${lacks}, which is not set or empty`, hint }];
  }
  return [...problems, ...checkCertificates(tls, files, { pointer: at, ca: 'ca', mayBeText: true })];
}

/** Hosts that an instance may connect to: those of its plugin, and those in its URL options. */
export function hostsOf(
  {
    configSchema = {},
    hosts = [],
  }: { readonly configSchema?: object | undefined; readonly hosts?: readonly string[] | undefined },
  config: Readonly<Record<string, unknown>>,
): ReadonlySet<string> {
  const found = new Set(hosts);
  mapLeaves(config, { ...configSchema }, '', (leaf, { nodes }) => {
    const isUrl = nodes.some((schema) => schema['format'] === 'url');
    if (isUrl && typeof leaf === 'string' && URL.canParse(leaf)) found.add(new URL(leaf).host);
    return leaf;
  });
  return found;
}
