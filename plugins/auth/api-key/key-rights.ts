import {
  type CommandInput,
  type CommandOption,
  GatewayError,
  OptionError,
  type PluginApi,
  parseDuration,
} from '../../../contract/index.ts';
import {
  daysBefore,
  findMissing,
  hasReceivers,
  type NoticeApi,
  type Rights,
  ROLES,
  rightsOf,
  SCOPE_NAMES,
  tellOperators,
} from '../../policies/kit/index.ts';
import { textOf } from '../../policies/kit/resource.ts';
import { omitUndefined } from '../kit/omit-undefined.ts';
import { prefixOf } from './format.ts';
import type { KeyIndex } from './key-index.ts';
import { isEnded, isOfOperator, type KeyLimits, type KeyRecords, type KeyRights, type StoredKey } from './records.ts';
import { wrongOption } from './request.ts';

/** Operator rights of a key. */
export function rightsOfKey({ role, scopes = [] }: KeyRights): Rights {
  return rightsOf([...(role === undefined ? [] : [role]), ...scopes]);
}

/** Body fields for creating an operator's key. */
export const RIGHTS_FIELDS = {
  role: { enum: [...ROLES, null], description: 'Creates an operator key with the scopes of the role.' },
  scopes: {
    type: ['array', 'null'],
    minItems: 1,
    uniqueItems: true,
    items: { enum: SCOPE_NAMES },
    description: 'Creates an operator key with these scopes, in addition to those of the role.',
  },
} as const;

/** Command line options of the same fields. */
export const RIGHTS_OPTIONS: readonly CommandOption[] = Object.freeze([
  { flags: '--admin', summary: 'operator key with all rights, same as --role admin' },
  { flags: '--role <name>', summary: `operator key with a role: ${ROLES.join(', ')}` },
  { flags: '--scope <list>', summary: 'operator key with these scopes only, such as metrics:read' },
]);

export function readRightsOptions(options: CommandInput['options']): KeyRights {
  const isAdmin = options['admin'] === true;
  const text = textOf(options, 'role') ?? (isAdmin ? 'admin' : undefined);
  const role = ROLES.find((each) => each === text);
  if (text !== undefined && !role) throw wrongOption('--role', `must be one of ${ROLES.join(', ')}`);
  if (isAdmin && role !== 'admin') throw wrongOption('--role', 'cannot be combined with --admin');
  const scopes = textOf(options, 'scope')
    ?.split(',')
    .map((word) => {
      const scope = SCOPE_NAMES.find((each) => each === word.trim());
      if (scope) return scope;
      throw wrongOption('--scope', `must be a comma-separated list of ${SCOPE_NAMES.join(', ')}`);
    });
  return omitUndefined({ role, scopes: scopes && [...new Set(scopes)] });
}

