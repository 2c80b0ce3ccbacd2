import { GatewayError, type Ledger, type Principal, type Store } from '../../../../contract/index.ts';
import { Call } from '../../../../core/calls/call.ts';
import type { CallDeps } from '../../../../core/calls/call-deps.ts';
import { Pending } from '../../../../core/plugins/attribution.ts';
import { compileHooks } from '../../../../core/plugins/compile-hooks.ts';
import { PluginState } from '../../../../core/plugins/foundation.ts';
import type { CallServices } from '../../../../core/plugins/plugin-api.ts';
import { Registry } from '../../../../core/plugins/registry.ts';
import { createRouting } from '../../../../routing/health-book.ts';
import { setUpAccounts } from '../../../support/plugins/accounts-policy.ts';

const TARGET = { provider: 'one', model: 'm' };

/** Failure of a store: before an operation, or after it, so that only the response is lost. */
export type StoreFailure = 'none' | 'refuses' | 'loses responses';

/** Wraps a ledger so that it can be made to fail. */
export function makeFailing(ledger: Ledger): { readonly ledger: Ledger; failure: StoreFailure } {
  const state: { ledger: Ledger; failure: StoreFailure } = { ledger, failure: 'none' };
  const wrapped = Object.entries(ledger).map(([name, method]) => [
    name,
    async (...args: unknown[]) => {
      const away = () => new GatewayError('store_unavailable', 'The store does not answer.');
      if (state.failure === 'refuses') throw away();
      const response: unknown = await (method as (...given: unknown[]) => unknown)(...args);
      if (state.failure === 'loses responses') throw away();
      return response;
    },
  ]);
  state.ledger = Object.fromEntries(wrapped) as Ledger;
  return state;
}

export interface CallEnd {
  /** True if the provider received the call and did not refuse it. */
  readonly sent: boolean;
  /** True cost; undefined if no response arrived and nothing is owed. */
  readonly cost: number | undefined;
}

/** Accounts plugin of one process: its calls run its hooks, and a crash loses its state. */
export interface ChargingProcess {
  /** Admits a call with this estimate. Rejects like the plugin, after the call was finished. */
  admit(id: string, estimate: number, principal: Principal): Promise<(end: CallEnd) => Promise<void>>;
  /** Starts background work: sweeps, and the deletion of old records. */
  ready(): Promise<void>;
  /** Shuts down gracefully: writes pending data. */
  close(): Promise<void>;
}

export async function startCharging(
  store: Store,
  ledger: Ledger,
  billing: 'track' | 'enforce',
  /** Refusal by another policy on every call. */
  limit: () => GatewayError | undefined = () => undefined,
  options: { readonly sweepEvery?: string } = {},
): Promise<ChargingProcess> {
  const registry = new Registry();
  const kept = new PluginState();
  const generation = {};
  const services = {
    estimate: ({ request }: { request: { max_tokens?: number } }) => ({ units: {}, cost: request.max_tokens }),
  } as unknown as CallServices;
  await setUpAccounts(registry, {
    ...{ store, ledger, billing, services: () => services },
    stateUser: (instance) => kept.userOf(generation, instance),
    config: options,
  });
  const handler = () => {
    const error = limit();
    if (error) throw error;
  };
  registry.addHook({ owner: 'limit', name: 'admit', handler });
  const hooks = compileHooks(registry.hooks, {
    operation: 'chat',
    isRequest: () => true,
    isResponse: () => true,
    pending: { begin() {}, end() {} },
    onIgnored(_owner, _name, error) {
      throw error;
    },
  });

  const deps = { partsOf: () => ({ hooks }), pending: new Pending(), routing: createRouting() } as unknown as CallDeps;

  return {
    async admit(requestId, estimate, principal) {
      const request = { model: 'm', max_tokens: estimate, messages: [] };
      const init = { requestId, principal, signal: new AbortController().signal };
      const call = new Call(deps, 'chat', request, init);
      call.begin();
      call.replaceTargets([TARGET]);
      try {
        await hooks.admit?.(call);
        await hooks.reserve?.(call);
      } catch (error) {
        call.finish('error', error as GatewayError);
        await call.ended;
        throw error;
      }
      return async ({ sent, cost }) => {
        if (sent) call.record.sentTo.push(TARGET);
        if (cost !== undefined) {
          call.record.usage = { prompt_tokens: cost, completion_tokens: 0, total_tokens: cost };
          call.record.metered = { units: { prompt_tokens: cost, completion_tokens: 0 }, cost };
        }
        call.finish(cost === undefined ? 'error' : 'ok');
        await call.ended;
      };
    },
    async ready() {
      for (const { value } of registry.ready) await value();
    },
    async close() {
      for (const { value } of [...registry.closers, ...kept.release(generation)]) await value();
    },
  };
}
