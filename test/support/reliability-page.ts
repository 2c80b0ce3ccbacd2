import type { Fault } from '../faults/index.ts';

const GROUPS: Readonly<Record<string, readonly [title: string, subject: string]>> = Object.freeze({
  U: ['Providers', 'A provider …'],
  C: ['Callers', 'A caller …'],
  S: ['Stores', 'The store …'],
  P: ['The process', 'The process …'],
  G: ['Configuration', 'The configuration …'],
  X: ['Plugins', 'A plugin …'],
});

/** The generated half of `docs/reliability.md`: one table a group of faults. */
export function formatFaults(faults: Readonly<Record<string, Fault>>): string {
  return Object.entries(GROUPS)
    .map(([letter, [title, subject]]) => {
      const rows = Object.entries(faults)
        .filter(([id]) => id.startsWith(letter))
        .map(([id, { fault, does, money }]) => `| ${id} | ${fault} | ${does} | ${money} |`);
      return [`### ${title}`, '', `| | ${subject} | Then | Charged |`, '|---|---|---|---|', ...rows].join('\n');
    })
    .join('\n\n');
}

const START = '<!-- faults: written by test/support/write-reliability-page.ts -->';
const END = '<!-- end -->';

/** The page with its generated half as the table has it. */
export function withFaults(page: string, faults: Readonly<Record<string, Fault>>): string {
  const [before = '', rest = ''] = page.split(START);
  const [, after = ''] = rest.split(END);
  return `${before}${START}\n\n${formatFaults(faults)}\n\n${END}${after}`;
}
