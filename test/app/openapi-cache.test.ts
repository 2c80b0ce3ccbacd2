import http from 'node:http';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';

describe('G69: /openapi.json, which needs no key', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await startGateway();
  });
  after(() => gateway?.stop());

  const read = async (headers: Readonly<Record<string, string>> = {}) => {
    const response = await new Promise<http.IncomingMessage>((resolve, reject) =>
      http.get(`${gateway.url}/openapi.json`, { headers }, resolve).on('error', reject),
    );
    return { status: response.statusCode, headers: response.headers, bytes: await buffer(response) };
  };

  it('is sent compressed to clients that accept it, and is the same document', async () => {
    const [plain, zipped] = [await read(), await read({ 'accept-encoding': 'gzip, br' })];
    expect(plain.headers).not.to.have.property('content-encoding');
    expect(zipped.headers).to.include({ 'content-encoding': 'gzip' });
    expect(zipped.headers.vary).to.match(/accept-encoding/i);
    expect(gunzipSync(zipped.bytes).equals(plain.bytes)).to.equal(true);
    expect(zipped.bytes.length).to.be.below(plain.bytes.length / 4);
  });

  it('may be cached, and is not sent again to a client that has it', async () => {
    const { headers } = await read();
    expect(headers['cache-control']).to.equal('public, max-age=60');
    const again = await read({ 'if-none-match': String(headers['etag']) });
    expect([again.status, again.bytes.length]).to.deep.equal([304, 0]);
    expect((await read({ 'if-none-match': '"another"' })).status).to.equal(200);
  });
});
