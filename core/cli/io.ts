import pc from 'picocolors';
import type { CommandIo } from '../contract/plugin.ts';

/** Exit codes of every command (contract section 7). */
export const EXIT = Object.freeze({ ok: 0, unexpected: 1, usage: 2, config: 3, checkFailed: 4, unavailable: 69 });

/** Where a command writes: stdout is data, stderr is talk. */
export interface Terminal {
  readonly out: NodeJS.WritableStream;
  readonly err: NodeJS.WritableStream;
  readonly isTty: boolean;
  readonly colors: ReturnType<typeof pc.createColors>;
}

export function createTerminal(): Terminal {
  const isTty = process.stderr.isTTY === true;
  // picocolors knows NO_COLOR, FORCE_COLOR, TERM=dumb and CI; colours are for the talk on stderr alone.
  return { out: process.stdout, err: process.stderr, isTty, colors: pc.createColors(pc.isColorSupported && isTty) };
}

/** The two channels of a command, as plugins get them. With `--json` stdout is exactly one JSON document. */
export function createIo(terminal: Terminal, json: boolean): CommandIo {
  return {
    json,
    isTerminal: process.stdout.isTTY === true,
    result(value, text) {
      terminal.out.write(json ? `${JSON.stringify({ ok: true, data: value })}\n` : text === '' ? '' : `${text}\n`);
    },
    table: formatTable,
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
  if (process.stdin.isTTY) terminal.err.write('Write the text and end it with Ctrl-D:\n');
  let text = '';
  process.stdin.setEncoding('utf8');
  for await (const chunk of process.stdin) text += String(chunk);
  return text;
}

/** A command that cannot go on: what is wrong, what to do, and the exit code. */
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

/** Columns of text, two spaces apart, for terminals and `grep`. */
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
