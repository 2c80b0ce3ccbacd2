import {
  type CommandInput,
  type CommandOption,
  GatewayError,
  type PluginConfig,
  parseDuration,
  parseUsd,
} from '../../../contract/index.ts';
import { MAX_TAGS, tagName } from '../../policies/kit/index.ts';
import { textOf } from '../../policies/kit/resource.ts';
import { omitUndefined } from '../kit/omit-undefined.ts';
import { readAddresses } from './addresses.ts';
import { KEY_BUDGETS, parseKeyBudgets, readKeyBudgets } from './key-budgets.ts';
import type { KeyLimits } from './records.ts';

const LIST = { minItems: 1, maxItems: 100, items: { type: 'string', minLength: 1, maxLength: 200 } } as const;
const RATE = { type: ['integer', 'null'], minimum: 1, maximum: 1_000_000_000 } as const;

/** Body of `POST /api/core/api_keys/create`; null is the same as an omitted field. */
export const CREATE_BODY = {
  type: 'object',
  additionalProperties: false,
  properties: {
    name: { type: ['string', 'null'], maxLength: 100, description: 'Purpose of the key, such as "laptop".' },
    expires_at: { type: ['string', 'null'], maxLength: 40, description: 'ISO 8601 date-time, in the future.' },
    models: {
      type: ['array', 'null'],
      ...LIST,
      description:
        'Models the key may use: `provider/model`, `model`, `provider/*` or an alias; also their dated variants.',
    },
    providers: { type: ['array', 'null'], ...LIST, description: 'Providers the key may use.' },
    server_tools: {
      type: ['array', 'null'],
      ...LIST,
      description:
        'Vendor tools that run with the operator’s account, such as `search` or `web_search`, in addition to those of the plan.',
    },
    plan: { type: ['string', 'null'], minLength: 1, maxLength: 100, description: 'Plan whose limits apply.' },
    rpm: { ...RATE, description: 'Requests per minute.' },
    tpm: { ...RATE, description: 'Tokens per minute.' },
    budget_usd: {
      anyOf: [{ type: 'number' }, { type: 'string', maxLength: 20 }, { type: 'null' }],
      description: 'Total budget of the key in US dollars, such as "5.00".',
    },
    budgets: KEY_BUDGETS,
    addresses: {
      type: ['array', 'null'],
      ...LIST,
      description: 'Allowed client addresses: IP addresses and networks, such as `203.0.113.7` or `10.0.0.0/8`.',
    },
  },
} as const;

/** Fields that operators may set in addition to those of the key’s user. */
export const OPERATORS_BODY = {
  ...CREATE_BODY,
  properties: {
    ...CREATE_BODY.properties,
    tags: {
      type: ['array', 'null'],
      maxItems: 5,
      items: { type: 'string', minLength: 3, maxLength: 129 },
      description: 'Tags of its calls, such as `team=search`; at most five.',
    },
  },
} as const;

/** Request for a new key. */
export type KeyRequest = PluginConfig<typeof OPERATORS_BODY>;

/** Reads a validated request body; throws `invalid_request` for a past time or an invalid amount. */
export function readKeyRequest(body: KeyRequest | undefined, now: number): KeyLimits {
  const { name, expires_at, budget_usd, ...rest } = body ?? {};
  return {
    name: readName(name ?? ''),
    ...omitUndefined({
      expiresAt: expires_at == null ? undefined : readExpiry(expires_at, now),
      models: rest.models ?? undefined,
      providers: rest.providers ?? undefined,
      serverTools: rest.server_tools ?? undefined,
      plan: rest.plan ?? undefined,
      rpm: rest.rpm ?? undefined,
      tpm: rest.tpm ?? undefined,
      budget: budget_usd == null ? undefined : readBudget(budget_usd),
      budgets: rest.budgets == null ? undefined : readKeyBudgets(rest.budgets),
      addresses: rest.addresses == null ? undefined : readAddresses(rest.addresses),
      tags: rest.tags == null || rest.tags.length === 0 ? undefined : readTags(rest.tags),
    }),
  };
}

