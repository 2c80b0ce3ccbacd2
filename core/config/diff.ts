import { isObject } from '../contract/json.ts';
import type { GatewayConfig } from './core-schema.ts';
import { childPointer, formatPath } from './problems.ts';

/** One place at which two configurations differ. Secrets are masked. */
export interface ConfigChange {
  /** As `providers.openai.apiKey`. */
  readonly path: string;
  /** As JSON; absent where the former one has nothing there. */
  readonly before?: string;
  /** As JSON; absent where the new one has nothing there. */
  readonly after?: string;
  /** Whether it counts only after a restart. */
  readonly needsRestart: boolean;
}

/** What belongs to the process, not to its configuration's generation. */
const FIXED = /^\/(?:store|logging|server\/(?:host|port|workers|watch))(?:\/|$)/;

/** All places at which the new configuration differs, defaults included, in the order of the files. */
export function diffConfigs(before: GatewayConfig, after: GatewayConfig): readonly ConfigChange[] {
  const [old, fresh] = [leavesOf(before.plain()), leavesOf(after.plain())];
  const [oldShown, freshShown] = [leavesOf(before.printable()), leavesOf(after.printable())];
  const pointers = [...new Set([...old.keys(), ...fresh.keys()])];
  return pointers
    .filter(
      (pointer) => old.get(pointer) !== fresh.get(pointer) && !hasBelow(old, pointer) && !hasBelow(fresh, pointer),
    )
    .map((pointer) => {
      const [was, is] = [oldShown.get(pointer), freshShown.get(pointer)];
      return {
        path: formatPath(pointer),
        ...(was !== undefined && { before: was }),
        ...(is !== undefined && { after: is }),
        needsRestart: FIXED.test(pointer),
      };
    });
}

/** `~ providers.openai.apiKey: "****" → "****"`; of a value that is new or gone only the one. */
export function formatChange({ path, before, after, needsRestart }: ConfigChange): string {
  const sign = before === undefined ? '+' : after === undefined ? '-' : '~';
  const values = before === after ? 'another secret' : [before, after].filter((text) => text !== undefined).join(' → ');
  return `${sign} ${path}: ${values}${needsRestart ? '  (after a restart)' : ''}`;
}

/** Whether something stands below a place: what it was when it was empty is then no news. */
function hasBelow(leaves: ReadonlyMap<string, string>, pointer: string): boolean {
  return [...leaves.keys()].some((each) => each.startsWith(`${pointer}/`));
}

/** Every value that holds no others, and every empty list and map, as JSON by pointer. */
function leavesOf(value: unknown, pointer = '', leaves = new Map<string, string>()): ReadonlyMap<string, string> {
  const entries = Array.isArray(value) ? [...value.entries()] : isObject(value) ? Object.entries(value) : [];
  if (entries.length === 0 && value !== undefined) leaves.set(pointer, JSON.stringify(value));
  for (const [key, child] of entries) leavesOf(child, childPointer(pointer, key), leaves);
  return leaves;
}
