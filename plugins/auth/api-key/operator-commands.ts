import { GatewayError, parseDuration, type Subcommand } from '../../../core/index.ts';
import type { KeyOperations } from './key-operations.ts';
import { LIMIT_OPTIONS, readOptions, readText, wrongOption } from './key-options.ts';
import { formatKey } from './key-table.ts';
import type { Keyring } from './keyring.ts';
import type { StoredKey } from './records.ts';

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
export function operatorCommands(keyring: Keyring, operations: KeyOperations): readonly Subcommand[] {
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
