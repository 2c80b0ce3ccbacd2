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
      description: 'URL of this gateway for browsers and coding agents; same as `auth.openid.publicUrl`.',
    },
    allow: {
      ...WORDS,
      description:
        'Values of `auth.openid.roleClaims` of people who may sign in. Default: everyone with an account at the identity provider.',
    },
    plans: {
      type: 'object',
      maxProperties: 50,
      additionalProperties: { type: 'string', minLength: 1, maxLength: 200 },
      default: {},
      description:
        'Plan of a person by a value of `auth.openid.roleClaims`; the first match applies. Other people have the plan of their account or the default plan.',
    },
    accessFor: {
      type: 'string',
      format: 'duration',
      default: '1h',
      description: 'Lifetime of an access token, from 5m to 24h. Programs renew it automatically.',
    },
    signInFor: {
      type: 'string',
      format: 'duration',
      default: '7d',
      description:
        'Maximum duration of a sign-in, including renewals, from 1h to 90d. After that, the person signs in with a browser again.',
    },
    managedSettings: {
      type: 'array',
      minItems: 1,
      maxItems: 50,
      description:
        'Managed settings for Claude Code: the first entry whose `groups` include the person. People without an entry get none.',
      items: {
        type: 'object',
        required: ['settings'],
        additionalProperties: false,
        properties: {
          groups: {
            ...WORDS,
            description: 'Values of `auth.openid.roleClaims`. Default: everyone.',
          },
          settings: {
            type: 'object',
            additionalProperties: true,
            description: 'Content of a `managed-settings.json` of Claude Code.',
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
    origin,
    basePath,
    isSecure: protocol === 'https:',
    allow: config.allow,
    plans: config.plans,
    accessForMs: readSpan(config, 'accessFor'),
    signInForMs: readSpan(config, 'signInFor'),
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
  readPublicUrl(publicUrl, 'tokens', 'Use a URL such as https://gateway.example, same as in auth.openid.');

function readSpan(config: SignInConfig, name: keyof typeof SPANS): number {
  const ms = parseDuration(config[name]);
  const { least, most, words } = SPANS[name];
  if (ms >= least && ms <= most) return ms;
  throw new OptionError(`/${name}`, `must be ${words}, but is ${config[name]}`);
}
