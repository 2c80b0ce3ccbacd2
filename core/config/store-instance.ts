import type { Json } from '../contract/json.ts';
import { CORE_PROPERTIES } from './core-schema.ts';
import type { FaultAt } from './faults.ts';
import type { RawInstance } from './instances.ts';
import type { Lookup } from './interpolate.ts';
import { interpolateTree } from './interpolate-tree.ts';
import { readStoreUrl } from './store-url.ts';

/**
 * The store's plugin and options, its references replaced already: a URL decides the plugin. Undefined, with no fault of
 * its own, when a reference fails: checking core's part tells that.
 */
export function findStore(
  store: Json | undefined,
  baseDir: string,
  lookup: Lookup,
): { readonly instance?: RawInstance; readonly faults: readonly FaultAt[] } {
  const tree = interpolateTree(store ?? null, CORE_PROPERTIES['store'] ?? {}, '/store', lookup);
  if (tree.faults.length > 0 || tree.value === undefined) return { faults: [] };
  try {
    const { plugin, config } = readStoreUrl(tree.value, baseDir);
    const value = config as RawInstance['value'];
    return { instance: { group: 'store', kind: 'store', name: plugin, plugin, pointer: '/store', value }, faults: [] };
  } catch (error) {
    const [message = '', hint] = (error instanceof Error ? error.message : '').replace(/^store /, '').split(': write ');
    return { faults: [{ pointer: '/store', message, hint: hint && `Write ${hint}.` }] };
  }
}
