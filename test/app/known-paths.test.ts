import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';

/** Paths that SDKs call, as their sources write them, and what the gateway names instead. */
const PATHS: readonly (readonly [method: string, path: string, names: string])[] = [
  ['POST', '/v1/assistants', '/v1/responses'],
  ['POST', '/v1/threads/t_1/runs', '/v1/responses'],
  ['POST', '/v1/conversations', 'previous_response_id'],
  ['GET', '/v1/chat/completions/chatcmpl-1', '/api/core/admin/calls'],
  ['POST', '/v1/containers', 'provider'],
  ['POST', '/v1/fine_tuning/jobs', 'Tune models at the provider'],
  ['POST', '/v1/evals', 'own program'],
  ['POST', '/v1/vector_stores', '/api/core/rag'],
  ['POST', '/v1/vector_stores/vs_1/search', '/api/core/rag'],
  ['POST', '/v1/uploads', '/v1/files'],
  ['POST', '/v1/images/variations', '/v1/images/edits'],
  ['POST', '/v1/videos', 'Videos are not served'],
  ['GET', '/v1/organization/usage/completions', '/api/core/admin'],
  ['GET', '/v1/organizations/api_keys', '/api/core/admin'],
  ['POST', '/v1/realtime/client_secrets', 'websocket at /v1/realtime'],
  ['POST', '/v1/chatkit/sessions', '/api/core/agent'],
  ['GET', '/v1/skills', '/api/core/agent'],
  ['POST', '/v1/complete', '/v1/messages'],
  ['POST', '/v1beta/cachedContents', 'cache_control'],
  ['POST', '/v1beta/models/m:predict', '/v1/images/generations'],
  ['POST', '/v1beta/models/m:predictLongRunning', 'Videos'],
  ['POST', '/v1beta/tunedModels', 'Fine-tuning'],
  ['POST', '/v2/chat', '/v1/chat/completions'],
  ['POST', '/v1/fim/completions', 'suffix'],
  ['POST', '/v1/ocr', 'Call the provider'],
  ['POST', '/v1/tokenize', 'count_tokens'],
  ['POST', '/api/pull', 'own server'],
  ['POST', '/openai/v1/assistants', '/v1/responses'],
];

describe('G28: a known path that is not served', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await startGateway();
  });
  after(() => gateway?.stop());

  const messageOf = async (method: string, path: string): Promise<string> => {
    const headers = { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' };
    const body = method === 'GET' ? {} : { body: '{}' };
    const response = await fetch(gateway.url + path, { method, headers, ...body });
    expect(response.status, path).to.equal(path.includes(':') ? 405 : 404);
    const { error } = (await response.json()) as { readonly error: string | { readonly message: string } };
    return typeof error === 'string' ? error : error.message;
  };

  for (const [method, path, names] of PATHS)
    it(`says what to do instead of ${method} ${path}`, async () => {
      const message = await messageOf(method, path);
      expect(message).to.include(names).and.not.include('Did you mean');
    });

  for (const [path, body, param, right] of [
    ['/v1/chat/completions', { model: 'echo/echo', input: 'hi' }, 'messages', '/v1/responses'],
    ['/v1/chat/completions', { contents: [] }, 'model', ':generateContent'],
    ['/v1/messages', { model: 'echo/echo', max_tokens: 5, contents: [] }, 'messages', ':generateContent'],
    ['/v1/responses', { model: 'echo/echo', contents: [] }, 'input', ':generateContent'],
    ['/v1/completions', { model: 'echo/echo', contents: [] }, 'prompt', ':generateContent'],
    ['/v1beta/models/echo:generateContent', { messages: [] }, 'contents', '/v1/chat/completions'],
    ['/v1beta/models/echo:streamGenerateContent', { input: 'hi' }, 'contents', '/v1/responses'],
  ] as const)
    it(`G4: names ${right} where ${path} gets a body with ${Object.keys(body).at(-1)}`, async () => {
      const response = await fetch(gateway.url + path, {
        method: 'POST',
        headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      expect(response.status).to.equal(400);
      const { error } = (await response.json()) as { readonly error: { readonly message: string } };
      expect(error.message).to.include(`"${param}" is required`).and.include(right);
    });

  it('is not advice for a path that is served or unknown', async () => {
    expect(await messageOf('POST', '/chat/completions')).to.include('Did you mean');
    expect(await messageOf('POST', '/v1/nothing')).to.match(/^Unknown request URL: POST \/v1\/nothing$/);
  });

  it('names only paths that are served', async () => {
    const document = (await (await fetch(`${gateway.url}/openapi.json`)).json()) as { readonly paths: object };
    const served = Object.keys(document.paths);
    for (const [method, path] of PATHS) {
      const message = await messageOf(method, path);
      for (const [named] of message.slice(message.indexOf('. ') + 2).matchAll(/\/(?:v1|api)\/[\w/]+/g))
        expect(
          served.some((each) => each === named || each.startsWith(`${named}/`)),
          `${path}: ${named}`,
        ).to.equal(true);
    }
  });
});
