import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect } from 'chai';
import { importPlugin } from '../../config/import-plugin.ts';
import type { Plugin } from '../../contract/index.ts';
import { testProvider } from '../conformance/provider.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { readBlocks } from '../support/pages/read-blocks.ts';
import {
  respondWith,
  type ScriptedUpstream,
  sse,
  startScriptedUpstream,
} from '../support/vendors/scripted-upstream.ts';

/** Codec of docs/plugins/2-codec.md, as a third party would have it. */
const code = readBlocks().find(
  ({ page, text }) => page === 'docs/plugins/2-codec.md' && text.startsWith('// parrot.ts'),
);
const RESPONSE = { id: 'p-1', text: 'Pretty Polly', why: 'done', spent: { heard: 5, said: 2 } };
const EVENTS = [{ id: 'p-1', text: 'Pretty ' }, { text: 'Polly' }, { why: 'done', spent: { heard: 5, said: 2 } }];
const STREAM = EVENTS.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
const ERRORS = [
  { name: 'too many', status: 429, body: { wrong: 'slow down' }, class: 'rate_limit' },
  { name: 'a wrong key', status: 401, body: { wrong: 'who are you' }, class: 'authentication' },
];

const folder = mkdtempSync(path.join(os.tmpdir(), 'tollgate-parrot-'));
mkdirSync(path.join(folder, 'fixtures'));
writeFileSync(path.join(folder, 'package.json'), '{"type":"module"}');
writeFileSync(path.join(folder, 'parrot.ts'), code?.text ?? '');
writeFileSync(path.join(folder, 'fixtures/chat.json'), JSON.stringify(RESPONSE));
writeFileSync(path.join(folder, 'fixtures/stream.sse'), STREAM);
const SAID = { choices: [{ message: { content: 'Pretty Polly' }, finish_reason: 'stop' }] };
const STREAMED = { choices: [{ content: 'Pretty Polly', finish_reason: 'stop' }] };
writeFileSync(path.join(folder, 'fixtures/chat.json.expected.json'), JSON.stringify(SAID));
writeFileSync(path.join(folder, 'fixtures/stream.sse.expected.json'), JSON.stringify(STREAMED));
writeFileSync(path.join(folder, 'fixtures/errors.json'), JSON.stringify(ERRORS));
const plugin = (await importPlugin('./parrot.ts', { kind: 'provider', builtins: [], baseDir: folder })) as Plugin<
  object,
  'provider'
>;

describe('the codec of docs/plugins/2-codec.md', () => {
  after(() => rmSync(folder, { recursive: true }));

  testProvider({
    plugin,
    fixtures: pathToFileURL(`${folder}/fixtures/`),
    errorEvent: 'data: {"wrong":"it flew away"}\n\n',
  });

  describe('in a gateway', () => {
    let upstream: ScriptedUpstream;
    let gateway: TestGateway;
    before(async () => {
      upstream = await startScriptedUpstream();
      const parrot = { plugin: path.join(folder, 'parrot.ts'), apiKey: 'k', baseUrl: upstream.url };
      gateway = await startGateway({ providers: { parrot } });
    });
    after(async () => {
      await gateway.stop();
      await upstream.close();
    });
    const request = { model: 'parrot/polly', messages: [{ role: 'user' as const, content: 'Hi' }] };

    it('answers the official client, whole and as a stream', async () => {
      upstream.script(respondWith(200, RESPONSE));
      const { choices, usage } = await gateway
        .openai()
        .chat.completions.create({ ...request, max_completion_tokens: 9 });
      expect(choices[0]?.message.content).to.equal('Pretty Polly');
      expect(usage?.total_tokens).to.equal(7);
      expect(upstream.requests.at(-1)?.json()).to.deep.equal({
        ...{ model: 'polly', says: [{ who: 'caller', text: 'Hi' }], most: 9, live: false },
      });
      upstream.script(sse(...EVENTS));
      let text = '';
      for await (const chunk of await gateway.openai().chat.completions.create({ ...request, stream: true }))
        text += chunk.choices[0]?.delta.content ?? '';
      expect(text).to.equal('Pretty Polly');
    });

    it('refuses what the vendor cannot do, and tells what it leaves out', async () => {
      const refused = await gateway.post('/v1/chat/completions', { ...request, stop: ['x'] });
      expect(refused.status).to.equal(400);
      expect(await refused.json()).to.have.nested.property('error.param', 'stop');
      upstream.script(respondWith(200, RESPONSE));
      const reported = await gateway.post('/v1/chat/completions', { ...request, seed: 1 });
      expect(reported.headers.get('x-tollgate-dropped')).to.equal('seed');
    });
  });
});
