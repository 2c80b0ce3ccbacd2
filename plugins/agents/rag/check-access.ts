import { readdir } from 'node:fs/promises';
import path from 'node:path';
import type { AccessRules } from './access.ts';

/** Names from the folder downwards; hidden ones are not indexed. */
const SUBFOLDER = /^[^./\\][^/\\]*(\/[^./\\][^/\\]*)*$/;

function whereOf(folder: string): string {
  return /^[\w-]+$/.test(folder) ? `agents.rag.access.${folder}` : `agents.rag.access["${folder}"]`;
}

/** Throws for a rule whose folder is no path, that contradicts itself, or that names a plan that is not configured. */
export function checkRules(rules: AccessRules, plans: readonly string[]): void {
  for (const [folder, { everybody, ...others }] of Object.entries(rules)) {
    const where = whereOf(folder);
    if (folder !== '.' && !SUBFOLDER.test(folder))
      throw new TypeError(
        `${where}: is no path of a subfolder: write it as hr or hr/salaries, without ./, ../, hidden folders and a slash at an end; "." is all of agents.rag.folder`,
      );
    if (everybody && Object.keys(others).length > 0)
      throw new TypeError(
        `${where}: names everybody, and ${Object.keys(others).join(' and ')} too: leave out the one or the other`,
      );
    // The message must not show it.
    if (others.keys?.some((key) => /^tg_[0-9A-Za-z]+_/.test(key)))
      throw new TypeError(
        `${where}.keys: holds a whole API key, which is a secret: write its public id, the part up to the second underscore, and revoke the key if others read this file`,
      );
    const unknown = others.plans?.find((plan) => !plans.includes(plan));
    if (unknown !== undefined)
      throw new TypeError(
        `${where}.plans: names the plan "${unknown}", which "plans" does not have: ${plans.length > 0 ? `use one of ${plans.join(', ')}` : 'add it there'}`,
      );
  }
}

/**
 * Throws for a rule whose folder is not there, letter by letter: a rule for `HR` would leave `hr` to everybody, also
 * where the file system takes them for the same.
 */
export async function checkFolders(rules: AccessRules, root: string): Promise<void> {
  for (const folder of Object.keys(rules).filter((name) => name !== '.')) {
    let above = root;
    for (const name of folder.split('/')) {
      const entries = await readdir(above, { withFileTypes: true });
      if (!entries.some((entry) => entry.name === name && entry.isDirectory()))
        throw new TypeError(
          `${whereOf(folder)}: is no folder in agents.rag.folder, so what it should protect would be found by everybody: make the folder "${folder}", or correct its name (capitals count, links are not followed)`,
        );
      above = path.join(above, name);
    }
  }
}
