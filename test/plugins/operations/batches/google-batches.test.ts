import { type BatchJob, GoogleGenAI } from '@google/genai';
import { expect } from 'chai';
import { startGateway, type TestGateway } from '../../../support/gateways/gateway.ts';
import { eventually } from '../../../support/wait.ts';
import type { Loose } from './batch-vendor.ts';
import { failed, type GoogleVendor, responded, startGoogleVendor } from './google-vendor.ts';

const PRICE = { input: 5, output: 30 };
/** 1,000 tokens in and 100 out, at half the price. */
const COST = '0.004';

const requestWith = (text = 'Hi') => ({
  contents: [{ role: 'user', parts: [{ text }] }],
  config: { maxOutputTokens: 100 },
});

describe('batches at Google', () => {
  let vendor: GoogleVendor;
  let gateway: TestGateway;
  let users = 0;
  const configOf = (url: string) => ({
    billing: 'enforce',
    providers: {
      gemini: { apiKey: 'operators-secret', baseUrl: `${url}/v1beta`, prices: { 'gemini-3.8-flash': PRICE } },
      echo: {},
    },
    models: { quick: ['echo/echo', 'gemini/gemini-3.8-flash'] },
  });
  before(async () => {
    vendor = await startGoogleVendor();
    gateway = await startGateway(configOf(vendor.upstream.url));
  });
  after(async () => {
    await gateway?.stop();
    await vendor?.upstream.close();
  });

  async function newClient(usd = '10', ...options: readonly string[]) {
    users += 1;
    const user = `batcher-${users}`;
    const { api_key: key } = await gateway.command<Loose>('keys', 'create', '--user', user, ...options);
    if (usd !== '0') await gateway.command('accounts', 'credit', user, usd);
    const client = new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: gateway.url } });
    return { key, user, client };
  }
  const books = async (user: string, of = gateway): Promise<Loose> => {
    const { held_usd: held, spent_usd: spent } = await of.command<Loose>('accounts', 'show', user);
    return { held, spent };
  };
  async function begin(requests: readonly object[] = [requestWith()], model = 'gemini/gemini-3.8-flash', usd?: string) {
    const owner = await newClient(usd);
    const job = await owner.client.batches.create({
      model,
      src: requests as object[],
      config: { displayName: 'Mine' },
    });
    return { ...owner, job, name: job.name ?? '' };
  }
  const failure = (work: Promise<unknown>): Promise<Loose> =>
    work.then(
      () => ({ message: 'it did not fail' }),
      (error: unknown) => error,
    );
  const post = (key: string, requests: readonly object[], path = 'gemini/gemini-3.8-flash') =>
    gateway.post(
      `/v1beta/models/${path}:batchGenerateContent`,
      { batch: { display_name: 'x', input_config: { requests: { requests } } } },
      { authorization: `Bearer ${key}` },
    );

  it('are begun, listed, read, cancelled and deleted by Google’s client, by names of the gateway', async () => {
    const { client, job, name, user } = await begin(
      [requestWith('one'), { ...requestWith('two'), metadata: { key: 'b' } }],
      'quick',
    );
    expect(job).to.include({ displayName: 'Mine', state: 'JOB_STATE_PENDING', model: 'models/quick' });
    const sent = vendor.upstream.requests.findLast(({ path }) => path.endsWith(':batchGenerateContent'));
    expect(sent?.path).to.equal('/v1beta/models/gemini-3.8-flash:batchGenerateContent');
    const batch = (sent?.json() as Loose)?.batch;
    expect(batch.inputConfig.requests.requests).to.containSubset([
      {
        request: { contents: [{ parts: [{ text: 'one' }] }], generationConfig: { maxOutputTokens: 100 }, store: false },
      },
      { request: { contents: [{ parts: [{ text: 'two' }] }] }, metadata: { key: 'b' } },
    ]);
    const vendors = vendor.end([responded(), { ...responded(1, 1), metadata: { key: 'b' } }]);
    const ended = await client.batches.get({ name });
    expect(ended.state).to.equal('JOB_STATE_SUCCEEDED');
    expect(
      ended.dest?.inlinedResponses?.map(({ response }) => response?.candidates?.[0]?.content?.parts?.[0]?.text),
    ).to.deep.equal(['Hello', 'Hello']);
    expect(JSON.stringify(ended)).to.not.include(`batches/${vendors}"`);
    // 2.5 + 15 millionths of a dollar for the second.
    expect(await books(user)).to.deep.equal({ held: '0.00', spent: '0.0040175' });
    const listed: BatchJob[] = [];
    for await (const each of await client.batches.list()) listed.push(each);
    expect(listed.map((each) => each.name)).to.deep.equal([name]);
    await client.batches.delete({ name });
    expect(vendor.batches.has(vendors)).to.equal(false);
    expect((await failure(client.batches.get({ name }))).status).to.equal(404);
  });

  it('are those of newer clients too, whose paths OpenAI’s clients have as well', async () => {
    const { key, user } = await newClient();
    const client = new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: gateway.url, apiVersion: 'v1' } });
    const { name = '' } = await client.batches.create({ model: 'gemini/gemini-3.8-flash', src: [requestWith()] });
    const listed: unknown[] = [];
    for await (const each of await client.batches.list()) listed.push(each.name);
    expect(listed).to.deep.equal([name]);
    vendor.end([responded()]);
    await client.batches.cancel({ name });
    expect(await client.batches.get({ name })).to.deep.include({ state: 'JOB_STATE_CANCELLED', name });
    expect(await books(user)).to.deep.equal({ held: '0.00', spent: COST });
    const openai = gateway.openai(key);
    expect((await openai.batches.list()).data).to.deep.equal([]);
    expect((await failure(openai.batches.retrieve(name.replace('batches/', '')))).status).to.equal(404);
    await client.batches.delete({ name });
    const gone = await failure(client.batches.get({ name }));
    expect(gone.status).to.equal(404);
    expect(gone.message).to.include('NOT_FOUND');
  });

  it('reserve the maximum of their requests at half the price, and charge the usage of each response once', async () => {
    const { client, name, user } = await begin([requestWith(), requestWith(), requestWith()]);
    expect(Number((await books(user)).held)).to.be.within(3 * 0.0015, 3 * 0.0016);
    vendor.end([responded(), failed, responded(1, 1)]);
    await Promise.all(Array.from({ length: 5 }, () => client.batches.get({ name })));
    expect(await books(user)).to.deep.equal({ held: '0.00', spent: '0.0040175' });
    const { data } = await gateway.command<Loose>('calls', '--user', user, '--limit', '10');
    const tiers = (data as Loose[]).map(({ service_tier: tier }) => tier).filter((tier) => tier === 'batch');
    expect(tiers).to.have.length(2);
  });

  it('charge the reservation of responses without usage, and of missing successes', async () => {
    const { client, name, user } = await begin([requestWith(), requestWith(), requestWith(), requestWith()]);
    const held = Number((await books(user)).held) / 4;
    vendor.end([responded(), responded(null), failed], 'BATCH_STATE_SUCCEEDED', 3);
    await client.batches.get({ name });
    const { spent, held: left } = await books(user);
    expect(left).to.equal('0.00');
    expect(Number(spent)).to.be.closeTo(0.004 + 2 * held, 1e-9);
  });

  it('that are cancelled are charged for their responses, and failed ones nothing', async () => {
    const { client, name, user } = await begin([requestWith(), requestWith()]);
    expect((await failure(client.batches.delete({ name }))).status).to.equal(400);
    vendor.end([responded()], 'BATCH_STATE_RUNNING');
    await client.batches.cancel({ name });
    expect((await client.batches.get({ name })).state).to.equal('JOB_STATE_CANCELLED');
    expect(await books(user)).to.deep.equal({ held: '0.00', spent: COST });
    const other = await begin();
    vendor.end([], 'BATCH_STATE_FAILED');
    await other.client.batches.get({ name: other.name });
    expect(await books(other.user)).to.deep.equal({ held: '0.00', spent: '0.00' });
  });

  it('that Google loses fail after their time, and cost nothing', async () => {
    const { client, name, user } = await begin();
    const [id = '', known] = [...vendor.batches].at(-1) ?? [];
    vendor.batches.delete(id);
    expect((await failure(client.batches.get({ name }))).status).to.be.greaterThan(399);
    expect((await books(user)).held).to.not.equal('0.00');
    const created = new Date(Date.now() - 50 * 3_600_000).toISOString();
    vendor.batches.set(id, { ...known, metadata: { ...known.metadata, createTime: created } });
    await client.batches.get({ name });
    vendor.batches.delete(id);
    expect((await client.batches.get({ name })).state).to.equal('JOB_STATE_FAILED');
    expect(await books(user)).to.deep.equal({ held: '0.00', spent: '0.00' });
  });

  it('are hidden from others, and refused if the balance does not cover them', async () => {
    const { name } = await begin();
    const { client } = await newClient();
    for (const work of [
      () => client.batches.get({ name }),
      () => client.batches.cancel({ name }),
      () => client.batches.delete({ name }),
    ])
      expect((await failure(work())).status).to.equal(404);
    expect(vendor.batches.size).to.be.greaterThan(0);
    const poor = await newClient('0.0001');
    const model = 'gemini/gemini-3.8-flash';
    expect((await failure(poor.client.batches.create({ model, src: [requestWith()] }))).status).to.equal(402);
  });

  it('are refused at the first request that may not be, in Google’s form, before anything is sent', async () => {
    const { key } = await newClient('10', '--models', 'gemini/gemini-3.8-flash');
    const before = vendor.upstream.requests.length;
    const good = { request: { contents: [{ parts: [{ text: 'Hi' }] }] } };
    const cases: readonly (readonly [Loose, RegExp, number])[] = [
      [{ request: { ...good.request, tools: [{ googleSearch: {} }] } }, /requests\[1\]: .*googleSearch/, 403],
      [{ request: { ...good.request, cachedContent: 'cachedContents/x' } }, /requests\[1\]: .*account/, 400],
      [{ request: { ...good.request, model: 'models/gemini-4-argon' } }, /requests\[1\]: .*model/, 400],
      [{ request: { ...good.request, serviceTier: 'flex' } }, /requests\[1\]: `service_tier`/, 400],
      [
        { request: { contents: [{ parts: [{ fileData: { fileUri: 'http://10.0.0.1/a', mimeType: 'image/png' } }] }] } },
        /https/,
        400,
      ],
      [{ request: {} }, /requests\[1\]: .*contents/, 400],
    ];
    for (const [bad, words, status] of cases) {
      const response = await post(key, [good, bad]);
      const { error } = (await response.json()) as Loose;
      expect(error.message).to.match(words);
      expect([response.status, error.code], error.message).to.deep.equal([status, status]);
    }
    const dear = await post(key, [good], 'gemini/gemini-4-argon');
    expect(dear.status).to.equal(403);
    const { api_key } = await gateway.command<Loose>('keys', 'create', '--user', 'any');
    const other = await post(api_key, [good], 'echo/echo');
    expect(((await other.json()) as Loose).error.message).to.include('does not support batches');
    const file = await gateway.post(
      '/v1beta/models/gemini/gemini-3.8-flash:batchGenerateContent',
      { batch: { displayName: 'x', inputConfig: { fileName: 'files/abc' } } },
      { authorization: `Bearer ${key}` },
    );
    expect(((await file.json()) as Loose).error.message).to.include('operator’s account');
    const { key: owner } = await newClient();
    const blob = new Blob(['{}'], { type: 'application/jsonl' });
    // @google/genai 3 uses the second version by default.
    for (const apiVersion of ['v1beta', 'v1']) {
      const client = new GoogleGenAI({ apiKey: owner, apiVersion, httpOptions: { baseUrl: gateway.url } });
      const upload = await failure(client.files.upload({ file: blob }));
      expect([upload.status, upload.message].join(' ')).to.match(/^404 .*Send the requests as/);
    }
    expect(vendor.upstream.requests).to.have.length(before);
  });

  it('are polled by the gateway itself, also without requests, and after a restart', async () => {
    const quick = await startGateway({
      ...configOf(vendor.upstream.url),
      operations: { batches: { lookEvery: '20ms' } },
    });
    try {
      await quick.command('accounts', 'credit', 'local', '1');
      const client = new GoogleGenAI({ apiKey: quick.key, httpOptions: { baseUrl: quick.url } });
      await client.batches.create({ model: 'gemini/gemini-3.8-flash', src: [requestWith()] });
      vendor.end([responded()]);
      await eventually(async () => expect(await books('local', quick)).to.deep.equal({ held: '0.00', spent: COST }));
    } finally {
      await quick.stop();
    }
  });
});
