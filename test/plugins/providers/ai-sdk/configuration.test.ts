import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { mock } from 'node:test';
import { expect } from 'chai';
import OpenAI from 'openai';
import { createGateway, type Gateway } from '../../../../core/gateway.ts';
import { openPackage } from '../../../../plugins/providers/ai-sdk/package.ts';
import { makeFolder, removeFolders } from '../../../support/folders.ts';
import { startScriptedUpstream } from '../../../support/vendors/scripted-upstream.ts';
import { fileOf, KEY, PACKAGES, respondAs, startAi } from './rig.ts';

const FILES = {
  'none.mjs': 'export const provider = {};',
  'two.mjs': 'export const createOne = () => ({}); export const createTwo = () => ({});',
  'old.mjs': "export const createOld = () => ({ specificationVersion: 'v1', languageModel: () => ({}) });",
  'throws.mjs': "export const createThrowing = () => { throw new Error('the region is missing'); };",
  'broken.mjs': "throw new Error('no such file');",
  'nothing.mjs': 'export const createNothing = () => undefined;',
  'aliases.mjs':
    "export const createNew = () => ({ specificationVersion: 'v3', languageModel: () => ({}) }); export { createNew as createOld };",
  'hangs.mjs': 'await new Promise(() => {});',
  'prints.mjs':
    "console.log('imported', 1); export const createPrinting = () => ({ specificationVersion: 'v3', languageModel: () => ({}) });",
  'listens.mjs':
    "import net from 'node:net'; export const createListening = () => { net.createServer().listen(0, '127.0.0.1').unref(); return {}; };",
};

describe('the configuration of a package of the AI SDK', () => {
  for (const [what, more, problem, hint] of [
    [
      'is missing',
      { package: '@ai-sdk/missing-vendor' },
      'which is not installed',
      'npm install @ai-sdk/missing-vendor',
    ],
    ['is a missing file', { package: './missing.mjs' }, 'which is not installed', 'Check the path'],
    [
      'has another factory',
      { package: './two.mjs', factory: 'createOnce' },
      'does not export',
      'Did you mean "createOne"?',
    ],
    [
      'has another factory with no similar name',
      { package: './two.mjs', factory: 'makeProvider' },
      'does not export',
      'Set one of: createOne, createTwo.',
    ],
    ['has several factories', { package: './two.mjs' }, 'has several functions', 'Set one of: createOne, createTwo.'],
    ['has no factory', { package: './none.mjs' }, 'exports no function', 'a provider package of the AI SDK'],
    ['has an old specification', { package: './old.mjs' }, 'specification version v1', 'v2, v3 or v4'],
    ['throws while it is created', { package: './throws.mjs' }, 'the region is missing', 'Check `options`'],
    ['throws while it is imported', { package: './broken.mjs' }, 'no such file', 'another version'],
    ['creates nothing', { package: './nothing.mjs' }, 'no function of', 'createNothing'],
    ['opens a server', { package: './listens.mjs' }, 'may not open a server', 'another version'],
    ['is not named', { package: undefined }, 'package', 'acme'],
  ] as const)
    it(`is refused if it ${what}, with the option and the remedy`, async () => {
      const error: unknown = await startAi('', more, { files: FILES }).then(
        (rig) => rig.stop(),
        (thrown: unknown) => thrown,
      );
      const { message, problems } = error as { message?: string; problems?: unknown };
      const said = `${message} ${JSON.stringify(problems)}`.replaceAll('\\"', '"');
      expect(said).to.include(problem).and.include(hint);
      expect(said).to.match(/acme/);
    });

  it('44: is refused if its import hangs, after a limit', async () => {
    const folder = makeFolder();
    writeFileSync(path.join(folder, 'hangs.mjs'), FILES['hangs.mjs']);
    mock.timers.enable({ apis: ['setTimeout'] });
    try {
      const opening = openPackage({ package: './hangs.mjs', settings: {}, baseDir: folder });
      mock.timers.tick(20_000);
      const error: unknown = await opening.catch((thrown: unknown) => thrown);
      expect(String(error)).to.include('it did not end within 20 s').and.include('./hangs.mjs');
    } finally {
      mock.timers.reset();
      removeFolders();
    }
  });

  it('44: may have several names for its function', async () => {
    const rig = await startAi('./aliases.mjs', {}, { files: FILES });
    await rig.stop();
  });

  it('44: prints into the log while it is imported', async () => {
    const rig = await startAi('./prints.mjs', {}, { files: FILES });
    try {
      expect(rig.gateway.logText()).to.include('"text":"imported 1"').and.include('./prints.mjs');
    } finally {
      await rig.stop();
    }
  });

  it('keeps its options and its key secret', async () => {
    const rig = await startAi('@ai-sdk/openai-compatible', { options: { name: 'acme', secret: 'canary-1234567' } });
    try {
      const said = JSON.stringify(rig.gateway.logs);
      expect(said).not.to.include('canary').and.not.to.include(KEY);
    } finally {
      await rig.stop();
    }
  });

  it('knows models and prices of its vendor, and windows of others', async () => {
    const rig = await startAi('@ai-sdk/openai-compatible', {
      ...{ vendor: 'groq', prices: undefined, models: ['openai/gpt-oss-120b', 'mine'], windows: { mine: 4321 } },
    });
    try {
      const { data } = (await (await rig.gateway.get('/v1/models')).json()) as {
        data: { id: string; context_length?: number }[];
      };
      const windows = Object.fromEntries(data.map(({ id, context_length: tokens }) => [id, tokens]));
      expect(windows).to.include({ 'acme/openai/gpt-oss-120b': 131_072, 'acme/mine': 4321 });
      expect(data.map(({ id }) => id)).to.include.members(['acme/openai/gpt-oss-120b', 'acme/mine']);
      rig.vendor.script(respondAs('openai', { pieces: [{ text: 'Hello' }] }));
      const send = (model: string) =>
        rig.gateway.post('/v1/chat/completions', { model, messages: [{ role: 'user', content: 'Hi' }] });
      expect(Number((await send('acme/openai/gpt-oss-120b')).headers.get('x-tollgate-cost-usd'))).to.be.greaterThan(0);
      expect((await send('acme/mine')).headers.get('x-tollgate-cost-usd')).to.equal('unknown');
    } finally {
      await rig.stop();
    }
  });
});

