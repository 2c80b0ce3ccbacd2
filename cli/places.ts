import { Command, Help } from 'commander';

/** First-level commands of `tollgate --help`, by group, in order. Commands of other plugins follow under `Plugins`. */
export const GROUPS: readonly (readonly [heading: string, names: readonly string[]])[] = Object.freeze([
  ['Run:', ['start', 'init', 'check', 'reload']],
  ['Keys and money:', ['keys', 'users', 'accounts', 'budgets']],
  ['Observe:', ['usage', 'calls', 'targets', 'audit']],
  ['Models:', ['models']],
  ['Develop:', ['plugins', 'config']],
  ['Move:', ['store']],
]);

/** Heading of commands in no group: those of third-party plugins. */
export const OTHERS = 'Plugins:';

/**
 * Command below a noun, and the row or plugin command that runs it. The latter was its name until 0.1, and works with a
 * notice until 1.0.
 */
export interface FormerCommand {
  readonly now: string;
  readonly was: string;
  readonly summary: string;
}

export const FORMER_COMMANDS: readonly FormerCommand[] = Object.freeze([
  { now: 'calls list', was: 'calls', summary: 'List recent calls' },
  { now: 'audit list', was: 'audit', summary: 'List changes by operators' },
  { now: 'audit changes', was: 'changes', summary: 'List, confirm and reject changes that programs proposed' },
  { now: 'models list', was: 'models', summary: 'List models with prices and end dates' },
  { now: 'plugins list', was: 'plugins', summary: 'List plugins and the order of their hooks' },
  { now: 'targets list', was: 'targets', summary: 'Show target health' },
  { now: 'plugins dev', was: 'dev', summary: 'Run the gateway and reload plugins at each save' },
  { now: 'store status', was: 'status', summary: 'Check that running gateways can write to the store' },
  { now: 'store export', was: 'export', summary: 'Write the store into a file, while no gateway runs on it' },
  { now: 'store import', was: 'import', summary: 'Read a file of "store export" into an empty store' },
  { now: 'config import', was: 'import', summary: 'Convert a configuration of LiteLLM, Portkey or Bifrost' },
  { now: 'config openapi', was: 'openapi', summary: 'Print the OpenAPI document of the configuration' },
  { now: 'config mcp', was: 'mcp', summary: 'Offer a running gateway to an MCP client on stdio' },
  { now: 'config notices', was: 'notices', summary: 'Send a test notice to each receiver' },
  { now: 'calls top', was: 'top', summary: 'Live view of calls, spend and target health' },
  { now: 'calls mirrors', was: 'mirrors', summary: 'Compare calls with their copies at other models' },
  { now: 'usage reconcile', was: 'reconcile', summary: 'Compare the ledger with the bill of a vendor' },
  { now: 'models chat', was: 'chat', summary: 'Send one prompt to a model' },
  { now: 'models say', was: 'say', summary: 'Convert text to speech' },
  { now: 'models providers', was: 'providers', summary: 'List providers and whether each can be called' },
  { now: 'models explain', was: 'providers explain', summary: 'Show the targets, prices and timeouts of a model' },
  { now: 'models tools', was: 'tools', summary: 'List and approve tools of MCP servers' },
  { now: 'targets drain', was: 'target drain', summary: 'Send no new calls to a target' },
  { now: 'targets undrain', was: 'target undrain', summary: 'Undrain a target' },
  { now: 'targets reset', was: 'target reset', summary: 'Reset the health of a target' },
  { now: 'accounts plans', was: 'plans', summary: 'List, create and delete plans' },
  { now: 'accounts teams', was: 'teams', summary: 'List, create and delete teams' },
  { now: 'users login', was: 'login', summary: 'Sign in at a gateway, for the programs of this machine' },
  { now: 'users token', was: 'token', summary: 'Print a valid access token of the sign-in' },
  { now: 'users logout', was: 'logout', summary: 'Sign out and revoke the token' },
  { now: 'users sign-ins', was: 'sign-ins', summary: 'List and revoke sign-ins of programs' },
  { now: 'users console', was: 'console', summary: 'Print a link to sign in at the console' },
]);

/** Former subcommand of a plugin command, which works with a notice until 1.0. */
interface FormerVerb {
  readonly noun: string;
  readonly was: string;
  readonly now: string;
}

export const FORMER_VERBS: readonly FormerVerb[] = Object.freeze([
  ...['budgets', 'plans', 'teams'].flatMap((noun) => [
    { noun, was: 'put', now: 'set' },
    { noun, was: 'remove', now: 'delete' },
  ]),
  { noun: 'sign-ins', was: 'end', now: 'revoke' },
]);

