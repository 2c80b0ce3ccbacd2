import { LiveCall } from '../../core/calls/live-call.ts';
import { GatewayError, type Ledger, type Principal, type Store } from '../../core/index.ts';
import { ALONE } from '../../core/plugins/gather.ts';
import { compileHooks } from '../../core/plugins/hook-runner.ts';
import { createPluginApi, type GatewayServices } from '../../core/plugins/plugin-api.ts';
import { Registry } from '../../core/plugins/registry.ts';
import accounts from '../../plugins/policies/accounts/index.ts';
import { createSilentLog } from './silent-log.ts';

const TARGET = { provider: 'one', model: 'm' };

/** How a store fails: before it does what it is told, or after, so that only its answer is lost. */
export type Fault = 'none' | 'refuses' | 'loses answers';

/** A ledger in front of another that can be made to fail. */
export function makeFaulty(ledger: Ledger): { readonly ledger: Ledger; fault: Fault } {
  const state: { ledger: Ledger; fault: Fault } = { ledger, fault: 'none' };
  const wrapped = Object.entries(ledger).map(([name, method]) => [
    name,
    async (...args: unknown[]) => {
      const away = () => new GatewayError('store_unavailable', 'The store does not answer.');
      if (state.fault === 'refuses') throw away();
      const answer: unknown = await (method as (...given: unknown[]) => unknown)(...args);
      if (state.fault === 'loses answers') throw away();
      return answer;
    },
  ]);
  state.ledger = Object.fromEntries(wrapped) as Ledger;
  return state;
}

export interface CallEnd {
  /** Whether the provider was sent the call and did not refuse it. */
  readonly sent: boolean;
  /** The true cost; undefined when no answer came and nothing is owed. */
  readonly cost: number | undefined;
}

/** The accounts plugin as a process runs it: its calls go through its hooks, and a crash forgets all of it. */
export interface ChargingProcess {
  /** Admits a call that may cost `estimate`; rejects as the plugin does, with the call finished. */
  admit(id: string, estimate: number, principal: Principal): Promise<(end: CallEnd) => Promise<void>>;
  /** Ends as a process does that has time to: writes what waits. */
  close(): Promise<void>;
}

export async function startCharging(
  store: Store,
  ledger: Ledger,
  billing: 'track' | 'enforce',
  /** What another policy has to say on every call. */
  limit: () => GatewayError | undefined = () => undefined,
): Promise<ChargingProcess> {
  const registry = new Registry();
  const services = {
    estimate: ({ request }: { request: { max_tokens?: number } }) => request.max_tokens,
  } as unknown as GatewayServices;
  const deps = {
    registry,
    settings: { billing, plans: {} } as never,
    log: createSilentLog(),
    store: () => ({ ...store, ledger }),
    services: () => services,
    openStore: () => {},
    gatherer: ALONE,
  };
  const config = {
    permission: 'keys:write',
    unknownPrice: 'refuse',
    onStoreFailure: 'closed',
    longestCall: '10m',
    holdMargin: '5m',
    sweepEvery: '30s',
  } as const;
  await accounts.setup(createPluginApi(deps, accounts as never, 'accounts'), config);
  const hook = () => {
    const error = limit();
    if (error) throw error;
  };
  registry.addHook({ owner: 'limit', name: 'admit', hook });
  const hooks = compileHooks(registry.hooks, 'chat', (_owner, error) => {
    throw error;
  });

  return {
    async admit(requestId, estimate, principal) {
      const request = { model: 'm', max_tokens: estimate, messages: [] };
      const init = { requestId, principal, signal: new AbortController().signal };
      const call = new LiveCall('chat', request, false, [TARGET], init, hooks);
      try {
        await hooks.admit?.(call as never);
      } catch (error) {
        await call.finish('error', error as GatewayError);
        throw error;
      }
      return async ({ sent, cost }) => {
        if (sent) call.measures.unanswered.push(TARGET);
        if (cost !== undefined) {
          call.measures.usage = { prompt_tokens: cost, completion_tokens: 0, total_tokens: cost };
          call.measures.cost = cost;
        }
        await call.finish(cost === undefined ? 'error' : 'ok');
      };
    },
    async close() {
      for (const { value } of registry.closers) await value();
    },
  };
}
