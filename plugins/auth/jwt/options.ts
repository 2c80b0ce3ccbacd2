import { resolve } from 'node:path';
import { OptionError, type PluginConfig, parseDuration } from '../../../contract/index.ts';
import { discoveryUrl } from '../kit/discovery.ts';
import { parseSafeUrl } from '../kit/fetch-json.ts';
import { findSecretWeakness } from '../kit/secret-strength.ts';
import { ASYMMETRIC } from '../kit/verify-jwt.ts';
import type { CONFIG_SCHEMA } from './config-schema.ts';

export type JwtConfig = PluginConfig<typeof CONFIG_SCHEMA>;

/** Bytes of the shared secret by algorithm (RFC 7518, section 3.2). */
const SHARED: Readonly<Record<string, number>> = Object.freeze({ HS256: 32, HS384: 48, HS512: 64 });

const MAX_TOLERANCE_MS = 60_000;

/** Origin of the verification keys. */
export type KeyOrigin =
  | { readonly kind: 'secret'; readonly secret: Uint8Array }
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'jwks'; readonly url: URL }
  | { readonly kind: 'discovery'; readonly url: URL; readonly issuer: string };

/** Checked configuration. */
export interface JwtOptions {
  readonly issuer: string;
  readonly audiences: readonly string[];
  readonly otherAudiences: readonly string[];
  readonly algorithms: readonly string[];
  readonly origin: KeyOrigin;
  readonly clockToleranceSeconds: number;
  /** Only accepted header `typ`, in lower case without `application/`; undefined accepts those of access tokens. */
  readonly typ: string | undefined;
}

/** Roles need both a claim and a word: a configuration sets both options, or neither. */
export function checkRoles({ roleClaims, roles }: Pick<JwtConfig, 'roleClaims' | 'roles'>): void {
  if ((roleClaims === undefined) === (Object.keys(roles).length === 0)) return;
  const [wrong, missing] = roleClaims === undefined ? ['roles', 'roleClaims'] : ['roleClaims', 'roles'];
  throw new OptionError(
    `/${wrong}`,
    `has no effect without ${missing}`,
    'Set both: roleClaims: [groups] and roles: { llm-operators: admin }.',
  );
}

/** Checks rules beyond the schema; throws an {@link OptionError}. */
export function readOptions(config: JwtConfig, baseDir: string): JwtOptions {
  checkRoles(config);
  const origin = readOrigin(config, baseDir);
  return {
    issuer: config.issuer,
    audiences: typeof config.audience === 'string' ? [config.audience] : config.audience,
    otherAudiences: config.otherAudiences,
    algorithms: readAlgorithms(config, origin),
    origin,
    clockToleranceSeconds: readTolerance(config.clockTolerance),
    typ: config.typ === undefined ? undefined : normalizeTyp(config.typ),
  };
}

/** Normalises `application/at+jwt` and `AT+JWT` to `at+jwt` (RFC 7515, section 4.1.9). */
export function normalizeTyp(typ: string): string {
  return typ.toLowerCase().replace(/^application\//, '');
}

/** Reads the origin of the keys from the configuration; throws an {@link OptionError}. */
export function readOrigin(config: JwtConfig, baseDir: string): KeyOrigin {
  const { issuer, secret, jwksFile, jwksUri } = config;
  const given = Object.entries({ secret, jwksFile, jwksUri }).filter(([, value]) => value !== undefined);
  const [first, second] = given;
  if (first && second)
    throw new OptionError(
      `/${second[0]}`,
      `cannot be combined with ${first[0]}`,
      `Keep only one of ${given.map(([name]) => name).join(' and ')}.`,
    );
  if (secret !== undefined) {
    const weakness = findSecretWeakness(secret);
    if (weakness) throw new OptionError('/secret', weakness, 'Create one with: openssl rand -base64 48');
    return { kind: 'secret', secret: new TextEncoder().encode(secret) };
  }
  if (jwksFile !== undefined) return { kind: 'file', path: resolve(baseDir, jwksFile) };
  if (jwksUri !== undefined) return { kind: 'jwks', url: readUrl('jwksUri', jwksUri) };
  return { kind: 'discovery', url: discoveryUrl(readUrl('issuer', issuer)), issuer };
}

function readUrl(option: string, text: string): URL {
  const url = parseSafeUrl(text);
  if (url) return url;
  throw new OptionError(
    `/${option}`,
    'must be an https URL without a user name (http only on this machine): keys are fetched from it',
    option === 'issuer' ? 'If the issuer is only a name, set jwksUri, jwksFile or secret.' : undefined,
  );
}

function readAlgorithms(config: JwtConfig, origin: KeyOrigin): readonly string[] {
  const shared = origin.kind === 'secret';
  const algorithms = config.algorithms ?? (shared ? ['HS256'] : ASYMMETRIC);
  for (const algorithm of algorithms) {
    const needed = SHARED[algorithm];
    if ((needed !== undefined) !== shared) {
      const fitting = shared ? Object.keys(SHARED) : ASYMMETRIC;
      const source = shared ? 'a shared secret' : 'public keys';
      throw new OptionError(
        '/algorithms',
        `has ${algorithm}, but tokens are verified with ${source}`,
        `Use ${fitting.join(', ')}.`,
      );
    }
    if (origin.kind === 'secret' && needed !== undefined && origin.secret.byteLength < needed) {
      throw new OptionError('/secret', `has ${origin.secret.byteLength} bytes, and ${algorithm} needs ${needed}`);
    }
  }
  return algorithms;
}

/** Reads whole seconds; throws an {@link OptionError}. */
export function readTolerance(text: string): number {
  const ms = parseDuration(text);
  if (ms <= MAX_TOLERANCE_MS) return Math.floor(ms / 1000);
  throw new OptionError(
    '/clockTolerance',
    `must be at most 60s, but is ${text}`,
    'Synchronize the clocks of the machines instead.',
  );
}
