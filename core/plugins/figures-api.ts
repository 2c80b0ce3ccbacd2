import type { PluginApi } from '../contract/plugin.ts';
import { callOwned } from './attribution.ts';
import { PluginError, type Registry } from './registry.ts';

const FIGURE = /^[a-z][a-z0-9_]{2,60}$/;

/** What one instance shows operators in numbers, and may know of all of them. */
export function figuresApi(registry: Registry, instance: string): Pick<PluginApi, 'figure' | 'figures' | 'watchStore'> {
  return {
    figure(figure) {
      if (!FIGURE.test(figure.name))
        throw new PluginError(instance, `shows the figure "${figure.name}"; a name is ${FIGURE.source}`);
      const read = (): number => callOwned(instance, figure.read);
      registry.claim(registry.figures, 'figure', figure.name, instance, Object.freeze({ ...figure, read }));
    },
    figures: () => [...registry.figures.values()].map(({ value }) => value),
    watchStore: (watcher) => void registry.storeWatchers.push(watcher),
  };
}
