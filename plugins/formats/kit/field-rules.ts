import {
  type ChatRequest,
  type FieldRule,
  type FieldTable,
  GatewayError,
  isObject,
  type JsonObject,
} from '../../../contract/index.ts';

const SAFE_NAME = /^[A-Za-z0-9_.-]{1,64}$/;
const MAX_REPORTED = 32;

/**
 * Checks the fields of a request against a vendor's table. Returns the names of dropped fields; throws
 * `invalid_request` for unsupported ones. For translators that write the vendor's body themselves.
 */
export function applyFieldRules(input: object, table: FieldTable, vendor: string): string[] {
  const dropped: string[] = [];
  for (const [field, value] of Object.entries(input as JsonObject)) {
    if (value === null || value === undefined) continue;
    const rule = Object.hasOwn(table.fields, field) ? table.fields[field] : undefined;
    if (rule && isNeutral(rule, value)) continue;
    if (rule?.rule === 'refused') {
      const why = rule.note ? `: ${rule.note}` : '.';
      throw new GatewayError('invalid_request', `${vendor} does not support \`${field}\`${why}`, { param: field });
    }
    const left = rule ? rule.rule === 'dropped' : table.unknown === 'dropped';
    if (left) tellDropped(dropped, field);
  }
  return dropped;
}

/** Adds a name to the dropped fields, without duplicates, if it may stand in a header and the limit is not reached. */
export function tellDropped(dropped: string[], field: string): void {
  if (dropped.length < MAX_REPORTED && SAFE_NAME.test(field) && !dropped.includes(field)) dropped.push(field);
}

function isNeutral(rule: FieldRule, value: unknown): boolean {
  return rule.neutral?.some((neutral) => JSON.stringify(neutral) === JSON.stringify(value)) ?? false;
}

/**
 * Moves the fields of `extra_body` that the vendor accepts to the top level. Other fields are added to `dropped` as
 * `extra_body.name`. An existing top-level field is not replaced: it was checked and priced.
 */
export function mergeExtraBody(
  input: ChatRequest,
  isTaken: (field: string) => boolean,
  dropped: string[],
): ChatRequest {
  if (input['extra_body'] === undefined || input['extra_body'] === null) return input;
  const { extra_body: body, ...request } = input;
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
