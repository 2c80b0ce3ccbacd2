import { Ajv2020 } from 'ajv/dist/2020.js';
import { FORMATS } from '../../../contract/schema-formats.ts';

/** Knows what core adds to configuration schemas; one for all tests of a process, since it remembers what it compiled. */
export const configAjv = new Ajv2020({ strict: true, useDefaults: true, allowUnionTypes: false });
configAjv.addVocabulary(['secret']);
for (const format of Object.keys(FORMATS)) configAjv.addFormat(format, true);

/** A plugin's configuration with the defaults of its schema, which is enforced, as core does it. */
export function withDefaults(schema: object | undefined, config: object): object {
  const checked = structuredClone(config);
  if (schema) {
    const validate = configAjv.compile(schema);
    if (!validate(checked)) throw new Error(configAjv.errorsText(validate.errors));
  }
  return checked;
}
