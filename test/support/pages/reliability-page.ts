import type { Failure } from '../../failures/index.ts';
import { FORM_NAMES, type FormName } from '../gateways/failure-forms.ts';

const GROUPS: Readonly<Record<string, readonly [title: string, subject: string]>> = Object.freeze({
  U: ['Providers', 'A provider …'],
  C: ['Callers', 'A caller …'],
  S: ['Stores', 'The store …'],
  P: ['The process', 'The process …'],
  G: ['Configuration', 'The configuration …'],
  X: ['Plugins', 'A plugin …'],
});

/** Formats in which each failure passed in the last run. */
export type FormsOfFailures = Readonly<Record<string, readonly FormName[]>>;

/**
 * Generated part of `docs/reliability.md`: one table per group of failures, with a column per format if one was tested.
 */
export function formatFailures(failures: Readonly<Record<string, Failure>>, forms: FormsOfFailures): string {
  return Object.entries(GROUPS)
    .map(([letter, [title, subject]]) => {
      const own = Object.entries(failures).filter(([id]) => id.startsWith(letter));
      const names = own.some(([id]) => forms[id]) ? FORM_NAMES : [];
      const marks = (id: string) => names.map((name) => ` ${forms[id]?.includes(name) ? '✓' : ''} |`).join('');
      const rows = own.map(
        ([id, { failure, does, money }]) => `| ${id} | ${failure} | ${does} | ${money} |${marks(id)}`,
      );
      const head = `| | ${subject} | Then | Charged |${names.map((name) => ` ${name} |`).join('')}`;
      return [`### ${title}`, '', head, `|${'---|'.repeat(4 + names.length)}`, ...rows].join('\n');
    })
    .join('\n\n');
}

const START = '<!-- failures: written by test/support/pages/write-reliability-page.ts -->';
const END = '<!-- end -->';

/** Returns the page with its generated part from the tables. */
export function withFailures(
  page: string,
  failures: Readonly<Record<string, Failure>>,
  forms: FormsOfFailures,
): string {
  const [before = '', rest = ''] = page.split(START);
  const [, after = ''] = rest.split(END);
  return `${before}${START}\n\n${formatFailures(failures, forms)}\n\n${END}${after}`;
}
