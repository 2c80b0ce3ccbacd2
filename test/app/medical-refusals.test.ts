/** Any refusal of a request to the medical agent, however early, contains the emergency number. */
import { pathToFileURL } from 'node:url';
import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';

const PATH = '/api/core/agent/medical';
const CORE = pathToFileURL(new URL('../../contract/index.ts', import.meta.url).pathname).href;

/** Refuses with the code of a header, before any route. */
const REFUSER = `
import { GatewayError } from '${CORE}';
export default { name: 'refuser', kind: 'policy', apiVersion: 1, setup(api) {
  api.use((ctx, next) => {
    const code = ctx.get('x-refuse');
    if (code === 'throw') throw new TypeError('a plugin broke');
    if (code) throw new GatewayError(code, 'Refused.', { retryAfterMs: 1000 });
    return next();
  });
} };
`;

interface ErrorBody {
  readonly error: { readonly code: string; readonly message: string; readonly request_id: string };
}

describe('a refused request to the medical agent', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await startGateway(
      { plugins: ['./refuser.mjs'], agents: { medical: { model: 'echo/echo', country: 'AU' } } },
      { files: { 'refuser.mjs': REFUSER } },
    );
  });
  after(() => gateway?.stop());

  const refuse = async (headers: Record<string, string>, body: unknown = { message: 'x' }, method = 'POST') => {
    const response = await fetch(`${gateway.url}${PATH}`, {
      method,
      headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json', ...headers },
      ...(method === 'POST' && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const { error } = (await response.json()) as ErrorBody;
    return { status: response.status, error, headers: response.headers };
  };

  const CODES = ['overloaded', 'shutting_down', 'store_unavailable', 'rate_limited', 'insufficient_balance'] as const;
  for (const code of CODES)
    it(`E31: gets the emergency number when a plugin before the route returns ${code}`, async () => {
      const { error, headers } = await refuse({ 'x-refuse': code });
      expect(error.code).to.equal(code);
      expect(error.message).to.match(/^Refused\. .*call 000/);
      expect(headers.get('retry-after')).to.equal('1');
    });

  for (const [what, headers, body, status, method] of [
    ['without a key', { authorization: '' }, { message: 'x' }, 401],
    ['with a wrong key', { authorization: 'Bearer wrong' }, { message: 'x' }, 401],
    ['with a body that is no JSON', {}, '{', 400],
    ['with a body of another shape', {}, { massage: 'x' }, 400],
    ['with an empty message', {}, { message: ' ' }, 400],
    ['with too large a body', {}, { message: 'x'.repeat(600 * 1024) }, 413],
    ['with another content type', { 'content-type': 'text/plain' }, 'help', 415],
    ['with another method', {}, undefined, 405, 'GET'],
    ['when a plugin breaks', { 'x-refuse': 'throw' }, { message: 'x' }, 500],
  ] as const)
    it(`E31: gets the emergency number ${what}`, async () => {
      const { error, ...refused } = await refuse(headers, body, method);
      expect(refused.status, error.message).to.equal(status);
      expect(error.message).to.match(/ call 000\.$/);
      expect(error.request_id).to.match(/^req_/);
    });

  it('E31: gets it once, and in the language of the caller', async () => {
    const { error } = await refuse({ 'accept-language': 'de-DE,de;q=0.9', 'x-refuse': 'overloaded' });
    expect(error.message).to.include('rufen Sie 000 an');
    expect(error.message.match(/000/g)).to.have.length(1);
    const late = await refuse(
      {},
      { message: 'Ich habe starke Schmerzen und weiß nicht, was ich habe', model: 'echo/none' },
    );
    expect(late.error.message.match(/000/g), late.error.message).to.have.length(1);
  });

  it('E31: is the only one: other paths have no emergency notice', async () => {
    const response = await gateway.post('/v1/chat/completions', {}, { 'x-refuse': 'overloaded' });
    expect(((await response.json()) as ErrorBody).error.message).to.equal('Refused.');
  });
});
