import { definePlugin, isGatewayError, type PluginApi, problemsOf, type UserRecord } from '../../../contract/index.ts';
import { createPlanBook, KEY_ORIGINS, type KeyOrigin, offerKeys, USERS } from '../../policies/kit/index.ts';
import { KEY_PATTERN } from './format.ts';
import { createImportedKeys } from './imported-keys.ts';
import { createKeyIndex, type KeyIndex } from './key-index.ts';
import { checkNames } from './key-limits.ts';
import { readOperatorKeyFor, watchEnds } from './key-rights.ts';
import { registerKeys } from './keys-command-and-routes.ts';
import { createKeyring, type Keyring } from './manage-keys.ts';
import {
  acceptPepper,
  assertPepperFile,
  assertStrength,
  checkPeppers,
  makePepper,
  type Peppers,
  readPeppers,
} from './peppers.ts';
import { createRecords, type KeyLimits } from './records.ts';
import { countCreation, registerRoutes } from './routes.ts';
import { personalKeys } from './search-keys.ts';
import { registerTeamKeys } from './team-keys.ts';

import { createLastUsed, createVerifier } from './verify-key.ts';

const FIRST_USER = 'local';

/** API keys: created, listed, rotated and revoked over HTTP or on the command line, and verified on every request. */
export default definePlugin({
  name: 'api-key',
  kind: 'auth',
  apiVersion: 1,
  permissions: ['ledger', 'records', 'operators'],
  credentials: ['key'],
  isCredential: (text) => KEY_PATTERN.test(text),
  commands: [{ name: 'keys', summary: 'Create, list, update, block, rotate and revoke API keys' }],
  configSchema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      pepper: {
        type: 'string',
        secret: true,
        description:
          'Secret in every stored hash, at least 32 bytes. All gateways of a store need the same. Default: the file `pepper` of the data folder, created at the first start.',
      },
      previousPeppers: {
        type: 'array',
        maxItems: 10,
        items: { type: 'string', secret: true },
        description: 'Previous peppers of existing keys, for a change of `pepper`.',
      },
      maxKeysPerUser: {
        type: 'integer',
        minimum: 1,
        maximum: 10_000,
        default: 100,
        description: 'Maximum number of keys per user, and of keys that a user creates per hour.',
      },
      operatorKeyFor: {
        type: 'string',
        format: 'duration',
        default: '365d',
        description:
          'Default lifetime of operator keys (with a role or scopes), at least 1d. For 14 days before a key expires, the log and `tollgate_operator_keys_ending` warn.',
      },
      importedKeys: {
        enum: ['litellm'],
        description:
          'Accepts LiteLLM keys imported by `tollgate keys import`, so that users keep their keys. Default: only keys of this gateway.',
      },
      bootstrap: {
        type: 'boolean',
        description:
          'Creates a key for the user `local` in an empty store and shows it once at start. Default: on with the built-in configuration, otherwise off.',
      },
    },
  },

  check: (config, { settings }) =>
    problemsOf(
      () => assertStrength(config),
      () => readOperatorKeyFor(config),
      () => (config.pepper === undefined ? assertPepperFile(settings.dataDir) : undefined),
    ),

  setup(api, config) {
    const maxKeysPerUser = config.maxKeysPerUser;
    const { sets } = api.stores;
    const records = createRecords(api);
    const index = createKeyIndex(sets);

    const folder = api.stores.kind === 'memory' ? undefined : api.settings.dataDir;
    // For a store in memory, the pepper lives as long as the store, which survives a reload.
    const pepper = config.pepper ?? (folder === undefined ? api.keep('pepper', makePepper) : undefined);
    const readOwnPeppers = remember(() =>
      readPeppers({ ...config, pepper }, folder, (message) => api.log.warn({}, message)),
    );
    const readCheckedPeppers = remember(async () => {
      const peppers = await readOwnPeppers();
      await checkPeppers(sets, peppers);
      return peppers;
    });

    const lastUsed = createLastUsed(records, api.log);
    const verifier = createVerifier(records, readCheckedPeppers, lastUsed.touch);
    const keyring = createKeyring({
      records,
      index,
      ledger: api.books.ledger,
      readPeppers: readCheckedPeppers,
      onChange: verifier.forget,
      onCreate: api.books.records<UserRecord>(USERS).note,
      maxKeysPerUser,
      recordOrigins: createNoteOrigins(api),
    });

    const imported = config.importedKeys && createImportedKeys(api, { verifier, readPeppers: readCheckedPeppers });
    api.hook('authenticate', (request) =>
      request.credential.startsWith('tg_') ? verifier.verify(request) : imported?.verify(request),
    );
    offerKeys(api, verifier.admit);
    const readPlans = createPlanBook(api);
    const check = async (limits: KeyLimits) => checkNames(api, limits, [...(await readPlans()).keys()]);
    const creationsPerHour = Math.max(2 * maxKeysPerUser, 200);
    registerRoutes(api, { keyring, check, creationsPerHour });
    const { counters } = api.stores;
    registerTeamKeys(api, {
      keyring,
      check,
      countCreation: (maker, now) => countCreation({ counters, creationsPerHour }, maker, now),
    });
    const giveUp = async () => acceptPepper(sets, await readOwnPeppers());
    registerKeys(api, { keyring, check, imported, acceptPepper: giveUp, operatorKeyForMs: readOperatorKeyFor(config) });
    watchEnds(api, index, records);
    for (const data of personalKeys({ keyring, index, records })) api.stores.personalData(data);
    const first = createFirstClaim(api, index);
    api.onReady(() =>
      startUp(api, readCheckedPeppers, async () => {
        const bootstrap = config.bootstrap ?? api.settings.isDefault;
        if (!bootstrap || !(await first.claim())) return announceCommand(api);
        await makeFirstKey(api, keyring).catch(async (error: unknown) => {
          await first.unclaim().catch(() => undefined);
          throw error;
        });
      }),
    );
    api.onClose(lastUsed.flush);
  },
});

