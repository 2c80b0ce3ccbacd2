import type { LoadedConfig } from '../config/load-config.ts';
import { targetTexts } from '../config/model-routes.ts';
import { mapLeaves } from '../config/schema-at.ts';
import type { ModelCatalog, Target } from '../contract/call.ts';
import { isObject } from '../contract/json.ts';
import { nearEndOf } from '../contract/model-ends.ts';
import { childPointer, type ProblemAt } from '../contract/pointers.ts';

/** Deprecated models: those in a configuration that their vendors have shut down or will soon. */

/** Models in the list of a configured provider: `+name` adds one, `*` names no model. */
function namesInList(models: unknown): readonly (readonly [name: string, index: number])[] {
  return (Array.isArray(models) ? models : []).flatMap((text: unknown, index) => {
    const name = typeof text === 'string' ? text.replace(/^\+/, '') : '*';
    return name === '*' ? [] : [[name, index] as const];
  });
}

/**
 * Warnings for an operator about configured models that end soon or have ended: in aliases, lists of providers and
 * options of plugins.
 */
export function endingModels(
  { config, plugins: [, ...plugins] }: Pick<LoadedConfig, 'config' | 'plugins'>,
  catalog: Pick<ModelCatalog, 'find'>,
  now = Date.now(),
): readonly ProblemAt[] {
  const named = namedModels({ config, plugins: [undefined, ...plugins] });
  return [...named].flatMap(([pointer, { provider, model }]) => {
    const info = catalog.find(provider, model);
    const end = nearEndOf(info, now);
    if (end === undefined) return [];
    const message = `uses "${provider}/${model}", which its vendor ${end <= now ? 'shut down' : 'will shut down'} on ${info?.shutdown}`;
    const hint = `Use another model: "tollgate models --provider ${provider}" lists those without an end.`;
    return [{ pointer, message, hint }];
  });
}

/** Configured models by position: in aliases, lists of providers and options of plugins. */
export function namedModels({
  config,
  plugins: [, ...plugins],
}: {
  readonly config: LoadedConfig['config'];
  readonly plugins: readonly (LoadedConfig['plugins'][number] | undefined)[];
}): ReadonlyMap<string, Target> {
  const named = new Map<string, Target>();
  const note = (pointer: string, text: string): void => {
    const slash = text.indexOf('/');
    if (slash > 0) named.set(pointer, { provider: text.slice(0, slash), model: text.slice(slash + 1) });
  };
  const { models: aliases } = config.printable();
  for (const [alias, route] of Object.entries(isObject(aliases) ? aliases : {}))
    for (const [at, text] of targetTexts(route))
      note(at.reduce<string>(childPointer, childPointer('/models', alias)), text);
  for (const [at, { group, name, pointer, config: options }] of config.instances.entries()) {
    if (group === 'providers')
      for (const [model, index] of namesInList(options['models']))
        named.set(childPointer(`${pointer}/models`, String(index)), { provider: name, model });
    mapLeaves(options, { ...plugins[at]?.configSchema }, pointer, (leaf, { pointer: place, nodes }) => {
      if (typeof leaf === 'string' && nodes.some(({ format }) => format === 'model')) note(place, leaf);
      return undefined;
    });
  }
  return named;
}
