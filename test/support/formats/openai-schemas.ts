import assert from 'node:assert/strict';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { corpusJson } from '../corpus.ts';

const NAMES = {
  response: 'CreateChatCompletionResponse',
  chunk: 'CreateChatCompletionStreamResponse',
  embeddings: 'CreateEmbeddingResponse',
  error: 'ErrorResponse',
  models: 'ListModelsResponse',
} as const;

let ajv: Ajv2020 | undefined;
const compiled = new Map<string, ValidateFunction>();

/** Asserts that a value, serialized as on the wire, is valid by OpenAI's own schema. */
export function assertOpenAi(kind: keyof typeof NAMES, value: unknown): void {
  const name = NAMES[kind];
  const validate = compiled.get(name) ?? schemas().compile({ $ref: `openai#/components/schemas/${name}` });
  compiled.set(name, validate);
  const valid = validate(JSON.parse(JSON.stringify(value)));
  assert.ok(valid, `${name}: ${ajv?.errorsText(validate.errors)} in ${JSON.stringify(value).slice(0, 500)}`);
}

function schemas(): Ajv2020 {
  if (ajv) return ajv;
  const { components } = corpusJson('openai-openapi/schemas.json') as { components: { schemas: object } };
  ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema({ $id: 'openai', components: { schemas: spellOutNull(components.schemas) } });
  return ajv;
}

/** Converts OpenAPI 3.0's `nullable`, which parts of the document still use, to JSON Schema. */
function spellOutNull(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(spellOutNull);
  if (typeof value !== 'object' || value === null) return value;
  const schema = Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, spellOutNull(inner)]));
  if (schema['nullable'] !== true) return schema;
  const { nullable: _nullable, ...rest } = schema;
  return { anyOf: [rest, { type: 'null' }] };
}
