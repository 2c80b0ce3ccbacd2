import { type DestinationStream, type Logger, pino } from 'pino';

export interface LoggerOptions {
  readonly level: 'debug' | 'info' | 'warn' | 'error' | 'silent';
  /** `auto` is pretty on a terminal and JSON elsewhere. */
  readonly format: 'auto' | 'json' | 'pretty';
  readonly isTerminal: boolean;
  readonly destination?: DestinationStream;
}

/** Never to be seen in a log, whatever object a plugin hands over. */
const REDACT = [
  'authorization',
  '*.authorization',
  '["x-api-key"]',
  '*["x-api-key"]',
  'apiKey',
  '*.apiKey',
  'api_key',
  '*.api_key',
  'cookie',
  '*.cookie',
  'headers',
  '*.headers',
  'secret',
  '*.secret',
  'pepper',
  '*.pepper',
];

/** The log: one JSON object a line on stdout, or short lines on a terminal. Bodies and credentials are never in it. */
export function createLogger(options: LoggerOptions): Logger {
  const pretty = options.format === 'pretty' || (options.format === 'auto' && options.isTerminal);
  const stream = options.destination ?? pino.destination({ dest: 1, sync: false, minLength: 0 });
  return pino(
    {
      level: options.level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: REDACT, censor: '[redacted]' },
    },
    pretty ? { write: (line: string) => stream.write(prettyLine(line)) } : stream,
  );
}

/** `10:02:11.033 info  request status=200 …` of a JSON line. */
function prettyLine(line: string): string {
  const { level, time, msg, err, ...fields } = JSON.parse(line) as Record<string, unknown>;
  const pairs = Object.entries(fields).map(
    ([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  );
  const stack =
    typeof err === 'object' && err !== null ? `\n${(err as { stack?: string }).stack ?? JSON.stringify(err)}` : '';
  return `${String(time).slice(11, 23)} ${String(level).padEnd(5)} ${[msg ?? '', ...pairs].join(' ')}${stack}\n`;
}
