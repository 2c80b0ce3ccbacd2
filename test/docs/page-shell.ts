/** Runs the commands of a page in one shell, as a reader would, and compares the output with the page. */
import { type ChildProcess, spawn } from 'node:child_process';

/** Command of a `console` block, and the lines that the page shows below it. */
export interface ShownCommand {
  readonly line: number;
  readonly command: string;
  readonly shown: readonly string[];
}

/** Reads the commands of all `console` blocks of a page, in order. A backslash continues a command on the next line. */
export function readCommands(page: string): readonly ShownCommand[] {
  const commands: { line: number; command: string; shown: string[] }[] = [];
  let isInside = false;
  for (const [at, text] of page.split('\n').entries()) {
    const last = commands.at(-1);
    if (/^```/.test(text)) isInside = text === '```console';
    else if (!isInside) continue;
    else if (last?.command.endsWith('\\') && last.shown.length === 0) last.command += `\n${text}`;
    else if (text.startsWith('$ ')) commands.push({ line: at + 1, command: text.slice(2), shown: [] });
    else last?.shown.push(text);
  }
  return commands;
}

/** Reads the files of a page: fenced blocks with a path. */
export function readFiles(page: string): ReadonlyMap<string, string> {
  const blocks = page.matchAll(/^```\w+ (\S+)\n([\s\S]*?)^```$/gm);
  return new Map([...blocks].map(([, name = '', text = '']) => [name, text]));
}

/**
 * Compares output with the lines of a page, ignoring times and ids. `…` in a line matches any text; alone it matches
 * any lines.
 */
export function isShown(text: string, shown: readonly string[]): boolean {
  const lines = shown.map((line) =>
    line.trim() === '…' ? '(?:.*\\n)*?' : `${escapePattern(settleLine(line)).replaceAll('…', '.*')}\\n`,
  );
  const own = text.trimEnd() === '' ? '' : `${text.trimEnd().split('\n').map(settleLine).join('\n')}\n`;
  return new RegExp(`^${lines.join('')}$`).test(own);
}

/** Replaces values that differ from run to run, and the whitespace that depends on their width. */
function settleLine(line: string): string {
  return line
    .replaceAll(/\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}:\d{2}(?:\.\d+)?Z?)?/g, 'DATE')
    .replaceAll(/\b(req|call|tg)_[\w-]+/g, '$1_ID')
    .replaceAll(/\bprocess \d+/g, 'process PID')
    .replaceAll(/\s+/g, ' ')
    .trimEnd();
}

function escapePattern(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
}

/** Adds the ids of keys in output, by the ids that the page shows in their place. */
export function learnIds(ids: Map<string, string>, text: string, shown: readonly string[]): void {
  const idsIn = (lines: string): readonly string[] => [...new Set(lines.match(/\btg_\w{12}\b/g))];
  const own = idsIn(text);
  for (const [at, id] of idsIn(shown.join('\n')).entries()) if (own[at] !== undefined) ids.set(id, own[at]);
}

export interface Shell {
  /** Runs a command to its end. Returns stdout and stderr as a terminal would show them. */
  run(command: string): Promise<string>;
  close(): Promise<void>;
}

const END = '--- end of a command ---';

/** Opens a shell for several commands; variables, functions and background processes persist. */
export function openShell(cwd: string, env: Readonly<Record<string, string>>): Shell {
  const child = spawn('bash', ['--norc', '--noprofile'], { cwd, env, detached: true });
  child.stdin.write('exec 2>&1\n');
  return {
    run: (command) => readUntilEnd(child, () => child.stdin.write(`${command}\necho "${END}"\n`)),
    async close() {
      const closed = new Promise((resolve) => child.once('close', resolve));
      // Also kills all child processes, even if a command failed in the middle.
      if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGKILL');
      await closed;
    },
  };
}

function readUntilEnd({ stdout }: Pick<ChildProcess, 'stdout'>, begin: () => void): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    const onData = (bytes: Buffer): void => {
      text += String(bytes);
      const at = text.indexOf(END);
      if (at === -1) return;
      stop();
      resolve(text.slice(0, at));
    };
    const onEnd = (): void => {
      stop();
      reject(new Error(`the shell ended:\n${text}`));
    };
    const stop = (): void => {
      stdout?.off('data', onData).off('end', onEnd);
    };
    stdout?.on('data', onData).on('end', onEnd);
    begin();
  });
}
