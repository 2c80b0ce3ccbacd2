import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { expect } from 'chai';
import { openSqlite } from '../../plugins/stores/sqlite/index.ts';
import { startGateway } from '../support/gateways/gateway.ts';
import { pluginFile } from '../support/plugins/plugin-file.ts';
import { openAiVendor, tokenPrices } from '../support/vendors/openai-vendor.ts';
import {
  chunk,
  type Script,
  type ScriptedUpstream,
  SSE_HEAD,
  startScriptedUpstream,
} from '../support/vendors/scripted-upstream.ts';

const CHUNK = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm' };
/** Sends eight bytes of output, then stalls. */
const beginning: Script = async (wire) => {
  const choices = [{ index: 0, delta: { content: 'b'.repeat(8) }, finish_reason: null }];
  await wire.send(SSE_HEAD);
  await wire.send(chunk(`data: ${JSON.stringify({ ...CHUNK, choices })}\n\n`));
  await wire.hang();
};

/** Calls that a drain interrupts. Each owes one nano-dollar per token: 4 for the message, 2 for its 8 bytes. */
const CUT: readonly {
  readonly what: string;
  readonly stream: boolean;
  readonly script: Script;
  readonly owes: number;
}[] = [
  { what: 'a call without an answer', stream: false, script: (wire) => wire.hang(), owes: 6 },
  { what: 'a stream in its middle', stream: true, script: beginning, owes: 8 },
];

/** Plugin that calls a model from its route without awaiting the result. */
const OWN_CALLS = pluginFile({
  name: 'own-calls',
  kind: 'policy',
  setup: `api.route({
    method: 'POST', path: '/own', summary: 'x', auth: ['key'], responses: { 200: 'x' }, body: { type: 'object' },
    handler(ctx) {
      const { principal, requestId, body: { stream } } = ctx.state;
      const request = { model: 'one/m', max_tokens: 50, stream, messages: [{ role: 'user', content: 'a'.repeat(8) }] };
      const send = async () => {
        const response = await api.chat(request, { principal, requestId });
        if (stream) for await (const chunk of response) void chunk;
      };
      send().catch((error) => api.log.info('ended by ' + error.code));
      ctx.body = {};
    },
  });`,
});

describe('a gateway that is shut down', () => {
  let upstream: ScriptedUpstream;
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(path.join(os.tmpdir(), 'tollgate-drain-'));
    upstream = await startScriptedUpstream();
  });
  afterEach(async () => {
    await upstream.close();
    await rm(folder, { recursive: true, force: true });
  });

  for (const { what, stream, script, owes } of CUT) {
    it(`has charged ${what} before it ends, and released all reservations`, async () => {
      upstream.script(script);
      const gateway = await startGateway({
        server: { port: 0, drainTimeout: '100ms' },
        store: `sqlite:${folder}`,
        providers: {
          one: openAiVendor(upstream, { prices: tokenPrices(0.001, 0.001) }),
        },
      });
      const messages = [{ role: 'user', content: 'a'.repeat(8) }];
      const pending = gateway.post('/v1/chat/completions', { model: 'one/m', max_tokens: 50, stream, messages });
      await upstream.request(0);
      if (stream) await (await pending).body?.getReader().read();
      await gateway.stop();
      await pending.catch(() => undefined);
      const store = await openSqlite({ folder });
      try {
        expect(await store.ledger.balance('local')).to.include({ held: 0, spent: owes });
      } finally {
        await store.close();
      }
    });
  }

  for (const stream of [false, true])
    it(`has cancelled and charged a plugin’s own ${stream ? 'stream' : 'call'} before its plugins close @slow`, async () => {
      upstream.script(stream ? beginning : (wire) => wire.hang());
      const gateway = await startGateway(
        {
          server: { port: 0, drainTimeout: '100ms' },
          store: `sqlite:${folder}`,
          providers: {
            one: openAiVendor(upstream, { prices: tokenPrices(0.001, 0.001) }),
          },
          policies: { own: { plugin: './own.mjs' } },
        },
        { files: { 'own.mjs': OWN_CALLS } },
      );
      expect((await gateway.post('/own', { stream })).status).to.equal(200);
      await upstream.request(0);
      await gateway.stop();
      expect(gateway.logText()).to.include('ended by shutting_down').and.not.to.include('closing, although');
      const store = await openSqlite({ folder });
      try {
        expect(await store.ledger.balance('local')).to.include({ held: 0, spent: stream ? 8 : 6 });
      } finally {
        await store.close();
      }
    });
});
