import type { CommandContext, CommandRow } from './io.ts';
import { CliError, createIo, EXIT } from './io.ts';
import { loadFor } from './load.ts';
import { commandsBelow, isFirstLevel } from './places.ts';
import { quietLog } from './program-log.ts';
import { trySetUp } from './start.ts';

/** Word of the command line with the words and flags that may follow it. */
export interface Word {
  readonly name: string;
  readonly summary: string;
  readonly flags: readonly Flag[];
  readonly below: readonly Word[];
}

/** An option, such as `-o, --output <file>`. */
export interface Flag {
  /** Names as typed: `-o`, `--output`. */
  readonly names: readonly string[];
  readonly summary: string;
  /** Kind of argument: nothing, a value or a file name. */
  readonly takes: 'nothing' | 'value' | 'file';
}

/** Options of every command. */
export const COMMON_FLAGS: readonly Flag[] = Object.freeze([
  readFlag('-c, --config <file>', 'the configuration file'),
  readFlag('--json', 'print one JSON document on stdout'),
  readFlag('--no-color', 'no colours'),
  readFlag('--wide', 'show all columns of tables'),
  readFlag('-h, --help', 'show help of the command'),
]);

/** Position on the command line, by the words before it: `/keys/create`. */
export interface CompletionPosition {
  readonly at: string;
  readonly flags: readonly Flag[];
  readonly below: readonly Word[];
}

/** Lists every position that can be completed; the first one is before all words. */
export function placesOf(words: readonly Word[]): readonly CompletionPosition[] {
  return [{ at: '', flags: [], below: words }, ...words.flatMap((word) => placesBelow(word, ''))];
}

function placesBelow(word: Word, parent: string): readonly CompletionPosition[] {
  const at = `${parent}/${word.name}`;
  return [{ ...word, at }, ...word.below.flatMap((sub) => placesBelow(sub, at))];
}

/** Names of the flags that take this kind of argument. */
export function namesTaking(flags: readonly Flag[], what: Flag['takes']): readonly string[] {
  return flags.filter(({ takes }) => takes === what).flatMap(({ names }) => names);
}

/** Text in single quotes for Bourne shells, without control characters. */
export function quote(text: string): string {
  return `'${clean(text).replaceAll("'", "'\\''")}'`;
}

/** Removes characters that end a line or move the cursor. */
export function clean(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\\]/gu, ' ');
}