/** Throws if a key would have more rights than its maker: the successor of an admin key is an admin key. */
export function refuseMore(by: Rights, rights: Rights, what: string): void {
  const missing = findMissing(by, rights);
  if (missing === undefined) return;
  const right = missing === 'admin' ? 'the role "admin"' : `the scope "${missing}"`;
  throw new GatewayError(
    'permission_denied',
    `You cannot ${what} with ${right}, which you do not have. Ask an operator who has it.`,
    { refusedBy: right },
  );
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** Default lifetime of an operator's key; throws an {@link OptionError} for less than a day. */
export function readOperatorKeyFor({ operatorKeyFor }: { readonly operatorKeyFor: string }): number {
  const ms = parseDuration(operatorKeyFor);
  if (ms >= DAY_MS) return ms;
  throw new OptionError(
    '/operatorKeyFor',
    `must be at least 1d, but is ${operatorKeyFor}`,
    'Use 365d or 90d, for example.',
  );
}

/**
 * Adds the default expiry to an operator's key without one: unlimited rights should not be valid forever by default.
 */
export function withEnd(limits: KeyLimits, rights: KeyRights, now: number, lastsMs: number): KeyLimits {
  const hasEnd = limits.expiresAt !== undefined || !isOfOperator(rights);
  return hasEnd ? limits : { ...limits, expiresAt: now + lastsMs };
}

/** Time before the expiry of an operator's key from which the log warns. */
const WARN_MS = 14 * DAY_MS;
/** Maximum operators' keys checked. */
const MAX_LOOKED = 1000;

/** Warns of operators' keys that expire soon, in the log once a day each and by a gauge. Notices cover all keys. */
export function watchEnds(
  api: NoticeApi &
    Pick<PluginApi, 'log' | 'onReady' | 'onClose'> & { readonly operators: Pick<PluginApi['operators'], 'gauge'> },
  index: Pick<KeyIndex, 'listOperators' | 'listEnding' | 'forgetEnd'>,
  records: Pick<KeyRecords, 'find'>,
): void {
  let ending = 0;
  const reported = new Map<string, number>();
  api.operators.gauge({
    name: 'operator_keys_ending',
    help: 'Operator keys that expire within 14 days.',
    read: () => ending,
  });
  const look = async (): Promise<void> => {
    const now = Date.now();
    let count = 0;
    for (const { id } of await index.listOperators(MAX_LOOKED)) {
      const key = await records.find(id);
      if (!key || isEnded(key, now)) continue;
      const { expiresAt } = key;
      // A rotated key has a successor.
      if (expiresAt === undefined || key.retiredAt !== undefined || expiresAt > now + WARN_MS) continue;
      count += 1;
      tellEnd(api, 'The operator key', { ...key, expiresAt }, daysBefore(expiresAt, NOTICE_DAYS, now));
      if (now - (reported.get(id) ?? 0) < DAY_MS) continue;
      reported.set(id, now);
      api.log.warn(
        { key: prefixOf(id), user: key.record.userId, expires_at: new Date(expiresAt).toISOString() },
        'An operator key expires soon. Extend it with "tollgate keys update <key> --expires 365d" or create a new one.',
      );
    }
    ending = count;
    if (hasReceivers(api)) await tellProgramEnds(api, index, records, now);
  };
  const lookQuietly = (): Promise<void> =>
    look().catch((error: unknown) => api.log.debug({ err: error }, 'Operator keys could not be read from the store.'));
  api.onReady(async () => {
    await lookQuietly();
    const timer = setInterval(() => void lookQuietly(), HOUR_MS);
    timer.unref();
    api.onClose(() => clearInterval(timer));
  });
}

/** Days before the expiry of an operator's key on which operators get a notice. */
const NOTICE_DAYS: readonly number[] = Object.freeze([14, 7, 1]);
/** Time before the expiry of other keys: one notice each, and none for keys with a shorter lifetime. */
const PROGRAM_NOTICE_MS = 7 * DAY_MS;

/**
 * Sends notices of other keys that expire next. There may be a million keys. The index is sorted by expiry and loses
 * processed entries, so each run reads only those that are new in the last seven days.
 */
async function tellProgramEnds(
  api: NoticeApi,
  index: Pick<KeyIndex, 'listEnding' | 'forgetEnd'>,
  records: Pick<KeyRecords, 'find'>,
  now: number,
): Promise<void> {
  for (const entry of await index.listEnding(MAX_LOOKED)) {
    const { id, endsAt } = entry;
    if (endsAt > now + PROGRAM_NOTICE_MS) return;
    const key = endsAt > now ? await records.find(id) : undefined;
    // False for a key that was revoked or rotated, or has another expiry, which is indexed too.
    const isCurrent = key && !isEnded(key, now) && key.retiredAt === undefined && key.expiresAt === endsAt;
    if (isCurrent && !isOfOperator(key.record) && endsAt - key.record.createdAt > PROGRAM_NOTICE_MS)
      tellEnd(api, 'The key', { ...key, expiresAt: endsAt }, undefined);
    await index.forgetEnd(entry);
  }
}

function tellEnd(
  api: NoticeApi,
  what: string,
  { record: { id, userId }, expiresAt }: StoredKey & { readonly expiresAt: number },
  days: number | undefined,
): void {
  const key = prefixOf(id);
  const end = new Date(expiresAt).toISOString();
  tellOperators(api, {
    type: 'key.expires',
    text: `${what} ${key} expires on ${end.slice(0, 10)}`,
    facts: { key, user: userId, expires_at: end },
    cause: `key.expires ${key} ${end}${days === undefined ? '' : ` ${days}`}`,
    rememberMs: 30 * DAY_MS,
  });
}
