import { type DestinationStream, type Logger, pino } from 'pino';
import { WRITE_FIELDS } from '../contract/log-fields.ts';
import { REDACTED } from '../contract/secret-pattern.ts';

export interface LoggerOptions {
  readonly level: 'debug' | 'info' | 'warn' | 'error' | 'silent';
  /** Makes of a line of JSON what a person reads; lines stay JSON unless set. */
  readonly toPretty?: ((line: string) => string) | undefined;
  /** Whether other processes, such as workers, write to the same stdout. */
  readonly isShared?: boolean;
  readonly destination?: DestinationStream;
  /** Called when stdout takes no more (a full disk, a reader that left), once until it does again. */
  readonly onError?: (error: NodeJS.ErrnoException) => void;
}

/** Never to be seen in a log, whatever object a plugin hands over: as a field, and one and two levels deeper. */
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

/** The log: one JSON object a line on stdout. Bodies and credentials are never in it. */
export function createLogger({ level, toPretty, isShared = false, destination, onError }: LoggerOptions): Logger {
  const stream = destination ?? openStdout({ isWatched: toPretty !== undefined, isShared }, onError);
  const logger = pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }), log: (fields) => redactFields(fields, 2) },
      redact: { paths: [...SECRETS].map((name) => `["${name}"]`), censor: REDACTED },
      hooks: { streamWrite: escapeControls },
    },
    toPretty ? prettyStream(stream, toPretty) : stream,
  );
  // Children inherit it.
  return Object.assign(logger, { [WRITE_FIELDS]: writeFields });
}

function prettyStream(
  stream: DestinationStream & { readonly flush?: (done?: () => void) => void },
  toPretty: (line: string) => string,
): DestinationStream {
  return Object.assign(
    { write: (line: string) => stream.write(toPretty(line)) },
    stream.flush && { flush: stream.flush.bind(stream) },
  );
}

type Fields = Record<string, unknown>;

/**
 * Hides secrets in objects, so many levels deep. Wildcards in pino's `redact` would do the same, but pino runs every such
 * path over every field of every line: 47 instead of 4 µs for an access-log line, a sixth of a request.
 */
function redactFields(fields: Fields, levels: number): Fields {
  let copy: Fields | undefined;
  for (const name of Object.keys(fields)) {
    const value = fields[name];
    const shown = SECRETS.has(name) ? REDACTED : redactValue(value, levels);
    if (shown === value) continue;
    copy ??= { ...fields };
    copy[name] = shown;
  }
  return copy ?? fields;
}

function redactValue(value: unknown, levels: number): unknown {
  if (typeof value !== 'object' || value === null || levels === 0) return value;
  if (value instanceof Error) return redactFields({ ...pino.stdSerializers.err(value) }, levels - 1);
  if (Array.isArray(value)) return value.map((each) => redactValue(each, levels - 1));
  return redactFields(value as Fields, levels - 1);
}

const INFO = 30;

/** The line that `log.info` would write, of fields that are JSON already. */
function writeFields(this: Logger & Readonly<Record<symbol, unknown>>, json: string, message: string): void {
  if (!this.isLevelEnabled('info')) return;
  const stream = this[pino.symbols.streamSym] as DestinationStream;
  const levels = this[pino.symbols.lsCacheSym] as Readonly<Record<number, string>>;
  const time = (this[pino.symbols.timeSym] as () => string)();
  const bindings = this[pino.symbols.chindingsSym] as string;
  stream.write(escapeControls(`${levels[INFO]}${time}${bindings},${json},"msg":${JSON.stringify(message)}}\n`));
}

/** What is written at once. Few writes are a thirteenth of a call cheaper than many. */
const BLOCK_BYTES = 16 * 1024;
/** What a pipe takes in one piece (`PIPE_BUF`): lines of other workers do not get in between. */
const SHARED_BLOCK_BYTES = 4096;

/** The longest that a line waits for its block to fill, in milliseconds. */
const LONGEST_WAIT_MS = 100;

/** Lines are kept up to this size while stdout takes none; later ones are lost. Requests never wait for the log. */
const MAX_KEPT_BYTES = 4 * 1024 * 1024;

/** Stdout as pino's destination, written in blocks by a thread; pino writes what is left at exit. */
function openStdout(
  { isWatched, isShared }: { readonly isWatched: boolean; readonly isShared: boolean },
  onError: LoggerOptions['onError'],
): DestinationStream {
  const blockBytes = isShared ? SHARED_BLOCK_BYTES : BLOCK_BYTES;
  const stream = pino.destination({
    dest: 1,
    sync: false,
    minLength: 1,
    maxWrite: blockBytes,
    maxLength: MAX_KEPT_BYTES,
    periodicFlush: LONGEST_WAIT_MS,
  });
  let isBroken = false;
  // Without a listener any error but EPIPE would end the process.
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (!isBroken) onError?.(error);
    isBroken = true;
  });
  stream.on('write', () => {
    isBroken = false;
  });
  const block = new LineBlock(isWatched ? 1 : blockBytes, stream.write.bind(stream));
  stream.write = block.add;
  const flush = stream.flush.bind(stream);
  stream.flush = (done) => {
    block.pass();
    flush(done);
  };
  // Pino calls this at exit. sonic-boom 4 would try for ever where the disk is full.
  const flushSync = stream.flushSync.bind(stream);
  stream.flushSync = () => {
    block.pass();
    if (!isBroken) flushSync();
  };
  return stream;
}

/**
 * Lines on their way to a stream, passed on as one text when they fill a block or have waited long enough. sonic-boom collects lines too,
 * but measures its whole block at each line, which copies it.
 */
class LineBlock {
  readonly #maxBytes: number;
  readonly #write: (text: string) => boolean;
  #text = '';
  #bytes = 0;
  #timer: NodeJS.Timeout | undefined;
  #hasRoom = true;

  constructor(maxBytes: number, write: (text: string) => boolean) {
    this.#maxBytes = maxBytes;
    this.#write = write;
  }

  readonly add = (line: string): boolean => {
    const bytes = Buffer.byteLength(line);
    if (this.#bytes + bytes > this.#maxBytes) this.pass();
    this.#text += line;
    this.#bytes += bytes;
    if (this.#bytes >= this.#maxBytes) this.pass();
    else this.#timer ??= setTimeout(this.pass, LONGEST_WAIT_MS).unref();
    return this.#hasRoom;
  };

  readonly pass = (): void => {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#bytes === 0) return;
    const text = this.#text;
    this.#text = '';
    this.#bytes = 0;
    this.#hasRoom = this.#write(text);
  };
}

/** What most lines are made of. */
const PLAIN = /^[\n -~]*$/;

/** Writes control and bidi characters of a JSON line as `\uXXXX`: the same JSON, harmless on the terminal that shows it. */
function escapeControls(line: string): string {
  if (PLAIN.test(line)) return line;
  return line.replace(CONTROL_CHARACTERS, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** What moves the cursor or turns the direction of text on a terminal: a caller's words (a model's name) may have it. */
export const CONTROL_CHARACTERS = /(?!\n)[\p{Cc}\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/gu;
