import type { AuditActor } from './audit.ts';

/** Option or argument of a command, as data for help, parsing and types. */
export interface CommandOption {
  /** Syntax of commander: `--user <id>`, `--expires <duration>`, `--force`. */
  readonly flags: string;
  readonly summary: string;
  readonly required?: boolean;
}

/** Command of `tollgate`: it has subcommands or runs itself. */
export interface Command extends Partial<Omit<Subcommand, 'name' | 'summary'>> {
  readonly name: string;
  readonly summary: string;
  readonly subcommands?: readonly Subcommand[];
  /** False for commands that only read or call models: they also run on an in-memory store. Default: true. */
  readonly changesStore?: boolean;
}

export interface Subcommand {
  readonly name: string;
  readonly summary: string;
  /** Syntax of commander: `<id>`, `[amount]`, `[text...]`, in order. */
  readonly args?: readonly { readonly name: string; readonly summary: string }[];
  readonly options?: readonly CommandOption[];
  /** Resolves with an optional exit code: 4 for a failed check. */
  run(input: CommandInput): Promise<void> | Promise<number>;
}

export interface CommandInput {
  /** User of the command, for the audit log. */
  readonly actor: AuditActor;
  readonly args: readonly string[];
  /** Options by the long flag's name in camelCase. */
  readonly options: Readonly<Record<string, string | boolean | undefined>>;
  readonly io: CommandIo;
  /** Fires on Ctrl-C. */
  readonly signal: AbortSignal;
}

/** Output of a command: data on stdout, messages on stderr. With `--json`, `result` prints its value, else the text. */
export interface CommandIo {
  readonly json: boolean;
  /** True if stdout is a terminal, which cannot show bytes. */
  readonly isTerminal: boolean;
  result(value: unknown, text: string): void;
  /** Formats columns of text for `result`, two spaces apart, for terminals and `grep`. */
  table(head: readonly string[], rows: readonly (readonly string[])[]): string;
  note(text: string): void;
  /** Writes raw data to stdout, such as sound. */
  write(bytes: Uint8Array | string): void;
  /** Reads all of stdin as text. */
  read(): Promise<string>;
}
