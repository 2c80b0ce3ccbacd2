import type { PluginApi, Target } from '../../../contract/index.ts';
import { nearEndOf } from './index.ts';

/**
 * Models that end within 30 days or have ended, among those in aliases and providers' lists and those that were called.
 * Each has its end in Unix milliseconds. Available once the gateway listens.
 */
export function endingTargets(api: Pick<PluginApi, 'models'>): readonly (readonly [target: Target, end: number])[] {
  const named = api.models.aliases().flatMap(([, targets]) => targets);
  const listed = [...api.models.offers('chat')].flatMap(([provider, { models = [], addModels = [] }]) =>
    [...models, ...addModels].map(({ id }) => `${provider}/${id}`),
  );
  const called = api.models.routing().targets.map(({ provider, model }) => `${provider}/${model}`);
  return [...new Set([...named, ...listed, ...called])].flatMap((text) => {
    const slash = text.indexOf('/');
    const target = { provider: text.slice(0, slash), model: text.slice(slash + 1) };
    const end = nearEndOf(api.models.catalog.find(target.provider, target.model));
    return end === undefined ? [] : [[target, end] as const];
  });
}
