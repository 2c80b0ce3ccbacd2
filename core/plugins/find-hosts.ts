import { mapLeaves } from '../config/schema-at.ts';
import type { Plugin } from '../contract/plugin.ts';
import type { Registry } from './registry.ts';

/** The hosts that an instance may connect to: its plugin's own, and those of its options that are URLs by their schema. */
export function findHosts(
  { configSchema = {}, hosts = [] }: Pick<Plugin, 'configSchema' | 'hosts'>,
  config: Readonly<Record<string, unknown>>,
): ReadonlySet<string> {
  const found = new Set(hosts);
  mapLeaves(config, { ...configSchema }, '', (leaf, { nodes }) => {
    const isUrl = nodes.some((schema) => schema['format'] === 'url');
    if (isUrl && typeof leaf === 'string' && URL.canParse(leaf)) found.add(new URL(leaf).host);
    return leaf;
  });
  return found;
}

/** Where an instance's own endpoints are. */
export function hostsOfOffers(registry: Registry, name: string): readonly string[] {
  const own = [...registry.offers.values()].filter(({ owner }) => owner === name);
  return own.flatMap(({ value: { offer } }) => [
    // What has a transport of its own may name any place.
    ...(URL.canParse(offer.baseUrl) ? [new URL(offer.baseUrl).host] : []),
    ...(offer.hosts ?? []),
  ]);
}
