import type { Schema } from '../../contract/json.ts';

/**
 * Structure of an OpenAPI 3.1 document, after https://spec.openapis.org/oas/v3.1.1 (only the objects in ours). No
 * package here contains the official schema, and tests have no network, so its rules for these objects are written out.
 */
const responses: Schema = {
  type: 'object',
  minProperties: 1,
  propertyNames: { pattern: '^([1-5](\\d\\d|XX)|default)$' },
  additionalProperties: {
    type: 'object',
    required: ['description'],
    additionalProperties: false,
    properties: {
      description: { type: 'string', minLength: 1 },
      headers: { type: 'object' },
      content: { $ref: '#/$defs/content' },
      links: { type: 'object' },
    },
  },
};

const parameter: Schema = {
  type: 'object',
  required: ['name', 'in', 'schema'],
  additionalProperties: false,
  properties: {
    name: { type: 'string', minLength: 1 },
    in: { enum: ['path', 'query', 'header', 'cookie'] },
    description: { type: 'string' },
    required: { type: 'boolean' },
    deprecated: { type: 'boolean' },
    schema: { $ref: '#/$defs/schema' },
  },
  if: { properties: { in: { const: 'path' } } },
  then: { required: ['required'], properties: { required: { const: true } } },
};

const operation: Schema = {
  type: 'object',
  required: ['responses'],
  additionalProperties: false,
  properties: {
    tags: { type: 'array', items: { type: 'string' } },
    summary: { type: 'string' },
    description: { type: 'string' },
    operationId: { type: 'string', minLength: 1 },
    parameters: { type: 'array', items: parameter },
    requestBody: {
      type: 'object',
      required: ['content'],
      additionalProperties: false,
      properties: {
        description: { type: 'string' },
        required: { type: 'boolean' },
        content: { $ref: '#/$defs/content' },
      },
    },
    responses,
    deprecated: { type: 'boolean' },
    'x-codeSamples': {
      type: 'array',
      items: {
        type: 'object',
        required: ['lang', 'source'],
        additionalProperties: false,
        properties: { lang: { type: 'string' }, label: { type: 'string' }, source: { type: 'string', minLength: 1 } },
      },
    },
    security: {
      type: 'array',
      items: { type: 'object', additionalProperties: { type: 'array', items: { type: 'string' } } },
    },
  },
};

const securityScheme: Schema = {
  type: 'object',
  required: ['type'],
  properties: { type: { enum: ['apiKey', 'http', 'mutualTLS', 'oauth2', 'openIdConnect'] } },
  allOf: [
    { if: { properties: { type: { const: 'apiKey' } } }, then: { required: ['name', 'in'] } },
    { if: { properties: { type: { const: 'http' } } }, then: { required: ['scheme'] } },
  ],
};

export const OPENAPI_RULES: Schema = {
  type: 'object',
  required: ['openapi', 'info', 'paths'],
  additionalProperties: false,
  properties: {
    openapi: { type: 'string', pattern: '^3\\.1\\.\\d+$' },
    info: {
      type: 'object',
      required: ['title', 'version'],
      properties: {
        title: { type: 'string', minLength: 1 },
        version: { type: 'string', minLength: 1 },
        license: { type: 'object', required: ['name'], not: { required: ['identifier', 'url'] } },
      },
    },
    servers: { type: 'array' },
    paths: {
      type: 'object',
      propertyNames: { pattern: '^/' },
      additionalProperties: {
        type: 'object',
        propertyNames: { enum: ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'] },
        additionalProperties: operation,
      },
    },
    components: {
      type: 'object',
      properties: {
        schemas: {
          type: 'object',
          propertyNames: { pattern: '^[a-zA-Z0-9._-]+$' },
          additionalProperties: { $ref: '#/$defs/schema' },
        },
        securitySchemes: { type: 'object', additionalProperties: securityScheme },
      },
    },
    tags: { type: 'array' },
  },
  $defs: {
    schema: { type: ['object', 'boolean'], properties: { $id: false } },
    content: {
      type: 'object',
      propertyNames: { pattern: '^[\\w.+-]+/[\\w.+*-]+(;.*)?$' },
      additionalProperties: {
        type: 'object',
        properties: { schema: { $ref: '#/$defs/schema' }, example: true, examples: { type: 'object' } },
      },
    },
  },
};
