import { COMMON_FLAGS, namesTaking, type Place, placesOf, quote, type Word } from './completion-words.ts';

/** The completion for bash, from 3.2 on. */
export function bashCompletion(words: readonly Word[]): string {
  const places = placesOf(words);
  const known = places.slice(1).map(({ at }) => at);
  return `# Completion of tollgate for bash. To keep it:
#   tollgate completion bash > ~/.local/share/bash-completion/completions/tollgate
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

function writePlace({ at, flags, below }: Place): string {
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
