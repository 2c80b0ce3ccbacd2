import { existsSync, readFileSync } from 'node:fs';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { parse } from 'yaml';

const SPEC = new URL('../../../shared/reference/data/openai-openapi.yaml', import.meta.url);

/** Whether OpenAI's own OpenAPI document lies beside the project; tests that need it are skipped by name when not. */
export const hasOpenAiSpec = existsSync(SPEC);

let ajv: Ajv2020 | undefined;
const validators = new Map<string, ValidateFunction>();

/** The faults of a value by a schema of OpenAI's document, such as `CreateChatCompletionResponse`; none when it conforms. */
export function openAiFaults(schema: string, value: unknown): string[] {
  const validate = validators.get(schema) ?? compile(schema);
  return validate(value)
    ? []
    : (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}

function compile(schema: string): ValidateFunction {
  if (!ajv) {
    ajv = new Ajv2020({ strict: false, validateFormats: false, discriminator: false, allErrors: true });
    const { components } = parse(readFileSync(SPEC, 'utf8'), { maxAliasCount: -1 }) as { components: object };
    ajv.addSchema({ $id: 'openai', components: readNullable(components) });
  }
  const validate = ajv.compile({ $ref: `openai#/components/schemas/${schema}` });
  validators.set(schema, validate);
  return validate;
}

/** The document writes OpenAPI 3.0's `nullable` here and there, which Ajv refuses beside a `$ref`. */
function readNullable(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(readNullable);
  if (typeof node !== 'object' || node === null) return node;
  const entries = Object.entries(node).filter(([word, value]) => !(word === 'nullable' && typeof value === 'boolean'));
  const schema = Object.fromEntries(entries.map(([word, value]) => [word, readNullable(value)]));
  return (node as { nullable?: unknown }).nullable === true ? { anyOf: [schema, { type: 'null' }] } : schema;
}
