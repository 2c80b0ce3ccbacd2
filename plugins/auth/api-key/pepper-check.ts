import type { Sets } from '../../../core/index.ts';
import type { Peppers } from './peppers.ts';
import { withStore } from './records.ts';

/** Fingerprints of the peppers that keys of this store may be under. */
const KNOWN = 'keys-peppers';
const MAX_PEPPERS = 20;

/**
 * Makes sure that this gateway has every pepper the store's keys are under, and notes the current one. A node with
 * another pepper would refuse every good key with 401, so it throws an Error that says what to do instead.
 */
export async function checkPeppers(sets: Sets, peppers: Peppers): Promise<void> {
  const known = await withStore(() => sets.list(KNOWN, { limit: MAX_PEPPERS }));
  if (known.some((id) => !peppers.find(id))) throw mismatch();
  if (known.includes(peppers.current.id)) return;
  // The bound lets one of two new nodes in: the other finds the set full, that is, a pepper that it has not seen.
  const outcome = await withStore(() => sets.add(KNOWN, peppers.current.id, known.length + 1));
  if (outcome === 'full') throw mismatch();
}

/** Makes the current pepper the only one; keys under others stop working. Returns how many peppers were dropped. */
export async function acceptPepper(sets: Sets, peppers: Peppers): Promise<number> {
  const known = await withStore(() => sets.list(KNOWN, { limit: MAX_PEPPERS }));
  const foreign = known.filter((id) => !peppers.find(id));
  for (const id of foreign) await withStore(() => sets.remove(KNOWN, id));
  await checkPeppers(sets, peppers);
  return foreign.length;
}

function mismatch(): Error {
  return new Error(
    'The API keys in this store were made under a pepper that this gateway does not have. Give every gateway of the ' +
      'store the same auth.api-key.pepper (or the same "pepper" file in its data folder). If that pepper is lost, ' +
      '"tollgate keys accept-pepper --yes" gives up the keys made under it.',
  );
}
