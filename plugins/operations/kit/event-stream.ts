import { createEventReader } from '../../../contract/event-reader.ts';
import { type AttemptResponse, isObject, type JsonObject, parseJson, StreamFailure } from '../../../contract/index.ts';

/** Maximum length of an event: a complete image in base64. */
const MAX_EVENT_LENGTH = 32 * 1024 * 1024;

/** Complete response of a vendor as JSON; undefined if invalid. */
export async function readWhole(response: Pick<AttemptResponse, 'readAll'>): Promise<unknown> {
  return parseJson((await response.readAll()).toString('utf8'));
}

/**
 * Yields the events of a vendor's stream as JSON, up to `[DONE]`. Invalid JSON or an error event is the vendor's
 * failure. An operation reports its own end marker with `reportProgress`, and stops reading.
 */
export async function* readEvents(
  response: Pick<AttemptResponse, 'body' | 'reportProgress'>,
): AsyncGenerator<JsonObject> {
  const reader = createEventReader({ maxEventLength: MAX_EVENT_LENGTH });
  for await (const bytes of response.body)
    for (const { data } of reader.push(bytes)) {
      response.reportProgress?.(data === '[DONE]' ? 'complete' : 'open');
      if (data === '[DONE]') return;
      yield eventOf(data);
    }
  for (const { data } of reader.end()) if (data !== '[DONE]') yield eventOf(data);
}

function eventOf(data: string): JsonObject {
  const event = parseJson(data);
  if (!isObject(event)) throw failed('The provider sent an event that is not a JSON object.');
  if (event['type'] === 'error' || isObject(event['error']))
    throw failed('The provider ended the stream with an error.');
  return event;
}

function failed(message: string): StreamFailure {
  return new StreamFailure({ class: 'upstream_error', message });
}
