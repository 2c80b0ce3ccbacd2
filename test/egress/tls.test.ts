import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import tls from 'node:tls';
import { expect } from 'chai';
import { createUpstream, UpstreamError } from '../../egress/upstream.ts';
import { type Certificate, createSelfSigned } from '../support/identity/self-signed.ts';
import { createSilentLog } from '../support/log.ts';
import { respondWith, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';

describe('upstream over TLS', () => {
  const serve = ({ key, cert }: Certificate) =>
    startScriptedUpstream(respondWith(200, 'ok'), {
      createServer: (onConnection) => tls.createServer({ key, cert }, onConnection) as net.Server,
    });

  for (const [what, certificate, host] of [
    ['signed by an unknown authority', createSelfSigned(), 'localhost'],
    ['expired', createSelfSigned({ expired: true }), 'localhost'],
    ['of another name', createSelfSigned(), '127.0.0.1'],
  ] as const) {
    it(`sends nothing to a server whose certificate is ${what}, even where Node is set not to check`, async () => {
      const vendor = await serve(certificate);
      const upstream = createUpstream({ log: createSilentLog() });
      const before = process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
      process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
      try {
        const endpoint = {
          baseUrl: `https://${host}:${vendor.port}`,
          error: () => ({ class: 'upstream_error', message: '' }) as const,
        };
        const sending = upstream.send(endpoint, { path: '/', body: {} }, { signal: new AbortController().signal });
        const error = await sending.then(
          () => undefined,
          (thrown: unknown) => thrown,
        );
        expect(error).to.be.instanceOf(UpstreamError);
        expect(error).to.include({ failure: 'upstream_error', phase: 'connect', sent: false });
        expect(vendor.requests).to.have.length(0);
      } finally {
        if (before === undefined) delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
        else process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = before;
        await upstream.close();
        await vendor.close();
      }
    });
  }

  it('connects to a server whose certificate the operator trusts, and replaces idle connections there as well', async () => {
    const certificate = createSelfSigned();
    const vendor = await serve(certificate);
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-tls-'));
    try {
      writeFileSync(join(folder, 'ca.pem'), certificate.cert);
      vendor.script((wire) => (wire.request.nth === 0 ? wire.send(respondWith(200, 'ok')) : wire.reset()));
      const program = `
        import { createUpstream } from ${JSON.stringify(new URL('../../egress/upstream.ts', import.meta.url).href)};
        const log = { debug() {} };
        const upstream = createUpstream({ log, defaults: { firstByteMs: 3000 } });
        for (let n = 0; n < 2; n++) {
          const response = await upstream.send(
            { baseUrl: 'https://localhost:${vendor.port}' }, { path: '/', body: {} }, { signal: new AbortController().signal });
          process.stdout.write(response.status + ' ' + await response.readAll() + ';');
        }
        await upstream.close();`;
      const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', program], {
        env: { ...process.env, NODE_EXTRA_CA_CERTS: join(folder, 'ca.pem') },
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      let output = '';
      child.stdout.on('data', (bytes: Buffer) => {
        output += bytes.toString();
      });
      await once(child, 'close');
      expect(output).to.equal('200 ok;200 ok;');
      expect(vendor.connections.total).to.equal(2);
    } finally {
      rmSync(folder, { recursive: true });
      await vendor.close();
    }
  });
});
