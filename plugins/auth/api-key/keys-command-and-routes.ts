import {
  type CommandInput,
  GatewayError,
  type PluginApi,
  parseDuration,
  type Subcommand,
} from '../../../contract/index.ts';
import { findCallable } from '../../policies/kit/index.ts';
import { printable } from '../../policies/kit/printable.ts';
import {
  type Action,
  type Actions,
  REASON_BODY,
  REASON_OPTION,
  type Resource,
  readReason,
  resource,
  textOf,
  WITHIN,
} from '../../policies/kit/resource.ts';
import { omitUndefined } from '../kit/omit-undefined.ts';
import { prefixOf, readKeyId } from './format.ts';
import { type ImportedKeys, importKeysCommand } from './imported-keys.ts';
import { type ApiKeyInfo, describeNewKey, formatKey, ISSUED, KEY_INFO, MADE, shownInAudit, stateOf } from './info.ts';
import { RIGHTS_FIELDS, RIGHTS_OPTIONS, readRightsOptions, refuseMore, rightsOfKey, withEnd } from './key-rights.ts';
import { type IssuedKey, type Keyring, mapKeys } from './manage-keys.ts';
import { type KeyEdit, type KeyLimits, type KeyRights, limitsOf, type StoredKey } from './records.ts';
import {
  bareNumberReason,
  type KeyRequest,
  LIMIT_OPTIONS,
  OPERATORS_BODY,
  readKeyChange,
  readKeyRequest,
  readLimitOptions,
  refuseHidden,
  wrongOption,
} from './request.ts';
import { SEARCH_FILTERS, SEARCH_NOTE, SEARCH_OPTIONS, searchKeys } from './search-keys.ts';
import { toPrincipal } from './verify-key.ts';

const DEFAULT_OVERLAP_SECONDS = 3600;
const USER = { type: 'string', minLength: 1, maxLength: 256, pattern: '^[^\\u0000-\\u001f\\u007f]+$' } as const;

const CREATE_BODY = {
  ...OPERATORS_BODY,
  required: ['user_id'],
  examples: [{ user_id: 'u_42', name: 'laptop' }],
  properties: {
    user_id: { ...USER, description: 'User of the key.' },
    account: { ...USER, description: 'Account that is charged. Default: the user.' },
    ...RIGHTS_FIELDS,
    ...OPERATORS_BODY.properties,
  },
} as const;

const UPDATE_BODY = { ...OPERATORS_BODY, minProperties: 1, examples: [{ rpm: 120, models: null }] } as const;

const ROTATE_BODY = {
  type: 'object',
  additionalProperties: false,
  properties: {
    overlap_seconds: {
      type: 'integer',
      minimum: 0,
      maximum: 30 * 86_400,
      description: `Seconds for which the old key remains valid. 0 revokes it immediately. Default: ${DEFAULT_OVERLAP_SECONDS}.`,
    },
  },
} as const;

interface Parts {
  readonly keyring: Keyring;
  /** Throws for an unknown plan, provider, model or tag. */
  readonly check: (limits: KeyLimits) => Promise<void>;
  readonly acceptPepper: () => Promise<number>;
  readonly imported: ImportedKeys | undefined;
  /** Default lifetime of operators' keys. */
  readonly operatorKeyForMs: number;
}

/** `/api/core/admin/keys` and `tollgate keys`: all keys, for operators. */
export function registerKeys(
  api: PluginApi,
  { keyring, check, imported, acceptPepper, operatorKeyForMs }: Parts,
): void {
  const changes = createChanges(keyring);
  const show: ShowKey = async (key) => {
    const [info, models] = await Promise.all([keyring.describeSpending(key), findCallable(api, toPrincipal(key))]);
    return models ? { ...info, callable_models: models } : info;
  };
  const table: Resource<StoredKey, string> = {
    name: 'key',
    path: '/api/core/admin/keys',
    id: 'id',
    schema: KEY_INFO,
    scopes: { read: 'keys:read', write: 'keys:write' },
    response: 'The changed key.',
    command: {
      name: 'keys',
      summary: 'API keys',
      id: { name: '<id>', summary: 'id of the key, its tg_ prefix, or the whole (leaked) key' },
      order: ['create', 'list', 'show', 'update', 'block', 'unblock', 'rotate', 'revoke', 'import', 'accept-pepper'],
    },
    async find(reference) {
      const value = await findKey(keyring, reference);
      return { version: versionOf(value), value };
    },
    show,
    guard: ({ record }, by) => refuseMore(by, rightsOfKey(record), 'change a key'),
  };

  resource(api, table, (make) => [
    ...readActions(make, keyring, show),
    ...blockActions(make, changes),
    rotateAction(make, keyring),
    revokeAction(make, keyring, changes),
    createAction(make, { keyring, check, operatorKeyForMs }),
    updateAction(make, changes, check),
    { subcommand: importKeysCommand({ keyring, check, imported, audit: api.operators.audit }) },
    { subcommand: acceptPepperCommand(acceptPepper, api.operators.audit) },
  ]);
}

