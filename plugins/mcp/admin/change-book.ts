import { GatewayError, type PluginApi, type Principal } from '../../../contract/index.ts';
import { createDocuments } from '../../auth/kit/documents.ts';
import { hashId, randomId } from '../../auth/kit/random-id.ts';

/** Time for which a proposed change can be confirmed. */
const CHANGE_MS = 60 * 60_000;

/** Maximum changes of one proposer that no one has decided about. */
const MAX_OPEN = 20;

/** Maximum changes at a time. */
const MAX_CHANGES = 1000;

/** Credential of a person or program. */
export interface Decider {
  readonly user_id: string;
  /** Public id of the key; null for a token and a session without a key. */
  readonly key_id: string | null;
}

/** One field of an object before and after a change. */
export interface Difference {
  readonly field: string;
  readonly before: unknown;
  readonly after: unknown;
}

/** Proposed change, as operators see it. */
export interface Change {
  readonly id: string;
  readonly state: 'open' | 'confirmed' | 'rejected' | 'failed';
  /** Name of the operation, and what it does. */
  readonly operation: string;
  readonly summary: string;
  /** Scope that confirms it. */
  readonly scope: string;
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  readonly body: object | null;
  /** Object before the change; null for a new object, and for an operation without one. */
  readonly before: unknown;
  readonly differences: readonly Difference[];
  readonly reason: string | null;
  readonly proposed_by: Decider;
  readonly created_at: string;
  readonly expires_at: string;
  readonly decided_by: Decider | null;
  /** Reason of a failure. */
  readonly problem: string | null;
}

/** Change with what its confirmation compares. */
export interface StoredChange {
  readonly change: Change;
  /** Path of the object that it changes; undefined for an operation without one. */
  readonly objectPath: string | undefined;
  /** Version of the object when the change was proposed. */
  readonly version: string | undefined;
}

/** Result of a decision. */
type Decision = Pick<Change, 'state' | 'problem'>;

/** Proposed changes, in the store until they expire. */
export class ChangeBook {
  readonly #documents: ReturnType<typeof createDocuments<StoredChange>>;
  readonly #stores: PluginApi['stores'];

  constructor({ keyv, stores }: Pick<PluginApi, 'keyv' | 'stores'>) {
    this.#documents = createDocuments(keyv<StoredChange>('changes'));
    this.#stores = stores;
  }

  /** Stores a new change. Throws `rate_limited` if its proposer, or all of them, have too many. */
  async put(
    given: Omit<Change, 'id' | 'state' | 'created_at' | 'expires_at' | 'decided_by' | 'problem'>,
    checks: Omit<StoredChange, 'change'>,
  ): Promise<Change> {
    const now = Date.now();
    const id = randomId().replace(/[-_]/g, '').slice(0, 16);
    const { counters, sets } = this.#stores;
    if (!(await counters.lease(openOf(given.proposed_by), id, MAX_OPEN, CHANGE_MS, now)))
      throw tooMany(`${MAX_OPEN} changes of this proposer are undecided. An operator decides about them first.`);
    await this.#removeExpired(now);
    const endsAt = now + CHANGE_MS;
    if ((await sets.add(CHANGES, memberOf(id, endsAt), MAX_CHANGES)) === 'full')
      throw tooMany('Too many changes are proposed at the moment.');
    const change: Change = {
      ...given,
      id,
      state: 'open',
      created_at: new Date(now).toISOString(),
      expires_at: new Date(endsAt).toISOString(),
      decided_by: null,
      problem: null,
    };
    await this.#documents.set(id, { change, ...checks }, CHANGE_MS);
    return change;
  }

  /** Finds a change that has not expired. */
  async find(id: string): Promise<StoredChange | undefined> {
    const stored = ID.test(id) ? await this.#documents.get(id) : undefined;
    return stored && Date.now() < Date.parse(stored.change.expires_at) ? stored : undefined;
  }

  /** Lists the changes that have not expired, newest first. */
  async list(): Promise<readonly Change[]> {
    const members = await this.#stores.sets.list(CHANGES, { limit: MAX_CHANGES });
    const found = await Promise.all(members.map((member) => this.find(idOf(member))));
    return found.flatMap((stored) => stored?.change ?? []).toReversed();
  }

  /**
   * Runs one decision about a change; of several at the same time, on any node, only one runs. If `work` throws, the change stays
   * open.
   */
  async decide(stored: StoredChange, by: Decider, work: () => Promise<Decision>): Promise<Change> {
    const { change } = stored;
    const holder = randomId();
    const restMs = Math.max(Date.parse(change.expires_at) - Date.now(), 1);
    const { counters } = this.#stores;
    const key = `change.${change.id}`;
    if (change.state !== 'open' || !(await counters.lease(key, holder, 1, CHANGE_MS, Date.now()))) throw decided();
    let decision: Decision;
    try {
      decision = await work();
    } catch (error) {
      await counters.release(key, holder);
      throw error;
    }
    const next: Change = { ...change, ...decision, decided_by: by };
    // The lease holds until the change expires: it is decided also if this write fails.
    await this.#documents.set(change.id, { ...stored, change: next }, restMs);
    await counters.release(openOf(change.proposed_by), change.id);
    return next;
  }

  async #removeExpired(now: number): Promise<void> {
    const { sets } = this.#stores;
    for (const member of await sets.list(CHANGES, { limit: MAX_CHANGES })) {
      if (member >= timePart(now)) return;
      await sets.remove(CHANGES, member);
    }
  }
}

const CHANGES = 'changes';
const ID = /^[A-Za-z0-9]{10,16}$/;
const TIME_DIGITS = 9;

function timePart(unixMs: number): string {
  return unixMs.toString(36).padStart(TIME_DIGITS, '0');
}

/** Members are in the order of their expiry. */
function memberOf(id: string, endsAt: number): string {
  return `${timePart(endsAt)}.${id}`;
}

function idOf(member: string): string {
  return member.slice(TIME_DIGITS + 1);
}

function openOf({ user_id, key_id }: Decider): string {
  return `changes-of.${hashId(JSON.stringify([user_id, key_id]))}`;
}

export function deciderOf({ userId, keyId }: Pick<Principal, 'userId' | 'keyId'>): Decider {
  return { user_id: userId, key_id: keyId ?? null };
}

function decided(): GatewayError {
  return new GatewayError('conflict', 'This change is decided already, or somebody decides about it now.');
}

function tooMany(message: string): GatewayError {
  return new GatewayError('rate_limited', message, { retryAfterMs: 60_000 });
}
