import { appendFileSync } from 'node:fs';
import type { FailureForm } from '../support/gateways/failure-forms.ts';

/** File from which `npm run reliability` reads the passed failures and their formats; not set in other runs. */
const FILE = process.env['FAILURE_FORMS_FILE'];

/** Records at the end of a test that the failures in its title passed in these formats. */
export function recordPassed(title: string, forms: readonly FailureForm[]): void {
  if (FILE === undefined) return;
  const [ids = ''] = /^(?:[A-Z]\d\d(?:, )?)+/.exec(title) ?? [];
  for (const id of ids.split(', ')) for (const { name } of forms) appendFileSync(FILE, `${id} ${name}\n`);
}
