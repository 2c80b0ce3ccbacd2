import {
  type Command,
  type CommandInput,
  type CommandIo,
  type CommandOption,
  GatewayError,
  type PluginApi,
  parseDuration,
  type Subcommand,
} from '../../../core/index.ts';
import type { ApiKeyInfo } from './info.ts';
import { parseKeyBudgets } from './key-budgets.ts';
import type { KeyOperations } from './key-operations.ts';
import type { Keyring } from './keyring.ts';
import { mapKeys } from './map-keys.ts';
import type { StoredKey } from './records.ts';
import type { KeyRequest } from './request.ts';

interface KeysCommandParts {
  readonly keyring: Keyring;
  readonly operations: KeyOperations;
  readonly acceptPepper: () => Promise<number>;
  readonly audit: PluginApi['audit'];
}

/** `tollgate keys`: what operators do without a token, on the configured store. */
export function keysCommand({ keyring, operations, acceptPepper, audit }: KeysCommandParts): Command {
  return {
    name: 'keys',
    summary: 'API keys',
    subcommands: [
      createCommand(operations),
      listCommand(keyring, operations),
      ...operatorCommands(keyring, operations),
      {
        name: 'accept-pepper',
        summary: 'Give up keys made under a lost pepper, so that the gateway starts with this one',
        options: [{ flags: '--yes', summary: 'really: keys under other peppers stop working' }],
        async run({ options, io, actor }) {
          if (options['yes'] !== true) throw wrongOption('--yes', 'is needed: keys under other peppers stop working');
          const given = await acceptPepper();
          await audit({ actor, action: 'pepper.accept', subject: 'api-key', after: { given_up: given } });
          io.result({ given_up: given }, `This pepper is the store's only one now; ${given} other(s) were given up.`);
        },
      },
    ],
  };
}

/** The longest id of a user or an account, as the API takes it. */
const MAX_ID = 256;

function createCommand(operations: KeyOperations): Subcommand {
  return {
    name: 'create',
    summary: 'Make an API key and print it, once',
    options: [
      { flags: '--user <id>', summary: 'whose key it is', required: true },
      { flags: '--account <id>', summary: 'who pays; the user by default' },
      ...LIMIT_OPTIONS,
      { flags: '--admin', summary: 'a key for operators: it may also use the admin API and read the metrics' },
    ],
    async run({ options, io, actor }) {
      const now = Date.now();
      const wanted = readOptions(options, now);
      const userId = readText(options, 'user');
      if (!userId) throw wrongOption('--user', 'needs the id of a user, such as --user u_42');
      for (const flag of ['user', 'account'])
        if ((readText(options, flag) ?? '').length > MAX_ID)
          throw wrongOption(`--${flag}`, `is longer than ${MAX_ID} characters`);
      const isAdmin = options['admin'] === true;
      const role = isAdmin ? ({ role: 'admin' } as const) : {};
      const owner = { userId, account: readText(options, 'account') ?? userId, ...role };
      const { text, info } = await operations.create(actor, owner, wanted, now);
      io.note(`Made the ${isAdmin ? 'admin ' : ''}key ${info.prefix} for ${userId}. It cannot be shown again:`);
      io.result({ api_key: text, api_key_info: info }, text);
    },
  };
}

function listCommand(keyring: Keyring, operations: KeyOperations): Subcommand {
  return {
    name: 'list',
    summary: 'List API keys, oldest first',
    options: [
      { flags: '--user <id>', summary: 'of this user only, without revoked ones' },
      { flags: '--limit <n>', summary: 'how many at most; 100 by default' },
      { flags: '--after <id>', summary: 'goes on after this key' },
    ],
    async run({ options, io }) {
      const after = readText(options, 'after');
      const last = after === undefined ? undefined : await operations.find(after);
      const limit = readCount(options, 'limit') ?? 100;
      const page = { limit, ...(last && { after: last.record }) };
      const { keys, hasMore } = await keyring.list(readText(options, 'user'), page);
      const data = await mapKeys(keys, keyring.describe);
      const next = hasMore ? keys.at(-1)?.record.id : undefined;
      io.result(
        { object: 'list', data, has_more: hasMore, ...(next !== undefined && { next }) },
        formatKeys(io, data, Date.now()),
      );
      if (hasMore) io.note(`There are more: --after ${next}`);
    },
  };
}

