import { isObject, type JsonObject, parseJson, readString } from '../../../core/index.ts';
import { errorEvent, failedError } from './errors.ts';
import type { EventWriter } from './events.ts';
import { type ResponsesContext, responseId, writeResponse } from './response.ts';
import type { Item, ResponsesEvent } from './types.ts';

/** One event of a vendor, as it came. */
interface Sent {
  readonly data: string;
}

const TERMINAL: ReadonlySet<unknown> = new Set(['response.completed', 'response.incomplete', 'response.failed']);

/** A vendor's whole response as the caller gets it: what was encrypted is sealed, and what was changed on the way out is as it was. */
export function writeNative(body: unknown, context: ResponsesContext): unknown {
  if (!isObject(body)) return body;
  const own = context.input.body;
  return {
    ...body,
    ...('prompt_cache_key' in body && { prompt_cache_key: own['prompt_cache_key'] ?? null }),
    ...('previous_response_id' in body && { previous_response_id: own.previous_response_id ?? null }),
    ...('store' in body && { store: own.store ?? true }),
    ...(Array.isArray(body['output']) && { output: body['output'].map((item) => sealItem(item, context)) }),
  };
}

function sealItem(item: unknown, { seal }: ResponsesContext): unknown {
  const data = isObject(item) ? readString(item['encrypted_content']) : undefined;
  return data === undefined ? item : { ...(item as Item), encrypted_content: seal(data) };
}

/** The events of a vendor that speaks this format itself, numbered anew. */
export function createNativeEvents(context: ResponsesContext): EventWriter<Sent> {
  let sequence = 0;
  let isOver = false;
  let begun: JsonObject | undefined;
  let last: JsonObject | undefined;
  let whole: unknown;
  const items = new Map<number, Item>();

  function number(event: JsonObject): ResponsesEvent {
    const { type, ...rest } = event;
    return { type: readString(type) ?? 'message', ...rest, sequence_number: sequence++ };
  }

  function rewrite(event: JsonObject): JsonObject {
    const { item, response, output_index: index } = event;
    const sealed = sealItem(item, context);
    if (isObject(sealed) && typeof index === 'number') items.set(index, sealed);
    return {
      ...event,
      ...('item' in event && { item: sealed }),
      ...('response' in event && { response: writeNative(response, context) }),
    };
  }

  return {
    push({ data }) {
      const parsed = isOver ? undefined : parseJson(data);
      if (!isObject(parsed)) return [];
      const event = rewrite(parsed);
      const { type, response } = event;
      if (isObject(response)) begun = response;
      if (!TERMINAL.has(type)) return [number(event)];
      // It is sent when the response is remembered: what follows it may refer to the response at once.
      isOver = true;
      last = event;
      return [];
    },
    end() {
      if (!last) return [];
      whole = last['response'];
      return [number(last)];
    },
    fail(error) {
      isOver = true;
      const { model } = context.request;
      const output = [...items].sort(([a], [b]) => a - b).map(([, item]) => incomplete(item));
      const started =
        begun ?? writeResponse(context, { id: responseId(context), model, status: 'in_progress', output: [] });
      const response = { ...started, status: 'failed', error: failedError(error), output };
      const opening = begun ? [] : [number({ type: 'response.created', response: started })];
      return [
        ...opening,
        number({ type: 'error', ...errorEvent(error) }),
        number({ type: 'response.failed', response }),
      ];
    },
    response: () => whole,
  };
}

/** An item that was not ended. */
function incomplete(item: Item): Item {
  return item['status'] === 'in_progress' ? { ...item, status: 'incomplete' } : item;
}
