import { Ajv2020 } from 'ajv/dist/2020.js';

/** An Ajv that knows what core adds to configuration schemas. */
export function createConfigAjv(): Ajv2020 {
  const ajv = new Ajv2020({ strict: true, useDefaults: true, allowUnionTypes: false });
  ajv.addVocabulary(['secret']);
  for (const format of ['duration', 'money', 'url', 'size', 'path', 'host', 'origin', 'header-value', 'model'])
    ajv.addFormat(format, true);
  return ajv;
}

/** A plugin's configuration with the defaults of its schema, which is enforced, as core does it. */
export function withDefaults(ajv: Ajv2020, schema: object | undefined, config: object): object {
  const checked = structuredClone(config);
  if (schema) {
    const validate = ajv.compile(schema);
    if (!validate(checked)) throw new Error(ajv.errorsText(validate.errors));
  }
  return checked;
}
