import { expect } from 'chai';
import { fails, failsUpstream, givenUpstream } from '../support/vendors/given-upstream.ts';
import { respondWith } from '../support/vendors/scripted-upstream.ts';
import { until } from '../support/wait.ts';

describe('upstream', () => {
  const given = givenUpstream();

  it('sends the key and JSON, and requests no encoding', async () => {
    given.vendor.script(respondWith(200, { ok: true }));
    const response = await given.send(
      { headers: { 'X-Extra': '1' } },
      { endpoint: { headers: { 'x-extra': '0', 'x-own': 'y' } } },
    );
    expect(response.status).to.equal(200);
    expect(JSON.parse((await response.readAll()).toString())).to.deep.equal({ ok: true });
    const [request] = given.vendor.requests;
    expect(request).to.deep.include({ method: 'POST', path: '/v1/chat' });
    expect(request!.headers).to.include({
      authorization: 'Bearer sk-canary',
      'content-type': 'application/json',
      'accept-encoding': 'identity',
      'x-extra': '1',
      'x-own': 'y',
    });
    expect(request!.json()).to.deep.equal({ hello: 'wörld' });
  });

  it('sends bytes unchanged and no body with GET', async () => {
    given.vendor.script(respondWith(200));
    await (await given.send({ body: Buffer.from('{"a" : 1}') })).readAll();
    await (
      await given.upstream.send(given.endpoint(), { path: '/models?limit=1' }, { signal: new AbortController().signal })
    ).readAll();
    expect(given.vendor.requests[0]!.body.toString()).to.equal('{"a" : 1}');
    expect(given.vendor.requests[1]).to.deep.include({ method: 'GET', path: '/v1/models?limit=1' });
    expect(given.vendor.requests[1]!.headers).to.not.have.any.keys(
      'content-length',
      'content-type',
      'transfer-encoding',
    );
  });

  it('returns header names in lower case and joins repeated ones', async () => {
    given.vendor.script(
      'HTTP/1.1 200 OK\r\nX-RateLimit-Limit-Requests: 5\r\nA: 1\r\na: 2\r\nContent-Length: 0\r\n\r\n',
    );
    const { headers } = await given.send();
    expect(headers).to.deep.equal({ 'x-ratelimit-limit-requests': '5', a: '1, 2', 'content-length': '0' });
  });

  it('reuses a connection for the next request once a response is read', async () => {
    given.vendor.script(respondWith(200, 'ok'));
    for (let n = 0; n < 5; n++) await (await given.send()).readAll();
    expect(given.vendor.connections.total).to.equal(1);
  });

  for (const name of ['Host', 'content-length', 'transfer-encoding', 'connection', 'Accept-Encoding']) {
    it(`refuses a reserved header: ${name}`, async () => {
      const error = await fails(given.send({ headers: { [name]: 'x' } }));
      expect(error).to.be.instanceOf(TypeError);
      expect(given.vendor.requests).to.have.length(0);
    });
  }

  it('refuses a header value that would split the request, without showing it', async () => {
    const error = await fails(given.send({ headers: { 'x-a': 'secret\r\nx-b: 1' } }));
    expect(error).to.be.instanceOf(TypeError);
    expect(error.message).to.not.include('secret');
    expect(given.vendor.requests).to.have.length(0);
  });

  it('cuts open connections when it closes, and sends nothing afterwards', async () => {
    given.vendor.script((wire) => wire.hang());
    const sending = failsUpstream(given.send());
    await given.vendor.request(0);
    await given.upstream.close();
    expect(await sending).to.include({ phase: 'aborted', sent: true });
    expect(await failsUpstream(given.send())).to.include({ phase: 'aborted', sent: false });
    await until('no connection is open', () => given.vendor.connections.open === 0);
  });
});
