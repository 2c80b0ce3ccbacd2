import { type DestinationStream, type Logger, pino } from 'pino';

export interface LoggerOptions {
  readonly level: 'debug' | 'info' | 'warn' | 'error' | 'silent';
  /** `auto` is pretty on a terminal and JSON elsewhere. */
  readonly format: 'auto' | 'json' | 'pretty';
  readonly isTerminal: boolean;
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

/**
 * Lines of a busy gateway leave in blocks, and after this time at the latest. What a pipe takes whole (4 KB) is not torn
 * by another worker's block.
 */
const BLOCKS = Object.freeze({ minLength: 2048, maxWrite: 4096, periodicFlush: 100 });

/** Lines are kept up to this size while stdout takes none; those beyond it are lost. Requests never wait for the log. */
const MAX_KEPT_BYTES = 4 * 1024 * 1024;

/** The log: one JSON object a line on stdout, or short lines on a terminal. Bodies and credentials are never in it. */
export function createLogger(options: LoggerOptions): Logger {
  const pretty = options.format === 'pretty' || (options.format === 'auto' && options.isTerminal);
  const stream = options.destination ?? openStdout(pretty, options.onFault);
  return pino(
    {
      level: options.level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: {
        level: (label) => ({ level: label }),
        log: (fields) => hideSecrets(fields, 1),
      },
      hooks: {
        // What somebody should look at does not wait for its block to fill.
        logMethod(given, method, severity) {
          method.apply(this, given);
          if (severity >= WARN) this.flush();
        },
      },
      serializers: {
        // For the fields of child loggers, which formatters do not see.
        ...Object.fromEntries([...SECRETS].map((name) => [name, () => REDACTED])),
        err: (error: Error) => hideSecrets({ ...pino.stdSerializers.err(error) }, 0),
      },
    },
    pretty ? { write: (line: string) => stream.write(prettyLine(line)) } : stream,
  );
}

const WARN = 40;

function openStdout(pretty: boolean, onFault: LoggerOptions['onFault']): DestinationStream {
  const blocks = pretty ? { minLength: 0 } : BLOCKS;
  const stream = pino.destination({ dest: 1, sync: false, maxLength: MAX_KEPT_BYTES, ...blocks });
  let broken = false;
  // Pino would throw it, and so end the process, for anything but a closed pipe.
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (!broken) onFault?.(error);
    broken = true;
  });
  stream.on('write', () => {
    broken = false;
  });
  // At exit what is left is written synchronously, and sonic-boom 4 tries for ever where the disk is full.
  const flushSync = stream.flushSync.bind(stream);
  stream.flushSync = () => {
    if (!broken) flushSync();
  };
  return stream;
}

type Fields = Record<string, unknown>;

/** The fields, copied only where something has to go. Pino's own redaction costs more than all the rest of a line. */
function hideSecrets(fields: Fields, depth: number): Fields {
  let copy: Fields | undefined;
  for (const name in fields) {
    const value = fields[name];
    let shown = value;
    if (SECRETS.has(name)) shown = REDACTED;
    else if (depth > 0 && typeof value === 'object' && value !== null && !(value instanceof Error))
      shown = hideSecrets(value as Fields, depth - 1);
    if (shown !== value) {
      copy ??= { ...fields };
      copy[name] = shown;
    }
  }
  return copy ?? fields;
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
