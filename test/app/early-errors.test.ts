import { expect } from 'chai';
import { connectTo } from '../support/clients/raw-socket.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { until } from '../support/wait.ts';
import { earlyErrors, TRANSPORTS } from './early-errors.ts';

describe('an error sent while its request still arrives', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await startGateway({ server: { port: 0, bodyLimit: '1mb' } }, { level: 'debug' });
  });
  after(() => gateway.stop());

  for (const [name, send] of Object.entries(TRANSPORTS))
    it(`reaches its sender over ${name}`, async () => {
      for (const [what, error] of Object.entries(earlyErrors(gateway.key))) {
        // The content type of a form is rejected before its length.
        const isForm = name === 'a multipart form' && error.status === 413;
        const wanted = isForm ? { status: 415, code: 'unsupported_media_type' } : error;
        expect(await send(gateway.url, error, 3_000_000), what).to.include({
          status: wanted.status,
          code: wanted.code,
        });
      }
    });

  /** Log lines of one request. */
  const linesOf = (id: string) => gateway.logs.filter((line) => line['request_id'] === id);

  it('is logged as a response, not as aborted', async () => {
    await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'x-request-id': 'early-error-1', 'content-type': 'application/json' },
      body: 'x'.repeat(3_000_000),
    });
    await until('the request is logged', () => linesOf('early-error-1').length > 0);
    const [line] = linesOf('early-error-1');
    expect(line).to.include({ msg: 'request', status: 401 });
    expect(line).not.to.have.property('aborted');
  });

  it('is not logged for a caller who disconnects in the middle of the body, except for a debug line and an access line', async () => {
    const socket = await connectTo(gateway.url);
    const head = [
      'POST /v1/chat/completions HTTP/1.1',
      'host: x',
      'x-request-id: hang-up-1',
      `authorization: Bearer ${gateway.key}`,
      'content-type: application/json',
      'content-length: 1000',
    ];
    socket.write(`${head.join('\r\n')}\r\n\r\n{"model"`);
    await new Promise((resolve) => setTimeout(resolve, 50));
    socket.destroy();
    await until('the request is logged', () => linesOf('hang-up-1').length >= 2);
    const lines = linesOf('hang-up-1');
    expect(lines.map(({ level, msg }) => `${String(level)}: ${String(msg)}`).sort()).to.deep.equal([
      'debug: the caller disconnected before its request was complete',
      'info: request',
    ]);
    for (const line of lines) expect(line).not.to.have.any.keys('err', 'error');
    expect(lines.find(({ msg }) => msg === 'request')).to.include({ status: 499, aborted: true });
  });
});