/** Limits by request field. */
const LIMIT_OF: Readonly<Record<keyof KeyRequest, keyof KeyLimits>> = Object.freeze({
  name: 'name',
  expires_at: 'expiresAt',
  models: 'models',
  providers: 'providers',
  server_tools: 'serverTools',
  plan: 'plan',
  rpm: 'rpm',
  tpm: 'tpm',
  budget_usd: 'budget',
  budgets: 'budgets',
  addresses: 'addresses',
  tags: 'tags',
});

/** Change of a key's limits: fields of the request are set, or removed if null; others stay. */
export interface LimitsChange {
  /** New values, to be checked against the configuration. */
  readonly set: KeyLimits;
  apply(limits: KeyLimits): KeyLimits;
}

/** Reads a validated change; throws like {@link readKeyRequest}. */
export function readKeyChange(body: KeyRequest, now: number): LimitsChange {
  const set = readKeyRequest(body, now);
  const named = new Set<string>(
    Object.keys(body).flatMap((field) => (Object.hasOwn(LIMIT_OF, field) ? [LIMIT_OF[field as keyof KeyRequest]] : [])),
  );
  const pick = (limits: KeyLimits, isPicked: (name: string) => boolean): Partial<KeyLimits> =>
    Object.fromEntries(Object.entries(limits).filter(([name]) => isPicked(name)));
  return {
    set,
    apply: (limits) => ({
      name: named.has('name') ? set.name : limits.name,
      ...pick(limits, (name) => !named.has(name) && name !== 'name'),
      ...pick(set, (name) => named.has(name) && name !== 'name'),
    }),
  };
}

const CONTROL = /\p{Cc}|\p{Cs}/u;

function readName(name: string): string {
  const trimmed = name.trim();
  if (!CONTROL.test(trimmed)) return trimmed;
  throw new GatewayError('invalid_request', 'name contains control characters. Use plain text.', { param: 'name' });
}

const DATE_TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2})$/i;

function readExpiry(text: string, now: number): number {
  const time = DATE_TIME.test(text) ? Date.parse(text) : Number.NaN;
  if (time > now) return time;
  const reason = Number.isNaN(time)
    ? 'expires_at must be a date-time with a time zone, such as 2027-01-31T12:00:00Z.'
    : 'expires_at must be in the future.';
  throw new GatewayError('invalid_request', reason, { param: 'expires_at' });
}

function readBudget(amount: string | number): number {
  try {
    const budget = parseUsd(amount);
    if (budget >= 0) return budget;
  } catch {
    // Rejected below: every invalid amount has the same message.
  }
  throw new GatewayError(
    'invalid_request',
    'budget_usd must be an amount in US dollars, such as "5", "0.50" or "12.345678".',
    { param: 'budget_usd' },
  );
}

/** Sorts tags, so that keys with the same tags are charged alike. The configuration defines the allowed ones. */
function readTags(tags: readonly string[]): readonly string[] {
  const names = tags.map(tagName);
  const again = names.find((name, at) => names.indexOf(name) !== at);
  if (again === undefined && tags.length <= MAX_TAGS) return tags.toSorted();
  const reason =
    again === undefined
      ? `A key can have at most ${MAX_TAGS} tags.`
      : `tags has "${again.slice(0, 40)}" twice; each tag has one value.`;
  throw new GatewayError('invalid_request', reason, { param: 'tags' });
}

/** Options in commander's form. */
type Options = CommandInput['options'];

/** Same limit as in the API. */
const MAX_NAME = 100;
const MAX_LIST = 100;
const MAX_ENTRY = 200;

/** Command line options for a key's limits. */
export const LIMIT_OPTIONS: readonly CommandOption[] = Object.freeze([
  { flags: '--name <text>', summary: 'purpose of the key' },
  { flags: '--expires <when>', summary: 'a duration such as 30d, or a date-time' },
  { flags: '--models <list>', summary: 'allowed models, comma-separated' },
  { flags: '--providers <list>', summary: 'allowed providers, comma-separated' },
  { flags: '--server-tools <list>', summary: 'vendor tools that run with your account, such as search' },
  { flags: '--plan <name>', summary: 'plan whose limits apply' },
  { flags: '--rpm <n>', summary: 'requests per minute' },
  { flags: '--tpm <n>', summary: 'tokens per minute' },
  { flags: '--budget <usd>', summary: 'total budget in US dollars' },
  { flags: '--budgets <list>', summary: 'budgets in US dollars by calendar period: day=2,month=20@Europe/Berlin' },
  { flags: '--addresses <list>', summary: 'allowed client addresses: 203.0.113.7,10.0.0.0/8' },
  { flags: '--tag <list>', summary: 'tags of its calls: team=search,project=x' },
]);

