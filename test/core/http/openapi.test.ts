import { expect } from 'chai';
import type { Route } from '../../../contract/plugin.ts';
import { createOpenApi } from '../../../openapi/document.ts';

interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly security: readonly object[];
  readonly parameters?: readonly object[];
  readonly requestBody?: { readonly required: boolean; readonly content: object };
  readonly responses: Readonly<Record<string, { readonly description: string; readonly content?: object }>>;
}

function documentOf(route: Partial<Route>, schemas: readonly object[] = []) {
  const whole = {
    method: 'POST',
    path: '/x',
    summary: 'x',
    auth: 'none',
    responses: { 200: 'Fine.' },
    handler() {},
    ...route,
  } as Route;
  const about = { version: '1.2.3', url: 'http://127.0.0.1:8787' };
  const document = createOpenApi([{ owner: 'acme', value: whole }], schemas as never, about) as unknown as {
    readonly info: { readonly version: string };
    readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
    readonly components: { readonly schemas: Readonly<Record<string, object>> };
  };
  const [path = '', item = {}] = Object.entries(document.paths)[0] ?? [];
  const [method = '', operation] = Object.entries(item)[0] ?? [];
  return { document, path, method, operation: operation ?? expect.fail('no operation') };
}

describe('the OpenAPI document', () => {
  it('writes paths and their parameters as OpenAPI does', () => {
    const { path, method, operation } = documentOf({ method: 'GET', path: '/api/:provider/models/*id' });
    expect([method, path]).to.deep.equal(['get', '/api/{provider}/models/{id}']);
    expect(operation.parameters).to.deep.equal(
      ['provider', 'id'].map((name) => ({ name, in: 'path', required: true, schema: { type: 'string' } })),
    );
    expect(operation.operationId).to.equal('get_api_provider_models_id');
    expect(operation.tags).to.deep.equal(['acme']);
  });

  it('lists the parameters of a query, and which are required', () => {
    const query = { type: 'object', required: ['q'], properties: { q: { type: 'string' }, k: { type: 'integer' } } };
    expect(documentOf({ query }).operation.parameters).to.deep.equal([
      { name: 'q', in: 'query', required: true, schema: { type: 'string' } },
      { name: 'k', in: 'query', required: false, schema: { type: 'integer' } },
    ]);
  });

  const SECURITY: readonly (readonly [auth: Route['auth'], security: readonly object[]])[] = [
    ['none', []],
    [['key'], [{ apiKey: [] }, { apiKeyHeader: [] }]],
    [['token'], [{ token: [] }]],
    [
      ['key', 'token'],
      [{ apiKey: [] }, { apiKeyHeader: [] }, { token: [] }],
    ],
  ];
  for (const [auth, security] of SECURITY)
    it(`has the required credential of a route: ${String(auth)}`, () =>
      expect(documentOf({ auth }).operation.security).to.deep.equal(security));

  it('makes a component of a schema with an $id, and refers to it', () => {
    const body = { $id: 'acme:Thing', type: 'object', properties: { part: { $ref: 'acme:Part' } } };
    const { document, operation } = documentOf({ body }, [{ $id: 'acme:Part', type: 'string' }]);
    expect(operation.requestBody?.content).to.deep.equal({
      'application/json': { schema: { $ref: '#/components/schemas/Thing' }, examples: { example: { value: {} } } },
    });
    expect(document.components.schemas).to.deep.include({
      Part: { type: 'string' },
      Thing: { type: 'object', properties: { part: { $ref: '#/components/schemas/Part' } } },
    });
  });

  it('marks an optional body', () => {
    expect(documentOf({ body: { type: 'object' } }).operation.requestBody?.required).to.equal(true);
    expect(documentOf({ body: { type: 'object' }, bodyOptional: true }).operation.requestBody?.required).to.equal(
      false,
    );
  });

  it('adds the possible errors of a route’s kind', () => {
    expect(Object.keys(documentOf({ auth: 'none' }).operation.responses)).to.deep.equal(['200', '500']);
    const { responses } = documentOf({ auth: ['key'], body: { type: 'object' } }).operation;
    expect(Object.keys(responses)).to.include.members(['400', '401', '403', '413', '415', '429', '500', '503']);
  });

  it('lists content types other than JSON', () => {
    const { responses } = documentOf({
      responses: { 200: { description: 'Sound.', contentType: 'audio/mpeg' } },
    }).operation;
    expect(responses['200']).to.deep.equal({ description: 'Sound.', content: { 'audio/mpeg': {} } });
  });

  it('contains the version', () => expect(documentOf({}).document.info.version).to.equal('1.2.3'));
});
