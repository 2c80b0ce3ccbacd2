import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';

describe('calls from web pages', () => {
  const PAGE = 'https://chat.example';
  let closed: TestGateway;
  let open: TestGateway;
  before(async () => {
    closed = await startGateway();
    open = await startGateway({ server: { port: 0, cors: { origins: [PAGE] } } });
  });
  after(() => Promise.all([closed.stop(), open.stop()]));

  const preflight = (gateway: TestGateway, origin: string) =>
    fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'OPTIONS',
      headers: {
        origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization, content-type, x-stainless-new-thing',
      },
    });

  it('are not allowed unless an origin is configured', async () => {
    const response = await preflight(closed, PAGE);
    expect(response.status).to.equal(405);
    expect(response.headers.get('access-control-allow-origin')).to.equal(null);
  });

  it('are allowed for a configured origin, with any headers of its SDK', async () => {
    const response = await preflight(open, PAGE);
    expect(response.status).to.equal(204);
    expect(response.headers.get('access-control-allow-origin')).to.equal(PAGE);
    expect(response.headers.get('access-control-allow-headers')).to.include('x-stainless-new-thing');
    expect(response.headers.get('access-control-allow-credentials')).to.equal(null);
  });

  it('are remembered for ten minutes, for the gateway’s methods', async () => {
    const { headers } = await preflight(open, PAGE);
    expect(headers.get('access-control-allow-methods')).to.equal('GET, POST, DELETE, OPTIONS');
    expect(headers.get('access-control-max-age')).to.equal('600');
  });

  it('are allowed from every page if the origins have a star, without cookies', async () => {
    const any = await startGateway({ server: { port: 0, cors: { origins: ['*'] } } });
    const { headers } = await any.get('/livez', { origin: 'https://any.example' });
    expect(headers.get('access-control-allow-origin')).to.equal('*');
    expect(headers.get('access-control-allow-credentials')).to.equal(null);
    expect((await any.get('/livez')).headers.get('access-control-allow-origin')).to.equal(null);
    await any.stop();
  });

  it('need a preflight with a method', async () => {
    const response = await fetch(`${open.url}/v1/chat/completions`, { method: 'OPTIONS', headers: { origin: PAGE } });
    expect(response.status).to.equal(405);
    expect(response.headers.get('access-control-allow-methods')).to.equal(null);
  });

  it('are not allowed for another origin', async () => {
    expect((await preflight(open, 'https://evil.example')).headers.get('access-control-allow-origin')).to.equal(null);
  });

  it('can read errors and the request id', async () => {
    const response = await open.post('/v1/chat/completions', {}, { origin: PAGE });
    expect(response.status).to.equal(400);
    expect(response.headers.get('access-control-allow-origin')).to.equal(PAGE);
    expect(response.headers.get('access-control-expose-headers'), 'every header of a response').to.equal('*');
    expect(response.headers.get('vary')?.toLowerCase()).to.include('origin');
  });

  it('can read a stream', async () => {
    const response = await open.post(
      '/v1/chat/completions',
      { model: 'echo/echo', stream: true, messages: [{ role: 'user', content: 'a' }] },
      { origin: PAGE },
    );
    expect(response.headers.get('access-control-allow-origin')).to.equal(PAGE);
    expect(await response.text()).to.include('[DONE]');
  });
});
