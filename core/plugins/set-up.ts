import type { Plugin, PluginApi } from '../contract/plugin.ts';
import { PluginFault, type Registry } from './registry.ts';

/** How long one plugin's `setup`, ready or close function may take. */
export const SETUP_TIMEOUT_MS = 30_000;

/** A plugin with its API and its part of the configuration. */
export interface Installable {
  readonly instance: string;
  readonly plugin: Plugin;
  readonly api: PluginApi;
  readonly config: Readonly<Record<string, unknown>>;
}

/** Sets plugins up one by one, in the order of the configuration; the first fault stops the start and names its plugin. */
export async function setupPlugins(installables: readonly Installable[]): Promise<void> {
  for (const { instance, plugin, api, config } of installables) {
    await withDeadline(instance, 'setup', () => plugin.setup(api, config as never));
  }
}

/** Runs what plugins asked for with `onReady`, in order. */
export async function runReady(registry: Registry): Promise<void> {
  for (const { owner, value } of registry.ready) await withDeadline(owner, 'onReady', value);
}

/** Runs what plugins asked for with `onClose`, last registered first; a failing one does not keep the others open. */
export async function runClosers(registry: Registry, onError: (error: unknown) => void): Promise<void> {
  for (const { owner, value } of registry.closers.toReversed()) {
    await withDeadline(owner, 'onClose', value).catch(onError);
  }
}

async function withDeadline(owner: string, what: string, run: () => void | Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new PluginFault(owner, `${what} did not finish within ${SETUP_TIMEOUT_MS / 1000} s`)),
      SETUP_TIMEOUT_MS,
    );
  });
  try {
    await Promise.race([run(), late]);
  } catch (error) {
    if (error instanceof PluginFault) throw error;
    throw new PluginFault(owner, `${what} failed: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  } finally {
    clearTimeout(timer);
  }
}
