import { ROLE_MAP } from '../kit/role-map.ts';

const CLAIM = { type: 'string', minLength: 1, maxLength: 200 } as const;

/** Configuration of `auth.jwt`. */
export const CONFIG_SCHEMA = {
  type: 'object',
  required: ['issuer', 'audience'],
  additionalProperties: false,
  properties: {
    issuer: {
      type: 'string',
      minLength: 1,
      description: 'Required `iss` of every token. Without other key options, also the URL of the OpenID provider.',
    },
    audience: {
      anyOf: [
        { type: 'string', minLength: 1 },
        { type: 'array', minItems: 1, maxItems: 20, items: { type: 'string', minLength: 1 } },
      ],
      description: 'Accepted `aud` of tokens. A token must have one of these and no other audience.',
    },
    otherAudiences: {
      type: 'array',
      maxItems: 20,
      items: { type: 'string', minLength: 1 },
      default: [],
      description: 'Additional audiences that a token may have, such as the provider’s userinfo endpoint.',
    },
    jwksUri: {
      type: 'string',
      format: 'url',
      description: 'URL of the public keys. Default: the one in the issuer’s OpenID discovery document.',
    },
    jwksFile: {
      type: 'string',
      minLength: 1,
      description: 'File with the public keys: a JWK set, a JWK or one PEM.',
    },
    secret: {
      type: 'string',
      secret: true,
      description: 'Secret shared with the issuer, at least 32 bytes, instead of public keys.',
    },
    algorithms: {
      type: 'array',
      minItems: 1,
      items: {
        enum: [
          ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
          ...['HS256', 'HS384', 'HS512'],
        ],
      },
      description: 'Accepted signature algorithms. Default: all with public keys, HS256 with a secret.',
    },
    permission: {
      type: 'string',
      minLength: 1,
      default: 'keys:write',
      description: 'Permission in a token that allows its user to manage their keys.',
    },
    roleClaims: {
      type: 'array',
      minItems: 1,
      maxItems: 20,
      items: CLAIM,
      description:
        'Claims with roles of operators: a list or space-separated words. `a.b` is a nested claim. Needs `roles`. Default: none, tokens are not for operators.',
    },
    roles: {
      ...ROLE_MAP,
      description:
        'Maps values of `roleClaims` to an operator role (`viewer`, `billing`, `operator`, `team`, `admin`) or a list of scopes.',
    },
    permissionClaims: {
      type: 'array',
      minItems: 1,
      maxItems: 20,
      items: CLAIM,
      default: ['permission', 'permissions', 'scope', 'scp', 'roles'],
      description: 'Claims with the permission: a list or space-separated words. `a.b` is a nested claim.',
    },
    claims: {
      type: 'object',
      additionalProperties: false,
      default: {},
      description: 'Claims for identity and limits of a user. Default: only `sub`.',
      properties: {
        user: { ...CLAIM, default: 'sub', description: 'Claim with the user id.' },
        account: { ...CLAIM, description: 'Claim with the account that is charged. Default: the user’s own account.' },
        plan: { ...CLAIM, description: 'Claim with the plan.' },
        models: { ...CLAIM, description: 'Claim with allowed models for keys: a list or space-separated words.' },
        providers: { ...CLAIM, description: 'Claim with allowed providers for keys: a list or space-separated words.' },
        server_tools: {
          ...CLAIM,
          description:
            'Claim with allowed vendor tools that run with the operator’s account: a list or space-separated words.',
        },
        rpm: {
          ...CLAIM,
          description: 'Claim with the limit of requests per minute, for the user in total and for each key.',
        },
        tpm: {
          ...CLAIM,
          description: 'Claim with the limit of tokens per minute, for the user in total and for each key.',
        },
        budget_usd: { ...CLAIM, description: 'Claim with the total budget of the user in US dollars, over all keys.' },
      },
    },
    userPrefix: {
      type: 'string',
      maxLength: 40,
      default: '',
      description:
        'Prefix of user ids and accounts. Use it with two issuers, since their users may have the same name.',
    },
    clockTolerance: {
      type: 'string',
      format: 'duration',
      default: '30s',
      description: 'Tolerated clock difference, at most 60s.',
    },
    typ: {
      type: 'string',
      minLength: 1,
      description: 'Required token type, such as `at+jwt`. Default: `at+jwt`, `JWT` or no type.',
    },
  },
} as const;
