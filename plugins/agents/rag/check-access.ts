import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { OptionError } from '../../../core/index.ts';
import type { AccessRule, AccessRules } from './access.ts';

/** Names from the folder downwards; hidden ones are not indexed. */
const SUBFOLDER = /^[^./\\][^/\\]*(\/[^./\\][^/\\]*)*$/;

/** The place of a folder's rule in the options, as a JSON pointer. */
function placeOf(folder: string): string {
  return `/access/${folder.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

/** Throws an {@link OptionError} for a rule whose folder is no path, that contradicts itself, or that names a plan that is not configured. */
export function checkRules(rules: AccessRules, plans: readonly string[]): void {
  for (const [folder, rule] of Object.entries(rules)) checkRule(folder, rule, plans);
}

function checkRule(folder: string, { everybody, ...others }: AccessRule, plans: readonly string[]): void {
  const place = placeOf(folder);
  if (folder !== '.' && !SUBFOLDER.test(folder))
    throw new OptionError(
      place,
      'is no path of a subfolder',
      'Write it as hr or hr/salaries, without ./, ../, hidden folders and a slash at an end; "." is all of the folder.',
    );
  if (everybody && Object.keys(others).length > 0)
    throw new OptionError(
      place,
      `names everybody, and ${Object.keys(others).join(' and ')} too`,
      'Leave out the one or the other.',
    );
  // The message must not show it.
  const whole = others.keys?.findIndex((key) => /^tg_[0-9A-Za-z]+_/.test(key)) ?? -1;
  if (whole >= 0)
    throw new OptionError(
      `${place}/keys/${whole}`,
      'holds a whole API key, which is a secret',
      'Write its public id, the part up to the second underscore, and revoke the key if others read this file.',
    );
  const unknown = others.plans?.findIndex((plan) => !plans.includes(plan)) ?? -1;
  if (unknown >= 0)
    throw new OptionError(
      `${place}/plans/${unknown}`,
      `names the plan "${others.plans?.[unknown]}", which "plans" does not have`,
      plans.length > 0 ? `Use one of ${plans.join(', ')}.` : 'Add it there.',
    );
}

/**
 * Throws an {@link OptionError} when the folder is none, or for a rule whose folder is not there, letter by letter: a rule for `HR`
 * would leave `hr` to everybody, also where the file system takes them for the same.
 */
export async function checkFolders(rules: AccessRules, root: string): Promise<void> {
  for (const folder of Object.keys(rules).filter((name) => name !== '.')) {
    let above = root;
    for (const name of folder.split('/')) {
      const entries = await readdir(above, { withFileTypes: true });
      if (!entries.some((entry) => entry.name === name && entry.isDirectory()))
        throw new OptionError(
          placeOf(folder),
          'is no folder of the knowledge base, so what it should protect would be found by everybody',
          `Make the folder "${folder}", or correct its name (capitals count, links are not followed).`,
        );
      above = path.join(above, name);
    }
  }
}
