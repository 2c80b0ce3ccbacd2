/** A word of the command line: what may stand behind it. */
export interface Word {
  readonly name: string;
  readonly summary: string;
  readonly flags: readonly Flag[];
  readonly below: readonly Word[];
}

/** An option, such as `-o, --output <file>`. */
export interface Flag {
  /** As they are typed: `-o`, `--output`. */
  readonly names: readonly string[];
  readonly summary: string;
  /** What follows it: nothing, a value, or the name of a file. */
  readonly takes: 'nothing' | 'value' | 'file';
}

/** What every command takes. */
export const COMMON_FLAGS: readonly Flag[] = Object.freeze([
  readFlag('-c, --config <file>', 'the configuration file'),
  readFlag('--json', 'print one JSON document on stdout'),
  readFlag('--no-color', 'no colours'),
  readFlag('-h, --help', 'show what the command takes'),
]);

/** A word of the command line with the words before it: `/keys/create`. */
export interface Place {
  readonly at: string;
  readonly flags: readonly Flag[];
  readonly below: readonly Word[];
}

/** Every place where something can be completed; the first one is before all words. */
export function placesOf(words: readonly Word[]): readonly Place[] {
  return [
    { at: '', flags: [], below: words },
    ...words.flatMap((word) => [
      { ...word, at: `/${word.name}` },
      ...word.below.map((sub) => ({ ...sub, at: `/${word.name}/${sub.name}` })),
    ]),
  ];
}

/** The flags behind which something stands. */
export function namesTaking(flags: readonly Flag[], what: Flag['takes']): readonly string[] {
  return flags.filter(({ takes }) => takes === what).flatMap(({ names }) => names);
}

/** A text in single quotes, as Bourne shells read it; what is no letter of a line is left out. */
export function quote(text: string): string {
  return `'${clean(text).replaceAll("'", "'\\''")}'`;
}

/** A line of text without what would end it, or move a cursor. */
export function clean(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\\]/gu, ' ');
}

/** Reads commander's form of an option. */
export function readFlag(flags: string, summary: string): Flag {
  const names = flags.match(/(?<![\w<[-])--?[a-z][\w-]*/gi) ?? [];
  const takes = flags.includes('<file>') ? 'file' : /[<[]/.test(flags) ? 'value' : 'nothing';
  return { names, summary, takes };
}
