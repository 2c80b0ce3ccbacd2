import { COMMON_FLAGS, type Flag, namesTaking, type Place, placesOf, quote, type Word } from './completion-words.ts';

/** The completion for zsh, with what each word means. */
export function zshCompletion(words: readonly Word[]): string {
  const places = placesOf(words);
  const known = places.slice(1).map(({ at }) => at);
  return `#compdef tollgate
# Completion of tollgate for zsh. To keep it, in a folder of $fpath:
#   tollgate completion zsh > ~/.zfunc/_tollgate
_tollgate() {
  local at= values= files= i
  local -a found flags
  for ((i = 2; i < CURRENT; i++)); do
    case "$at/$words[i]" in
      (${known.join('|')}) at="$at/$words[i]" ;;
    esac
  done
  case "$at" in
${places.map(writePlace).join('\n')}
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

function writePlace({ at, flags, below }: Place): string {
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