const KEY = { name: '<id>', summary: 'the id of the key, its tg_ prefix, or the whole (leaked) key' } as const;
const WITHIN = 'gateways that run know it within five seconds';

/** What `--clear` may name, and the field of the API that it takes away. */
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
  tag: 'tags',
});

/** `tollgate keys show|update|block|unblock|rotate|revoke`: what happens to a key that there is. */
function operatorCommands(keyring: Keyring, operations: KeyOperations): readonly Subcommand[] {
  const find = (args: readonly string[]): Promise<StoredKey> => operations.find(args[0] ?? '');
  return [
    {
      name: 'show',
      summary: 'Show an API key, with what is spent and left of its budgets',
      args: [KEY],
      async run({ args, io }) {
        const info = await keyring.describeSpending(await find(args));
        io.result(info, formatKey(info));
      },
    },
    updateCommand(keyring, operations),
    {
      name: 'block',
      summary: 'Stop an API key from working until it is unblocked',
      args: [KEY],
      options: [{ flags: '--reason <text>', summary: 'why; shown to operators' }],
      async run({ args, options, io, actor }) {
        const reason = readReason(readText(options, 'reason'));
        const info = await keyring.describe(await operations.block(actor, await find(args), reason, Date.now()));
        io.result(info, `${info.prefix} is blocked; ${WITHIN}.`);
      },
    },
    {
      name: 'unblock',
      summary: 'Let a blocked API key work again',
      args: [KEY],
      async run({ args, io, actor }) {
        const info = await keyring.describe(await operations.unblock(actor, await find(args)));
        io.result(info, `${info.prefix} is not blocked; ${WITHIN}.`);
      },
    },
    rotateCommand(operations),
    {
      name: 'revoke',
      summary: 'Stop an API key from working, for good',
      args: [KEY],
      async run({ args, io, actor }) {
        const info = await keyring.describe(await operations.revoke(actor, await find(args), Date.now()));
        io.result(info, `${info.prefix} is revoked; gateways that run refuse it within five seconds.`);
      },
    },
  ];
}

function updateCommand(keyring: Keyring, operations: KeyOperations): Subcommand {
  return {
    name: 'update',
    summary: 'Change what an API key may do; what is not named stays',
    args: [KEY],
    options: [
      ...LIMIT_OPTIONS,
      {
        flags: '--clear <list>',
        summary: `what to take away, with commas between: ${Object.keys(CLEARED).join(', ')}`,
      },
    ],
    async run({ args, options, io, actor }) {
      const now = Date.now();
      const set = Object.entries(readOptions(options, now)).filter(([, value]) => value !== null);
      const cleared = readCleared(readText(options, 'clear'));
      const both = set.find(([field]) => cleared.includes(field));
      if (both) throw wrongOption('--clear', `names ${both[0]}, which another option sets`);
      if (set.length + cleared.length === 0) throw wrongOption('an option', 'is needed: nothing would change');
      const wanted = Object.fromEntries([...set, ...cleared.map((field) => [field, null])]);
      const info = await keyring.describe(
        await operations.update(actor, await operations.find(args[0] ?? ''), wanted, now),
      );
      io.result(info, `${info.prefix} is changed; ${WITHIN}.\n${formatKey(info)}`);
    },
  };
}

