/** Store in memory for a gateway in this process. As a store on disk, it outlasts commands, which open it as well. */
import type { LoadedConfig } from '../../../config/load-config.ts';
import type { WholeApi } from '../../../contract/plugin.ts';
import type { Store } from '../../../contract/store.ts';
import { openMemory } from '../../../plugins/stores/memory/index.ts';

export interface SharedMemory {
  /** The configuration of the gateway with this store, which ends with the gateway. */
  forGateway(loaded: LoadedConfig): LoadedConfig;
  /** The configuration of a command with this store, which the command leaves open. */
  forCommand(loaded: LoadedConfig): LoadedConfig;
}

export function shareMemory(): SharedMemory {
  let shared: Store | undefined;
  return {
    forGateway: (loaded) =>
      withStore(loaded, async (observe) => {
        const { endsWithProcess: _, ...store } = await openMemory(observe);
        shared = { ...store, kind: 'shared memory' };
        return shared;
      }),
    forCommand: (loaded) =>
      withStore(loaded, async () => {
        if (!shared) throw new Error('the gateway did not open its store');
        return { ...shared, close: async () => undefined };
      }),
  };
}

function withStore(loaded: LoadedConfig, open: Parameters<WholeApi['store']>[0]): LoadedConfig {
  const [store, ...others] = loaded.plugins;
  if (!store) throw new TypeError('a configuration has a store');
  const setup = (api: WholeApi): void => api.store(open);
  return { ...loaded, plugins: [{ ...store, setup } as typeof store, ...others] };
}
