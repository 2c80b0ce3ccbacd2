import { OptionError, type PluginConfig, type Problem, parseDuration, problemsOf } from '../../../contract/index.ts';
import { discoveryUrl } from '../kit/discovery.ts';
import { parseSafeUrl, readPublicUrl } from '../kit/fetch-json.ts';
import type { RoleMap } from '../kit/role-map.ts';
import type { CONFIG_SCHEMA } from './config-schema.ts';
import { CALLBACK_PATH } from './paths.ts';

export type OpenIdConfig = PluginConfig<typeof CONFIG_SCHEMA>;

const MINUTE_MS = 60_000;
const MAX_SESSION_MS = 30 * 86_400_000;
const DEFAULT_ADMINS = Object.freeze(['admin']);

/** Checked configuration. */
export interface OpenIdOptions {
  readonly issuer: string;
  /** URL of the discovery document. */
  readonly discovery: URL;
  readonly clientId: string;
  readonly clientSecret: string | undefined;
  /** Default: method of the provider's discovery document. */
  readonly clientAuth: 'basic' | 'form' | undefined;
  /** Origin of this gateway for browsers: scheme, host and port. */
  readonly origin: string;
  /** Prefix of the gateway's paths there; empty for none. */
  readonly basePath: string;
  readonly redirectUri: string;
  readonly isSecure: boolean;
  readonly scope: string;
  readonly roleClaims: readonly string[];
  readonly roles: RoleMap;
  readonly sessionForMs: number;
  readonly idleForMs: number;
  readonly userPrefix: string;
}

/** Checks rules beyond the schema; throws an {@link OptionError}. */
export function readOptions(config: OpenIdConfig, basePath = ''): OpenIdOptions {
  const { issuer, clientId, clientSecret, clientAuth, roleClaims, userPrefix } = config;
  const { origin, protocol } = publicUrlOf(config);
  return {
    issuer,
    clientId,
    clientSecret,
    clientAuth,
    origin,
    roleClaims,
    userPrefix,
    roles: readRoles(config),
    discovery: readDiscovery(config),
    basePath,
    redirectUri: `${origin}${basePath}${CALLBACK_PATH}`,
    isSecure: protocol === 'https:',
    scope: readScopes(config),
    sessionForMs: readSpan(config, 'sessionFor'),
    idleForMs: readSpan(config, 'idleFor'),
  };
}

/** Finds all problems of a configuration. Fetches nothing. */
export function findProblems(config: OpenIdConfig): Promise<readonly Problem[]> {
  return problemsOf(
    () => readDiscovery(config),
    () => publicUrlOf(config),
    () => readScopes(config),
    () => readRoles(config),
    () => readSpan(config, 'sessionFor'),
    () => readSpan(config, 'idleFor'),
  );
}

function readDiscovery({ issuer }: OpenIdConfig): URL {
  const url = parseSafeUrl(issuer);
  if (url && url.search === '' && url.hash === '') return discoveryUrl(url);
  throw new OptionError(
    '/issuer',
    'must be an https URL without a user name, query or fragment (http only on this machine)',
    'Use the "issuer" of the provider’s /.well-known/openid-configuration.',
  );
}

const publicUrlOf = ({ publicUrl }: OpenIdConfig): URL =>
  readPublicUrl(publicUrl, 'session cookies', 'Use a URL such as https://gateway.example.');

function readRoles({ roles, adminRoles }: OpenIdConfig): RoleMap {
  const admins = adminRoles ?? (Object.keys(roles).length === 0 ? DEFAULT_ADMINS : []);
  const twice = admins.find((word) => Object.hasOwn(roles, word));
  if (twice !== undefined)
    throw new OptionError(`/roles/${twice}`, 'is also in adminRoles', 'Keep it in only one of them.');
  return { ...roles, ...Object.fromEntries(admins.map((word) => [word, 'admin'] as const)) };
}

function readScopes({ scopes }: OpenIdConfig): string {
  const wrong = scopes.findIndex((scope) => !/^[\x21\x23-\x5b\x5d-\x7e]+$/.test(scope));
  if (wrong >= 0)
    throw new OptionError(`/scopes/${wrong}`, 'is not a scope; use one word without quotes or backslashes');
  return [...new Set(['openid', ...scopes])].join(' ');
}

function readSpan(config: OpenIdConfig, name: 'sessionFor' | 'idleFor'): number {
  const ms = parseDuration(config[name]);
  if (ms >= MINUTE_MS && ms <= MAX_SESSION_MS) return ms;
  throw new OptionError(`/${name}`, `must be from 1m to 30d, but is ${config[name]}`);
}
