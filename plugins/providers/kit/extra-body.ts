import { type ChatRequest, isObject } from '../../../core/index.ts';
import { tellDropped } from './field-rules.ts';

/**
 * A request with those fields of its `extra_body` at the top that the vendor takes there; whatever else the body holds is added
 * to `dropped`, as `extra_body.name`. A field that stands at the top already is not replaced: that one was checked and priced.
 */
export function mergeExtraBody(
  input: ChatRequest,
  isTaken: (field: string) => boolean,
  dropped: string[],
): ChatRequest {
  const { extra_body: body, ...request } = input;
  if (body === undefined || body === null) return input;
  if (!isObject(body)) {
    tellDropped(dropped, 'extra_body');
    return request;
  }
  const taken: [string, unknown][] = [];
  for (const [field, value] of Object.entries(body)) {
    const isFree = request[field] === undefined || request[field] === null;
    if (isFree && field !== '__proto__' && isTaken(field)) taken.push([field, value]);
    else tellDropped(dropped, `extra_body.${field}`);
  }
  return { ...request, ...Object.fromEntries(taken) };
}