/** Converts the options to an API request; null for omitted ones. */
export function readLimitOptions(options: Options, now: number): KeyRequest {
  const expires = textOf(options, 'expires');
  return {
    name: readNameOption(options),
    expires_at: expires === undefined ? null : readExpiryOption(expires, now),
    models: readList(options, 'models'),
    providers: readList(options, 'providers'),
    server_tools: readList(options, 'serverTools', 'server-tools'),
    plan: textOf(options, 'plan') ?? null,
    rpm: readCount(options, 'rpm') ?? null,
    tpm: readCount(options, 'tpm') ?? null,
    budget_usd: textOf(options, 'budget') ?? null,
    budgets: readBudgetsOption(options),
    addresses: readList(options, 'addresses'),
    tags: readList(options, 'tag'),
  };
}

function readNameOption(options: Options): string | null {
  const name = textOf(options, 'name') ?? null;
  if (name === null || name.length <= MAX_NAME) return name;
  throw wrongOption('--name', `is longer than ${MAX_NAME} characters`);
}

function readBudgetsOption(options: Options): NonNullable<KeyRequest['budgets']> | null {
  const entries = readList(options, 'budgets');
  if (!entries) return null;
  const budgets = parseKeyBudgets(entries);
  if (budgets) return budgets;
  throw wrongOption('--budgets', 'must have the form day=2,month=20@Europe/Berlin');
}

/** Reads a duration from now, or a date-time as in the API. */
function readExpiryOption(text: string, now: number): string {
  if (text.includes('T')) return text;
  try {
    return new Date(now + parseDuration(text)).toISOString();
  } catch (error) {
    const reason = 'must be a duration such as 30d or a date-time such as 2027-01-31T12:00:00Z';
    throw wrongOption('--expires', bareNumberReason(text, error) ?? reason);
  }
}

/** Reason with both readings of a number where a duration is expected; undefined for another text. */
export function bareNumberReason(text: string, error: unknown): string | undefined {
  return error instanceof TypeError && /^[\d.]+$/.test(text.trim()) ? error.message : undefined;
}

function readList(options: Options, name: string, flag = name): readonly string[] | null {
  const entries = textOf(options, name)
    ?.split(',')
    .map((entry) => entry.trim());
  if (entries?.some((entry) => entry === '')) throw wrongOption(`--${flag}`, 'contains an empty name; use a,b,c');
  if (entries && (entries.length > MAX_LIST || entries.some((entry) => entry.length > MAX_ENTRY)))
    throw wrongOption(`--${flag}`, `accepts at most ${MAX_LIST} names of at most ${MAX_ENTRY} characters`);
  return entries ?? null;
}

function readCount(options: Options, name: string): number | undefined {
  const text = textOf(options, name);
  if (text === undefined) return undefined;
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw wrongOption(`--${name}`, 'must be a whole number of at least 1');
}

/** Creates the error for an invalid option. */
export function wrongOption(flag: string, reason: string): GatewayError {
  return new GatewayError('invalid_request', `${flag} ${reason}.`, { param: flag });
}

/** Characters invisible in a list: control characters, direction marks, zero-width and other ignorable characters. */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;

/** Rejects an id that could be mistaken for another one. */
export function refuseHidden(param: string, id = ''): void {
  const hidden = HIDDEN.exec(id)?.[0].codePointAt(0);
  if (hidden === undefined) return;
  throw new GatewayError(
    'invalid_request',
    `${param} contains the invisible character U+${hidden.toString(16).toUpperCase().padStart(4, '0')}. Remove it.`,
    { param },
  );
}
