import type { Fault } from '../../faults/index.ts';
import { FORM_NAMES, type FormName } from '../gateways/fault-forms.ts';

const GROUPS: Readonly<Record<string, readonly [title: string, subject: string]>> = Object.freeze({
  U: ['Providers', 'A provider …'],
  C: ['Callers', 'A caller …'],
  S: ['Stores', 'The store …'],
  P: ['The process', 'The process …'],
  G: ['Configuration', 'The configuration …'],
  X: ['Plugins', 'A plugin …'],
});

/** Formats in which each fault passed in the last run. */
export type FormsOfFaults = Readonly<Record<string, readonly FormName[]>>;

/**
 * Generated part of `docs/reliability.md`: one table per group of faults, with a column per format if one was tested.
 */
export function formatFaults(faults: Readonly<Record<string, Fault>>, forms: FormsOfFaults): string {
  return Object.entries(GROUPS)
    .map(([letter, [title, subject]]) => {
      const own = Object.entries(faults).filter(([id]) => id.startsWith(letter));
      const names = own.some(([id]) => forms[id]) ? FORM_NAMES : [];
      const marks = (id: string) => names.map((name) => ` ${forms[id]?.includes(name) ? '✓' : ''} |`).join('');
      const rows = own.map(([id, { fault, does, money }]) => `| ${id} | ${fault} | ${does} | ${money} |${marks(id)}`);
      const head = `| | ${subject} | Then | Charged |${names.map((name) => ` ${name} |`).join('')}`;
      return [`### ${title}`, '', head, `|${'---|'.repeat(4 + names.length)}`, ...rows].join('\n');
    })
    .join('\n\n');
}

const START = '<!-- faults: written by test/support/pages/write-reliability-page.ts -->';
const END = '<!-- end -->';

/** Returns the page with its generated part from the tables. */
export function withFaults(page: string, faults: Readonly<Record<string, Fault>>, forms: FormsOfFaults): string {
  const [before = '', rest = ''] = page.split(START);
  const [, after = ''] = rest.split(END);
  return `${before}${START}\n\n${formatFaults(faults, forms)}\n\n${END}${after}`;
}