/** An unavailable store does not stop the start: keys are refused with 503 until it recovers. A wrong pepper does. */
async function startUp(api: PluginApi, check: () => Promise<Peppers>, bootstrap: () => Promise<void>): Promise<void> {
  try {
    await check();
    await bootstrap();
  } catch (error) {
    if (!isGatewayError(error)) throw error;
    api.log.warn(
      { err: error },
      'The store of API keys does not respond yet; requests with keys get 503 until it does.',
    );
  }
}

/**
 * Creates the claim of the first key, which only one process ever gets. A document records it too: in a Keyv adapter, documents
 * outlive the index of keys, which is empty after each start.
 */
function createFirstClaim(api: Pick<PluginApi, 'keyv'>, index: KeyIndex) {
  const documents = api.keyv<boolean>('first-key');
  return {
    async claim(): Promise<boolean> {
      if (!(await index.isEmpty()) || (await documents.get('made')) !== undefined) return false;
      if (!(await index.claimFirst())) return false;
      await documents.set('made', true);
      return true;
    },
    async unclaim(): Promise<void> {
      await documents.delete('made');
      await index.unclaimFirst();
    },
  };
}

async function makeFirstKey(api: PluginApi, keyring: Keyring): Promise<void> {
  const owner = { userId: FIRST_USER, account: FIRST_USER };
  const { text } = await keyring.create(owner, { name: 'first key' }, Date.now());
  api.operators.announce({ title: 'Your first API key, shown once', value: text, use: 'key' });
}

/**
 * Keys are shown once, so a start without a new one prints the command that creates another. No command can reach a
 * store in memory.
 */
function announceCommand(api: PluginApi): void {
  if (api.stores.kind === 'memory') return;
  api.operators.announce({
    title: 'To create an API key',
    value: `keys create --user ${FIRST_USER}`,
    use: 'key-command',
  });
}

/** Runs once for all callers; runs again after a failure. */
function remember<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make().catch((error: unknown) => {
      made = undefined;
      throw error;
    });
    return made;
  };
}

/** Records the first of several keys that replaced one another. */
function createNoteOrigins(api: Pick<PluginApi, 'books'>): (ids: readonly string[], first: string) => Promise<void> {
  const origins = api.books.records<KeyOrigin>(KEY_ORIGINS);
  return async (ids, first) => {
    for (const id of ids) await origins.change(id, () => ({ first }));
  };
}
