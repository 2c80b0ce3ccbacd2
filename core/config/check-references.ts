import { isObject } from '../contract/read-json.ts';
import type { CoreValues } from './core-schema.ts';
import { didYouMean } from './nearest.ts';
import { childPointer } from './positions.ts';
import type { ProblemAt } from './problems.ts';

/** What core's part of a configuration refers to; its values may be of any shape when it has other problems. */
type Referring = Partial<Readonly<Record<keyof CoreValues, unknown>>>;

/** Aliases whose name or target cannot work: the targets' providers must be configured. They stand at `place`. */
export function checkAliases(
  { models }: Referring,
  providers: readonly string[],
  place = '/models',
): readonly ProblemAt[] {
  const aliases = isObject(models) ? models : {};
  return Object.entries(aliases).flatMap(([alias, target]) => {
    const pointer = childPointer(place, alias);
    const targets = Array.isArray(target)
      ? target.map((text: unknown, index) => [childPointer(pointer, index), text] as const)
      : [[pointer, target] as const];
    return [
      ...checkAliasName(alias, pointer, providers),
      ...targets.flatMap(([at, text]) =>
        typeof text === 'string' ? checkTarget(text, at, providers, Object.hasOwn(aliases, text)) : [],
      ),
    ];
  });
}

/** Plans that limit a provider that is not configured, and a default plan that is none. */
export function checkPlans({ plans, defaultPlan }: Referring, providers: readonly string[]): readonly ProblemAt[] {
  const known = isObject(plans) ? plans : {};
  const problems = Object.entries(known).flatMap(([name, plan]) => {
    const limited = isObject(plan) && isObject(plan['providers']) ? Object.keys(plan['providers']) : [];
    return limited
      .filter((provider) => !providers.includes(provider))
      .map((provider): ProblemAt => {
        const pointer = childPointer(`${childPointer('/plans', name)}/providers`, provider);
        return { pointer, atKey: true, message: 'is no configured provider', hint: suggest(provider, providers) };
      });
  });
  if (typeof defaultPlan !== 'string' || Object.hasOwn(known, defaultPlan)) return problems;
  const message = `names the plan "${defaultPlan}", which "plans" does not have`;
  return [...problems, { pointer: '/defaultPlan', message, hint: suggest(defaultPlan, Object.keys(known)) }];
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

function suggest(word: string, names: readonly string[]): string {
  const known = names.length > 0 ? `There are: ${names.slice(0, 20).join(', ')}.` : 'There are none.';
  return didYouMean(word, names) ?? known;
}
