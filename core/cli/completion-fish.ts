import { COMMON_FLAGS, clean, type Flag, type Word } from './completion-words.ts';

/** The completion for fish, a line for each word and option. */
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
  return `# Completion of tollgate for fish. To keep it:
#   tollgate completion fish > ~/.config/fish/completions/tollgate.fish
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
