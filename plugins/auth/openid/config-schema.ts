import { ROLE_MAP } from '../kit/role-map.ts';

const WORDS = {
  type: 'array',
  minItems: 1,
  maxItems: 50,
  items: { type: 'string', minLength: 1, maxLength: 200 },
} as const;

/** Configuration of `auth.openid`. */
export const CONFIG_SCHEMA = {
  type: 'object',
  required: ['issuer', 'clientId', 'publicUrl'],
  additionalProperties: false,
  properties: {
    issuer: {
      type: 'string',
      minLength: 1,
      description: 'URL of the OpenID provider, exactly as in its discovery document and tokens.',
    },
    clientId: {
      type: 'string',
      minLength: 1,
      maxLength: 500,
      description: 'Client id of this gateway at the provider.',
    },
    clientSecret: {
      type: 'string',
      minLength: 1,
      secret: true,
      description: 'Client secret. Without it, the client is public and only PKCE protects the sign-in.',
    },
    clientAuth: {
      enum: ['basic', 'form'],
      description:
        'Client authentication: in the `authorization` header or in the form. Default: the first one that the provider accepts.',
    },
    publicUrl: {
      type: 'string',
      format: 'url',
      description:
        'URL of this gateway for browsers, such as `https://gateway.example`. Register `/api/core/admin/callback` below it as redirect URI at the provider.',
    },
    scopes: {
      ...WORDS,
      default: ['openid', 'profile', 'email'],
      description: 'Requested scopes; `openid` is always included.',
    },
    roleClaims: {
      ...WORDS,
      default: ['roles', 'groups'],
      description:
        'Claims with roles: a list or space-separated words. `a.b` is a nested claim. If the ID token has none of them, the userinfo endpoint is requested.',
    },
    roles: {
      ...ROLE_MAP,
      description:
        'Maps values of `roleClaims` to an operator role (`viewer`, `billing`, `operator`, `team`, `admin`) or a list of scopes. People without one cannot sign in.',
    },
    adminRoles: {
      ...WORDS,
      description: 'Values of `roleClaims` for the role admin. Default: `admin`, or none if `roles` is set.',
    },
    sessionFor: {
      type: 'string',
      format: 'duration',
      default: '8h',
      description: 'Maximum duration of a session, from 1m to 30d.',
    },
    idleFor: {
      type: 'string',
      format: 'duration',
      default: '30m',
      description: 'Idle time after which a session ends, from 1m to 30d.',
    },
    userPrefix: {
      type: 'string',
      maxLength: 40,
      default: '',
      description: 'Prefix of user ids. Use the value of `auth.jwt` for the same issuer.',
    },
  },
} as const;
