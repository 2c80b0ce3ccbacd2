import { isObject, parseDuration, parseJson } from '../../../contract/index.ts';

/** Option of every secrets manager: interval for refreshing secrets that do not expire. */
export const REFRESH_OPTION = Object.freeze({
  type: 'string',
  format: 'duration',
  default: '5m',
  description:
    'Interval at which secrets are read again. If one changed, the configuration is reloaded. At least 10s; expiring secrets are read earlier.',
} as const);

const LEAST_MS = 10_000;

export function readRefresh(refresh: string): number {
  return Math.max(LEAST_MS, parseDuration(refresh));
}

/** Splits a reference into the path and the field of a secret. */
export function splitReference(name: string): { readonly path: string; readonly field: string | undefined } {
  const at = name.lastIndexOf('#');
  return at < 0 ? { path: name, field: undefined } : { path: name.slice(0, at), field: name.slice(at + 1) };
}

/** Field of a secret with a JSON object, or the whole text. Throws an Error that names fields and shows no value. */
export function pickField(text: string, field: string | undefined): string {
  if (field === undefined) return text;
  const value = parseJson(text);
  if (!isObject(value)) throw new Error(`it is not a JSON object, so it has no field "${field}"`);
  return fieldOf(value, field);
}

const MAX_NAMED = 20;

export function fieldOf(fields: Readonly<Record<string, unknown>>, field: string): string {
  const value = Object.hasOwn(fields, field) ? fields[field] : undefined;
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  const names = Object.keys(fields).slice(0, MAX_NAMED).join(', ') || 'none';
  throw new Error(
    value === undefined ? `it has no field "${field}"; its fields are ${names}` : `its field "${field}" is not text`,
  );
}
