import { isObject } from '../contract/json.ts';
import type { GatewayConfig } from './core-schema.ts';

/** Shorter values are words that any text may hold, and no secrets. */
const LEAST_LENGTH = 8;

/** Every text of a configuration that `config print` hides, fully or in part. */
export function listSecrets({ plain, printable }: Pick<GatewayConfig, 'plain' | 'printable'>): readonly string[] {
  const found = new Set<string>();
  const visit = (value: unknown, shown: unknown): void => {
    if (typeof value === 'string' && value !== shown && value.length >= LEAST_LENGTH) found.add(value);
    if (Array.isArray(value))
      for (const [i, item] of value.entries()) visit(item, Array.isArray(shown) ? shown[i] : shown);
    else if (isObject(value))
      for (const [name, member] of Object.entries(value)) visit(member, isObject(shown) ? shown[name] : shown);
  };
  visit(plain(), printable());
  return [...found];
}
