import { expect } from 'chai';
import type { UpstreamPhase } from '../../contract/provider.ts';
import { failsUpstream, givenUpstream, SHORT } from '../support/vendors/given-upstream.ts';
import { head, respondWith, type Script, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';
import { until } from '../support/wait.ts';

describe('an invalid response', () => {
  const given = givenUpstream();

  const cases: readonly (readonly [string, Script | string | Buffer, UpstreamPhase, boolean?])[] = [
    ['reset before a byte of it', (wire) => wire.reset(), 'firstByte'],
    ['closed before a byte of it', (wire) => wire.end(), 'firstByte'],
    ['101', head(101, { upgrade: 'websocket', connection: 'upgrade' }), 'body'],
    // Undici treats an unexpected 100 as an invalid response; no provider is known to send one.
    ['100', Buffer.concat([Buffer.from('HTTP/1.1 100 Continue\r\n\r\n'), respondWith(200, 'ok')]), 'body'],
    ['204', head(204), 'body'],
    ['204 with a body', `${head(204)}surprise`, 'body'],
    ['205 without a length', head(205), 'body'],
    ['301', head(301, { location: 'http://127.0.0.1:9/' }), 'body'],
    ['304', head(304), 'body'],
    ['gzip', respondWith(200, 'x', { 'content-encoding': 'gzip' }), 'body'],
    ['deflate', respondWith(200, 'x', { 'content-encoding': 'deflate' }), 'body'],
    ['br', respondWith(200, 'x', { 'content-encoding': 'br' }), 'body'],
    ['zstd', respondWith(200, 'x', { 'Content-Encoding': 'ZSTD' }), 'body'],
    ['stacked encodings', respondWith(200, 'x', { 'content-encoding': Array(1000).fill('gzip').join(', ') }), 'body'],
    ['a head that is too large', head(200, { 'x-large': 'x'.repeat(100_000), 'content-length': '0' }), 'body'],
    ['a head without end', (wire) => wire.send('HTTP/1.1 200 OK\r\nx: y\r\n'), 'firstByte'],
    ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nabc', 'body'],
    ['bytes that are not HTTP', 'SSH-2.0-OpenSSH_9.6\r\n\r\n', 'body'],
    ['an invalid header', 'HTTP/1.1 200 OK\r\nx\0y: z\r\ncontent-length: 0\r\n\r\n', 'body'],
    ['a declared length over the limit', head(200, { 'content-length': String(1 << 30) }), 'body'],
  ];
  for (const [what, script, phase] of cases) {
    it(`fails in phase ${phase}: ${what}`, async () => {
      given.vendor.script(script);
      const error = await failsUpstream(given.send({}, what === 'a head without end' ? { deadlines: SHORT } : {}));
      expect(error).to.include({ phase, sent: true });
      expect(error.failure).to.equal(what === 'a head without end' ? 'timeout' : 'upstream_error');
      expect(error.message).to.not.match(/127\.0\.0\.1|localhost|sk-canary|\/v1/);
      await until('the connection is closed', () => given.vendor.connections.open === 0);
    });
  }

  it('ignores early hints', async () => {
    given.vendor.script(Buffer.concat([Buffer.from(head(103, { link: '</x>' })), respondWith(200, 'ok')]));
    expect((await (await given.send()).readAll()).toString()).to.equal('ok');
  });

  for (const status of [301, 302, 303, 307, 308]) {
    it(`does not follow a ${status}: the other origin gets no request`, async () => {
      const other = await startScriptedUpstream(respondWith(200, 'got you'));
      try {
        given.vendor.script(respondWith(status, '', { location: `${other.url}/steal` }));
        expect(await failsUpstream(given.send())).to.include({ failure: 'upstream_error', phase: 'body' });
        given.vendor.script(respondWith(status, '', { location: `${given.vendor.url}/v1/again` }));
        expect(await failsUpstream(given.send())).to.include({ failure: 'upstream_error', phase: 'body' });
        expect(other.connections.total).to.equal(0);
        expect(given.vendor.requests).to.have.length(2);
      } finally {
        await other.close();
      }
    });
  }

  it('keeps the status of an error page with a content encoding, without its text', async () => {
    given.vendor.script(respondWith(429, 'gibberish', { 'content-encoding': 'gzip', 'retry-after': '2' }));
    const response = await given.send();
    expect(response).to.deep.include({ status: 429 });
    expect(response.headers).to.include({ 'retry-after': '2' });
    expect((await response.readAll()).length).to.equal(0);
  });
});
