import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'chai';
import { ERRORS } from '../../contract/errors.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { OPENAPI_RULES } from './openapi-rules.ts';

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly security: readonly object[];
  readonly parameters?: readonly { readonly name: string; readonly in: string }[];
  readonly responses: Readonly<Record<string, unknown>>;
}
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, object>>; readonly securitySchemes: object };
}

/** Routes of the contract that every gateway with these plugins has. */
const PROMISED = [
  'post /api/core/{provider}/chat/completions',
  'get /api/core/{provider}/models',
  'get /api/core/{provider}/models/{id}',
  'post /api/core/{provider}/embeddings',
  'post /v1/chat/completions',
  'post /v1/embeddings',
  'get /v1/models',
  'get /v1/models/{id}',
  'post /api/core/agent',
  'delete /api/core/agent/memory',
  'post /api/core/api_keys/create',
  'get /api/core/api_keys',
  'delete /api/core/api_keys',
  'post /api/core/api_keys/rotate',
  'get /api/core/balance',
  'get /api/core/usage',
  'get /livez',
  'get /readyz',
  'get /healthz',
  'get /openapi.json',
  'get /docs',
  'get /metrics',
];

describe('/openapi.json', () => {
  let gateway: TestGateway;
  let document: Document;
  let operations: readonly (readonly [name: string, operation: Operation])[];

  before(async () => {
    gateway = await startGateway({ models: { fast: 'echo/echo' }, agents: { team: { model: 'fast' } } });
    document = (await (await gateway.get('/openapi.json')).json()) as Document;
    operations = Object.entries(document.paths).flatMap(([path, item]) =>
      Object.entries(item).map(([method, operation]) => [`${method} ${path}`, operation] as const),
    );
  });
  after(() => gateway.stop());

  it('follows the rules of OpenAPI 3.1', () => {
    const validate = new Ajv2020({ strict: false, validateFormats: false }).compile(OPENAPI_RULES);
    validate(document);
    expect(validate.errors).to.equal(null);
  });

  it('has every route of the contract', () => {
    expect(operations.map(([name]) => name)).to.include.members(PROMISED);
  });

  it('names only mounted routes', async () => {
    for (const [name, { parameters }] of operations) {
      const [method = '', path = ''] = name.split(' ');
      const filled = path.replaceAll(/\{(\w+)\}/g, 'x');
      const response = await fetch(gateway.url + filled, { method: method.toUpperCase() });
      const { status } = response;
      const text = response.headers.get('content-type')?.includes('json') ? await response.text() : '';
      await response.body?.cancel().catch(() => undefined);
      expect([200, 204, 400, 401, 403, 404, 503], `${name} ${parameters?.length ?? 0}`).to.include(status);
      if (status === 404 && text.includes('"unknown_url"')) expect.fail(`${name} is not mounted`);
    }
  });

  it('gives every operation a unique id, a summary, and its path parameters', () => {
    const ids = operations.map(([, { operationId }]) => operationId);
    expect(ids).to.have.length(new Set(ids).size);
    for (const [name, { summary, parameters = [] }] of operations) {
      expect(summary, name).to.match(/\S/);
      const inPath = [...name.matchAll(/\{(\w+)\}/g)].map(([, parameter]) => parameter);
      expect(
        parameters.filter((each) => each.in === 'path').map((each) => each.name),
        name,
      ).to.deep.equal(inPath);
    }
  });

  it('refers only to existing components, which are JSON Schemas', () => {
    const text = JSON.stringify(document);
    const referred = [...text.matchAll(/"#\/components\/schemas\/([^"/]+)(?:\/\$defs\/\w+)?"/g)].map(
      ([, name]) => name,
    );
    expect(Object.keys(document.components.schemas)).to.include.members(referred);
    expect(text.match(/"\$ref":"(?!#\/components\/schemas\/|#\/)[^"]*"/g)).to.equal(null);
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    for (const [name, schema] of Object.entries(document.components.schemas))
      expect(ajv.validateSchema(schema), name).to.equal(true);
  });

  it('lists all error codes and types', () => {
    const schema = JSON.stringify(document.components.schemas['Error']);
    for (const code of Object.keys(ERRORS)) expect(schema).to.include(`"${code}"`);
  });

  it('requires a credential exactly on the routes that need one', async () => {
    for (const [name, { security }] of operations) {
      const [method = '', path = ''] = name.split(' ');
      const response = await fetch(gateway.url + path.replaceAll(/\{(\w+)\}/g, 'echo'), {
        method: method.toUpperCase(),
      });
      const { error } = (await response.json().catch(() => ({}))) as { readonly error?: { readonly code: string } };
      // Without an identity provider, no credential gives access to the token routes. The console's page exists after a
      // build.
      const isDisabled = error?.code === 'feature_disabled' && security.length > 0;
      const isRequested = response.status === 401 || isDisabled;
      expect(isRequested, name).to.equal(security.length > 0);
    }
  });
});
