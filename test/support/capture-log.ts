import type { Log } from '../../core/index.ts';

export interface CapturedLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly fields: object;
  readonly message: string;
}

/** A log that keeps its lines. */
export function captureLog(): Log & { readonly lines: readonly CapturedLine[] } {
  const lines: CapturedLine[] = [];
  const at =
    (level: CapturedLine['level']) =>
    (fields: object, message = ''): void => {
      lines.push({ level, fields, message });
    };
  const log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error'), child: () => log, lines };
  return log;
}
