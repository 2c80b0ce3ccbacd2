import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { loadProviders } from '../support/plugins/all-providers.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';
import { itShows } from './cells.ts';

const PROVIDERS = await loadProviders();
const PAGE = readFileSync(new URL('../../docs/plugins/operations.md', import.meta.url), 'utf8');

/** Call of an operation by its path, and the vendor's response according to its reference. */
interface Sample {
  /** Name in the matrix. */
  readonly feature: string;
  readonly operation: string;
  readonly path: string;
  readonly fields: Readonly<Record<string, unknown>>;
  /** Name of the file in the form; a call without one is JSON. */
  readonly file?: string;
  readonly vendor: object;
  /** Response to the caller. */
  readonly caller: object;
}

const IMAGE = { created: 1_713_833_628, data: [{ b64_json: 'iVBORw0KGgo=' }] };
const SPOKEN = { text: 'People were swimming.', duration: 8.47, language: 'english' };
const SAMPLES: readonly Sample[] = [
  {
    // https://platform.openai.com/docs/api-reference/images/create
    ...{ feature: 'images', operation: 'images', path: '/v1/images/generations', fields: { prompt: 'A beach' } },
    ...{ vendor: IMAGE, caller: { data: IMAGE.data } },
  },
  {
    ...{ feature: 'images from images', operation: 'images', path: '/v1/images/edits', fields: { prompt: 'Rain' } },
    ...{ file: 'image', vendor: IMAGE, caller: { data: IMAGE.data } },
  },
  {
    // https://platform.openai.com/docs/api-reference/moderations/create
    ...{ feature: 'moderations', operation: 'moderations', path: '/v1/moderations', fields: { input: 'A beach' } },
    vendor: { id: 'm', model: 'm', results: [{ flagged: true, categories: { violence: true }, category_scores: {} }] },
    caller: { results: [{ flagged: true, categories: { violence: true }, category_scores: {} }] },
  },
  {
    // https://docs.cohere.com/reference/rerank
    ...{ feature: 'rerank', operation: 'rerank', path: '/v1/rerank', fields: { query: 'x', documents: ['a', 'b'] } },
    vendor: { id: 'r', results: [{ index: 1, relevance_score: 0.9 }], meta: { billed_units: { search_units: 1 } } },
    caller: { results: [{ index: 1, relevance_score: 0.9 }] },
  },
  {
    // https://platform.openai.com/docs/api-reference/audio/createTranscription
    ...{ feature: 'transcription', operation: 'transcription', path: '/v1/audio/transcriptions', fields: {} },
    ...{ file: 'file', vendor: SPOKEN, caller: { text: SPOKEN.text } },
  },
  {
    ...{ feature: 'translation of sound', operation: 'transcription', path: '/v1/audio/translations', fields: {} },
    ...{ file: 'file', vendor: SPOKEN, caller: { text: SPOKEN.text } },
  },
];

/** Paths of an operation that a provider does not offer, by the vendors' references. */
const LACKS: Readonly<Record<string, readonly string[]>> = {
  // The package of these tests, `@ai-sdk/openai-compatible`, has no transcription.
  'ai-sdk': ['/v1/audio/transcriptions', '/v1/audio/translations'],
  mistral: ['/v1/audio/translations'],
  together: ['/v1/images/edits'],
};

