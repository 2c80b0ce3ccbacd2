import {
  type DialectDefinition,
  GatewayError,
  isObject,
  type JsonObject,
  type PluginApi,
  type Principal,
  readArray,
  readString,
  type Target,
} from '../../../contract/index.ts';
import { sinceCompaction } from '../../formats/openai-responses/compaction.ts';
import { inputItems } from '../../formats/openai-responses/tables.ts';
import type { Item, ResponsesBody } from '../../formats/openai-responses/types.ts';
import { KEPT_ID, type StoreMode, shortHash, storageKey, storedForMs } from '../kit/keep.ts';

/** Response with its complete input. */
export interface StoredResponse {
  readonly input: readonly Item[];
  readonly response: JsonObject;
  /** Target that generated it. */
  readonly target?: Target;
}

export interface ResponseStore {
  readonly expand: NonNullable<DialectDefinition<ResponsesBody>['expand']>;
  readonly remember: NonNullable<DialectDefinition<ResponsesBody>['remember']>;
  get(caller: Principal, id: string): Promise<StoredResponse | undefined>;
  /** Returns true if it existed. */
  remove(caller: Principal, id: string): Promise<boolean>;
}

type StoreApi = Pick<PluginApi, 'stores' | 'log'>;

/**
 * Stores responses for requests that continue them, by account and user: another user's id is not found. They are
 * part of their account's storage, so the least recently written are removed when it is full.
 */
export function createResponseStore(api: StoreApi, mode: StoreMode, retention: string): ResponseStore {
  const stored = storedDocuments(api, storedForMs(mode, retention));
  return {
    async expand(input, caller) {
      const { body } = input;
      const own = inputItems(body.input);
      const previous = body.previous_response_id ?? undefined;
      if (previous === undefined && !own.some(isReference)) return input;
      if (mode === 'off') throw storeIsOff(previous === undefined ? 'input' : 'previous_response_id');
      const before = previous === undefined ? undefined : await stored.find(previous, caller);
      const found: Item[] = [];
      for (const [at, item] of own.entries())
        found.push(isReference(item) ? await stored.item(item, `input[${at}].id`, caller) : item);
      const history = before ? sinceCompaction([...before.input, ...outputOf(before)]) : [];
      const expanded = { ...input, body: { ...body, input: [...history, ...found] } };
      return before?.target ? { ...expanded, follows: before.target } : expanded;
    },
    async remember(response, { input: { body }, responder }, caller) {
      if (mode === 'off' || body.store === false || !isObject(response)) return;
      const id = readString(response['id']);
      if (id === undefined || !KEPT_ID.test(id) || response['status'] === 'failed') return;
      // Requests continue with its items, without its id.
      if (response['object'] === 'response.compaction') return;
      try {
        await stored.add(body, response, id, { caller, target: responder?.() });
      } catch (err) {
        // The response is complete and paid for, so the caller gets it. The next request reports that it is not stored.
        api.log.warn({ err }, 'response could not be stored; it cannot be continued');
      }
    },
    get: stored.get,
    remove: stored.remove,
  };
}

/** Responses and their items, by owner and id. */
function storedDocuments({ stores: { stored: documents }, log }: StoreApi, ttlMs: number) {
  const responseKey = (caller: Principal, id: string): string => storageKey('responses', caller, id);
  const itemKey = (caller: Principal, id: unknown): string => storageKey('items', caller, String(id));
  const get = (caller: Principal, id: string) => documents.get<StoredResponse>(responseKey(caller, id));
  return {
    get,
    async add(
      body: ResponsesBody,
      response: JsonObject,
      id: string,
      { caller, target }: { readonly caller: Principal; readonly target: Target | undefined },
    ): Promise<void> {
      const { account } = caller;
      const stored: StoredResponse = { input: inputItems(body.input), response, ...(target && { target }) };
      if (!(await documents.set(account, responseKey(caller, id), stored, ttlMs)))
        log.info({ account }, 'response is too large to store; it cannot be continued');
      else for (const item of outputOf(stored)) await documents.set(account, itemKey(caller, item['id']), item, ttlMs);
    },
    async remove(caller: Principal, id: string): Promise<boolean> {
      const stored = await get(caller, id);
      if (!stored) return false;
      for (const item of outputOf(stored)) await documents.delete(caller.account, itemKey(caller, item['id']));
      return documents.delete(caller.account, responseKey(caller, id));
    },
    async find(id: string, caller: Principal): Promise<StoredResponse> {
      const stored = await get(caller, id);
      if (!stored) throw notFound(id, 'previous_response_id');
      return stored;
    },
    async item(reference: Item, param: string, caller: Principal): Promise<Item> {
      const id = String(reference['id']);
      const item = await documents.get<Item>(itemKey(caller, id));
      if (!item) throw notFound(id, param);
      return item;
    },
  };
}

/** Input of a response, each item with an id and in its long form, as the format lists it. */
export function storedItems({ input, response }: StoredResponse): readonly (Item & { readonly id: string })[] {
  return input.map((item, at) => {
    const { type = 'message', role, content, id } = item;
    const isMessage = type === 'message';
    // Same id on every request.
    const own = `${isMessage ? 'msg' : 'item'}_${shortHash(JSON.stringify([response['id'], at]))}`;
    const part = role === 'assistant' ? { type: 'output_text', annotations: [] } : { type: 'input_text' };
    return {
      ...item,
      type,
      id: typeof id === 'string' && id !== '' ? id : own,
      ...(isMessage && { status: 'completed' }),
      ...(isMessage && typeof content === 'string' && { content: [{ ...part, text: content }] }),
    };
  });
}

/** Returns true if an item only refers to an earlier one. */
export function isReference(item: Item): boolean {
  const { type, id } = item;
  if (type === 'item_reference') return true;
  return (type === undefined || type === null) && typeof id === 'string' && !('content' in item);
}

function outputOf({ response }: Pick<StoredResponse, 'response'>): readonly Item[] {
  return readArray(response['output']).filter(
    (item): item is JsonObject => isObject(item) && KEPT_ID.test(String(item['id'])),
  );
}

function notFound(id: string, param: string): GatewayError {
  const shown = KEPT_ID.test(id) ? ` \`${id}\`` : '';
  return new GatewayError(
    'previous_response_not_found',
    `Response${shown} not found: it does not exist or has expired. Send the whole conversation as \`input\`.`,
    { param },
  );
}

function storeIsOff(param: string): GatewayError {
  return new GatewayError(
    'invalid_request',
    `\`${param}\` is not supported, since this gateway does not store responses. Send the whole conversation as \`input\`; operators can enable it with \`dialects: { responses: { store: short } }\`.`,
    { param },
  );
}