function rotateCommand(operations: KeyOperations): Subcommand {
  return {
    name: 'rotate',
    summary: 'Replace an API key by a new one, which shares its limits and budgets, and print that, once',
    args: [KEY],
    options: [
      {
        flags: '--overlap <duration>',
        summary: 'how long the old one goes on working; 1h by default, 0s revokes it',
      },
    ],
    async run({ args, options, io, actor }) {
      const overlapMs = readOverlap(readText(options, 'overlap') ?? '1h');
      const key = await operations.find(args[0] ?? '');
      const { text, info } = await operations.rotate(actor, key, overlapMs, Date.now());
      io.note(`Made the key ${info.prefix} in place of tg_${key.record.id}. It cannot be shown again:`);
      io.result({ api_key: text, api_key_info: info }, text);
    },
  };
}

function readCleared(text: string | undefined): readonly string[] {
  return (text?.split(',') ?? []).map((word) => {
    const field = Object.hasOwn(CLEARED, word.trim()) ? CLEARED[word.trim()] : undefined;
    if (field !== undefined) return field;
    throw wrongOption('--clear', `takes ${Object.keys(CLEARED).join(', ')}`);
  });
}

const MAX_OVERLAP_MS = 30 * 86_400_000;

function readOverlap(text: string): number {
  try {
    const overlapMs = parseDuration(text);
    if (overlapMs <= MAX_OVERLAP_MS) return Math.floor(overlapMs / 1000) * 1000;
  } catch {
    // Refused below.
  }
  throw wrongOption('--overlap', 'is no duration of up to 30d, such as 1h or 0s');
}

function readReason(reason: string | undefined): string | undefined {
  if (reason === undefined || (reason.length <= 200 && !/\p{Cc}/u.test(reason))) return reason;
  throw new GatewayError('invalid_request', '--reason is a line of up to 200 characters.', { param: 'reason' });
}

const HEAD = Object.freeze(['KEY', 'USER', 'NAME', 'CREATED UTC', 'USED UTC', 'SPENT USD', 'STATE']);

/** A line for each key. */
function formatKeys(io: Pick<CommandIo, 'table'>, keys: readonly ApiKeyInfo[], now: number): string {
  const rows = keys.map((key) => [
    key.prefix,
    printable(key.user_id),
    printable(key.name || '-'),
    key.created_at.slice(0, 10),
    key.last_used_at?.slice(0, 10) ?? 'never',
    key.spent_usd,
    stateOf(key, now),
  ]);
  return io.table(HEAD, rows);
}

/** A line for each field of one key. */
export function formatKey(key: ApiKeyInfo): string {
  return Object.entries(key)
    .filter(([field]) => field !== 'hashed_key')
    .map(([field, value]) => `${field.padEnd(14)}  ${field === 'budgets' ? shownBudgets(key) : shown(value)}`)
    .join('\n');
}

/** A line for each budget, the following ones below the first. */
function shownBudgets({ budgets }: ApiKeyInfo): string {
  if (budgets === null || budgets.length === 0) return '-';
  const lines = budgets.map(({ name, amount_usd, every, timezone, spent_usd, left_usd, resets_at }) => {
    const period = every === 'total' ? 'in all' : `a ${every} in ${timezone}`;
    const state = spent_usd === undefined ? '' : `: ${spent_usd} spent, ${left_usd} left`;
    return `${name}: ${amount_usd} USD ${period}${state}${resets_at ? `, resets ${resets_at}` : ''}`;
  });
  return lines.join(`\n${' '.repeat(16)}`);
}

function shown(value: unknown): string {
  if (value === null || value === '') return '-';
  return Array.isArray(value) ? value.map((each) => printable(String(each))).join(', ') : printable(String(value));
}

/** Text of users on a terminal: without what moves its cursor, and not so long that nothing else fits. */
function printable(text: string): string {
  const clean = text.replace(/[\p{Cc}\p{Cf}]/gu, '?');
  return clean.length > 40 ? `${clean.slice(0, 39)}…` : clean;
}

function stateOf(key: ApiKeyInfo, now: number): string {
  if (key.revoked_at) return 'revoked';
  if (key.blocked_at) return 'blocked';
  const role = key.role === 'admin' ? 'admin' : 'active';
  if (!key.expires_at) return role;
  return Date.parse(key.expires_at) <= now ? 'expired' : `until ${key.expires_at.slice(0, 10)}`;
}

