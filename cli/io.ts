import { userInfo } from 'node:os';
import { CommanderError } from 'commander';
import pc from 'picocolors';
import { isGatewayError } from '../contract/errors.ts';
import type { CommandIo } from '../contract/plugin.ts';

/** Exit codes of every command (contract section 7). */
export const EXIT = Object.freeze({
  ok: 0,
  unexpected: 1,
  usage: 2,
  config: 3,
  checkFailed: 4,
  unavailable: 69,
  signedOut: 77,
});

/** Output of a command: data on stdout, messages on stderr. */
export interface Terminal {
  readonly out: NodeJS.WritableStream;
  readonly err: NodeJS.WritableStream;
  readonly isTty: boolean;
  readonly colors: ReturnType<typeof pc.createColors>;
  /** Terminal width of stdout; undefined for files and pipes, and with `--wide`. */
  readonly columns?: number | undefined;
  /** Sets the exit code of the process; absent in tests. */
  exitWith?(code: number): void;
}

export function createTerminal(): Terminal {
  const isTty = process.stderr.isTTY === true;
  // picocolors reads NO_COLOR, FORCE_COLOR, TERM=dumb and CI; only messages on stderr have colours.
  const colors = pc.createColors(pc.isColorSupported && isTty);
  const exitWith = (code: number): void => {
    process.exitCode = code;
  };
  const columns = process.argv.includes('--wide') ? undefined : process.stdout.columns;
  return { out: process.stdout, err: process.stderr, isTty, columns, colors, exitWith };
}

/** Creates the two output channels of a command for plugins. With `--json` stdout is exactly one JSON document. */
export function createIo(terminal: Terminal, json: boolean): CommandIo {
  return {
    json,
    isTerminal: process.stdout.isTTY === true,
    result(value, text) {
      terminal.out.write(json ? `${JSON.stringify({ ok: true, data: value })}\n` : text === '' ? '' : `${text}\n`);
    },
    table: (head, rows) => fitTable(terminal, head, rows),
    note(text) {
      terminal.err.write(`${text}\n`);
    },
    write(bytes) {
      terminal.out.write(bytes);
    },
    read: () => readStdin(terminal),
  };
}

async function readStdin(terminal: Terminal): Promise<string> {
  if (process.stdin.isTTY) terminal.err.write('Type the text and end it with Ctrl-D:\n');
  let text = '';
  process.stdin.setEncoding('utf8');
  for await (const chunk of process.stdin) text += String(chunk);
  return text;
}

/** Failure of a command: the problem, a hint and the exit code. */
export class CliError extends Error {
  override readonly name = 'CliError';
  readonly exitCode: number;
  readonly hint: string | undefined;
  constructor(message: string, exitCode: number, hint?: string) {
    super(message);
    this.exitCode = exitCode;
    this.hint = hint;
  }
}

/** Replaces characters that affect a terminal, in texts of vendors, callers and models. */
export function plainText(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}]/gu, '?');
}

