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
      description: 'The URL of the OpenID provider, exactly as its discovery document and its tokens say it.',
    },
    clientId: {
      type: 'string',
      minLength: 1,
      maxLength: 500,
      description: 'The client that this gateway is at the provider.',
    },
    clientSecret: {
      type: 'string',
      minLength: 1,
      secret: true,
      description: 'The secret of that client. Without it the client is public, and PKCE alone protects the sign-in.',
    },
    clientAuth: {
      enum: ['basic', 'form'],
      description:
        'How the secret goes to the provider: in the `authorization` header, or in the form. Default: the first that the provider accepts.',
    },
    publicUrl: {
      type: 'string',
      format: 'url',
      description:
        'Where browsers reach this gateway, such as `https://gateway.example`. The provider has to know `/api/core/admin/callback` below it as the redirect URI.',
    },
    scopes: {
      ...WORDS,
      default: ['openid', 'profile', 'email'],
      description: 'What the provider is asked for; `openid` is always among it.',
    },
    roleClaims: {
      ...WORDS,
      default: ['roles', 'groups'],
      description:
        'Claims that roles are looked for in: a list, or words with spaces between. `a.b` looks inside `a`. Where the ID token has none of them, the provider’s userinfo endpoint is asked.',
    },
    roles: {
      ...ROLE_MAP,
      description:
        'Which words of `roleClaims` make an operator: by each a role (`viewer`, `billing`, `operator`, `team`, `admin`) or a list of scopes. Who has none of them is not let in.',
    },
    adminRoles: {
      ...WORDS,
      description:
        'Words of `roleClaims` that make an admin, as in `roles`. Default: `admin`, unless `roles` is given.',
    },
    sessionFor: {
      type: 'string',
      format: 'duration',
      default: '8h',
      description: 'How long a session lasts at most, from 1m to 30d.',
    },
    idleFor: {
      type: 'string',
      format: 'duration',
      default: '30m',
      description: 'How long a session lasts without a request, from 1m to 30d.',
    },
    userPrefix: {
      type: 'string',
      maxLength: 40,
      default: '',
      description: 'Put before user ids, such as that of `auth.jwt` for the same issuer.',
    },
  },
} as const;
