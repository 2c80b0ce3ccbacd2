import type { AuditActor } from './audit.ts';

/** One option or argument of a command, as data: help, parsing and types come from it. */
export interface CommandOption {
  /** commander's form: `--user <id>`, `--expires <duration>`, `--force`. */
  readonly flags: string;
  readonly summary: string;
  readonly required?: boolean;
}

/** A command of `tollgate`: it has subcommands, or runs itself. */
export interface Command extends Partial<Omit<Subcommand, 'name' | 'summary'>> {
  readonly name: string;
  readonly summary: string;
  readonly subcommands?: readonly Subcommand[];
  /** False for commands that read only or call models: they also run on a store that ends with its process. True unless set. */
  readonly changesStore?: boolean;
}

export interface Subcommand {
  readonly name: string;
  readonly summary: string;
  /** commander's form: `<id>`, `[amount]`, `[text...]`, in order. */
  readonly args?: readonly { readonly name: string; readonly summary: string }[];
  readonly options?: readonly CommandOption[];
  /** What it resolves with, if that is a number, is the exit code of the program: 4 where what it checked does not hold. */
  run(input: CommandInput): Promise<void> | Promise<number>;
}

export interface CommandInput {
  /** Who runs the command, for the audit log. */
  readonly actor: AuditActor;
  readonly args: readonly string[];
  /** By the long flag's name in camelCase. */
  readonly options: Readonly<Record<string, string | boolean | undefined>>;
  readonly io: CommandIo;
  /** Fires on Ctrl-C. */
  readonly signal: AbortSignal;
}

/** stdout is data, stderr is talk. With `--json` `result` prints its value, else the text made of it. */
export interface CommandIo {
  readonly json: boolean;
  /** Whether stdout is a terminal, which cannot show bytes. */
  readonly isTerminal: boolean;
  result(value: unknown, text: string): void;
  /** Columns of text for `result`: two spaces apart, for terminals and `grep`. */
  table(head: readonly string[], rows: readonly (readonly string[])[]): string;
  note(text: string): void;
  /** Data for stdout as it is, such as sound. */
  write(bytes: Uint8Array | string): void;
  /** All of stdin, as text. */
  read(): Promise<string>;
}
