import type { Command, PluginApi, Subcommand } from '../../../core/index.ts';
import type { KeyOperations } from './key-operations.ts';
import { LIMIT_OPTIONS, readCount, readOptions, readText, wrongOption } from './key-options.ts';
import { formatKeys } from './key-table.ts';
import type { Keyring } from './keyring.ts';
import { mapKeys } from './map-keys.ts';
import { operatorCommands } from './operator-commands.ts';

export interface KeysCommandParts {
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
