import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { createGateway, type Gateway } from '../../../../core/gateway.ts';
import { makeFolder, removeFolders } from '../../../support/folders.ts';
import { partOfTests } from '../../../support/generated-cases.ts';
import { fixture } from '../../../support/speech/sound.ts';
import { respondWith, type Script, startScriptedUpstream } from '../../../support/vendors/scripted-upstream.ts';
import { type AiRig, fileOf, KEY, startAi } from './rig.ts';

const OPENAI = { package: fileOf('@ai-sdk/openai'), options: {} };

/** Answers as OpenAI does, by path. */
const vendor: Script = ({ request, send }) => {
  if (/\/embeddings$/.test(request.path)) {
    const data = [{ object: 'embedding', index: 0, embedding: [0.5, 1] }];
    return send(respondWith(200, { object: 'list', data, model: 'm', usage: { prompt_tokens: 7, total_tokens: 7 } }));
  }
  if (/\/images\//.test(request.path))
    return send(respondWith(200, { created: 1_713_833_628, data: [{ b64_json: 'iVBORw0KGgo=' }] }));
  if (/\/speech$/.test(request.path)) return send(respondWith(200, fixture('hi.wav'), { 'content-type': 'audio/wav' }));
  return send(respondWith(200, { text: 'People were swimming.' }));
};

interface OperationCall {
  readonly path: string;
  readonly body: () => object;
}

function sound(model: string): FormData {
  const form = new FormData();
  form.append('model', model);
  form.append('file', new Blob([Buffer.alloc(400, 7)], { type: 'audio/wav' }), 'sound.wav');
  return form;
}

/** A call of each operation. */
const callsOf = (model: string): Readonly<Record<string, OperationCall>> => ({
  embeddings: { path: '/v1/embeddings', body: () => ({ model, input: 'Hi' }) },
  images: { path: '/v1/images/generations', body: () => ({ model, prompt: 'A beach' }) },
  speech: { path: '/v1/audio/speech', body: () => ({ model, input: 'Hello', response_format: 'wav' }) },
  transcription: { path: '/v1/audio/transcriptions', body: () => sound(model) },
});

function requestOf({ path: to, body: make }: OperationCall, url: string, key: string): Request {
  const body = make();
  const isForm = body instanceof FormData;
  return new Request(url + to, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, ...(!isForm && { 'content-type': 'application/json' }) },
    body: isForm ? body : JSON.stringify(body),
  });
}

const STAMP = `export default {
  name: 'stamp', kind: 'policy', apiVersion: 1,
  setup(api) {
    api.hook('send', (call, request) => ({ ...request, headers: { ...request.headers, 'x-stamp': request.path } }));
  },
};`;

/** Package of specification v4 whose models send a second request elsewhere, or throw. */
const ODD = `export function createOdd(settings) {
  const post = (url) => settings.fetch(url, { method: 'POST', body: '{}', headers: { 'x-key': settings.apiKey } });
  const work = {
    elsewhere: async () => { await post(settings.baseURL + '/x'); await post(settings.other); },
    throws: () => { throw new TypeError('undefined is not a function'); },
  };
  const model = (id) => ({ specificationVersion: 'v4', modelId: id, doEmbed: work[id], doGenerate: work[id] });
  return { specificationVersion: 'v4', languageModel: model, embeddingModel: model, imageModel: model, speechModel: model, transcriptionModel: model };
}`;

