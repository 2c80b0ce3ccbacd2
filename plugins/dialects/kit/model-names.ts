import { isObject, type Schema } from '../../../contract/index.ts';

/** The option `models` of a dialect: names that its clients insist on. `example` is one of them. */
export function modelNamesSchema(example: string): Schema {
  return {
    type: 'object',
    description: `Model names of this format’s clients, such as \`${example}\`, and what each stands for: \`provider/model\`, or a list to fall back along.`,
    additionalProperties: {
      type: ['string', 'array'],
      minLength: 1,
      minItems: 1,
      items: { type: 'string', minLength: 1 },
    },
  };
}

/** The dialect's aliases by that option. */
export function readModelNames(config: unknown): Readonly<Record<string, readonly string[]>> {
  const models = isObject(config) && isObject(config['models']) ? config['models'] : {};
  return Object.fromEntries(Object.entries(models).map(([name, target]) => [name, [target].flat().map(String)]));
}
