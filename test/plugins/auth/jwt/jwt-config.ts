import type { JwtConfig } from '../../../../plugins/auth/jwt/options.ts';
import { AUDIENCE, ISSUER } from '../../../support/identity/tokens.ts';

/** A configuration of `auth.jwt` as the loader hands it over: validated, with every default filled in. */
export function jwtConfig(config: Partial<JwtConfig> = {}): JwtConfig {
  return {
    issuer: ISSUER,
    audience: AUDIENCE,
    otherAudiences: [],
    permission: 'keys:write',
    roles: {},
    permissionClaims: ['permission', 'permissions', 'scope', 'scp', 'roles'],
    claims: { user: 'sub' },
    userPrefix: '',
    clockTolerance: '30s',
    ...config,
  };
}
