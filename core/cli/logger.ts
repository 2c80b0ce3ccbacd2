import { type DestinationStream, type Logger, pino } from 'pino';
import { spellPlainLines } from './log-line.ts';
import { openStdout } from './log-stream.ts';

export interface LoggerOptions {
  readonly level: 'debug' | 'info' | 'warn' | 'error' | 'silent';
  /** `auto` is pretty on a terminal and JSON elsewhere. */
  readonly format: 'auto' | 'json' | 'pretty';
  readonly isTerminal: boolean;
  /** Whether other processes write to the same stdout. */
  readonly isShared?: boolean;
  readonly destination?: DestinationStream;
  /** Called when stdout takes no more (a full disk, a reader that left), once until it does again. */
  readonly onFault?: (error: NodeJS.ErrnoException) => void;
}

/** Never to be seen in a log, whatever object a plugin hands over: neither as a field nor inside of one. */
const SECRETS: ReadonlySet<string> = new Set([
  'authorization',
  'x-api-key',
  'apiKey',
  'api_key',
  'cookie',
  'headers',
  'secret',
  'pepper',
]);

const REDACTED = '[redacted]';

/** The log: one JSON object a line on stdout, or short lines on a terminal. Bodies and credentials are never in it. */
export function createLogger(options: LoggerOptions): Logger {
  const pretty = options.format === 'pretty' || (options.format === 'auto' && options.isTerminal);
  const stream =
    options.destination ??
    openStdout({ isWatched: pretty, isShared: options.isShared ?? false, onFault: options.onFault });
  const logger = pino(
    {
      level: options.level,
      base: null,
      timestamp: isoTime,
      formatters: {
        level: (label) => ({ level: label }),
        log: hideInside,
      },
      serializers: {
        ...Object.fromEntries([...SECRETS].map((name) => [name, () => REDACTED])),
        err: (error: Error) => hideSecrets({ ...pino.stdSerializers.err(error) }),
      },
    },
    pretty ? { write: (line: string) => stream.write(prettyLine(line)) } : stream,
  );
  spellPlainLines(logger, (name) => !SECRETS.has(name));
  return logger;
}

/** The longest that a process waits for stdout to take its last lines, in milliseconds. */
const LONGEST_FLUSH_MS = 1000;

/** Resolves when everything that was logged is written, or when stdout takes too long. For a process about to exit. */
export async function flushLog(logger: Logger): Promise<void> {
  let bound: NodeJS.Timeout | undefined;
  await new Promise<void>((resolve) => {
    bound = setTimeout(resolve, LONGEST_FLUSH_MS);
    logger.flush(() => resolve());
  });
  clearTimeout(bound);
}

type Fields = Record<string, unknown>;

/** The fields, copied only where one of them holds a secret. Pino's own redaction costs more than all the rest of a line. */
function hideInside(fields: Fields): Fields {
  let copy: Fields | undefined;
  for (const name in fields) {
    const value = fields[name];
    if (typeof value !== 'object' || value === null || value instanceof Error) continue;
    const shown = hideSecrets(value as Fields);
    if (shown === value) continue;
    copy ??= { ...fields };
    copy[name] = shown;
  }
  return copy ?? fields;
}

function hideSecrets(fields: Fields): Fields {
  let copy: Fields | undefined;
  for (const name in fields) {
    if (!SECRETS.has(name)) continue;
    copy ??= { ...fields };
    copy[name] = REDACTED;
  }
  return copy ?? fields;
}

let second = Number.NaN;
let textOfSecond = '';

/** `,"time":"2026-11-20T12:03:22.575Z"`, as pino's own, but for its milliseconds spelt once a second. */
function isoTime(): string {
  const now = Date.now();
  const ms = now % 1000;
  if (now - ms !== second) {
    second = now - ms;
    textOfSecond = `,"time":"${new Date(second).toISOString().slice(0, -4)}`;
  }
  return `${textOfSecond}${String(ms).padStart(3, '0')}Z"`;
}

/** A caller's words (a model's name) must not move the cursor of whoever watches. */
const CONTROLS = /[\p{Cc}\p{Cf}]/gu;

/** `10:02:11.033 info  request status=200 …` of a JSON line. */
function prettyLine(line: string): string {
  const { level, time, msg, err, ...fields } = JSON.parse(line) as Record<string, unknown>;
  const pairs = Object.entries(fields).map(
    ([name, value]) => `${name}=${typeof value === 'string' ? value.replace(CONTROLS, '?') : JSON.stringify(value)}`,
  );
  const stack =
    typeof err === 'object' && err !== null ? `\n${(err as { stack?: string }).stack ?? JSON.stringify(err)}` : '';
  return `${String(time).slice(11, 23)} ${String(level).padEnd(5)} ${[msg ?? '', ...pairs].join(' ')}${stack}\n`;
}
