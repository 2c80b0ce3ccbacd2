import type { Plugin, WholeApi } from '../contract/plugin.ts';
import { runAs } from './attribution.ts';
import { type Owned, PluginError } from './registry.ts';

/** How long one plugin's `setup` or ready function may take. */
export const SETUP_TIMEOUT_MS = 30_000;

/** How long all of a generation's plugins may take to close; the last of them get at least {@link MIN_CLOSE_MS} each. */
export const CLOSE_TIMEOUT_MS = 5000;
const MIN_CLOSE_MS = 250;

/** A plugin with its API and its part of the configuration. */
export interface Installable {
  readonly instance: string;
  readonly plugin: Plugin;
  readonly api: WholeApi;
  readonly config: Readonly<Record<string, unknown>>;
}

/** Sets plugins up one by one, in the order of the configuration; the first error stops the start and names its plugin. */
export async function setUpPlugins(installables: readonly Installable[]): Promise<void> {
  for (const { instance, plugin, api, config } of installables)
    await runInTime(instance, 'setup', () => plugin.setup(api, config));
}

/** Runs what plugins asked for with `onRegistered`, in order. */
export async function runRegistered(registered: readonly Owned<() => void>[]): Promise<void> {
  for (const { owner, value } of registered) await runInTime(owner, 'onRegistered', value);
}

/** Runs what plugins asked for with `onReady`, in order. */
export async function runReady(ready: readonly Owned<() => void | Promise<void>>[]): Promise<void> {
  for (const { owner, value } of ready) await runInTime(owner, 'onReady', value);
}

/** Runs what plugins asked for with `onClose`, last registered first; one that fails or hangs does not keep the others open. */
export async function runClosers(
  closers: readonly Owned<() => void | Promise<void>>[],
  onError: (error: unknown) => void,
): Promise<void> {
  const deadline = performance.now() + CLOSE_TIMEOUT_MS;
  for (const { owner, value } of closers.toReversed()) {
    const timeoutMs = Math.max(deadline - performance.now(), MIN_CLOSE_MS);
    await runInTime(owner, 'onClose', value, timeoutMs).catch(onError);
  }
}

async function runInTime(
  owner: string,
  what: string,
  run: () => void | Promise<void>,
  timeoutMs = SETUP_TIMEOUT_MS,
): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new PluginError(owner, `${what} did not finish within ${Math.ceil(timeoutMs / 1000)} s`)),
      timeoutMs,
    );
  });
  try {
    await Promise.race([runAs(owner, run), late]);
  } catch (error) {
    if (error instanceof PluginError) throw error;
    throw new PluginError(owner, `${what} failed: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  } finally {
    clearTimeout(timer);
  }
}
