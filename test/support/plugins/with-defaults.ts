import { Ajv2020 } from 'ajv/dist/2020.js';
import { FORMATS } from '../../../contract/schema-formats.ts';

/**
 * Validator with core's extensions of configuration schemas; shared by all tests of a process, because it caches
 * compiled schemas.
 */
export const configAjv = new Ajv2020({ strict: true, useDefaults: true, allowUnionTypes: false });
configAjv.addVocabulary(['secret']);
for (const format of Object.keys(FORMATS)) configAjv.addFormat(format, true);

/** Configuration of a plugin with the defaults of its schema, which is enforced as in core. */
export function withDefaults(schema: object | undefined, config: object): object {
  const checked = structuredClone(config);
  if (schema) {
    const validate = configAjv.compile(schema);
    if (!validate(checked)) throw new Error(configAjv.errorsText(validate.errors));
  }
  return checked;
}
