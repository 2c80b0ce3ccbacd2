import { isObject, type Schema } from '../../../contract/index.ts';

/** Option `models` of a dialect: fixed names that its clients use. `example` is one of them. */
export function modelNamesSchema(example: string): Schema {
  return {
    type: 'object',
    description: `Maps model names of this format’s clients, such as \`${example}\`, to \`provider/model\` or to a list of targets for fallback.`,
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
