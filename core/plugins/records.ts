import { createHash, randomBytes } from 'node:crypto';
import { GatewayError, isGatewayError } from '../contract/errors.ts';
import type { Records, RecordVersion } from '../contract/records.ts';
import type { InstanceStore } from './instance-store.ts';

/** How often a read or a change is made anew because of others; each time another one was written, so it is a long queue that ends here. */
const MAX_TRIES = 200;
const VERSION_DIGITS = 8;

/**
 * Records on documents and sets. Each version is a document of its own, never written again; what makes it the newest is a
 * member of the record's set. That set has as many members as there are versions: adding one with that number as the most it
 * may have succeeds for one writer alone, and the others read anew.
 */
export function createRecords<T>(store: Pick<InstanceStore, 'keyv' | 'sets'>, name: string): Records<T> {
  const listeners = new Set<(id: string) => void>();
  const documents = () => store.keyv<{ readonly value: T }>(name);
  const setOf = (id: string): string => `${name}-versions:${hashId(id)}`;
  const keyOf = (id: string, member: string): string => `${hashId(id)}.${member}`;

  const read = async (id: string): Promise<RecordVersion<T> & { readonly member?: string }> => {
    let missing = 0;
    for (let tries = 0; tries < MAX_TRIES; tries += 1) {
      const version = await store.sets.size(setOf(id));
      if (version === 0) return { version, value: undefined };
      // Each version's member begins with its number, and there is one member of each.
      const [member] = await store.sets.list(setOf(id), { limit: 1, after: digits(version) });
      const document = member === undefined ? undefined : await documents().get(keyOf(id, member));
      if (document !== undefined && member !== undefined) return { version, value: document.value, member };
      // It may have been replaced, and removed, since its number was read: then there is a newer one.
      if (version === missing) break;
      missing = version;
    }
    throw unavailable(new Error(`the newest version of a record of "${name}" is not in the store`));
  };

  const write = async (id: string, version: number, value: T): Promise<boolean> => {
    const member = `${digits(version)}.${randomBytes(9).toString('base64url')}`;
    // The document first: what the set names is there.
    if (!(await documents().set(keyOf(id, member), { value }))) throw unavailable(undefined);
    if ((await store.sets.add(setOf(id), member, version)) === 'added') return true;
    await documents().delete(keyOf(id, member));
    return false;
  };

  return {
    find: async (id) => pick(await withStore(() => read(id))),

    async change(id, make, expected) {
      for (let tries = 0; tries < MAX_TRIES; tries += 1) {
        const now = await withStore(() => read(id));
        if (expected !== undefined && expected !== now.version) throw changedMeanwhile();
        const value = make(now.value);
        if (!(await withStore(() => write(id, now.version + 1, value)))) continue;
        for (const listener of listeners) listener(id);
        // Nobody reads what was replaced; when this fails, a small document stays.
        if (now.member !== undefined)
          await documents()
            .delete(keyOf(id, now.member))
            .catch(() => undefined);
        return { version: now.version + 1, before: now.value, value };
      }
      throw new GatewayError('conflict', 'Too many changes of this come at once. Try again in a moment.');
    },

    onChange: (listener) => void listeners.add(listener),
  };
}

/** The records of each name; the same name gives the same object, so that who changes tells who reads. */
export function createRecordBook(store: Pick<InstanceStore, 'keyv' | 'sets'>): <T>(name: string) => Records<T> {
  const known = new Map<string, Records<unknown>>();
  return <T>(name: string) => {
    const records = known.get(name) ?? createRecords<unknown>(store, name);
    known.set(name, records);
    return records as Records<T>;
  };
}

/** What a change is refused with whose `If-Match` names another version. */
export function changedMeanwhile(): GatewayError {
  return new GatewayError(
    'precondition_failed',
    'This was changed since it was read. Read it again, and send its new ETag in "If-Match"; without that header the change is made on top.',
  );
}

function pick<T>({ version, value }: RecordVersion<T>): RecordVersion<T> {
  return { version, value };
}

/** Any text may be an id. */
function hashId(id: string): string {
  return createHash('sha256').update(id).digest('base64url');
}

function digits(version: number): string {
  return String(version).padStart(VERSION_DIGITS, '0');
}

/** Unknown is never absent: whatever a store throws is `store_unavailable`. */
async function withStore<R>(operation: () => Promise<R>): Promise<R> {
  try {
    return await operation();
  } catch (error) {
    throw isGatewayError(error) ? error : unavailable(error);
  }
}

function unavailable(cause: unknown): GatewayError {
  return new GatewayError('store_unavailable', 'The store does not answer. Try again shortly.', {
    retryAfterMs: 1000,
    cause,
  });
}