for (const [at, operation] of Object.keys(callsOf('')).entries()) {
  const { describe, it } = partOfTests(at);
  describe(`${operation} by a package of the AI SDK, on the way to its vendor`, () => {
    let rig: AiRig | undefined;
    const gateways: Gateway[] = [];
    afterEach(async () => {
      await rig?.stop();
      rig = undefined;
      await Promise.all(gateways.splice(0).map((gateway) => gateway.close()));
      removeFolders();
    });
    const start = async (...args: Parameters<typeof startAi>): Promise<AiRig> => {
      rig = await startAi(...args);
      rig.vendor.script(vendor);
      return rig;
    };
    const send = (model = 'acme/m-1'): Promise<Response> => {
      const { gateway } = rig as AiRig;
      return fetch(requestOf(callsOf(model)[operation] as OperationCall, gateway.url, gateway.key));
    };

    it('44: passes `send` hooks, with the trace of the call', async () => {
      const options = { config: { plugins: ['./stamp.mjs'] }, files: { 'stamp.mjs': STAMP } };
      const { vendor: acme, gateway } = await start('@ai-sdk/openai', OPENAI, options);
      const response = await send();
      expect(response.status, gateway.logText()).to.equal(200);
      const [request] = acme.requests;
      expect(request?.headers['x-stamp']).to.equal(request?.path);
    });

    it('44: is sent by the keys of a pool, and rests the one that is refused', async () => {
      const apiKeys = ['one', 'two'].map((name) => ({ name, key: `sk-pool-${name}-0123` }));
      const { vendor: acme } = await start('@ai-sdk/openai', { ...OPENAI, apiKey: undefined, apiKeys });
      acme.script((wire) =>
        wire.request.headers['authorization']?.includes('one')
          ? wire.send(respondWith(401, { error: { message: 'bad key', code: 'invalid_api_key' } }))
          : vendor(wire),
      );
      for (let n = 0; n < 4; n++) expect((await send()).status).to.equal(200);
      const keys = acme.requests.map(({ headers }) => headers['authorization']);
      expect(keys.filter((key) => key === 'Bearer sk-pool-two-0123')).to.have.length(4);
      expect(keys.filter((key) => key === 'Bearer sk-pool-one-0123').length).to.be.lessThan(2);
    });

    it('44: keeps its key from other hosts, which the log names', async () => {
      const { vendor: acme, gateway } = await start(
        './odd.mjs',
        { models: ['elsewhere'], options: { other: 'http://localhost:9/steal' } },
        { files: { 'odd.mjs': ODD } },
      );
      const response = await send('acme/elsewhere');
      expect([response.status, acme.requests.length], gateway.logText()).to.deep.equal([503, 1]);
      expect(acme.requests[0]?.headers['x-key']).to.equal(KEY);
      expect(gateway.logText()).to.include('"host":"localhost:9"').and.not.to.include(KEY);
      expect(await response.text()).not.to.include('localhost');
    });

    it('44: is held to the deadlines of its provider', async () => {
      const { vendor: acme } = await start('@ai-sdk/openai', { ...OPENAI, timeouts: { firstByte: '200ms' } });
      acme.script((wire) => wire.hang());
      const response = await send();
      expect([response.status, (await response.text()).includes('provider_timeout')]).to.deep.equal([503, true]);
    });

    // Speech has one target, whichever its vendor.
    if (operation !== 'speech')
      it('44: goes on at the next target if the package throws', async () => {
        const second = { plugin: 'ai-sdk', ...OPENAI, apiKey: KEY, models: ['m-1'] };
        const other = await startScriptedUpstream(vendor);
        try {
          const providers = { second: { ...second, baseUrl: `${other.url}/v1` } };
          await start(
            './odd.mjs',
            { models: ['throws'] },
            { files: { 'odd.mjs': ODD }, config: { models: { both: ['acme/throws', 'second/m-1'] }, providers } },
          );
          const response = await send('both');
          expect([response.status, response.headers.get('x-tollgate-provider')]).to.deep.equal([200, 'second']);
        } finally {
          await other.close();
        }
      });

    it('44: is recorded without the key, and replayed without the vendor', async () => {
      const acme = await startScriptedUpstream(vendor);
      const call = callsOf('acme/m-1')[operation] as OperationCall;
      const run = async (options: object): Promise<readonly [number, Buffer]> => {
        const provider = { plugin: 'ai-sdk', ...OPENAI, apiKey: KEY, baseUrl: `${acme.url}/v1`, models: ['m-1'] };
        const config = {
          ...{ providers: { acme: provider }, auth: { 'api-key': { bootstrap: true } }, logging: { level: 'silent' } },
        };
        const gateway = await createGateway({
          ...{ config: config as never, listen: false, cwd: makeFolder(), env: {}, ...options },
        });
        gateways.push(gateway);
        const key = gateway.announcements.find(({ use }) => use === 'key')?.value ?? '';
        const response = await gateway.inject(requestOf(call, 'http://localhost', key));
        return [response.status, Buffer.from(await response.arrayBuffer())];
      };
      const record = makeFolder();
      const [status, first] = await run({ record });
      expect(status, first.toString()).to.equal(200);
      await Promise.all(gateways.splice(0).map((gateway) => gateway.close()));
      const files = readdirSync(record);
      expect(files.length).to.be.greaterThan(1);
      for (const file of files) expect(readFileSync(path.join(record, file), 'latin1')).not.to.include(KEY);
      await acme.close();
      const [replayed, second] = await run({ replay: record });
      expect(replayed, second.toString()).to.equal(200);
      const bare = (body: Buffer): string => body.toString('latin1').replace(/"created":\d+|"id":"[\w-]+"/g, '');
      expect(bare(second)).to.equal(bare(first));
    });
  });
}
