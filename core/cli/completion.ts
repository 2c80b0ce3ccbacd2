import { COMMANDS, type CommandContext } from './commands.ts';
import { bashCompletion } from './completion-bash.ts';
import { fishCompletion } from './completion-fish.ts';
import { readFlag, type Word } from './completion-words.ts';
import { zshCompletion } from './completion-zsh.ts';
import { CliError, createIo, EXIT } from './io.ts';
import { loadFor } from './load.ts';
import { quietLog } from './logger.ts';
import { trySetUp } from './trial.ts';

const SHELLS: Readonly<Record<string, (words: readonly Word[]) => string>> = Object.freeze({
  bash: bashCompletion,
  zsh: zshCompletion,
  fish: fishCompletion,
});

/** `tollgate completion <shell>`: a script that completes the commands of core, and of the plugins of this configuration. */
export async function run(context: CommandContext): Promise<void> {
  const [shell = ''] = context.args;
  const write = Object.hasOwn(SHELLS, shell) ? SHELLS[shell] : undefined;
  if (!write)
    throw new CliError(
      `there is no completion for "${shell}"`,
      EXIT.usage,
      `Shells are ${Object.keys(SHELLS).join(', ')}.`,
    );
  const script = write([...coreWords(), ...(await pluginWords(context))]);
  createIo(context.terminal, context.globals.json === true).result({ shell, script }, script.trimEnd());
}

type Row = Pick<(typeof COMMANDS)[number], 'name' | 'summary' | 'options' | 'subcommands'>;

function coreWords(): readonly Word[] {
  const readRow = ({ name, summary, options = [], subcommands = [] }: Row): Word => ({
    ...{ name, summary, flags: options.map(([flags, about]) => readFlag(flags, about)) },
    below: subcommands.map(readRow),
  });
  const shells = Object.keys(SHELLS).map((name) => ({ name, summary: `for ${name}`, flags: [], below: [] }));
  return COMMANDS.map(readRow).map((word) => (word.name === 'completion' ? { ...word, below: shells } : word));
}

/** What the plugins' commands take is known when they are set up, which opens no store here. */
async function pluginWords(context: CommandContext): Promise<readonly Word[]> {
  const words: Word[] = [];
  await trySetUp(await loadFor(context), quietLog(), ({ registry }) => {
    for (const { value } of registry.commands.values()) {
      const readRow = ({ name, summary, options = [] }: Omit<typeof value, 'subcommands'>): Word => ({
        ...{ name, summary, flags: options.map(({ flags, summary: about }) => readFlag(flags, about)), below: [] },
      });
      words.push({ ...readRow(value), below: (value.subcommands ?? []).map(readRow) });
    }
  });
  // Names of plugins become code of a shell: only plain ones do.
  return words.filter(isPlain).map((word) => ({ ...word, below: word.below.filter(isPlain) }));
}

const PLAIN = /^[a-z0-9][\w-]*$/i;

function isPlain({ name }: Word): boolean {
  return PLAIN.test(name);
}
