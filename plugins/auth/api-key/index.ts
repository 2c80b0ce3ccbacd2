import { definePlugin, isGatewayError, type PluginApi, problemsOf, type UserRecord } from '../../../contract/index.ts';
import { createPlanBook, KEY_ORIGINS, type KeyOrigin, USERS } from '../../policies/kit/index.ts';
import { KEY_PATTERN } from './format.ts';
import { createImportedKeys } from './imported-keys.ts';
import { createKeyIndex } from './key-index.ts';
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
          'The server-side secret in every stored hash, 32 bytes or more. Unless given, one is made on first start and kept in the file `pepper` of the data folder; several nodes on one store need the same.',
      },
      previousPeppers: {
        type: 'array',
        maxItems: 10,
        items: { type: 'string', secret: true },
        description: 'Peppers that older keys are still under, while `pepper` is being changed.',
      },
      maxKeysPerUser: {
        type: 'integer',
        minimum: 1,
        maximum: 10_000,
        default: 100,
        description: 'How many keys a user may have at a time; also bounds how many are made in an hour.',
      },
      operatorKeyFor: {
        type: 'string',
        format: 'duration',
        default: '365d',
        description:
          'How long a key with a role or scopes lasts whose maker names no end, 1d or more. Before its end the log and `tollgate_operator_keys_ending` say so for 14 days.',
      },
      importedKeys: {
        enum: ['litellm'],
        description:
          'Takes keys of LiteLLM that `tollgate keys import` took over, so that their holders change nothing. Nothing else than keys of this gateway is looked up unless set.',
      },
      bootstrap: {
        type: 'boolean',
        description:
          'Makes a first key for the user `local` on an empty store, and shows it once at start. On with the built-in configuration, else off.',
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
      noteOrigins: createNoteOrigins(api),
    });

    const imported = config.importedKeys && createImportedKeys(api, { verifier, readPeppers: readCheckedPeppers });
    api.hook('authenticate', (request) =>
      request.credential.startsWith('tg_') ? verifier.verify(request) : imported?.verify(request),
    );
    const readPlans = createPlanBook(api);
    const check = async (limits: KeyLimits) => checkNames(api, limits, [...(await readPlans()).keys()]);
    const creationsPerHour = Math.max(2 * maxKeysPerUser, 200);
    registerRoutes(api, { keyring, check, creationsPerHour });
    const { counters } = api.stores;
    registerTeamKeys(api, {
      ...{ keyring, check },
      countCreation: (maker, now) => countCreation({ counters, creationsPerHour }, maker, now),
    });
    const giveUp = async () => acceptPepper(sets, await readOwnPeppers());
    registerKeys(api, { keyring, check, imported, acceptPepper: giveUp, operatorKeyForMs: readOperatorKeyFor(config) });
    watchEnds(api, index, records);
    for (const data of personalKeys({ keyring, index, records })) api.stores.personalData(data);
    api.onReady(() =>
      startUp(api, readCheckedPeppers, async () => {
        const bootstrap = config.bootstrap ?? api.settings.isDefault;
        if (!bootstrap || !(await index.isEmpty()) || !(await index.claimFirst())) return announceCommand(api);
        await makeFirstKey(api, keyring).catch(async (error: unknown) => {
          await index.unclaimFirst().catch(() => undefined);
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
    api.log.warn({ err: error }, 'The store of API keys does not answer yet; keys are refused with 503 until it does.');
  }
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
    title: 'To make an API key',
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
