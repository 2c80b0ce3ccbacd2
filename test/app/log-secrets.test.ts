import { expect } from 'chai';
import { connectTo } from '../support/clients/raw-socket.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { until } from '../support/wait.ts';

/** Auth plugin that reads the body, as a signature check does. */
const READER = `export default {
  name: 'reader', kind: 'auth', apiVersion: 1,
  setup(api) {
    api.hook('authenticate', { order: 'pre', async handler({ rawBody }) { await rawBody(); return undefined; } });
  },
};`;

describe('the log of callers’ errors', () => {
  describe('with keys in paths', () => {
    let gateway: TestGateway;
    before(async () => {
      gateway = await startGateway();
    });
    after(() => gateway?.stop());

    const KEYS = [
      'tg_M1F2ON5M0T9j_Bha94TkVvjh3wx1ntoFqpdpCxj9fhqqZ9xbeDCFbQuP4J6AhD',
      'sk-proj-AbCdEf0123456789',
      'sk-short',
      'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln',
      'Bearer%20tg_M1F2ON5M0T9j',
      '0123456789abcdef0123456789abcdef',
    ];
    for (const key of KEYS)
      it(`hides ${key.slice(0, 14)}…`, async () => {
        const id = `path-${KEYS.indexOf(key)}-0000`;
        await gateway.get(`/v1/${key}/models`, { 'x-request-id': id });
        await until('the line is there', () => gateway.logs.some((line) => line['request_id'] === id));
        expect(gateway.logText()).not.to.include(key);
        expect(gateway.logs.find((line) => line['request_id'] === id)?.['path']).to.equal('/v1/[redacted]/models');
      });

    it('shows a path without a key', async () => {
      await gateway.get('/v1/chat/completionz', { 'x-request-id': 'path-plain-000' });
      await until('the line is there', () => gateway.logs.some((line) => line['request_id'] === 'path-plain-000'));
      expect(gateway.logText()).to.include('/v1/chat/completionz');
    });
  });

  for (const [title, options] of [
    ['', {}],
    [' that a plugin reads', { auth: { 'api-key': { bootstrap: true }, reader: { plugin: './reader.mjs' } } }],
  ] as const)
    it(`reports no internal error when a caller disconnects in the middle of a body${title}`, async () => {
      const gateway = await startGateway(options, { files: { 'reader.mjs': READER }, level: 'debug' });
      const socket = await connectTo(gateway.url);
      const head = `authorization: Bearer ${gateway.key}\r\ncontent-type: application/json\r\ncontent-length: 1000`;
      socket.write(`POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n${head}\r\n\r\n{"model":`);
      await new Promise((resolve) => setTimeout(resolve, 100));
      socket.destroy();
      await until('the request is over', () => gateway.logs.some(({ msg }) => msg === 'request'));
      expect(gateway.logs.filter(({ level }) => level === 'error')).to.deep.equal([]);
      expect(gateway.logText()).not.to.include('internal');
      await gateway.stop();
    });
});