type Make = Actions<StoredKey, string>;
type ShowKey = (key: StoredKey) => Promise<ApiKeyInfo>;
type Check = Parts['check'];
type Changes = ReturnType<typeof createChanges>;

/** Changes of keys with their values for the audit log. */
function createChanges(keyring: Keyring) {
  const edit = async (key: StoredKey, isHeld: boolean, make: (edit: KeyEdit) => KeyEdit) => {
    const { before, after } = await keyring.edit(key, make, isHeld ? key.version : undefined);
    return changed(before, after);
  };
  const changed = (before: StoredKey, after: StoredKey) => ({
    version: versionOf(after),
    subject: prefixOf(after.record.id),
    before: shownInAudit(describeNewKey(before)),
    after: shownInAudit(describeNewKey(after)),
    show: () => keyring.describe(after),
  });
  return { edit, changed };
}

function readActions(make: Make, keyring: Keyring, show: ShowKey): readonly Action[] {
  return [
    make.list({
      http: {
        summary: 'List API keys, oldest first',
        response: 'Page of keys.',
        schema: KEY_INFO,
        description: SEARCH_NOTE,
        filters: { user: { ...USER, description: 'Only keys of this user, without revoked ones.' }, ...SEARCH_FILTERS },
      },
      async read({ limit, after, filters }) {
        const last = after === undefined ? undefined : await findKey(keyring, after);
        const { keys, next } = await searchKeys(keyring, filters, { limit, ...(last && { after: last.record }) });
        return { rows: await mapKeys(keys, keyring.describe), next: next?.id };
      },
      cli: {
        options: [{ flags: '--user <id>', summary: 'only keys of this user, without revoked ones' }, ...SEARCH_OPTIONS],
        page: { after: '--after <id>', one: 'key', first: 100, most: 999_999_999 },
        columns: [
          ['KEY', ({ prefix }) => prefix],
          ['USER', ({ user_id }) => printable(user_id)],
          ['NAME', ({ name }) => printable(name || '-')],
          ['CREATED UTC', ({ created_at }) => created_at.slice(0, 10)],
          ['USED UTC', ({ last_used_at }) => last_used_at?.slice(0, 10) ?? 'never'],
          ['SPENT USD', ({ spent_usd }) => spent_usd],
          ['STATE', (key) => stateOf(key, Date.now())],
        ],
      },
    }),
    make.show({
      http: {
        summary: 'Show an API key with its budgets',
        response: 'Key, with its version as ETag.',
      },
      show,
      cli: { text: formatKey },
    }),
  ];
}

function blockActions(make: Make, { edit }: Changes): readonly Action[] {
  return [
    make.change({
      word: 'block',
      http: { summary: 'Block an API key until it is unblocked', body: REASON_BODY, bodyOptional: true },
      // Blocking again keeps the first time.
      apply: ({ found: { value }, body: { reason }, expected, now }) =>
        edit(value, expected !== undefined, ({ limits, blockedAt = now }) => {
          return { limits, blockedAt, ...omitUndefined({ blockReason: reason }) };
        }),
      cli: {
        summary: 'Block an API key until it is unblocked',
        options: [REASON_OPTION],
        read: readReason,
        text: ({ prefix }) => `${prefix} is blocked; ${WITHIN}.`,
      },
    }),
    make.change({
      word: 'unblock',
      http: { summary: 'Unblock an API key' },
      apply: ({ found: { value }, expected }) => edit(value, expected !== undefined, ({ limits }) => ({ limits })),
      cli: {
        summary: 'Unblock an API key',
        text: ({ prefix }) => `${prefix} is not blocked; ${WITHIN}.`,
      },
    }),
  ];
}

