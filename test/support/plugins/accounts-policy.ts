import type { Ledger, Store } from '../../../contract/index.ts';
import { createLocalGatherer } from '../../../core/plugins/gather.ts';
import { createRecordBook } from '../../../core/plugins/instance-store.ts';
import {
  type ApiDeps,
  type ApiInstance,
  type CallServices,
  createPluginApi,
} from '../../../core/plugins/plugin-api.ts';
import type { Registry } from '../../../core/plugins/registry.ts';
import { createProxyRoute, withProxyRoute } from '../../../egress/way.ts';
import accounts from '../../../plugins/policies/accounts/index.ts';
import { createSilentLog } from '../log.ts';
import { withDefaults } from './with-defaults.ts';

export interface AccountsSetup {
  readonly store: Store;
  /** Ledger for charges, possibly a wrapper of the store's. */
  readonly ledger: Ledger;
  readonly billing: 'track' | 'enforce';
  services(): CallServices | undefined;
  readonly stateUser: ApiDeps['stateUser'];
  readonly config?: object;
}

/** Registers the accounts policy without a core. */
export async function setUpAccounts(registry: Registry, setup: AccountsSetup): Promise<void> {
  const { store, ledger, billing, services, stateUser } = setup;
  const { configSchema } = accounts;
  const config: ApiInstance['config'] = { ...withDefaults(configSchema, setup.config ?? {}) };
  const deps = {
    ...{ registry, log: createSilentLog(), gatherer: createLocalGatherer(), readers: new Map(), aliases: {} },
    ...{ stateUser, records: createRecordBook(store), gateway: {} as ApiDeps['gateway'] & object },
    ready: {
      get services() {
        return services();
      },
    } as ApiDeps['ready'],
    settings: { billing, plans: {}, budgets: [] } as never,
    store: { ...store, ledger },
    openStore: () => {},
    redact: (text: string) => text,
    egress: { proxyRouteOf: createProxyRoute, outfit: withProxyRoute },
  };
  const api = createPluginApi(deps, { group: 'policies', name: 'accounts', plugin: accounts as never, config });
  await accounts.setup(api, config as never);
}