/** Formats columns of text, two spaces apart, for terminals and `grep`. */
export function formatTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => (row[column] ?? '').length)));
  return [head, ...rows]
    .map((row) =>
      row
        .map((cell, column) => (column === row.length - 1 ? cell : cell.padEnd(widths[column] ?? 0)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** Formats a table that fits the terminal. Columns on the right that do not fit are left out, and named on stderr. */
export function fitTable(
  terminal: Pick<Terminal, 'columns' | 'err'>,
  head: readonly string[],
  rows: readonly (readonly string[])[],
): string {
  const shown = countFitting(head, rows, terminal.columns);
  if (shown === head.length) return formatTable(head, rows);
  terminal.err.write(`Hidden columns: ${head.slice(shown).join(', ')}. Show them with --wide.\n`);
  return formatTable(
    head.slice(0, shown),
    rows.map((row) => row.slice(0, shown)),
  );
}

/** Number of columns that fit, at least one. */
function countFitting(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  columns = Number.POSITIVE_INFINITY,
): number {
  let width = -2;
  const first = head.findIndex((title, column) => {
    width += 2 + Math.max(title.length, ...rows.map((row) => (row[column] ?? '').length));
    return width > columns;
  });
  return first < 0 ? head.length : Math.max(first, 1);
}

interface Failure {
  readonly exitCode: number;
  readonly code: string;
  readonly lines: readonly string[];
  readonly hint?: string | undefined;
  readonly faults?: readonly unknown[];
}

const HINTS: Readonly<Record<string, string>> = Object.freeze({
  store_unavailable: 'Check `store` in the configuration; `tollgate config print` shows it.',
});

/** Error codes for scripts, by exit code. */
const CODES: Readonly<Record<number, string>> = Object.freeze({
  [EXIT.usage]: 'usage',
  [EXIT.config]: 'config',
  [EXIT.checkFailed]: 'check_failed',
  [EXIT.unavailable]: 'unavailable',
  [EXIT.signedOut]: 'signed_out',
});

/** A cluster uses `bind` for its workers. */
const LISTENING: ReadonlySet<string> = new Set(['listen', 'bind', 'getaddrinfo']);

const LISTEN_HINTS: Readonly<Record<string, string>> = Object.freeze({
  EADDRINUSE: 'Another process uses this port. Set another one with --port or server.port.',
  EACCES: 'Ports below 1024 need special rights. Set another one with --port or server.port.',
  EADDRNOTAVAIL: 'This machine does not have that address. Use 127.0.0.1 for local access or 0.0.0.0 for all networks.',
  ENOTFOUND: 'The host is not an address and cannot be resolved. Use 127.0.0.1 or 0.0.0.0.',
});

/**
 * Reports a failure on stderr with place, reason and hint, and as one JSON document with `--json`. Returns the exit
 * code.
 */
export function reportFailure(error: unknown, terminal: Terminal, json: boolean): number {
  // commander has printed its help or version.
  if (error instanceof CommanderError && error.exitCode === 0) return EXIT.ok;
  const failure = describeFailure(error);
  if (json)
    terminal.out.write(
      `${JSON.stringify({ ok: false, error: { code: failure.code, message: failure.lines.join('\n'), ...(failure.hint && { hint: failure.hint }), ...(failure.faults && { faults: failure.faults }) } })}\n`,
    );
  else {
    for (const line of failure.lines) terminal.err.write(`${terminal.colors.red('error')}  ${line}\n`);
    if (failure.hint) terminal.err.write(`       ${failure.hint}\n`);
  }
  return failure.exitCode;
}

/** Describes an error for operators, in lines. */
export function describeError(error: unknown): readonly string[] {
  const { code, lines } = describeFailure(error);
  return code === 'unexpected' && error instanceof Error ? [error.message] : lines;
}

function describeFailure(error: unknown): Failure {
  if (error instanceof CommanderError) return describeMisuse(error);
  if (error instanceof CliError)
    return {
      exitCode: error.exitCode,
      code: CODES[error.exitCode] ?? 'unexpected',
      lines: [error.message],
      hint: error.hint,
    };
  if (!(error instanceof Error)) return { exitCode: EXIT.unexpected, code: 'unexpected', lines: [String(error)] };
  if (error.name === 'ConfigError') {
    const faults = 'problems' in error && Array.isArray(error.problems) ? error.problems : [];
    return { exitCode: EXIT.config, code: 'config', lines: error.message.split('\n'), faults };
  }
  if (error.name === 'ExchangeError' && 'hint' in error)
    return { exitCode: EXIT.config, code: 'config', lines: [error.message], hint: String(error.hint) };
  if (error.name === 'PluginError')
    return { exitCode: EXIT.config, code: 'plugin', lines: [error.message, ...describeCauses(error.cause)] };
  if (isGatewayError(error)) {
    // Commands of plugins put the hint on a line of its own.
    const [message = '', hint = HINTS[error.code]] = error.message.split('\n');
    const exitCode = error.status > 500 || error.status === 429 ? EXIT.unavailable : EXIT.usage;
    return { exitCode, code: error.code, lines: [message, ...describeCauses(error.cause)], hint };
  }
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (code !== undefined && syscall !== undefined && LISTENING.has(syscall)) {
    return {
      exitCode: EXIT.unavailable,
      code,
      lines: [`cannot listen: ${error.message}`],
      hint: LISTEN_HINTS[code] ?? 'Check --host and --port, or server.host and server.port in the configuration.',
    };
  }
  return {
    exitCode: EXIT.unexpected,
    code: code ?? 'unexpected',
    lines: [syscall ? error.message : (error.stack ?? error.message)],
  };
}

/** Splits commander's message: the problem, and the suggestion in brackets. */
function describeMisuse({ code, message }: CommanderError): Failure {
  const usage = { exitCode: EXIT.usage, code: 'usage' };
  if (code === 'commander.help')
    return { ...usage, lines: ['a command is missing'], hint: 'The help above lists them.' };
  const [line = '', meant] = message.replace(/^error: /, '').split('\n');
  return {
    ...usage,
    lines: [line],
    hint: meant?.replace(/^\((.*)\)$/, '$1') ?? 'Add --help to see its arguments and options.',
  };
}

/** Most causes shown for an error. */
const MAX_CAUSES = 3;

/**
 * Lists messages of the system or a database: a path, an address, an errno. Callers of the gateway never see them.
 * Causes without a code repeat our own words and are skipped.
 */
function describeCauses(cause: unknown): readonly string[] {
  const lines: string[] = [];
  for (let at: unknown = cause; at instanceof Error && lines.length < MAX_CAUSES; at = at.cause) {
    const { code } = at as NodeJS.ErrnoException;
    // A host with several addresses has one error per address.
    const all = at instanceof AggregateError ? at.errors : [at];
    const messages = all.flatMap((each: unknown) => (each instanceof Error ? [each.message] : []));
    if (code !== undefined)
      lines.push(`because: ${[...new Set(messages)].join('; ')}${messages.join().includes(code) ? '' : ` (${code})`}`);
  }
  return lines;
}

/** User who runs the program. A user id without a name, as in a container, is shown as a number. */
export function systemUser(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}

/** Input of every command; options of the program itself are in `globals`. */
export interface CommandContext {
  readonly terminal: Terminal;
  readonly globals: { readonly config?: string; readonly json?: boolean };
  readonly args: readonly string[];
  readonly options: Readonly<Record<string, string | boolean | undefined>>;
}

export interface CommandRow {
  readonly name: string;
  readonly summary: string;
  readonly args?: readonly (readonly [name: string, summary: string])[];
  readonly options?: readonly (readonly [flags: string, summary: string])[];
  /**
   * Loads the code only when the command runs: help and version load none of it. A row that only groups commands has
   * none.
   */
  readonly load?: () => Promise<(context: CommandContext) => Promise<void>>;
  readonly subcommands?: readonly Omit<CommandRow, 'subcommands'>[];
}
