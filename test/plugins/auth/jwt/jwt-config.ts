import type { JwtConfig } from '../../../../plugins/auth/jwt/options.ts';
import { AUDIENCE, ISSUER } from '../../../support/identity/tokens.ts';

/** Configuration of `auth.jwt` as the loader returns it: validated, with all defaults. */
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
