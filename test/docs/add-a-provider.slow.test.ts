import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect } from 'chai';
import type { Plugin } from '../../contract/index.ts';
import { testProvider } from '../conformance/provider.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';

const PAGE = readFileSync(new URL('../../docs/plugins/2-codec.md', import.meta.url), 'utf8');
const COMPATIBLE = new URL('../../plugins/providers/openai-compatible.ts', import.meta.url).href;

/** Files of the page: fenced blocks with a path. */
const files = new Map(
  [...PAGE.matchAll(/^```\w+ (\S+)\n([\s\S]*?)^```$/gm)].map(([, name = '', text = '']) => [name, text]),
);
const source = files.get('plugins/providers/acme.ts') ?? '';
const folder = mkdtempSync(path.join(os.tmpdir(), 'tollgate-acme-'));
for (const [name, text] of files) {
  const file = path.join(folder, name);
  mkdirSync(path.dirname(file), { recursive: true });
  // Only difference to the page: an absolute import, because the folder is not in this project.
  writeFileSync(file, text.replace("'./openai-compatible.ts'", JSON.stringify(COMPATIBLE)));
}
writeFileSync(path.join(folder, 'package.json'), '{"type":"module"}');
const plugin = (await import(pathToFileURL(path.join(folder, 'plugins/providers/acme.ts')).href)) as {
  readonly default: Plugin<object, 'provider'>;
};

describe('the provider of docs/plugins/2-codec.md', () => {
  it('adds a vendor with one file of at most 15 lines and two fixtures', () => {
    expect([...files.keys()]).to.deep.equal([
      'plugins/providers/acme.ts',
      'test/fixtures/acme/chat.json',
      'test/fixtures/acme/stream.sse',
      'test/fixtures/acme/chat.json.expected.json',
      'test/fixtures/acme/stream.sse.expected.json',
    ]);
    expect(source.trim().split('\n')).to.have.length.of.at.most(15);
  });

  testProvider({
    plugin: plugin.default,
    fixtures: new URL('test/fixtures/acme/', pathToFileURL(`${folder}/`)),
  });

  describe('in a gateway', () => {
    let upstream: ScriptedUpstream;
    let gateway: TestGateway;

    before(async () => {
      upstream = await startScriptedUpstream();
      const acme = {
        plugin: path.join(folder, 'plugins/providers/acme.ts'),
        apiKey: 'k',
        baseUrl: `${upstream.url}/v1`,
      };
      gateway = await startGateway({ providers: { acme } });
    });
    after(async () => {
      await gateway.stop();
      await upstream.close();
      rmSync(folder, { recursive: true, force: true });
    });

    it('answers the official client', async () => {
      upstream.script(respondWith(200, JSON.parse(files.get('test/fixtures/acme/chat.json') ?? '')));
      const { choices } = await gateway.openai().chat.completions.create({
        model: 'acme/acme-1',
        messages: [{ role: 'user', content: 'Hi' }],
        max_completion_tokens: 5,
        seed: 1,
      });
      expect(choices[0]?.message.content).to.equal('Hello');
      expect(upstream.requests.at(-1)?.json()).to.include({ max_tokens: 5 }).and.not.have.property('seed');
    });
  });
});