const NOUNS: ReadonlySet<string> = new Set(GROUPS.flatMap(([, names]) => names));

/** True if `--help` lists a command at the first level. */
export function isFirstLevel(name: string): boolean {
  return NOUNS.has(name) || !FORMER_COMMANDS.some(({ was }) => was === name || was.startsWith(`${name} `));
}

/** True if a command has a fixed place in the help; for others the help names their plugin. */
export function isBuiltIn(name: string): boolean {
  return NOUNS.has(name) || !isFirstLevel(name);
}

/** Commands below a noun that another row runs. */
export function commandsBelow(noun: string): readonly FormerCommand[] {
  return FORMER_COMMANDS.filter(({ now }) => now.startsWith(`${noun} `));
}

/** Name that the help shows for a command: `calls top` for `top`, `targets` for `target`. */
export function placeOf(name: string): string {
  const exact = FORMER_COMMANDS.find(({ now, was }) => was === name && now.split(' ')[0] !== name);
  if (exact) return exact.now;
  return FORMER_COMMANDS.find(({ was }) => was.startsWith(`${name} `))?.now.split(' ')[0] ?? name;
}

/** Program options with a value. */
const WITH_VALUE: ReadonlySet<string> = new Set(['-c', '--config']);

/** Arguments as rows and plugin commands parse them, and the current name if a former one was used. */
interface ResolvedWords {
  readonly args: readonly string[];
  readonly moved?: Pick<FormerCommand, 'was' | 'now'>;
}

export function resolveWords(args: readonly string[]): ResolvedWords {
  return resolveVerb(resolveNoun(args));
}

/** Replaces a former subcommand by the current one. */
function resolveVerb({ args, moved }: ResolvedWords): ResolvedWords {
  const [first = -1, second = -1] = findWords(args);
  const noun = args[first] ?? '';
  const former = FORMER_VERBS.find((each) => each.noun === noun && each.was === args[second]);
  if (!former) return { args, ...(moved && { moved }) };
  const current = placeOf(noun);
  return {
    args: args.with(second, former.now),
    moved: { was: `${moved?.was ?? current} ${former.was}`, now: `${current} ${former.now}` },
  };
}

function resolveNoun(args: readonly string[]): ResolvedWords {
  const [first, second] = findWords(args);
  if (first === undefined) return { args };
  const noun = args[first] ?? '';
  const pair = second === undefined ? noun : `${noun} ${args[second]}`;
  const place = FORMER_COMMANDS.find(({ now }) => now === pair);
  if (place && second !== undefined) {
    const rest = args.filter((_, index) => index !== first && index !== second);
    return { args: [...rest.slice(0, first), ...place.was.split(' '), ...rest.slice(first)] };
  }
  const isHelp = args.includes('--help') || args.includes('-h');
  if (noun === 'store' && second === undefined && !isHelp)
    return { args: args.map((word, index) => (index === first ? 'status' : word)) };
  const moved = NOUNS.has(noun)
    ? undefined
    : (FORMER_COMMANDS.find(({ was }) => was === pair) ?? FORMER_COMMANDS.find(({ was }) => was === noun));
  return moved ? { args, moved } : { args };
}

/** Indexes of the words that are neither options nor values of program options. */
function findWords(args: readonly string[]): readonly number[] {
  const found: number[] = [];
  for (let index = 0; index < args.length; index += 1) {
    const word = args[index] ?? '';
    if (word === '--') break;
    if (WITH_VALUE.has(word)) index += 1;
    else if (!word.startsWith('-')) found.push(index);
  }
  return found;
}

/** Shows a command's current name in its help, and lists the commands below a noun that other rows run. */
export function showPlace(command: Command): void {
  const name = command.name();
  command.configureHelp({
    visibleCommands: (shown) => [...new Help().visibleCommands(shown), ...listBelow(name, shown)],
    ...(placeOf(name) === name ? {} : { commandUsage: (shown) => `tollgate ${placeOf(name)} ${shown.usage()}` }),
  });
}

function listBelow(noun: string, shown: Command): readonly Command[] {
  const own = new Set(shown.commands.map((command) => command.name()));
  return commandsBelow(noun).flatMap(({ now, summary }) => {
    const name = now.slice(noun.length + 1);
    return own.has(name) ? [] : [new Command(name).description(summary)];
  });
}
