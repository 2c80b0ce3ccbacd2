import { OptionError, type PluginConfig, type Problem, parseDuration, problemsOf } from '../../../contract/index.ts';
import { readPublicUrl } from '../kit/fetch-json.ts';

const WORDS = {
  type: 'array',
  minItems: 1,
  maxItems: 50,
  items: { type: 'string', minLength: 1, maxLength: 200 },
} as const;

/** Configuration of `auth.sign-in`. */
export const CONFIG_SCHEMA = {
  type: 'object',
  required: ['publicUrl'],
  additionalProperties: false,
  properties: {
    publicUrl: {
      type: 'string',
      format: 'url',
      description: 'Where browsers and coding agents reach this gateway: the same as `auth.openid.publicUrl`.',
    },
    allow: {
      ...WORDS,
      description:
        'Words of `auth.openid.roleClaims`: who has one of them may sign in. Default: everybody whom the identity provider lets in.',
    },
    plans: {
      type: 'object',
      maxProperties: 50,
      additionalProperties: { type: 'string', minLength: 1, maxLength: 200 },
      default: {},
      description:
        'The plan of a person by a word of `auth.openid.roleClaims`; of several the first one here. Others have the plan of their account, or the default plan.',
    },
    accessFor: {
      type: 'string',
      format: 'duration',
      default: '1h',
      description: 'How long an access token is good, from 5m to 24h. Programs renew it by themselves.',
    },
    signInFor: {
      type: 'string',
      format: 'duration',
      default: '7d',
      description:
        'How long a sign-in lasts, however often it is renewed, from 1h to 90d; then the person signs in with a browser again.',
    },
    managedSettings: {
      type: 'array',
      minItems: 1,
      maxItems: 50,
      description:
        'What Claude Code takes as its managed settings from this gateway: the first entry whose `groups` the person has. Nobody gets any unless there is an entry for them.',
      items: {
        type: 'object',
        required: ['settings'],
        additionalProperties: false,
        properties: {
          groups: {
            ...WORDS,
            description: 'Words of `auth.openid.roleClaims`; without them the entry is for everybody.',
          },
          settings: {
            type: 'object',
            additionalProperties: true,
            description: 'The text of a `managed-settings.json` of Claude Code.',
          },
        },
      },
    },
  },
} as const;

export type SignInConfig = PluginConfig<typeof CONFIG_SCHEMA>;

/** Checked configuration. */
export interface SignInOptions {
  /** Origin of this gateway for browsers: scheme, host and port. */
  readonly origin: string;
  /** Prefix of the gateway's paths there; empty for none. */
  readonly basePath: string;
  readonly isSecure: boolean;
  readonly allow: readonly string[] | undefined;
  readonly plans: Readonly<Record<string, string>>;
  readonly accessForMs: number;
  readonly signInForMs: number;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

const SPANS = Object.freeze({
  accessFor: { least: 5 * MINUTE_MS, most: DAY_MS, words: 'from 5m to 24h' },
  signInFor: { least: HOUR_MS, most: 90 * DAY_MS, words: 'from 1h to 90d' },
});

/** Checks rules beyond the schema; throws an {@link OptionError}. */
export function readOptions(config: SignInConfig, basePath = ''): SignInOptions {
  const { origin, protocol } = publicUrlOf(config);
  return {
    ...{ origin, basePath, isSecure: protocol === 'https:', allow: config.allow, plans: config.plans },
    ...{ accessForMs: readSpan(config, 'accessFor'), signInForMs: readSpan(config, 'signInFor') },
  };
}

/** Finds all problems of a configuration. */
export function findProblems(config: SignInConfig): Promise<readonly Problem[]> {
  return problemsOf(
    () => publicUrlOf(config),
    () => readSpan(config, 'accessFor'),
    () => readSpan(config, 'signInFor'),
  );
}

const publicUrlOf = ({ publicUrl }: SignInConfig): URL =>
  readPublicUrl(publicUrl, 'tokens', 'Write it as https://gateway.example, as in auth.openid.');

function readSpan(config: SignInConfig, name: keyof typeof SPANS): number {
  const ms = parseDuration(config[name]);
  const { least, most, words } = SPANS[name];
  if (ms >= least && ms <= most) return ms;
  throw new OptionError(`/${name}`, `is ${config[name]}, and must be ${words}`);
}
