import type { Ledger, Provider, Store } from '../../contract/index.ts';
import { RejectedFields } from '../../core/calls/added-fields.ts';
import type { CallDeps } from '../../core/calls/call-deps.ts';
import { createServices } from '../../core/calls/generation.ts';
import { Routes } from '../../core/calls/routes.ts';
import { createSeals } from '../../core/calls/seals.ts';
import { Pending } from '../../core/plugins/attribution.ts';
import { compileHooks } from '../../core/plugins/compile-hooks.ts';
import type { CallServices } from '../../core/plugins/plugin-api.ts';
import { Registry } from '../../core/plugins/registry.ts';
import { createUpstream } from '../../egress/upstream.ts';
import { createCatalog } from '../../models/catalog.ts';
import { createRouting } from '../../routing/health-book.ts';
import { createSilentLog } from '../support/log.ts';
import { setUpAccounts } from '../support/plugins/accounts-policy.ts';

/** Node without HTTP: the call pipeline, the accounts policy and providers, on a shared store. */
export interface MoneyNode {
  readonly deps: CallDeps;
  /** Waits for background work and writes pending data. */
  close(): Promise<void>;
}

export async function startMoneyNode(store: Store, ledger: Ledger, providers: readonly Provider[]): Promise<MoneyNode> {
  const registry = new Registry();
  const log = createSilentLog();
  let services: CallServices | undefined;
  await setUpAccounts(registry, {
    ...{ store, ledger, billing: 'enforce', services: () => services },
    stateUser: () => ({ keep: (_name, make) => make() }),
  });
  const offers = new Map(providers.map((provider, at) => [`p${at}`, provider]));
  const pending = new Pending();
  const hooks = compileHooks(registry.hooks, {
    operation: 'chat',
    isRequest: () => true,
    isResponse: () => true,
    onIgnored(_owner, _name, error) {
      throw error;
    },
    pending,
  });
  const catalog = createCatalog(offers);
  const routes = new Routes({ catalog, offers, aliases: new Map(), rules: new Map() });
  const parts = { hooks, offers, catalog, routes };
  const deps: CallDeps = {
    ...{ upstream: createUpstream({ log }), aliases: new Map(), log, pending },
    routes: new Map(),
    routing: createRouting(),
    closing: new AbortController().signal,
    planOf: () => undefined,
    serverTools: undefined,
    tagsEndUsers: false,
    seals: createSeals(() => store.sets),
    rejected: new RejectedFields(),
    allParts: () => [],
    partsOf: () => parts,
  };
  services = createServices(deps, { of: () => undefined });
  return {
    deps,
    async close() {
      await pending.idle(5000);
      for (const { value } of registry.closers) await value();
      await deps.upstream.close();
    },
  };
}