type Options = CommandInput['options'];

/** As the API takes them. */
const MAX_NAME = 100;
const MAX_LIST = 100;
const MAX_ENTRY = 200;

/** What a key may, as options of the command line. */
const LIMIT_OPTIONS: readonly CommandOption[] = Object.freeze([
  { flags: '--name <text>', summary: 'what it is for' },
  { flags: '--expires <when>', summary: 'a duration such as 30d, or a date-time' },
  { flags: '--models <list>', summary: 'models it may use, with commas between' },
  { flags: '--providers <list>', summary: 'providers it may use, with commas between' },
  { flags: '--server-tools <list>', summary: 'tools that vendors run with your account, such as web_search' },
  { flags: '--plan <name>', summary: 'the plan whose limits hold' },
  { flags: '--rpm <n>', summary: 'requests a minute' },
  { flags: '--tpm <n>', summary: 'tokens a minute' },
  { flags: '--budget <usd>', summary: 'US dollars it may spend in all' },
  { flags: '--budgets <list>', summary: 'US dollars by calendar period: day=2,month=20@Europe/Berlin' },
  { flags: '--tag <list>', summary: 'what its calls are booked under: team=search,project=x' },
]);

/** The options as a request of the API; null for what is not given. */
function readOptions(options: Options, now: number): KeyRequest {
  const expires = readText(options, 'expires');
  return {
    name: readName(options),
    expires_at: expires === undefined ? null : readExpiry(expires, now),
    models: readList(options, 'models'),
    providers: readList(options, 'providers'),
    server_tools: readList(options, 'serverTools', 'server-tools'),
    plan: readText(options, 'plan') ?? null,
    rpm: readCount(options, 'rpm') ?? null,
    tpm: readCount(options, 'tpm') ?? null,
    budget_usd: readText(options, 'budget') ?? null,
    budgets: readBudgets(options),
    tags: readList(options, 'tag'),
  };
}

function readName(options: Options): string | null {
  const name = readText(options, 'name') ?? null;
  if (name === null || name.length <= MAX_NAME) return name;
  throw wrongOption('--name', `is longer than ${MAX_NAME} characters`);
}

function readBudgets(options: Options): NonNullable<KeyRequest['budgets']> | null {
  const entries = readList(options, 'budgets');
  if (!entries) return null;
  const budgets = parseKeyBudgets(entries);
  if (budgets) return budgets;
  throw wrongOption('--budgets', 'is not of the form day=2,month=20@Europe/Berlin');
}

/** A duration from now, or a date-time as the API takes it. */
function readExpiry(text: string, now: number): string {
  if (text.includes('T')) return text;
  try {
    return new Date(now + parseDuration(text)).toISOString();
  } catch {
    throw wrongOption('--expires', 'is neither a duration such as 30d nor a date-time such as 2027-01-31T12:00:00Z');
  }
}

function readText(options: Options, name: string): string | undefined {
  const value = options[name];
  return typeof value === 'string' ? value : undefined;
}

function readList(options: Options, name: string, flag = name): readonly string[] | null {
  const entries = readText(options, name)
    ?.split(',')
    .map((entry) => entry.trim());
  if (entries?.some((entry) => entry === '')) throw wrongOption(`--${flag}`, 'holds an empty name; write a,b,c');
  if (entries && (entries.length > MAX_LIST || entries.some((entry) => entry.length > MAX_ENTRY)))
    throw wrongOption(`--${flag}`, `takes up to ${MAX_LIST} names of up to ${MAX_ENTRY} characters`);
  return entries ?? null;
}

function readCount(options: Options, name: string): number | undefined {
  const text = readText(options, name);
  if (text === undefined) return undefined;
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw wrongOption(`--${name}`, 'is not a whole number of 1 or more');
}

function wrongOption(flag: string, reason: string): GatewayError {
  return new GatewayError('invalid_request', `${flag} ${reason}.`, { param: flag });
}
