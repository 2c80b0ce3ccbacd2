/** A line that a plugin wants shown once at start. */
export interface Announcement {
  readonly title: string;
  readonly value: string;
  /** `key`: an API key that the banner's curl line may use. */
  readonly use?: 'key';
}

/** One option or argument of a command, as data: help, parsing and types come from it. */
export interface CommandOption {
  /** commander's form: `--user <id>`, `--expires <duration>`, `--force`. */
  readonly flags: string;
  readonly summary: string;
  readonly required?: boolean;
}

/** What is run, and what it takes. */
export interface CommandWork {
  /** commander's form: `<id>`, `[amount]`, `[text...]`, in order. */
  readonly args?: readonly { readonly name: string; readonly summary: string }[];
  readonly options?: readonly CommandOption[];
  run(input: CommandInput): Promise<void>;
}

export interface Subcommand extends CommandWork {
  readonly name: string;
  readonly summary: string;
}

interface CommandHead {
  readonly name: string;
  readonly summary: string;
  /**
   * `lasting` (default) refuses a store that ends with the process, such as `memory:`: what the command does would be lost.
   * `any` is for commands that change nothing.
   */
  readonly store?: 'lasting' | 'any';
}

/** A command of `tollgate`: one that is run itself (`say`), or one with subcommands (`keys create`). May use `api.call` and `api.chat`. */
export type Command = CommandHead &
  (({ readonly subcommands?: undefined } & CommandWork) | { readonly subcommands: readonly Subcommand[] });

export interface CommandInput {
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
  note(text: string): void;
  /** Data for stdout as it is, such as sound. */
  write(bytes: Uint8Array | string): void;
  /** All of stdin, as text. */
  read(): Promise<string>;
}
