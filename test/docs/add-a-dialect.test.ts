import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect } from 'chai';
import { importPlugin } from '../../config/import-plugin.ts';
import type { Plugin } from '../../contract/index.ts';
import { testDialect } from '../conformance/dialect.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { readBlocks } from '../support/pages/read-blocks.ts';

/** Dialect of docs/plugins/11-dialect.md and its fixtures, as a third party would have them. */
const blocks = readBlocks().filter(({ page }) => page === 'docs/plugins/11-dialect.md');
const code = blocks.find(({ text }) => text.includes("kind: 'dialect'"))?.text ?? '';
const fixtures = blocks.filter(({ language }) => language === 'json').map(({ text }) => text);

const folder = mkdtempSync(path.join(os.tmpdir(), 'tollgate-plain-'));
mkdirSync(path.join(folder, 'fixtures'));
writeFileSync(path.join(folder, 'plain.ts'), code);
for (const [index, text] of fixtures.entries())
  writeFileSync(
    path.join(folder, 'fixtures', text.includes('"complete"') ? 'format.json' : `request-${index}.json`),
    text,
  );
const plugin = await importPlugin('./plain.ts', { kind: 'dialect', builtins: [], baseDir: folder });

describe('the dialect of docs/plugins/11-dialect.md', () => {
  after(() => rmSync(folder, { recursive: true }));
  testDialect({ plugin: plugin as Plugin<object, 'dialect'>, fixtures: pathToFileURL(`${folder}/fixtures/`) });

  describe('in a gateway', () => {
    let gateway: TestGateway;
    before(async () => {
      gateway = await startGateway({ dialects: { plain: { plugin: './plain.ts' } } }, { files: { 'plain.ts': code } });
    });
    after(() => gateway.stop());

    it('answers a request whole, and as events', async () => {
      const body = { model: 'echo/echo', say: 'Hello there' };
      const whole = (await (await gateway.post('/plain', body)).json()) as object;
      expect(whole).to.include({ text: 'Hello there', end: 'stop' });
      const events = await (await gateway.post('/plain', { ...body, stream: true })).text();
      const texts = [...events.matchAll(/"text":"(.*?)"/g)].map(([, text]) => text);
      expect(texts.join('')).to.equal('Hello there');
      expect(events).to.match(/"end":"stop","tokens":\[\d+,\d+\]\}\n\n$/);
    });

    it('answers errors in its format, with the caller’s own field', async () => {
      const wrong = await gateway.post('/plain', { model: 'echo/echo', say: 1 });
      expect(wrong.status).to.equal(400);
      expect(await wrong.json()).to.include({ error: 'invalid_request', at: 'say' });
      const none = await gateway.post('/plain', { model: 'echo/nothing', say: 'x' });
      expect(await none.json()).to.include({ error: 'unsupported_model', at: 'model' });
    });
  });
});