/** Parses an option in commander's notation. */
export function readFlag(flags: string, summary: string): Flag {
  const names = flags.match(/(?<![\w<[-])--?[a-z][\w-]*/gi) ?? [];
  const takes = flags.includes('<file>') ? 'file' : /[<[]/.test(flags) ? 'value' : 'nothing';
  return { names, summary, takes };
}

/** Completion script for fish, one line per word and option. */
export function fishCompletion(words: readonly Word[]): string {
  const names = words.map(({ name }) => name).join(' ');
  const lines = words.flatMap((word) => {
    const below = word.below.map(({ name }) => name).join(' ');
    const here = below === '' ? seen(word.name) : `${seen(word.name)}; and not ${seen(below)}`;
    return [
      `complete -c tollgate -f -n 'not ${seen(names)}' -a ${word.name} -d ${fishQuote(word.summary)}`,
      ...word.flags.map((flag) => writeFlag(here, flag)),
      ...word.below.map(
        ({ name, summary }) => `complete -c tollgate -f -n '${here}' -a ${name} -d ${fishQuote(summary)}`,
      ),
      ...word.below.flatMap(({ name, flags }) =>
        flags.map((flag) => writeFlag(`${seen(word.name)}; and ${seen(name)}`, flag)),
      ),
    ];
  });
  return `# Completion of tollgate for fish. To install it:
#   tollgate config completion fish > ~/.config/fish/completions/tollgate.fish
complete -c tollgate -f
${[...COMMON_FLAGS.map((flag) => writeFlag(undefined, flag)), ...lines].join('\n')}
`;
}

function seen(names: string): string {
  return `__fish_seen_subcommand_from ${names}`;
}

const TAKES: Readonly<Record<Flag['takes'], string>> = Object.freeze({ nothing: '', value: ' -x', file: ' -r -F' });

function writeFlag(condition: string | undefined, { names, summary, takes }: Flag): string {
  const where = condition === undefined ? '' : ` -n '${condition}'`;
  const flags = names.map((name) => (name.startsWith('--') ? ` -l ${name.slice(2)}` : ` -s ${name.slice(1)}`)).join('');
  return `complete -c tollgate${where}${flags}${TAKES[takes]} -d ${fishQuote(summary)}`;
}

function fishQuote(text: string): string {
  return `'${clean(text).replaceAll("'", "\\'")}'`;
}

const SHELLS: Readonly<Record<string, (words: readonly Word[]) => string>> = Object.freeze({
  bash: bashCompletion,
  zsh: zshCompletion,
  fish: fishCompletion,
});

/**
 * `tollgate config completion <shell>`: prints a script that completes the commands of core and of the configured
 * plugins.
 */
export async function printCompletion(context: CommandContext, commands: readonly CommandRow[]): Promise<void> {
  const [shell = ''] = context.args;
  const write = Object.hasOwn(SHELLS, shell) ? SHELLS[shell] : undefined;
  if (!write)
    throw new CliError(
      `completion for "${shell}" is not supported`,
      EXIT.usage,
      `Use one of ${Object.keys(SHELLS).join(', ')}.`,
    );
  const script = write(placeWords([...coreWords(commands), ...(await pluginWords(context))]));
  createIo(context.terminal, context.globals.json === true).result({ shell, script }, script.trimEnd());
}

/** Returns the first-level words, with the subcommands that other rows run. */
function placeWords(words: readonly Word[]): readonly Word[] {
  const find = (name: string): Word | undefined => {
    const [first, second] = name.split(' ');
    const word = words.find((one) => one.name === first);
    return second === undefined ? word : word?.below.find((one) => one.name === second);
  };
  return words
    .filter(({ name }) => isFirstLevel(name))
    .map((word) => {
      const moved = commandsBelow(word.name).flatMap(({ now, was, summary }) => {
        const found = find(was);
        if (!found) return [];
        // A list of the noun itself has no subcommands.
        const below = found === word ? [] : found.below;
        return [{ ...found, name: now.slice(word.name.length + 1), summary, below }];
      });
      const names = new Set(moved.map(({ name }) => name));
      return { ...word, below: [...word.below.filter(({ name }) => !names.has(name)), ...moved] };
    });
}

type Row = Pick<CommandRow, 'name' | 'summary' | 'options' | 'subcommands'>;

function coreWords(commands: readonly CommandRow[]): readonly Word[] {
  const readRow = ({ name, summary, options = [], subcommands = [] }: Row): Word => ({
    name,
    summary,
    flags: options.map(([flags, about]) => readFlag(flags, about)),
    below: subcommands.map(readRow),
  });
  const shells = Object.keys(SHELLS).map((name) => ({ name, summary: `for ${name}`, flags: [], below: [] }));
  return commands.map(readRow).map((word) => (word.name === 'completion' ? { ...word, below: shells } : word));
}

/** Reads the plugins' commands. They are set up for this, but no store is opened. */
async function pluginWords(context: CommandContext): Promise<readonly Word[]> {
  const words: Word[] = [];
  await trySetUp(await loadFor(context), quietLog(), ({ registry }) => {
    for (const { value } of registry.commands.values()) {
      const readRow = ({ name, summary, options = [] }: Omit<typeof value, 'subcommands'>): Word => ({
        name,
        summary,
        flags: options.map(({ flags, summary: about }) => readFlag(flags, about)),
        below: [],
      });
      words.push({ ...readRow(value), below: (value.subcommands ?? []).map(readRow) });
    }
  });
  // Plugin names become shell code, so only plain names are completed.
  return words.filter(isPlain).map((word) => ({ ...word, below: word.below.filter(isPlain) }));
}

const PLAIN = /^[a-z0-9][\w-]*$/i;

function isPlain({ name }: Word): boolean {
  return PLAIN.test(name);
}

/** Completion script for bash 3.2 or later. */
export function bashCompletion(words: readonly Word[]): string {
  const places = placesOf(words);
  const known = places.slice(1).map(({ at }) => at);
  return `# Completion of tollgate for bash. To install it:
#   tollgate config completion bash > ~/.local/share/bash-completion/completions/tollgate
_tollgate() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD - 1]}
  local at= words= flags= values= files= i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$at/\${COMP_WORDS[i]}" in
      ${known.join(' | ')}) at="$at/\${COMP_WORDS[i]}" ;;
    esac
  done
  case "$at" in
${places.map(writePlace).join('\n')}
  esac
  flags="$flags ${COMMON_FLAGS.flatMap(({ names }) => names).join(' ')}"
  files="$files ${namesTaking(COMMON_FLAGS, 'file').join(' ')}"
  COMPREPLY=()
  case " $files " in *" $previous "*) compopt -o default 2> /dev/null; return ;; esac
  case " $values " in *" $previous "*) return ;; esac
  case "$current" in -*) words=$flags ;; esac
  COMPREPLY=($(compgen -W "\${words:-$flags}" -- "$current"))
}
complete -F _tollgate tollgate
`;
}

function writePlace({ at, flags, below }: CompletionPosition): string {
  const parts = {
    words: below.map(({ name }) => name),
    flags: flags.flatMap(({ names }) => names),
    values: namesTaking(flags, 'value'),
    files: namesTaking(flags, 'file'),
  };
  const sets = Object.entries(parts).flatMap(([name, own]) =>
    own.length > 0 ? [`${name}=${quote(own.join(' '))}`] : [],
  );
  return `    ${quote(at)}) ${sets.length > 0 ? sets.join(' ') : ':'} ;;`;
}

/** Completion script for zsh, with a description of each word. */
export function zshCompletion(words: readonly Word[]): string {
  const places = placesOf(words);
  const known = places.slice(1).map(({ at }) => at);
  return `#compdef tollgate
# Completion of tollgate for zsh. To install it, in a folder of $fpath:
#   tollgate config completion zsh > ~/.zfunc/_tollgate
_tollgate() {
  local at= values= files= i
  local -a found flags
  for ((i = 2; i < CURRENT; i++)); do
    case "$at/$words[i]" in
      (${known.join('|')}) at="$at/$words[i]" ;;
    esac
  done
  case "$at" in
${places.map(writeZshPlace).join('\n')}
  esac
  flags+=(${describeFlags(COMMON_FLAGS)})
  files="$files ${namesTaking(COMMON_FLAGS, 'file').join(' ')}"
  if [[ " $files " == *" $words[CURRENT-1] "* ]]; then
    _files
  elif [[ " $values " == *" $words[CURRENT-1] "* ]]; then
    _message 'a value'
  elif [[ "$words[CURRENT]" == -* || $#found -eq 0 ]]; then
    _describe -o option flags
  else
    _describe command found
  fi
}
if [[ "$funcstack[1]" == _tollgate ]]; then
  _tollgate "$@"
else
  compdef _tollgate tollgate
fi
`;
}

function writeZshPlace({ at, flags, below }: CompletionPosition): string {
  const [values, files] = [namesTaking(flags, 'value'), namesTaking(flags, 'file')];
  const sets = [
    ...(below.length > 0 ? [`found=(${below.map(({ name, summary }) => quote(`${name}:${summary}`)).join(' ')})`] : []),
    ...(flags.length > 0 ? [`flags=(${describeFlags(flags)})`] : []),
    ...(values.length > 0 ? [`values=${quote(values.join(' '))}`] : []),
    ...(files.length > 0 ? [`files=${quote(files.join(' '))}`] : []),
  ];
  return `    (${quote(at)}) ${sets.length > 0 ? sets.join('; ') : ':'} ;;`;
}

function describeFlags(flags: readonly Flag[]): string {
  return flags.flatMap(({ names, summary }) => names.map((name) => quote(`${name}:${summary}`))).join(' ');
}
