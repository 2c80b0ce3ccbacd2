import { randomBytes } from 'node:crypto';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}
interface Operation {
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly example?: unknown }>> };
}

describe('the examples of /openapi.json', () => {
  let gateway: TestGateway;
  let document: Document;
  before(async () => {
    gateway = await startGateway({
      agents: { team: { model: 'echo/echo' }, medical: { model: 'echo/echo' } },
      auth: {
        'api-key': { bootstrap: true },
        jwt: { issuer: 'https://id.example', audience: 'x', secret: randomBytes(48).toString('base64') },
      },
      tts: { openai: { apiKey: 'sk-x' } },
    });
    document = (await (await gateway.get('/openapi.json')).json()) as Document;
  });
  after(() => gateway.stop());

  const toToken = (part: string) => part.replaceAll('~', '~0').replaceAll('/', '~1');

  it('are there for every route that takes JSON, and fit its schema', () => {
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    ajv.addSchema(document, 'document');
    const checked: string[] = [];
    for (const [path, item] of Object.entries(document.paths))
      for (const [method, { requestBody }] of Object.entries(item)) {
        const body = requestBody?.content['application/json'];
        if (!body) continue;
        const name = `${method} ${path}`;
        const pointer = ['paths', path, method, 'requestBody', 'content', 'application/json', 'schema'].map(toToken);
        const validate = ajv.compile({ $ref: `document#/${pointer.map(encodeURIComponent).join('/')}` });
        expect(body, name).to.have.property('example');
        expect(validate(body.example), `${name}: ${JSON.stringify(body)} ${ajv.errorsText(validate.errors)}`).to.equal(
          true,
        );
        checked.push(name);
      }
    expect(checked).to.include.members([
      'post /v1/chat/completions',
      'post /api/core/agent',
      'post /api/core/api_keys/create',
    ]);
  });

  for (const path of [
    '/v1/chat/completions',
    '/v1/embeddings',
    '/api/core/{provider}/chat/completions',
    '/api/core/{provider}/embeddings',
  ])
    it(`are answered by ${path}`, async () => {
      const example = document.paths[path]?.['post']?.requestBody?.content['application/json']?.example;
      const response = await gateway.post(path.replace('{provider}', 'echo'), example);
      expect(response.status, await response.text()).to.equal(200);
    });
});