function rotateAction(make: Make, keyring: Keyring): Action {
  return make.change({
    word: 'rotate',
    http: {
      summary: 'Rotate an API key (limits and budgets carry over)',
      body: ROTATE_BODY,
      bodyOptional: true,
      schema: ISSUED,
    },
    // The successor gets everything of the old key, including its role.
    async apply({ found: { value: old }, body: { overlap_seconds: seconds = DEFAULT_OVERLAP_SECONDS }, now }) {
      const { role, scopes, userLimits } = old.record;
      const successor = { limits: limitsOf(old.record), ...omitUndefined({ role, scopes, userLimits }) };
      const issued = await keyring.rotate(old, successor, seconds * 1000, now);
      const rest = seconds === 0 ? 'is revoked' : `remains valid for ${seconds} seconds`;
      const prefix = prefixOf(old.record.id);
      return {
        version: 0,
        subject: prefix,
        after: { successor: issued.info.prefix, overlap_seconds: seconds },
        show: () => showIssued(`API key rotated; ${prefix} ${rest}. Store the new key now`, issued),
      };
    },
    cli: {
      summary: 'Rotate an API key (limits and budgets carry over)',
      options: [
        {
          flags: '--overlap <duration>',
          summary: 'time for which the old key remains valid; 0s revokes it (default: 1h)',
        },
      ],
      read: ({ options }) => ({ overlap_seconds: readOverlapSeconds(textOf(options, 'overlap') ?? '1h') }),
      intro: ({ api_key_info }, { args: [reference = ''] }) =>
        `Created the key ${api_key_info.prefix}, which replaces tg_${readKeyId(reference)}. It is shown only once:`,
      text: ({ api_key }) => api_key,
    },
  });
}

function revokeAction(make: Make, keyring: Keyring, { changed }: Changes): Action {
  return make.change({
    word: 'revoke',
    http: { summary: 'Revoke an API key permanently' },
    async apply({ found: { value: key }, now }) {
      const { before, after, ...rest } = changed(key, await keyring.revoke(key, now));
      // Revoking again is not a change.
      return key.revokedAt === undefined ? { ...rest, before, after } : rest;
    },
    cli: {
      summary: 'Revoke an API key permanently',
      text: ({ prefix }) => `${prefix} is revoked; running gateways reject it within 5 seconds.`,
    },
  });
}

function createAction(
  make: Make,
  { keyring, check, operatorKeyForMs }: Omit<Parts, 'acceptPepper' | 'imported'>,
): Action {
  return make.create({
    word: 'create',
    http: {
      summary: 'Create an API key for any user',
      body: CREATE_BODY,
      description: 'The key is only in this response; it is not stored.',
      response: 'The new key; it is shown only once.',
      schema: MADE,
    },
    async apply({ body: { user_id, account, role, scopes, ...wanted }, now, by }) {
      const rights = { ...(role != null && { role }), ...(scopes != null && { scopes }) };
      refuseMore(by, rightsOfKey(rights), 'make a key');
      refuseHidden('user_id', user_id);
      refuseHidden('account', account);
      const limits = withEnd(readKeyRequest(wanted, now), rights, now, operatorKeyForMs);
      await check(limits);
      const owner = { userId: user_id, account: account ?? user_id, ...rights };
      const similar = await keyring.findSimilar(owner);
      const issued = await keyring.create(owner, limits, now);
      return {
        version: 0,
        subject: issued.info.prefix,
        after: shownInAudit(issued.info),
        show: () => ({ ...showIssued('API key created. Store it now', issued), similar }),
      };
    },
    cli: {
      summary: 'Create an API key; it is printed only once',
      options: [
        { flags: '--user <id>', summary: 'user of the key', required: true },
        { flags: '--account <id>', summary: 'account that is charged (default: the user)' },
        ...LIMIT_OPTIONS,
        ...RIGHTS_OPTIONS,
      ],
      read: readCreation,
      intro: ({ api_key_info: { role, scopes, prefix, user_id, expires_at }, similar }) => {
        const end = (role ?? scopes) === undefined ? '' : `, until ${expires_at?.slice(0, 10)}`;
        return `${warnOfSimilar(similar)}Created the ${role === null ? '' : `${role} `}key ${prefix} for ${user_id}${end}. It is shown only once:`;
      },
      text: ({ api_key }) => api_key,
    },
  });
}

function updateAction(make: Make, { edit }: Changes, check: Check): Action {
  return make.change({
    word: 'update',
    http: {
      method: 'PATCH',
      summary: 'Update an API key',
      body: UPDATE_BODY,
      description:
        'Sets the fields in the body; null removes a field. `If-Match` rejects the change if the version differs.',
    },
    async apply({ found: { value: key }, body, expected, now }) {
      const { set, apply } = readKeyChange(body, now);
      // A model without a provider is looked up at the key's providers.
      const { providers } = apply(limitsOf(key.record));
      await check({ ...set, ...(set.models && omitUndefined({ providers })) });
      return edit(key, expected !== undefined, ({ limits, ...rest }) => ({ ...rest, limits: apply(limits) }));
    },
    cli: {
      summary: 'Update an API key; other fields are unchanged',
      options: [
        ...LIMIT_OPTIONS,
        {
          flags: '--clear <list>',
          summary: `fields to remove, comma-separated: ${Object.keys(CLEARED).join(', ')}`,
        },
      ],
      read: readUpdate,
      text: (info) => `${info.prefix} is updated; ${WITHIN}.\n${formatKey(info)}`,
    },
  });
}

