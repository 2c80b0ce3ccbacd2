import { createHash } from 'node:crypto';
import {
  type DialectDefinition,
  GatewayError,
  isObject,
  type JsonObject,
  type PluginApi,
  type Principal,
  parseDuration,
  readArray,
  readString,
  type Target,
} from '../../../core/index.ts';
import { inputItems } from '../../formats/openai-responses/tables.ts';
import type { Item, ResponsesBody } from '../../formats/openai-responses/types.ts';

export type StoreMode = 'off' | 'short' | 'on';

/** A response with all that led to it. */
interface KeptResponse {
  readonly input: readonly Item[];
  readonly response: JsonObject;
  /** Who made it. */
  readonly target?: Target;
  /** Its entry in the index of its account. */
  readonly entry: string;
}

export interface ResponseStore {
  readonly expand: NonNullable<DialectDefinition<ResponsesBody>['expand']>;
  readonly remember: NonNullable<DialectDefinition<ResponsesBody>['remember']>;
  get(caller: Principal, id: string): Promise<KeptResponse | undefined>;
  /** Answers whether there was one. */
  remove(caller: Principal, id: string): Promise<boolean>;
}

const SHORT_MS = 3_600_000;
const MAX_BYTES = 64 * 1024 * 1024;
const ID = /^[\w-]{1,128}$/;

type StoreApi = Pick<PluginApi, 'keyv' | 'stores' | 'log'>;

/**
 * Keeps responses for requests that continue them, each under the account and user that it belongs to: somebody else's id is not
 * found. The oldest of an account go when it has more than `maxBytes`.
 */
export function createResponseStore(
  api: StoreApi,
  mode: StoreMode,
  retention: string,
  maxBytes = MAX_BYTES,
): ResponseStore {
  const ttlMs = mode === 'on' ? parseDuration(retention) : SHORT_MS;
  const kept = keptDocuments(api, ttlMs, maxBytes);
  return {
    async expand(input, caller) {
      const { body } = input;
      const own = inputItems(body.input);
      const previous = body.previous_response_id ?? undefined;
      if (previous === undefined && !own.some(isReference)) return input;
      if (mode === 'off') throw storeIsOff(previous === undefined ? 'input' : 'previous_response_id');
      const before = previous === undefined ? undefined : await kept.find(previous, caller);
      const found: Item[] = [];
      for (const [at, item] of own.entries())
        found.push(isReference(item) ? await kept.item(item, `input[${at}].id`, caller) : item);
      const history = before ? [...before.input, ...outputOf(before)] : [];
      const expanded = { ...input, body: { ...body, input: [...history, ...found] } };
      return before?.target ? { ...expanded, follows: before.target } : expanded;
    },
    async remember(response, { input: { body }, responder }, caller) {
      if (mode === 'off' || body.store === false || !isObject(response)) return;
      const id = readString(response['id']);
      if (id === undefined || !ID.test(id) || response['status'] === 'failed') return;
      try {
        await kept.add(body, response, id, { caller, target: responder?.() });
      } catch (err) {
        // The response is there and paid for: the caller gets it, and learns with the next request that it is not kept.
        api.log.warn({ err }, 'a response could not be kept for requests that continue it');
      }
    },
    get: kept.get,
    remove: kept.remove,
  };
}

/** Responses and their items, by owner and id. */
function keptDocuments({ keyv, stores }: StoreApi, ttlMs: number, maxBytes: number) {
  // A store is opened before the first request and after setup.
  const responses = () => keyv<KeptResponse>('responses');
  const items = () => keyv<Item>('items');
  const get = (caller: Principal, id: string) => responses().get(`${ownerOf(caller)}.${id}`);

  async function removeKept(owner: string, id: string): Promise<KeptResponse | undefined> {
    const kept = await responses().get(`${owner}.${id}`);
    if (!kept) return undefined;
    for (const item of outputOf(kept)) await items().delete(`${owner}.${String(item['id'])}`);
    await responses().delete(`${owner}.${id}`);
    return kept;
  }
  const index = createStoreIndex(stores, {
    maxBytes,
    ttlMs,
    remove: async (owner, id) => void (await removeKept(owner, id)),
  });

  return {
    get,
    async add(
      body: ResponsesBody,
      response: JsonObject,
      id: string,
      { caller, target }: { readonly caller: Principal; readonly target: Target | undefined },
    ): Promise<void> {
      const owner = ownerOf(caller);
      const input = inputItems(body.input);
      const bytes = Buffer.byteLength(JSON.stringify([input, response]));
      if (bytes > maxBytes) return;
      const entry = await index.add(hash(caller.account), { owner, id, bytes });
      const kept = { input, response, entry, ...(target && { target }) };
      await responses().set(`${owner}.${id}`, kept, ttlMs);
      for (const item of outputOf(kept)) await items().set(`${owner}.${String(item['id'])}`, item, ttlMs);
    },
    async remove(caller: Principal, id: string): Promise<boolean> {
      const kept = await removeKept(ownerOf(caller), id);
      if (kept) await index.remove(hash(caller.account), kept.entry);
      return kept !== undefined;
    },
    async find(id: string, caller: Principal): Promise<KeptResponse> {
      const kept = await get(caller, id);
      if (!kept) throw notFound(id, 'previous_response_id');
      return kept;
    },
    async item(reference: Item, param: string, caller: Principal): Promise<Item> {
      const id = String(reference['id']);
      const item = await items().get(`${ownerOf(caller)}.${id}`);
      if (!item) throw notFound(id, param);
      return item;
    },
  };
}

/** Whether an item only names an earlier one. */
export function isReference(item: Item): boolean {
  const { type, id } = item;
  if (type === 'item_reference') return true;
  return (type === undefined || type === null) && typeof id === 'string' && !('content' in item);
}

function outputOf({ response }: Pick<KeptResponse, 'response'>): readonly Item[] {
  return readArray(response['output']).filter(
    (item): item is JsonObject => isObject(item) && ID.test(String(item['id'])),
  );
}

function ownerOf({ account, userId }: Principal): string {
  return hash(JSON.stringify([account, userId]));
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 22);
}

function notFound(id: string, param: string): GatewayError {
  const shown = ID.test(id) ? ` \`${id}\`` : '';
  return new GatewayError(
    'previous_response_not_found',
    `Nothing${shown} is kept here that this request could continue. Send the whole conversation as \`input\`.`,
    { param },
  );
}

function storeIsOff(param: string): GatewayError {
  return new GatewayError(
    'invalid_request',
    `\`${param}\` refers to an earlier response, and this gateway keeps none. Send the whole conversation as \`input\`, with \`store: false\`; an operator who wants them kept sets \`dialects: { responses: { store: short } }\`.`,
    { param },
  );
}

interface Entry {
  readonly owner: string;
  readonly id: string;
  readonly bytes: number;
}

interface StoreIndexOptions {
  readonly maxBytes: number;
  readonly ttlMs: number;
  remove(owner: string, id: string): Promise<void>;
}

/** What an account keeps, oldest first: the bound of its bytes. The documents themselves end by their own time. */
interface StoreIndex {
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

function createStoreIndex({ sets }: Pick<PluginApi['stores'], 'sets'>, options: StoreIndexOptions): StoreIndex {
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
