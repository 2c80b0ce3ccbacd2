import { appendFileSync } from 'node:fs';
import type { FaultForm } from '../support/gateways/fault-forms.ts';

/** File from which `npm run reliability` reads the passed faults and their formats; not set in other runs. */
const FILE = process.env['FAULT_FORMS_FILE'];

/** Records at the end of a test that the faults in its title passed in these formats. */
export function notePassed(title: string, forms: readonly FaultForm[]): void {
  if (FILE === undefined) return;
  const [ids = ''] = /^(?:[A-Z]\d\d(?:, )?)+/.exec(title) ?? [];
  for (const id of ids.split(', ')) for (const { name } of forms) appendFileSync(FILE, `${id} ${name}\n`);
}
