import type { DialectInput, DialectRequest } from '../../../core/index.ts';
import { lostFields, readFields, readReferences } from './read-fields.ts';
import { readMessages } from './read-messages.ts';
import { readTools } from './read-tools.ts';
import { callersPlace, type Reading } from './reading.ts';
import type { MessagesRequest } from './types.ts';

/** A request of this format as a canonical one. */
export function readRequest({ body: sent, headers, route }: DialectInput<MessagesRequest>): DialectRequest {
  const body = route.action === 'count' ? { ...sent, stream: false } : sent;
  const reading: Reading = { needs: [], places: new Map() };
  const messages = readMessages(body, reading);
  const tools = readTools(body, reading);
  readReferences(body, reading);
  const dropped = lostFields(body);
  return {
    request: { model: body.model, messages, ...readFields(body, headers), ...tools },
    ...(dropped.length > 0 && { dropped }),
    ...(reading.needs.length > 0 && { needs: reading.needs }),
    place: (param) => callersPlace(reading.places, param),
  };
}
