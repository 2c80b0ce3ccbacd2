import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'chai';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}
interface Operation {
  readonly 'x-codeSamples': readonly { readonly label: string; readonly source: string }[];
  readonly requestBody?: {
    readonly content: Readonly<
      Record<string, { readonly examples?: { readonly example?: { readonly value: unknown } } }>
    >;
  };
}

const run = promisify(execFile);

/** Paths of every client format, and the other paths that call a model. */
const CALLS = [
  '/v1/chat/completions',
  '/v1/messages',
  '/v1/messages/count_tokens',
  '/v1/responses',
  '/v1/responses/input_tokens',
  '/v1/completions',
  '/v1/embeddings',
  '/v1beta/models/{model}:generateContent',
  '/v1beta/models/{model}:countTokens',
  '/api/core/{provider}/chat/completions',
  '/api/core/{provider}/embeddings',
];

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

  it('exist for every route with a JSON body, and match its schema', () => {
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
        expect(body, name).to.have.nested.property('examples.example.value');
        expect(
          validate(body.examples?.example?.value),
          `${name}: ${JSON.stringify(body)} ${ajv.errorsText(validate.errors)}`,
        ).to.equal(true);
        checked.push(name);
      }
    expect(checked).to.include.members([
      'post /v1/chat/completions',
      'post /api/core/agent',
      'post /api/core/api_keys/create',
    ]);
  });

  for (const path of CALLS)
    it(`are accepted by ${path}`, async () => {
      const example =
        document.paths[path]?.['post']?.requestBody?.content['application/json']?.examples?.example?.value;
      const place = path.replace('{provider}', 'echo').replace('{model}', 'echo/echo');
      const response = await gateway.post(place, example);
      expect(response.status, await response.text()).to.equal(200);
    });

  const samplesOf = (path: string): ReadonlyMap<string, string> =>
    new Map(
      document.paths[path]?.['post']?.['x-codeSamples'].map(({ label, source }) => [
        label,
        source.replaceAll(/http:\/\/127\.0\.0\.1:\d+/g, gateway.url),
      ]),
    );
  const environment = () => ({ PATH: process.env['PATH'], TOLLGATE_API_KEY: gateway.key });

  for (const path of CALLS)
    it(`have a valid curl line for ${path}`, async () => {
      const line = samplesOf(path).get('curl')?.replace('PROVIDER', 'echo').replace('MODEL', 'echo/echo');
      const { stdout } = await run('sh', ['-c', `${line} -sS --fail-with-body --max-time 30`], { env: environment() });
      expect(JSON.parse(stdout)).to.be.an('object');
    });

  it('have valid code for the libraries of each client format @slow', async () => {
    const wanted: readonly (readonly [path: string, labels: readonly string[]])[] = [
      ['/v1/chat/completions', ['curl', 'openai, chat completions', 'AI SDK, @ai-sdk/openai-compatible']],
      ['/v1/responses', ['curl', 'openai', 'AI SDK, @ai-sdk/openai']],
      ['/v1/messages', ['curl', '@anthropic-ai/sdk', 'AI SDK, @ai-sdk/anthropic']],
      ['/v1beta/models/{model}:generateContent', ['curl', '@google/genai']],
    ];
    for (const [path, labels] of wanted) {
      const samples = samplesOf(path);
      expect([...samples.keys()], path).to.have.members(labels);
      for (const [label, source] of samples) {
        // The AI SDK is not installed here: `npm run clients` runs the same lines with it.
        if (label === 'curl' || label.startsWith('AI SDK')) continue;
        const { stdout } = await run(process.execPath, ['--input-type=module', '-e', source], {
          cwd: PACKAGE_ROOT,
          env: environment(),
          timeout: 60_000,
        });
        expect(stdout, label).to.match(/Say hello/);
      }
    }
  }).timeout(120_000);

  it('have a curl line for every route', () => {
    for (const [path, item] of Object.entries(document.paths))
      for (const [method, { 'x-codeSamples': samples }] of Object.entries(item)) {
        const source = samples[0]?.source ?? '';
        expect(source, `${method} ${path}`).to.match(/^curl http:\/\/127\.0\.0\.1:\d+\//);
        expect(source, `${method} ${path}`).not.to.match(/[{}*]\w+\}?( |$)/m);
      }
  });
});
