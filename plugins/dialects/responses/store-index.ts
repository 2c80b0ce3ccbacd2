import type { PluginApi } from '../../../core/index.ts';

interface Entry {
  readonly owner: string;
  readonly id: string;
  readonly bytes: number;
}

export interface StoreIndexOptions {
  readonly maxBytes: number;
  readonly ttlMs: number;
  remove(owner: string, id: string): Promise<void>;
}

/** What an account keeps, oldest first: the bound of its bytes. The documents themselves end by their own time. */
export interface StoreIndex {
  /** Adds an entry, and removes what is too old or too much. Returns the entry's name. */
  add(account: string, entry: Entry): Promise<string>;
  remove(account: string, entry: string): Promise<void>;
}

const MAX_ENTRIES = 10_000;
const PAGE = 1000;
/** The index is read again after so many bytes or entries of an account: an account may be over its bound by that much. */
const CHECK_BYTES = 1024 * 1024;
const CHECK_ENTRIES = 64;
const MAX_ACCOUNTS = 10_000;
const TIME_DIGITS = 9;

export function createStoreIndex({ sets }: Pick<PluginApi['stores'], 'sets'>, options: StoreIndexOptions): StoreIndex {
  const { maxBytes, ttlMs, remove } = options;
  /** What this process added since it last looked. */
  const added = new Map<string, { bytes: number; entries: number }>();

  async function trim(account: string, now: number): Promise<void> {
    const set = `kept.${account}`;
    const members: string[] = [];
    for (let page = await sets.list(set, { limit: PAGE }); page.length > 0; ) {
      members.push(...page);
      const after = page.length < PAGE ? undefined : page.at(-1);
      page = after === undefined ? [] : await sets.list(set, { limit: PAGE, after });
    }
    let bytes = 0;
    let count = 0;
    for (const member of members.reverse()) {
      const entry = readEntry(member);
      bytes += entry.bytes;
      count += 1;
      const isOld = entry.at + ttlMs <= now;
      if (!isOld && bytes <= maxBytes && count < MAX_ENTRIES) continue;
      if (!isOld) await remove(entry.owner, entry.id);
      await sets.remove(set, member);
    }
  }

  function isDue(account: string, bytes: number): boolean {
    if (added.size > MAX_ACCOUNTS) added.clear();
    const known = added.get(account);
    const sum = { bytes: (known?.bytes ?? 0) + bytes, entries: (known?.entries ?? 0) + 1 };
    const isLooked =
      known === undefined || sum.bytes > Math.min(CHECK_BYTES, maxBytes / 4) || sum.entries > CHECK_ENTRIES;
    added.set(account, isLooked ? { bytes: 0, entries: 0 } : sum);
    return isLooked;
  }

  return {
    async add(account, { owner, id, bytes }) {
      const now = Date.now();
      const member = [now.toString(36).padStart(TIME_DIGITS, '0'), bytes, owner, id].join('.');
      await sets.add(`kept.${account}`, member);
      if (isDue(account, bytes)) await trim(account, now);
      return member;
    },
    remove: async (account, entry) => void (await sets.remove(`kept.${account}`, entry)),
  };
}

function readEntry(member: string): Entry & { readonly at: number } {
  const [time = '', bytes = '', owner = '', id = ''] = member.split('.');
  return { at: Number.parseInt(time, 36), bytes: Number(bytes), owner, id };
}
