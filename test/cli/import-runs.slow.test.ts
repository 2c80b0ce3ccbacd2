import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { useTempFolder } from '../support/folders.ts';
import { runCli, startCli } from '../support/processes/cli.ts';
import { freePort } from '../support/processes/server-process.ts';
import { completion } from '../support/vendors/openai-vendor.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';

const FIXTURES = path.join(import.meta.dirname, '..', 'fixtures', 'import');

/** Models that a caller of the other gateway requests, by file: those of vendors that a test can script. */
const MODELS: Readonly<Record<string, readonly string[]>> = {
  'litellm-docs/quick-start.yaml': ['vllm-models', 'mistral-7b'],
  'litellm-docs/load-balancing.yaml': ['zephyr-beta'],
  'litellm-docs/fallbacks.yaml': ['my-fallback-model', 'gpt-4'],
  'litellm-docs/virtual-keys.yaml': ['gpt-4', 'my-free-tier'],
  'litellm-docs/credentials.yaml': ['small', 'gpt-4o'],
  'portkey-docs/loadbalance.json': ['loadbalance'],
  'portkey-docs/fallback.json': ['fallback'],
  'portkey-docs/retry.json': ['retry'],
  'portkey-docs/cache.json': ['cache'],
  'portkey-docs/conditional.json': ['conditional', 'conditional-base'],
};

describe('a configuration of another gateway, as in its documents', () => {
  const folder = useTempFolder('import-runs');
  let vendor: ScriptedUpstream;

  before(async () => {
    vendor = await startScriptedUpstream(respondWith(200, completion('from the vendor')));
  });
  after(() => vendor.close());

  it('is in the fixtures, and all of them are tested', () => {
    const files = ['litellm-docs', 'portkey-docs'].flatMap((each) =>
      readdirSync(path.join(FIXTURES, each)).map((file) => `${each}/${file}`),
    );
    expect(Object.keys(MODELS)).to.have.members(files);
  });

  for (const [fixture, models] of Object.entries(MODELS))
    it(`${fixture} is imported, started unchanged, and responds to its callers`, async () => {
      const own = path.join(folder, path.basename(fixture).replace(/\W/g, '-'));
      mkdirSync(own);
      const source = path.join(own, path.basename(fixture));
      const text = readFileSync(path.join(FIXTURES, fixture), 'utf8');
      const closed = `127.0.0.1:${await freePort()}`;
      writeFileSync(source, text.replaceAll('http://vendor.example', vendor.url).replaceAll('127.0.0.1:8002', closed));
      const words = ['import', fixture.replace(/-docs.*/, ''), source, '--out', path.join(own, 'out')];
      const imported = await runCli(words, own);
      expect(imported.code, imported.stderr).to.equal(0);
      const env = {
        ...{ AZURE_API_BASE: vendor.url, AZURE_API_KEY: 'azure-key', AZURE_API_KEY_EU: 'eu', AZURE_API_KEY_CA: 'ca' },
        ...{ AWS_ACCESS_KEY_ID: 'AKIDEXAMPLE', AWS_SECRET_ACCESS_KEY: 'aws-secret' },
        ...{ OPENAI_API_KEY: 'openai-key', ANTHROPIC_API_KEY: 'anthropic-key', OPENAI_VIRTUAL_KEY_KEY: 'key' },
        ...{ ANTHROPIC_PROD_KEY: 'key', HTTPS_PROXY: `http://${closed}` },
      };
      const gateway = startCli(['start', '--port', '0'], path.join(own, 'out'), env);
      try {
        const [, url = ''] = await gateway.seen(/listens on (http:\S+)/);
        const [key = ''] = await gateway.seen(/tg_\w+/);
        for (const model of models) {
          const response = await fetch(`${url}/v1/chat/completions`, {
            method: 'POST',
            headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
            body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hi' }] }),
          });
          expect(await response.text(), model).to.include('from the vendor');
        }
      } finally {
        gateway.child.kill('SIGTERM');
        await gateway.finished;
      }
    });
});
