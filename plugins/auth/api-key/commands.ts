import { type Command, GatewayError, type PluginApi, parseDuration, type Subcommand } from '../../../core/index.ts';
import { prefixOf, readKeyId } from './format.ts';
import { type ApiKeyInfo, shownInAudit } from './info.ts';
import type { Keyring } from './keyring.ts';
import type { KeyLimits, StoredKey } from './records.ts';
import { type KeyRequest, readKeyRequest } from './request.ts';

type Options = Readonly<Record<string, string | boolean | undefined>>;

export interface KeysCommandParts {
  /** Throws for a plan, a provider or a model that there is not. */
  readonly check: (limits: KeyLimits) => void;
  readonly acceptPepper: () => Promise<number>;
  readonly audit: PluginApi['audit'];
}

/** `tollgate keys`: what operators do without a token, on the configured store. */
export function keysCommand(keyring: Keyring, parts: KeysCommandParts): Command {
  const { acceptPepper, audit } = parts;
  return {
    name: 'keys',
    summary: 'API keys',
    subcommands: [
      createCommand(keyring, parts),
      listCommand(keyring),
      {
        name: 'revoke',
        summary: 'Stop an API key from working',
        args: [{ name: '<id>', summary: 'the id of the key, its tg_ prefix, or the whole (leaked) key' }],
        async run({ args, io, actor }) {
          const before = await findKey(keyring, args[0] ?? '');
          const key = await keyring.revoke(before, Date.now());
          const info = await keyring.describe(key);
          if (before.revokedAt === undefined)
            await audit({ actor, action: 'key.revoke', subject: info.prefix, after: { revoked_at: info.revoked_at } });
          io.result(info, `${info.prefix} is revoked; gateways that run refuse it within five seconds.`);
        },
      },
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

function createCommand(keyring: Keyring, { check, audit }: KeysCommandParts): Subcommand {
  return {
    name: 'create',
    summary: 'Make an API key and print it, once',
    options: [
      { flags: '--user <id>', summary: 'whose key it is', required: true },
      { flags: '--account <id>', summary: 'who pays; the user by default' },
      { flags: '--name <text>', summary: 'what it is for' },
      { flags: '--expires <when>', summary: 'a duration such as 30d, or a date-time' },
      { flags: '--models <list>', summary: 'models it may use, with commas between' },
      { flags: '--providers <list>', summary: 'providers it may use, with commas between' },
      { flags: '--server-tools <list>', summary: 'tools that vendors run with your account, such as web_search' },
      { flags: '--plan <name>', summary: 'the plan whose limits hold' },
      { flags: '--rpm <n>', summary: 'requests a minute' },
      { flags: '--tpm <n>', summary: 'tokens a minute' },
      { flags: '--budget <usd>', summary: 'US dollars it may spend in all' },
      { flags: '--tag <list>', summary: 'what its calls are booked under: team=search,project=x' },
      { flags: '--admin', summary: 'a key for operators: it may also use the admin API and read /metrics' },
    ],
    async run({ options, io, actor }) {
      const now = Date.now();
      const limits = readKeyRequest(readOptions(options, now), now);
      check(limits);
      const userId = readText(options, 'user');
      if (!userId) throw wrongOption('--user', 'needs the id of a user, such as --user u_42');
      const isAdmin = options['admin'] === true;
      const owner = {
        userId,
        account: readText(options, 'account') ?? userId,
        ...(isAdmin && { role: 'admin' as const }),
      };
      const { text, info } = await keyring.create(owner, limits, now);
      await audit({ actor, action: 'key.create', subject: info.prefix, after: shownInAudit(info) });
      io.note(`Made the ${isAdmin ? 'admin ' : ''}key ${info.prefix} for ${userId}. It cannot be shown again:`);
      io.result({ api_key: text, api_key_info: info }, text);
    },
  };
}

function listCommand(keyring: Keyring): Subcommand {
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
      const last = after === undefined ? undefined : await findKey(keyring, after);
      const limit = readCount(options, 'limit') ?? 100;
      const page = { limit, ...(last && { after: last.record }) };
      const { keys, hasMore } = await keyring.list(readText(options, 'user'), page);
      const data = await Promise.all(keys.map(keyring.describe));
      io.result({ object: 'list', data, has_more: hasMore }, formatKeys(data, Date.now()));
      if (hasMore) io.note(`There are more: --after ${keys.at(-1)?.record.id}`);
    },
  };
}

async function findKey(keyring: Keyring, reference: string): Promise<StoredKey> {
  const id = readKeyId(reference);
  const key = id === undefined ? undefined : await keyring.find(id);
  if (key) return key;
  const shown = id === undefined ? '' : ` ${prefixOf(id)}`;
  throw new GatewayError(
    'not_found',
    `There is no such API key${shown} in this store. "tollgate keys list" shows them.`,
  );
}

function readOptions(options: Options, now: number): KeyRequest {
  const expires = readText(options, 'expires');
  return {
    name: readText(options, 'name') ?? null,
    expires_at: expires === undefined ? null : readExpiry(expires, now),
    models: readList(options, 'models'),
    providers: readList(options, 'providers'),
    server_tools: readList(options, 'serverTools', 'server-tools'),
    plan: readText(options, 'plan') ?? null,
    rpm: readCount(options, 'rpm') ?? null,
    tpm: readCount(options, 'tpm') ?? null,
    budget_usd: readText(options, 'budget') ?? null,
    tags: readList(options, 'tag'),
  };
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

/** Text of users on a terminal: without what moves its cursor, and not so long that nothing else fits. */
function printable(text: string): string {
  const clean = text.replace(/[\p{Cc}\p{Cf}]/gu, '?');
  return clean.length > 40 ? `${clean.slice(0, 39)}…` : clean;
}

function formatKeys(keys: readonly ApiKeyInfo[], now: number): string {
  const rows = keys.map((key) => [
    key.prefix,
    printable(key.user_id),
    printable(key.name || '-'),
    key.created_at.slice(0, 10),
    key.last_used_at?.slice(0, 10) ?? 'never',
    `$${key.spent_usd}`,
    stateOf(key, now),
  ]);
  const table = [['KEY', 'USER', 'NAME', 'CREATED', 'USED', 'SPENT', 'STATE'], ...rows];
  const widths = table.reduce<readonly number[]>(
    (most, row) => row.map((cell, i) => Math.max(cell.length, most[i] ?? 0)),
    [],
  );
  return table
    .map((row) =>
      row
        .map((cell, i) => cell.padEnd(widths[i] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

function stateOf(key: ApiKeyInfo, now: number): string {
  if (key.revoked_at) return 'revoked';
  if (!key.expires_at) return 'active';
  return Date.parse(key.expires_at) <= now ? 'expired' : `until ${key.expires_at.slice(0, 10)}`;
}