describe('operations other than chat', () => {
  let vendor: ScriptedUpstream;
  let gateway: TestGateway;
  let says: object = {};
  before(async () => {
    vendor = await startScriptedUpstream(({ send }) => send(respondWith(200, says)));
    gateway = await startGateway({
      providers: Object.fromEntries(
        PROVIDERS.map(({ name, config }) => [
          name,
          name === 'echo'
            ? {}
            : { ...config, apiKey: `key-of-${name}`, baseUrl: `${vendor.url}/${name}`, models: ['*'] },
        ]),
      ),
    });
  });
  after(async () => {
    await gateway?.stop();
    await vendor?.close();
  });

  /** Sends the sample to a provider; returns the caller's response and the vendor's request. */
  async function call({ path, fields, file }: Sample, provider: string, other?: string) {
    const seen = vendor.requests.length;
    const form = new FormData();
    const all = { model: `${provider}/some-model`, ...fields };
    for (const [name, value] of Object.entries(all)) form.append(name, String(value));
    for (const name of [file, other].filter((each) => each !== undefined))
      form.append(name, new Blob([Buffer.alloc(400, 7)], { type: 'image/png' }), 'a.png');
    const response = await fetch(gateway.url + path, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${gateway.key}`,
        ...(file === undefined && { 'content-type': 'application/json' }),
      },
      body: file === undefined ? JSON.stringify(all) : form,
    });
    const body = (await response.json()) as Record<string, unknown>;
    return { status: response.status, body, sent: vendor.requests.slice(seen) };
  }

  for (const { name, provider } of PROVIDERS)
    for (const sample of SAMPLES) {
      const { feature, operation, path } = sample;
      if (provider.operations.includes(operation) && !LACKS[name]?.includes(path))
        itShows(it, { provider: name, feature, says: 'verified' }, `${name} has ${feature}`, async () => {
          says = sample.vendor;
          const { status, body, sent } = await call(sample, name);
          expect(status, JSON.stringify(body)).to.equal(200);
          expect(body).to.deep.include(sample.caller);
          expect(sent).to.have.length(1);
          expect(sent[0]?.path).to.match(new RegExp(`^/${name}/`));
          expect(JSON.stringify(sent[0]?.headers)).to.include(`key-of-${name}`);
          expect(`${sent[0]?.path} ${sent[0]?.body}`, 'the vendor’s own name of the model').to.match(
            /(?<!\/)some-model|deployments\/some-model/,
          );
        });
      else
        itShows(it, { provider: name, feature, says: 'not offered' }, `${name} has no ${feature}: 404`, async () => {
          const { status, body, sent } = await call(sample, name);
          expect([status, sent.length], JSON.stringify(body)).to.deep.equal([404, 0]);
          expect(JSON.stringify(body)).to.include(
            LACKS[name]?.includes(path) ? path.slice('/v1/'.length, -1).split('/').at(-1) : name,
          );
        });
    }

  it('send documents to rerank as texts if the vendor accepts nothing else', async () => {
    const rerank = SAMPLES.find(({ operation }) => operation === 'rerank');
    if (!rerank) throw new Error('no sample');
    says = rerank.vendor;
    const documents = ['a', { text: 'b', title: 'B' }, { title: 'C' }];
    const { sent, status } = await call({ ...rerank, fields: { query: 'x', documents } }, 'cohere');
    expect([status, sent[0]?.json()]).to.deep.equal([
      200,
      { model: 'some-model', query: 'x', documents: ['a', 'b', '{"title":"C"}'] },
    ]);
    const { sent: others } = await call({ ...rerank, fields: { query: 'x', documents } }, 'together');
    expect(others[0]?.json()).to.deep.include({ documents });
    // G29: an object that is only a text is one for all vendors.
    const texts = [{ text: 'a' }, { text: 'b' }];
    for (const vendor of ['vllm', 'together']) {
      const { sent: plain } = await call({ ...rerank, fields: { query: 'x', documents: texts } }, vendor);
      expect(plain[0]?.json(), vendor).to.deep.include({ documents: ['a', 'b'] });
    }
  });

  it('send images to edit as data URLs if the vendor accepts no forms, and refuse a mask', async () => {
    says = IMAGE;
    const edit = SAMPLES.find(({ path }) => path === '/v1/images/edits');
    if (!edit) throw new Error('no sample');
    const { sent } = await call(edit, 'xai');
    const url = `data:image/png;base64,${Buffer.alloc(400, 7).toString('base64')}`;
    expect(sent[0]?.json()).to.deep.equal({ model: 'some-model', prompt: 'Rain', image: { type: 'image_url', url } });
    const { status, body, sent: none } = await call({ ...edit, file: 'mask', fields: edit.fields }, 'xai', 'image');
    expect([status, none.length, (body['error'] as { param: string }).param]).to.deep.equal([400, 0, 'mask']);
  });

  it('send the size of an image in the vendor’s form, and report unsupported fields', async () => {
    says = IMAGE;
    const wanted = { prompt: 'A beach', n: 2, size: '1536x1024', quality: 'high', response_format: 'b64_json' };
    const send = async (provider: string, more: object = {}) => {
      const response = await gateway.post('/v1/images/generations', { model: `${provider}/m`, ...wanted, ...more });
      expect(response.status).to.equal(200);
      return [vendor.requests.at(-1)?.json(), response.headers.get('x-tollgate-dropped')];
    };
    const [own, both] = [{ model: 'm', prompt: 'A beach', n: 2 }, { response_format: 'b64_json' }];
    expect(await send('xai')).to.deep.equal([{ ...own, ...both, aspect_ratio: '3:2' }, 'quality']);
    expect(await send('xai', { size: '1792x1024' })).to.deep.equal([{ ...own, ...both }, 'size, quality']);
    const sides = { width: 1536, height: 1024, response_format: 'base64' };
    expect(await send('together')).to.deep.equal([{ ...own, ...sides }, 'quality']);
    expect(await send('together', { output_format: 'png' })).to.deep.equal([
      { ...own, ...sides, output_format: 'png' },
      'quality',
    ]);
    expect(await send('openai')).to.deep.equal([{ model: 'm', ...wanted }, null]);
  });

  it('are on their page with the providers that have them', () => {
    const said = [...PAGE.matchAll(/^\| `(\w+)` \| .+ \| (.+) \|$/gm)].map(([, operation, names]) => [
      operation,
      names,
    ]);
    const offered = said
      .filter(([operation]) => operation !== 'speech')
      .map(([operation = '']) => [
        operation,
        PROVIDERS.filter(({ provider }) => provider.operations.includes(operation))
          .map(({ name }) => name)
          .sort()
          .join(', '),
      ]);
    expect(said.filter(([operation]) => operation !== 'speech')).to.deep.equal(offered);
    const known = new Set(PROVIDERS.flatMap(({ provider }) => provider.operations));
    expect(said.map(([operation]) => operation).sort()).to.deep.equal([...known, 'speech'].sort());
  });
});
