import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';

/** Clients of formats that share paths with OpenAI's: where each sends its key, and the member of its errors. */
const CLIENTS = [
  {
    name: '@anthropic-ai/sdk',
    keyHeader: 'x-api-key',
    headers: { 'anthropic-version': '2023-06-01' },
    isAnthropic: true,
  },
  { name: '@google/genai', keyHeader: 'x-goog-api-key', headers: {}, isAnthropic: false },
] as const;

const PATHS: readonly (readonly [method: string, path: string])[] = [
  ['GET', '/v1/files'],
  ['POST', '/v1/files'],
  ['GET', '/v1/files/file_1'],
  ['GET', '/v1/files/file_1/content'],
  ['DELETE', '/v1/files/file_1'],
  ['GET', '/v1/nothing'],
  ['POST', '/v1/skills'],
  ['GET', '/v1/cachedContents'],
];

interface Sent {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

describe('G26: a path that formats share', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await startGateway();
  });
  after(() => gateway?.stop());

  const send = async (method: string, path: string, headers: Readonly<Record<string, string>>): Promise<Sent> => {
    const response = await fetch(gateway.url + path, { method, headers });
    return { status: response.status, body: (await response.json()) as Sent['body'] };
  };

  for (const { name, keyHeader, headers, isAnthropic } of CLIENTS)
    for (const [method, path] of PATHS)
      it(`responds to ${method} ${path} of ${name} with 404 in its format`, async () => {
        const { status, body } = await send(method, path, { ...headers, [keyHeader]: gateway.key });
        expect(status).to.equal(404);
        const error = body['error'] as Readonly<Record<string, unknown>>;
        expect(error['message'], 'path as sent').to.include(`${method} ${path}`);
        if (isAnthropic)
          expect(body).to.deep.include({ type: 'error' }).and.have.nested.property('error.type', 'not_found_error');
        else expect(error).to.deep.include({ code: 404, status: 'NOT_FOUND' });
        if (path.includes('/files'))
          expect(error['message']).to.include('Send contents in the request').and.not.include('Did you mean');
      });

  it('stays OpenAI’s without such a header', async () => {
    const { status, body } = await send('GET', '/v1/files', { authorization: `Bearer ${gateway.key}` });
    expect([status, body['object']]).to.deep.equal([200, 'list']);
    const unknown = await send('GET', '/v1/nothing', { authorization: `Bearer ${gateway.key}` });
    expect(unknown.body['error']).to.have.property('code', 'unknown_url');
  });

  it('serves Google’s batches below `/v1`', async () => {
    const { status, body } = await send('GET', '/v1/batches', { 'x-goog-api-key': gateway.key });
    expect([status, body]).to.deep.equal([200, { operations: [] }]);
  });

  it('does not suggest OpenAI’s files to clients of Google’s', async () => {
    const { body } = await send('GET', '/v1beta/files', { 'x-goog-api-key': gateway.key });
    expect(body).to.have.nested.property('error.message').that.does.not.include('Did you mean');
  });
});