function acceptPepperCommand(acceptPepper: () => Promise<number>, audit: PluginApi['operators']['audit']): Subcommand {
  return {
    name: 'accept-pepper',
    summary: 'Accept this pepper for the store; keys of other peppers become invalid',
    options: [{ flags: '--yes', summary: 'confirm: keys of other peppers become invalid' }],
    async run({ options, io, actor }) {
      if (options['yes'] !== true)
        throw wrongOption('--yes', 'is required, since keys of other peppers become invalid');
      const given = await acceptPepper();
      await audit({ actor, action: 'pepper.accept', subject: 'api-key', after: { given_up: given } });
      io.result({ given_up: given }, `The store now accepts only this pepper; ${given} other(s) removed.`);
    },
  };
}

/** Warns that a key for a similar id could be mistaken for another user's. */
function warnOfSimilar(similar: readonly string[]): string {
  if (similar.length === 0) return '';
  return `Keys exist for ${similar.map((id) => printable(id)).join(', ')}, which looks like this id. If you meant that user, revoke the new key. `;
}

function showIssued(what: string, { text, info }: IssuedKey) {
  return { message: `${what}; it is shown only once.`, api_key: text, api_key_info: info };
}

/** The end of a key changes its version. */
function versionOf({ version, revokedAt, retiredAt }: StoredKey): string {
  return [
    version,
    ...(retiredAt === undefined ? [] : ['rotated']),
    ...(revokedAt === undefined ? [] : ['revoked']),
  ].join('-');
}

async function findKey(keyring: Pick<Keyring, 'find'>, reference: string): Promise<StoredKey> {
  const id = readKeyId(reference);
  const key = id === undefined ? undefined : await keyring.find(id);
  if (key) return key;
  throw new GatewayError(
    'not_found',
    `API key${id === undefined ? '' : ` ${prefixOf(id)}`} not found in this store. "tollgate keys list" shows all keys.`,
  );
}

/** Names for `--clear`, with the API field that each removes. */
const CLEARED: Readonly<Record<string, string>> = Object.freeze({
  name: 'name',
  expires: 'expires_at',
  models: 'models',
  providers: 'providers',
  'server-tools': 'server_tools',
  plan: 'plan',
  rpm: 'rpm',
  tpm: 'tpm',
  budget: 'budget_usd',
  budgets: 'budgets',
  addresses: 'addresses',
  tag: 'tags',
});

/** Longest id of a user or an account in the API. */
const MAX_ID = 256;

/** Body in the form of {@link CREATE_BODY}. */
interface Creation extends KeyRequest, KeyRights {
  readonly user_id: string;
  readonly account?: string;
}

function readCreation({ options }: CommandInput): Creation {
  const wanted = readLimitOptions(options, Date.now());
  const [user_id, account] = [textOf(options, 'user'), textOf(options, 'account')];
  if (!user_id) throw wrongOption('--user', 'requires a user id, such as --user u_42');
  for (const [flag, id = ''] of [
    ['user', user_id],
    ['account', account],
  ])
    if (id.length > MAX_ID) throw wrongOption(`--${flag}`, `is longer than ${MAX_ID} characters`);
  return {
    ...wanted,
    user_id,
    ...(account !== undefined && { account }),
    ...readRightsOptions(options),
  };
}

function readUpdate({ options }: CommandInput): KeyRequest {
  const set = Object.entries(readLimitOptions(options, Date.now())).filter(([, value]) => value !== null);
  const cleared = readCleared(textOf(options, 'clear'));
  const both = set.find(([field]) => cleared.includes(field));
  if (both) throw wrongOption('--clear', `names ${both[0]}, which another option sets`);
  if (set.length + cleared.length === 0) throw wrongOption('an option', 'is required; otherwise nothing changes');
  return Object.fromEntries([...set, ...cleared.map((field) => [field, null])]);
}

function readCleared(text: string | undefined): readonly string[] {
  return (text?.split(',') ?? []).map((word) => {
    const field = Object.hasOwn(CLEARED, word.trim()) ? CLEARED[word.trim()] : undefined;
    if (field !== undefined) return field;
    throw wrongOption('--clear', `must be one of ${Object.keys(CLEARED).join(', ')}`);
  });
}

const MAX_OVERLAP_MS = 30 * 86_400_000;

function readOverlapSeconds(text: string): number {
  const reason = 'must be a duration of at most 30d, such as 1h or 0s';
  let overlapMs: number;
  try {
    overlapMs = parseDuration(text);
  } catch (error) {
    throw wrongOption('--overlap', bareNumberReason(text, error) ?? reason);
  }
  if (overlapMs > MAX_OVERLAP_MS) throw wrongOption('--overlap', reason);
  return Math.floor(overlapMs / 1000);
}
