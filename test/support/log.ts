import type { Log } from '../../core/contract/log.ts';

/** A log that keeps its lines for tests to look at, and prints nothing. */
export function createSilentLog(): Log & { readonly lines: { level: string; fields: object; message: string }[] } {
  const lines: { level: string; fields: object; message: string }[] = [];
  const write =
    (level: string) =>
    (fields: object, message = '') =>
      void lines.push({ level, fields, message });
  const log = {
    lines,
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    child: () => log,
  };
  return log;
}
