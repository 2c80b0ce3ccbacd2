import type { PluginApi } from '../contract/plugin.ts';
import type { Records } from '../contract/records.ts';
import type { Store } from '../contract/store.ts';
import type { ApiDeps, ApiInstance } from './api-deps.ts';
import type { AuditLog } from './audit.ts';
import { createInstanceStore } from './instance-store.ts';
import { PluginError } from './registry.ts';

/** The instance's own documents, sets and counters, and the books. */
export function storageApi(
  deps: ApiDeps,
  instance: ApiInstance,
): Pick<PluginApi, 'keyv' | 'share' | 'shared' | 'stores' | 'ledger' | 'records' | 'audit' | 'auditLog'> {
  const store = (): Store => {
    const opened = deps.store();
    if (!opened) throw new PluginError(instance.name, 'uses the store before it is open; store plugins register only');
    return opened;
  };
  const log = (): AuditLog => {
    if (!deps.audit) throw new PluginError(instance.name, 'uses the audit log before the store is open');
    return deps.audit;
  };
  const { keyv, share, shared, sets, counters } = createInstanceStore(store, deps.registry, instance);
  return {
    keyv,
    share,
    shared,
    records<T>(name: string): Records<T> {
      if (!deps.records) throw new PluginError(instance.name, 'uses records before the store is open');
      return deps.records<T>(name);
    },
    audit: async (change) => log().add(change),
    auditLog: async (query) => log().list(query),
    get stores() {
      return { kind: store().kind, sets, counters, health: () => store().health() };
    },
    get ledger() {
      return store().ledger;
    },
  };
}
