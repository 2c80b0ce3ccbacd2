import type { Log } from './units.ts';

/** Member of a log that writes fields already serialized as JSON. The log of an embedding program has none. */
export const WRITE_FIELDS = Symbol('write fields');

interface FieldsLog extends Log {
  [WRITE_FIELDS](json: string, message: string): void;
}

function writesFields(log: Log): log is FieldsLog {
  return WRITE_FIELDS in log;
}

/**
 * Logs fields that are already JSON (without the braces) at level `info`. For lines with fixed field names, such as the access log:
 * they are not redacted. The output is identical to that of `log.info`.
 */
export function logFields(log: Log, json: string, message: string): void {
  if (writesFields(log)) log[WRITE_FIELDS](json, message);
  else log.info(JSON.parse(`{${json}}`) as object, message);
}
