import { appendFileSync } from 'node:fs';
import type { FaultForm } from '../support/gateways/fault-forms.ts';

/** Where `npm run reliability` reads which faults came out as they should in which forms; unset in other runs. */
const FILE = process.env['FAULT_FORMS_FILE'];

/** To be told at the end of a test: the faults that its title names have come out as they should in these forms. */
export function notePassed(title: string, forms: readonly FaultForm[]): void {
  if (FILE === undefined) return;
  const [ids = ''] = /^(?:[A-Z]\d\d(?:, )?)+/.exec(title) ?? [];
  for (const id of ids.split(', ')) for (const { name } of forms) appendFileSync(FILE, `${id} ${name}\n`);
}
