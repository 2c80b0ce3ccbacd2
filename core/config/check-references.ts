import type { FaultAt } from './faults.ts';
import { didYouMean } from './nearest.ts';
import { childPointer } from './pointer.ts';

type Map = Readonly<Record<string, unknown>>;

/** Aliases whose name or target cannot work: the targets' providers must be configured. */
export function checkAliases(models: unknown, providers: readonly string[]): readonly FaultAt[] {
  return entriesOf(models).flatMap(([alias, target]) => {
    const pointer = childPointer('/models', alias);
    const name = checkAliasName(alias, pointer, providers);
    const targets = Array.isArray(target) ? target : [target];
    const faults = targets.flatMap((text, index) => {
      const place = Array.isArray(target) ? childPointer(pointer, index) : pointer;
      return typeof text === 'string' ? checkTarget(text, place, providers, entriesOf(models)) : [];
    });
    return [...name, ...faults];
  });
}

/** Plans that limit a provider that is not configured, and a default plan that is none. */
export function checkPlans(plans: unknown, defaultPlan: unknown, providers: readonly string[]): readonly FaultAt[] {
  const names = entriesOf(plans).map(([name]) => name);
  const faults = entriesOf(plans).flatMap(([name, plan]) =>
    entriesOf((plan as Map | null)?.['providers']).flatMap(([provider]): readonly FaultAt[] => {
      if (providers.includes(provider)) return [];
      const pointer = childPointer(`${childPointer('/plans', name)}/providers`, provider);
      return [{ pointer, atKey: true, message: 'is no configured provider', hint: suggest(provider, providers) }];
    }),
  );
  if (typeof defaultPlan !== 'string' || names.includes(defaultPlan)) return faults;
  const message = `names the plan "${defaultPlan}", which "plans" does not have`;
  return [...faults, { pointer: '/defaultPlan', message, hint: suggest(defaultPlan, names) }];
}

function checkAliasName(alias: string, pointer: string, providers: readonly string[]): readonly FaultAt[] {
  if (!/^[^\s\p{C}]{1,200}$/u.test(alias)) {
    return [
      {
        pointer,
        atKey: true,
        message: 'is not a name that an alias can have',
        hint: 'Use 1 to 200 visible characters without spaces.',
      },
    ];
  }
  const hidden = providers.find((provider) => alias.startsWith(`${provider}/`));
  if (hidden === undefined) return [];
  const message = `would hide a model of the provider "${hidden}"`;
  return [{ pointer, atKey: true, message, hint: 'Give the alias a name that does not begin with a provider’s.' }];
}

function checkTarget(
  text: string,
  pointer: string,
  providers: readonly string[],
  aliases: readonly (readonly [string, unknown])[],
): readonly FaultAt[] {
  const slash = text.indexOf('/');
  if (slash <= 0 || slash === text.length - 1) {
    const isAlias = aliases.some(([alias]) => alias === text);
    const hint = isAlias
      ? 'An alias cannot name another alias: name its models.'
      : 'Write the provider’s name, a slash and the model.';
    return [{ pointer, message: 'must be "provider/model"', hint }];
  }
  const provider = text.slice(0, slash);
  if (providers.includes(provider)) return [];
  return [
    {
      pointer,
      message: `names the provider "${provider}", which is not configured`,
      hint: suggest(provider, providers),
    },
  ];
}

function suggest(word: string, names: readonly string[]): string {
  return (
    didYouMean(word, names) ?? (names.length > 0 ? `There are: ${names.slice(0, 20).join(', ')}.` : 'There are none.')
  );
}

function entriesOf(value: unknown): readonly (readonly [string, unknown])[] {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.entries(value) : [];
}
