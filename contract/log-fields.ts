import type { Log } from './units.ts';

/** Member of a log that writes fields that are JSON already. The log of a program that embeds the gateway has none. */
export const WRITE_FIELDS = Symbol('write fields');

interface FieldsLog extends Log {
  [WRITE_FIELDS](json: string, message: string): void;
}

function writesFields(log: Log): log is FieldsLog {
  return WRITE_FIELDS in log;
}

/**
 * Logs fields that are written as JSON already (without the braces), at the level `info`. For lines of fields that are known by name, such
 * as those of the access log: nothing in them is looked through for secrets. The line is the one that `log.info` would write.
 */
export function logFields(log: Log, json: string, message: string): void {
  if (writesFields(log)) log[WRITE_FIELDS](json, message);
  else log.info(JSON.parse(`{${json}}`) as object, message);
}
