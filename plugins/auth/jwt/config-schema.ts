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
      description:
        'The `iss` of every token, exactly. Unless keys come from elsewhere, also the OpenID provider’s URL.',
    },
    audience: {
      anyOf: [
        { type: 'string', minLength: 1 },
        { type: 'array', minItems: 1, maxItems: 20, items: { type: 'string', minLength: 1 } },
      ],
      description: 'The `aud` of tokens for this gateway. A token must name one of these and nothing else.',
    },
    otherAudiences: {
      type: 'array',
      maxItems: 20,
      items: { type: 'string', minLength: 1 },
      default: [],
      description: 'Audiences that a token may name next to this gateway’s, such as the provider’s userinfo endpoint.',
    },
    jwksUri: {
      type: 'string',
      format: 'url',
      description: 'Where the public keys are; by default found through the issuer’s OpenID discovery document.',
    },
    jwksFile: {
      type: 'string',
      minLength: 1,
      description: 'A file with the public keys: a JWK set, a JWK or one PEM.',
    },
    secret: {
      type: 'string',
      secret: true,
      description: 'A secret shared with the issuer, 32 bytes or more, in place of public keys.',
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
      description: 'Signature algorithms taken. Default: all with public keys, or HS256 with a secret.',
    },
    permission: {
      type: 'string',
      minLength: 1,
      default: 'keys:write',
      description: 'The word in a token that allows its bearer to manage their keys.',
    },
    roleClaims: {
      type: 'array',
      minItems: 1,
      maxItems: 20,
      items: CLAIM,
      description:
        'Claims that make operators, with `roles`: a list, or words with spaces between. `a.b` looks inside `a`. Default: none, so that no token makes one.',
    },
    roles: {
      ...ROLE_MAP,
      description:
        'Which words of `roleClaims` make an operator: by each a role (`viewer`, `billing`, `operator`, `team`, `admin`) or a list of scopes.',
    },
    permissionClaims: {
      type: 'array',
      minItems: 1,
      maxItems: 20,
      items: CLAIM,
      default: ['permission', 'permissions', 'scope', 'scp', 'roles'],
      description:
        'Claims the permission is looked for in: a list, or words with spaces between. `a.b` looks inside `a`.',
    },
    claims: {
      type: 'object',
      additionalProperties: false,
      default: {},
      description: 'Which claims say who a user is and what they may. Only `sub` is read by default.',
      properties: {
        user: { ...CLAIM, default: 'sub', description: 'The user id.' },
        account: { ...CLAIM, description: 'The account that pays; default: the user’s own.' },
        plan: { ...CLAIM, description: 'The plan.' },
        models: { ...CLAIM, description: 'Models keys may use: a list, or words with spaces between.' },
        providers: { ...CLAIM, description: 'Providers keys may use: a list, or words with spaces between.' },
        server_tools: {
          ...CLAIM,
          description: 'Tools that vendors run with the operator’s account and that keys may use: a list, or words.',
        },
        rpm: { ...CLAIM, description: 'The most requests a minute of the user, over all keys, and of each key.' },
        tpm: { ...CLAIM, description: 'The most tokens a minute of the user, over all keys, and of each key.' },
        budget_usd: { ...CLAIM, description: 'The most US dollars that the user may spend in all, over all keys.' },
      },
    },
    userPrefix: {
      type: 'string',
      maxLength: 40,
      default: '',
      description:
        'Put before user ids and accounts. With two issuers, give one a prefix: their users may have one name.',
    },
    clockTolerance: {
      type: 'string',
      format: 'duration',
      default: '30s',
      description: 'How far clocks may differ, up to 60s.',
    },
    typ: {
      type: 'string',
      minLength: 1,
      description: 'The only token type taken, such as `at+jwt`. Default: `at+jwt`, `JWT` and none.',
    },
  },
} as const;