describe('exchanges of a package of the AI SDK', () => {
  const gateways: Gateway[] = [];
  afterEach(async () => {
    await Promise.all(gateways.splice(0).map((gateway) => gateway.close()));
    removeFolders();
  });

  it('are recorded without the key, and replayed without the vendor', async () => {
    const vendor = await startScriptedUpstream(respondAs('openai', { pieces: [{ text: 'Good morning' }] }));
    const name = '@ai-sdk/openai-compatible';
    const send = async (options: object): Promise<unknown> => {
      const acme = {
        ...{ plugin: 'ai-sdk', package: fileOf(name), options: PACKAGES[name]?.options },
        ...{ baseUrl: `${vendor.url}/v1`, apiKey: KEY, models: ['m'] },
      };
      const gateway = await createGateway({
        config: {
          ...{ providers: { acme }, auth: { 'api-key': { bootstrap: true } }, logging: { level: 'silent' } },
        },
        ...{ listen: false, cwd: makeFolder(), env: {}, ...options },
      });
      gateways.push(gateway);
      const apiKey = gateway.announcements.find(({ use }) => use === 'key')?.value ?? '';
      const client = new OpenAI({ apiKey, baseURL: 'http://localhost/v1', maxRetries: 0, fetch: gateway.inject });
      const { choices } = await client.chat.completions.create({
        ...{ model: 'acme/m', messages: [{ role: 'user', content: 'Hello' }] },
      });
      return choices[0]?.message.content;
    };
    const record = makeFolder();
    expect(await send({ record })).to.equal('Good morning');
    await Promise.all(gateways.splice(0).map((gateway) => gateway.close()));
    const files = readdirSync(record).toSorted();
    expect(files).to.deep.equal(['chat-completions-0001.exchange', 'chat-completions-0001.json']);
    for (const file of files) expect(readFileSync(path.join(record, file), 'utf8')).not.to.include(KEY);
    await vendor.close();
    expect(await send({ replay: record })).to.equal('Good morning');
  });
});
