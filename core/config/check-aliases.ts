import { isObject, type Schema } from '../contract/json.ts';
import { FORMATS } from '../contract/units.ts';
import { targetTexts } from './model-routes.ts';
import { didYouMean } from './nearest.ts';
import { childPointer, type ProblemAt } from './problems.ts';
import { mapLeaves } from './schema-at.ts';

/** Aliases whose name or target cannot work: the targets' providers must be configured. */
export function checkAliases(models: unknown, providers: readonly string[], place = '/models'): readonly ProblemAt[] {
  const aliases = isObject(models) ? models : {};
  return Object.entries(aliases).flatMap(([alias, target]) => {
    const pointer = childPointer(place, alias);
    return [
      ...checkAliasName(alias, pointer, providers),
      ...targetTexts(target).flatMap(([at, text]) =>
        checkTarget(text, at.reduce<string>(childPointer, pointer), providers, Object.hasOwn(aliases, text)),
      ),
    ];
  });
}

function checkAliasName(alias: string, pointer: string, providers: readonly string[]): readonly ProblemAt[] {
  const refuse = (message: string, hint: string): readonly ProblemAt[] => [{ pointer, atKey: true, message, hint }];
  if (!/^[^\s\p{C}]{1,200}$/u.test(alias)) {
    return refuse('is not a name that an alias can have', 'Use 1 to 200 visible characters without spaces.');
  }
  const hidden = providers.find((provider) => alias.startsWith(`${provider}/`));
  if (hidden === undefined) return [];
  const hint = 'Give the alias a name that does not begin with a provider’s.';
  return refuse(`would hide a model of the provider "${hidden}"`, hint);
}

function checkTarget(
  text: string,
  pointer: string,
  providers: readonly string[],
  isAlias: boolean,
): readonly ProblemAt[] {
  const [provider = '', ...model] = text.split('/');
  if (provider === '' || model.join('/') === '') {
    const hint = isAlias
      ? 'An alias cannot name another alias: name its models.'
      : 'Write the provider’s name, a slash and the model.';
    return [{ pointer, message: 'must be "provider/model"', hint }];
  }
  if (providers.includes(provider)) return [];
  const message = `names the provider "${provider}", which is not configured`;
  return [{ pointer, message, hint: suggest(provider, providers) }];
}

/** Options of `format: "model"`: each names an alias, or a model of a configured provider. */
export function checkModelOptions(
  { value, schema, pointer }: { readonly value: unknown; readonly schema: Schema; readonly pointer: string },
  aliases: unknown,
  providers: readonly string[],
): readonly ProblemAt[] {
  const problems: ProblemAt[] = [];
  mapLeaves(value, schema, pointer, (leaf, { pointer: at, nodes }) => {
    // What has not the form of one is a problem of its own.
    if (typeof leaf === 'string' && FORMATS['model']?.accepts(leaf) && nodes.some(({ format }) => format === 'model'))
      problems.push(...checkModel(leaf, at, isObject(aliases) ? Object.keys(aliases) : [], providers));
    return undefined;
  });
  return problems;
}

function checkModel(
  text: string,
  pointer: string,
  aliases: readonly string[],
  providers: readonly string[],
): readonly ProblemAt[] {
  if (aliases.includes(text)) return [];
  if (/^[^/]+\/./.test(text)) return checkTarget(text, pointer, providers, false);
  const hint = didYouMean(text, aliases) ?? 'Write "provider/model", or the name of an alias under "models".';
  return [{ pointer, message: `names the model "${text}", which is no alias of "models"`, hint }];
}

/** What a word may have been meant to be. */
export function suggest(word: string, names: readonly string[]): string {
  const known = names.length > 0 ? `There are: ${names.slice(0, 20).join(', ')}.` : 'There are none.';
  return didYouMean(word, names) ?? known;
}
