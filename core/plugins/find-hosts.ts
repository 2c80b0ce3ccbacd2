import { childSchemas, expandSchema } from '../config/schema-at.ts';
import type { Schema } from '../contract/json.ts';
import type { Plugin } from '../contract/plugin.ts';

/** The hosts that an instance may connect to: its plugin's own, and those of its options that are URLs by their schema. */
export function findHosts(
  { configSchema = {}, hosts = [] }: Pick<Plugin, 'configSchema' | 'hosts'>,
  config: Readonly<Record<string, unknown>>,
): ReadonlySet<string> {
  const found = new Set(hosts);
  const root = configSchema as Schema;
  const visit = (value: unknown, schemas: readonly Schema[]): void => {
    if (typeof value === 'string') {
      if (schemas.some((schema) => schema['format'] === 'url') && URL.canParse(value)) found.add(new URL(value).host);
    } else if (Array.isArray(value)) {
      for (const [at, item] of value.entries()) visit(item, childSchemas(root, schemas, at));
    } else if (typeof value === 'object' && value !== null) {
      for (const [key, item] of Object.entries(value)) visit(item, childSchemas(root, schemas, key));
    }
  };
  visit(config, expandSchema(root, root));
  return found;
}
