import { idOf, type MutantPoint } from './points.ts';

/** Result of one mutant. */
export interface TriedMutant {
  readonly point: MutantPoint;
  readonly end: 'caught' | 'survived' | 'not run';
}

const BEGIN = '<!-- mutants: written by npm run mutants -- --write -->\n';
const END = '<!-- end of mutants -->';

/** Returns the page with the table of mutants by folder, and the list of those that survived. */
export function withTable(page: string, seed: number, tried: readonly TriedMutant[]): string {
  const folderOf = ({ file }: MutantPoint): string =>
    file
      .split('/')
      .slice(0, file.startsWith('plugins/') ? 2 : 1)
      .join('/');
  const folders = [...new Set(tried.map(({ point }) => folderOf(point)))].toSorted();
  const rows = folders.map((folder) => {
    const own = tried.filter(({ point }) => folderOf(point) === folder);
    return `| \`${folder}/\` | ${own.filter(({ end }) => end === 'caught').length} | ${own.length} |`;
  });
  const from = page.indexOf(BEGIN);
  const to = page.indexOf(END);
  if (from < 0 || to < from) throw new Error('docs/reliability.md has no place for the table of mutants');
  const missed = tried.filter(({ end }) => end !== 'caught').map(({ point, end }) => `- ${end}: \`${idOf(point)}\``);
  const table = ['| Folder | Caught | Drawn |', '|---|---|---|', ...rows].join('\n');
  const text = `Seed ${seed}.\n\n${table}\n\nNot caught:\n\n${missed.length > 0 ? missed.join('\n') : 'none.'}`;
  return `${page.slice(0, from + BEGIN.length)}\n${text}\n\n${page.slice(to)}`;
}
