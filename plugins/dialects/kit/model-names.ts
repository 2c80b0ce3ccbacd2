import { isObject, type Schema } from '../../../contract/index.ts';

/** Option `models` of a dialect: fixed names that its clients use. `example` is one of them. */
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

/** Aliases of the dialect by that option. */
export function readModelNames(config: unknown): Readonly<Record<string, readonly string[]>> {
  const models = isObject(config) && isObject(config['models']) ? config['models'] : {};
  return Object.fromEntries(Object.entries(models).map(([name, target]) => [name, [target].flat().map(String)]));
}
