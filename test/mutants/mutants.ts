import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { BILL } from './bill.ts';
import { CORE } from './core.ts';
import { KITS } from './kits.ts';
import { POLICIES } from './policies.ts';
import { ROUTING } from './routing.ts';
import { TRUST } from './trust.ts';

/**
 * Wrong line: its effect, the replaced text of the file, the replacement, and the tests that detect it. Default tests:
 * those of the file.
 */
type Row = readonly [wrong: string, from: string, to: string, tests?: readonly string[]];

/** Mutants of one file. */
export interface MutatedFile {
  /** Subject in the table of `docs/reliability.md`. */
  readonly room: string;
  readonly file: string;
  /** Quick test files, of which at least one must fail. */
  readonly tests: readonly string[];
  readonly mutants: readonly Row[];
}

export interface Mutant extends Pick<MutatedFile, 'room' | 'file' | 'tests'> {
  readonly wrong: string;
  readonly from: string;
  readonly to: string;
}

/** All lists. */
export const LISTS: readonly (readonly MutatedFile[])[] = Object.freeze([ROUTING, CORE, POLICIES, KITS, BILL, TRUST]);

export function mutantsOf(lists: typeof LISTS): readonly Mutant[] {
  return lists
    .flat()
    .flatMap(({ room, file, tests: usual, mutants }) =>
      mutants.map(([wrong, from, to, tests = usual]) => ({ room, file, wrong, from, to, tests })),
    );
}

/** Table rows with each mutant of a list, for the page of detected mutants. */
export function rowsOf(list: readonly MutatedFile[]): readonly string[] {
  return list.map(({ file, mutants }) => `| \`${file}\` | ${mutants.map(([wrong]) => wrong).join('; ')} |`);
}

/** Returns the text of a file with its wrong line. Throws unless the original occurs exactly once. */
export function mutate(text: string, from: string, to: string): string {
  const parts = text.split(from);
  if (parts.length !== 2) throw new Error(`stands there ${parts.length - 1} times instead of once: ${from}`);
  return parts.join(to);
}

/** Files that git tracks or would add. */
export function listFiles(): readonly string[] {
  const args = ['ls-files', '-z', '--cached', '--others', '--exclude-standard'];
  const files = execFileSync('git', args, { cwd: PACKAGE_ROOT, encoding: 'utf8' }).split('\0');
  return [...new Set(files)].filter((file) => file !== '' && existsSync(path.join(PACKAGE_ROOT, file)));
}

const BEGIN = '<!-- mutants: written by npm run mutants -- --write -->\n';
const END = '<!-- end of mutants -->';

/** Returns the page with the table of detected mutants by subject. */
export function withTable(page: string, mutants: readonly Mutant[], survivors: readonly Mutant[]): string {
  const rooms = [...new Set(mutants.map(({ room }) => room))];
  const rows = rooms.map((room) => {
    const own = mutants.filter((each) => each.room === room);
    const caught = own.filter((each) => !survivors.includes(each));
    const files = [...new Set(own.map(({ file }) => `\`${file}\``))];
    return `| ${room} | ${files.join(', ')} | ${caught.length} of ${own.length} |`;
  });
  const from = page.indexOf(BEGIN);
  const to = page.indexOf(END);
  if (from < 0 || to < from) throw new Error('docs/reliability.md has no place for the table of mutants');
  const table = ['| | Files | Caught |', '|---|---|---|', ...rows].join('\n');
  return `${page.slice(0, from + BEGIN.length)}\n${table}\n\n${page.slice(to)}`;
}
