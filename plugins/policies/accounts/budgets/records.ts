import { createHash, randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import {
  type AuditActor,
  type BudgetRule,
  GatewayError,
  isGatewayError,
  isObject,
  type PluginApi,
} from '../../../../core/index.ts';
import type { Raise } from './counted.ts';

/** What the store has of a budget: the whole of one that was made at run time, or the raises alone of one of the configuration's. */
export interface BudgetRecord {
  readonly rule?: BudgetRule;
  readonly raises: readonly Raise[];
}

/** A budget with what the store says of it. */
export interface NamedBudget {
  readonly name: string;
  /** Who may change it: `file` is the configuration. */
  readonly owner: 'file' | 'store';
  readonly rule: BudgetRule;
  readonly raises: readonly Raise[];
}

/** The documents of budgets, and the number that tells other processes to read them again. */
export interface BudgetRecords {
  /** Grows with every change. */
  version(): Promise<number>;
  find(name: string): Promise<NamedBudget | undefined>;
  /** All, by name: those of the configuration and those of the store. */
  list(): Promise<readonly NamedBudget[]>;
  change(change: BudgetChange): Promise<NamedBudget | undefined>;
}

export interface BudgetChange {
  readonly name: string;
  readonly actor: AuditActor;
  /** For the audit log: `budget.put`. */
  readonly action: string;
  /** The `If-Match` of the request: the change is refused unless the budget still is what the caller saw. */
  readonly ifMatch?: string | undefined;
  /** What it becomes; undefined removes it. Throws where that may not be. */
  readonly make: (before: NamedBudget | undefined) => BudgetRecord | undefined;
}

type RecordsApi = Pick<PluginApi, 'keyv' | 'stores' | 'settings' | 'audit'>;

const NAMES = 'budgets';
const VERSION = 'budgets-version';
/** How many budgets the store may have. */
const MAX_BUDGETS = 1000;
const AT_ONCE = 50;
/** How long a change may take, and how long another one waits for it. */
const LEASE_MS = 20_000;
const WAITS = 40;
const WAIT_MS = 50;

export function createBudgetRecords(api: RecordsApi): BudgetRecords {
  const documents = api.keyv<BudgetRecord>('budgets');
  const { sets, counters } = api.stores;
  const ofFile = new Map(api.settings.budgets.map((rule) => [rule.name, rule]));
  const join = (name: string, record: BudgetRecord | undefined): NamedBudget | undefined => {
    const rule = ofFile.get(name);
    const raises = record?.raises ?? [];
    if (rule) return { name, owner: 'file', rule, raises };
    return record?.rule && { name, owner: 'store', rule: record.rule, raises };
  };
  const read = async (name: string): Promise<BudgetRecord | undefined> => {
    const value: unknown = await withStore(() => documents.get(name));
    return isRecord(value) ? value : undefined;
  };
  const write = async (name: string, record: BudgetRecord | undefined): Promise<void> => {
    // Told before and after: who reads in between reads once more.
    await counters.next(VERSION);
    if (record && (await sets.add(NAMES, name, MAX_BUDGETS)) === 'full')
      throw new GatewayError('conflict', `There are ${MAX_BUDGETS} budgets, the most there can be; remove one.`);
    const isDone = record
      ? await withStore(() => documents.set(name, record))
      : await withStore(() => documents.delete(name)).then(() => true);
    if (!isDone) throw unavailable(undefined);
    if (!record) await sets.remove(NAMES, name);
    await counters.next(VERSION);
  };
  return {
    version: () => counters.next(VERSION, 0),
    find: async (name) => join(name, await read(name)),

    async list() {
      const names = [...new Set([...ofFile.keys(), ...(await sets.list(NAMES, { limit: MAX_BUDGETS }))])].sort();
      const found: NamedBudget[] = [];
      for (let at = 0; at < names.length; at += AT_ONCE) {
        const some = names.slice(at, at + AT_ONCE);
        const records = await Promise.all(some.map(read));
        found.push(...some.map((name, index) => join(name, records[index])).filter((each) => each !== undefined));
      }
      return found;
    },

    change: ({ name, actor, action, ifMatch, make }) =>
      alone(counters, `budget-change:${name}`, async () => {
        const before = join(name, await read(name));
        if (ifMatch !== undefined && !matchesTag(ifMatch, before)) throw changedMeanwhile(name);
        const made = make(before);
        await write(name, made);
        const after = join(name, made);
        await api.audit({ actor, action, subject: name, ...shown('before', before), ...shown('after', after) });
        return after;
      }),
  };
}

/** The entity tag of a budget: another one for every change of it. */
export function entityTag({ owner, rule, raises }: NamedBudget): string {
  const text = JSON.stringify([owner, Object.entries(rule).sort(), raises]);
  return `"${createHash('sha256').update(text).digest('base64url').slice(0, 22)}"`;
}

function matchesTag(ifMatch: string, budget: NamedBudget | undefined): boolean {
  if (!budget) return false;
  const tags = ifMatch.split(',').map((tag) => tag.trim());
  return tags.includes('*') || tags.includes(entityTag(budget));
}

function changedMeanwhile(name: string): GatewayError {
  return new GatewayError(
    'precondition_failed',
    `The budget "${name}" is not what "If-Match" says: somebody changed it meanwhile. Get it again, and change that.`,
  );
}

/** Runs one change of a name at a time, over all processes of the store. */
async function alone<T>(counters: RecordsApi['stores']['counters'], key: string, work: () => Promise<T>): Promise<T> {
  const id = randomUUID();
  for (let tries = 0; !(await counters.lease(key, id, 1, LEASE_MS, Date.now())); tries++) {
    if (tries === WAITS) throw new GatewayError('conflict', 'Somebody else is changing this budget; try again.');
    await pause(WAIT_MS);
  }
  try {
    return await work();
  } finally {
    await counters.release(key, id).catch(() => undefined);
  }
}

function shown(when: 'before' | 'after', budget: NamedBudget | undefined): Partial<Record<typeof when, object>> {
  if (!budget) return {};
  const { owner, rule, raises } = budget;
  return { [when]: { ...(owner === 'store' && rule), raises } };
}

/** A document that is none counts as absent: the file's budgets hold all the same, and the store's are listed no more. */
function isRecord(value: unknown): value is BudgetRecord {
  return isObject(value) && Array.isArray(value['raises']);
}

/** Whatever a document's store throws becomes `store_unavailable`: unknown is never absent. */
async function withStore<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    throw isGatewayError(cause) ? cause : unavailable(cause);
  }
}

function unavailable(cause: unknown): GatewayError {
  const message = 'The store of budgets does not answer. Try again shortly.';
  return new GatewayError('store_unavailable', message, { retryAfterMs: 1000, cause });
}
