import Anthropic from '@anthropic-ai/sdk';
import { expect } from 'chai';
import type OpenAI from 'openai';
import { toFile } from 'openai';
import { batchPrice } from '../../../../plugins/operations/batches/prices.ts';
import { startGateway, type TestGateway } from '../../../support/gateways/gateway.ts';
import { eventually } from '../../../support/wait.ts';
import { type BatchVendor, type Loose, line, message, result, startBatchVendor, use } from './batch-vendor.ts';

const TIERS = { priority: { input: 10, output: 60 } };
const PRICE = { input: 5, output: 30, cached_input: 0.5, service_tiers: TIERS };
/** 1,000 tokens in and 100 out, at half the price. */
const COST = '0.004';

describe('batches at vendors', () => {
  let vendor: BatchVendor;
  let gateway: TestGateway;
  let users = 0;

  before(async () => {
    vendor = await startBatchVendor();
    gateway = await startGateway({
      billing: 'enforce',
      providers: {
        openai: {
          ...{ apiKey: 'sk-operator-secret-1234567890', baseUrl: `${vendor.url}/v1` },
          prices: { 'gpt-5.5': PRICE, 'gpt-5.4': PRICE },
        },
        anthropic: {
          ...{ apiKey: 'sk-ant-operator-1234567890', baseUrl: vendor.url },
          prices: { 'claude-opus-5': PRICE },
        },
        azure: { apiKey: 'azure-operator-secret', baseUrl: `${vendor.url}/v1`, prices: { 'gpt-5.5-batch': PRICE } },
        older: {
          ...{ plugin: 'azure', apiKey: 'azure-operator-secret', baseUrl: `${vendor.url}/v1` },
          ...{ apiVersion: '2024-10-21', prices: { 'gpt-5.5-batch': PRICE } },
        },
        echo: {},
      },
      models: { fast: ['echo/echo', 'openai/gpt-5.5'] },
    });
  });
  after(async () => {
    await gateway?.stop();
    await vendor?.close();
  });

  const newKey = async (usd = '10', ...options: readonly string[]): Promise<{ key: string; user: string }> => {
    users += 1;
    const user = `batcher-${users}`;
    const { api_key } = await gateway.command<Loose>('keys', 'create', '--user', user, ...options);
    if (usd !== '0') await gateway.command('accounts', 'credit', user, usd);
    return { key: api_key, user };
  };
  const booksOf = async (of: TestGateway, user: string): Promise<Loose> => {
    const {
      balance_usd: balance,
      held_usd: held,
      spent_usd: spent,
    } = await of.command<Loose>('accounts', 'show', user);
    return { balance, held, spent };
  };
  const books = (user: string): Promise<Loose> => booksOf(gateway, user);
  const upload = async (client: OpenAI, lines: readonly (object | string)[]) =>
    client.files.create({
      purpose: 'batch',
      file: await toFile(
        Buffer.from(lines.map((each) => (typeof each === 'string' ? each : JSON.stringify(each))).join('\n')),
        'requests.jsonl',
      ),
    });
  const create = (client: OpenAI, input_file_id: string) =>
    client.batches.create({ input_file_id, endpoint: '/v1/chat/completions', completion_window: '24h' });
  const begin = async (lines: readonly object[], usd?: string) => {
    const owner = await newKey(usd);
    const client = gateway.openai(owner.key);
    const file = await upload(client, lines);
    const batch = await create(client, file.id);
    const id = [...vendor.batches.keys()].at(-1) ?? '';
    return { ...owner, client, file, batch, id };
  };
  const failure = (work: Promise<unknown>): Promise<Loose> =>
    work.then(
      () => ({ message: 'it did not fail' }),
      (error: unknown) => error,
    );

  it('are uploaded, begun, listed, read and deleted by the official openai client, by ids of the gateway', async () => {
    const { client, file, batch, id } = await begin([line('a'), line('b', { model: 'fast' })]);
    expect(file).to.include({ object: 'file', purpose: 'batch', filename: 'requests.jsonl' });
    expect(batch).to.include({ object: 'batch', status: 'validating', input_file_id: file.id });
    const sent = (vendor.files.get(vendor.batches.get(id).input_file_id) ?? '').trim().split('\n');
    expect(sent.map((text) => JSON.parse(text))).to.containSubset([
      { custom_id: 'a', url: '/v1/chat/completions', body: { model: 'gpt-5.5', store: false } },
      { custom_id: 'b', body: { model: 'gpt-5.5' } },
    ]);
    vendor.end(id, [result('a'), result('b')]);
    const ended = await client.batches.retrieve(batch.id);
    expect(ended.status).to.equal('completed');
    expect(JSON.stringify(ended)).to.not.include(id).and.not.include('file-v');
    const text = await (await client.files.content(ended.output_file_id ?? '')).text();
    expect(
      text
        .trim()
        .split('\n')
        .map((each) => JSON.parse(each).custom_id),
    ).to.deep.equal(['a', 'b']);
    const files = [];
    for await (const each of client.files.list()) files.push(each.id);
    expect(files).to.have.members([file.id, ended.output_file_id]);
    const batches = [];
    for await (const each of client.batches.list()) batches.push(each.id);
    expect(batches).to.deep.equal([batch.id]);
    expect(await client.files.delete(file.id)).to.include({ id: file.id, deleted: true });
    expect((await failure(client.files.retrieve(file.id))).status).to.equal(404);
    expect(vendor.countOf(`DELETE /v1/files/${vendor.batches.get(id).input_file_id}`)).to.equal(1);
  });

  it('reserve the maximum of their lines at half the price, and are charged by the usage of each response', async () => {
    const { client, batch, user, id } = await begin([line('a'), line('b'), line('c')]);
    // 100 tokens out at 15 dollars per million, plus the estimated prompt at 2.50, for each of three.
    const before = await books(user);
    expect(Number(before.held)).to.be.within(3 * 0.0015, 3 * 0.0016);
    expect(before.spent).to.equal('0.00');
    vendor.end(id, [result('b'), result('a', use(1, 1)), result('c', use(9, 9), 500)]);
    await client.batches.retrieve(batch.id);
    // 2.5 + 15 millionths of a dollar for the second.
    expect(await books(user)).to.include({ held: '0.00', spent: '0.0040175', balance: '9.9959825' });
    const { data } = await gateway.command<Loose>('calls', '--user', user, '--limit', '10');
    const rows = (data as Loose[]).filter(({ operation }) => operation === 'batches');
    const ofLines = rows.filter(({ service_tier }) => service_tier === 'batch');
    expect(ofLines.map(({ cost_usd }) => cost_usd)).to.have.members(['0.004', '0.0000175']);
    expect(new Set(rows.map(({ request_id }) => request_id)).size).to.equal(1);
    expect(rows).to.have.length(3);
  });

  it('are charged once, however often and by whomever their end is learnt', async () => {
    const { client, batch, user, id } = await begin([line('a')]);
    vendor.end(id, [result('a')]);
    await Promise.all(Array.from({ length: 5 }, () => client.batches.retrieve(batch.id)));
    expect(await books(user)).to.include({ held: '0.00', spent: `${COST}` });
  });

  it('are refused if the balance does not cover them', async () => {
    const { key } = await newKey('0.001');
    const client = gateway.openai(key);
    const file = await upload(client, [line('a'), line('b')]);
    const error = await failure(create(client, file.id));
    expect(error.status).to.equal(402);
    expect(vendor.countOf('POST /v1/batches')).to.be.lessThan(10);
  });

  it('are others’ secret: an id of another account is not found', async () => {
    const { batch, file } = await begin([line('a')]);
    const other = gateway.openai((await newKey()).key);
    for (const work of [
      () => other.batches.retrieve(batch.id),
      () => other.batches.cancel(batch.id),
      () => other.files.retrieve(file.id),
      () => other.files.content(file.id),
      () => other.files.delete(file.id),
      () => create(other, file.id),
    ])
      expect((await failure(work())).status).to.equal(404);
  });

  it('are refused with the number of the first line that may not be, before anything is sent', async () => {
    const uploads = vendor.countOf('POST /v1/files');
    const { key } = await newKey('10', '--models', 'openai/gpt-5.5');
    const client = gateway.openai(key);
    const six = Array.from({ length: 6 }, (_, at) => line(`l${at}`));
    const web = { model: 'openai/gpt-5.5', input: 'Hi', tools: [{ type: 'web_search' }] };
    const responses = (id: string, body: object) => ({ custom_id: id, method: 'POST', url: '/v1/responses', body });
    const cases: readonly (readonly [Loose, RegExp, number])[] = [
      [line('x', { model: 'openai/gpt-5.4' }), /^\d+ Line 7: This key may not use "openai\/gpt-5.4"/, 403],
      [line('x', { web_search_options: {} }), /Line 7: .*may not use the tool/, 403],
      [line('x', { messages: 'no' }), /Line 7: "messages"/, 400],
      [line('x', { stream: true }), /Line 7: .*stream/, 400],
      [line('x', { service_tier: 'priority' }), /Line 7/, 400],
      [
        line('x', {
          messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'http://10.0.0.1/a' } }] }],
        }),
        /Line 7: .*https/,
        400,
      ],
      [line('x', { model: 'echo/echo' }), /Line 7: .*(?:may not use|no batches)/, 403],
      [line('l3'), /Line 7 repeats the `custom_id` of an earlier request/, 400],
      [line('x', {}, '/v1/embeddings'), /Line 7 has the url/, 400],
      ['{"custom_id": ', /Line 7 must be a JSON object/, 400],
      ['['.repeat(100_000), /Line 7 must be a JSON object/, 400],
    ];
    for (const [bad, message, status] of cases) {
      const error = await failure(upload(client, [...six, bad]));
      expect(error.message).to.match(message);
      expect(error.status).to.equal(status);
    }
    expect(vendor.countOf('POST /v1/files')).to.equal(uploads);
    // A client's default tool is dropped and reported, as in a single response.
    await upload(client, [responses('w', web)]);
    expect([...vendor.files.values()].at(-1))
      .to.include('"/v1/responses"')
      .and.not.include('web_search');
  });

  it('have one model, and belong to the key that their lines were checked for', async () => {
    const { key, user } = await newKey();
    const client = gateway.openai(key);
    const two = await failure(upload(client, [line('a'), line('b', { model: 'openai/gpt-5.4' })]));
    expect(two.message).to.match(/Line 2 has another model/);
    const file = await upload(client, [line('a')]);
    const { api_key } = await gateway.command<Loose>('keys', 'create', '--user', user);
    const error = await failure(create(gateway.openai(api_key), file.id));
    expect(error.message).to.match(/uploaded with another key/);
    expect((await failure(create(client, 'file-no'))).status).to.equal(404);
    expect(
      (await failure(client.files.create({ purpose: 'user_data', file: await toFile(Buffer.from('x'), 'x') }))).message,
    ).to.match(/`purpose` must be `batch`/);
  });

  it('that are cancelled or expire are charged for their responses', async () => {
    const { client, batch, user, id } = await begin([line('a'), line('b')]);
    expect((await client.batches.cancel(batch.id)).status).to.equal('cancelling');
    vendor.end(id, [result('a')], 'cancelled');
    expect((await client.batches.cancel(batch.id)).status).to.equal('cancelled');
    expect(await books(user)).to.include({ held: '0.00', spent: COST });
    const other = await begin([line('a')]);
    vendor.end(other.id, [], 'expired');
    expect((await other.client.batches.retrieve(other.batch.id)).status).to.equal('expired');
    expect(await books(other.user)).to.include({ held: '0.00', spent: '0.00' });
  });

  it('that their vendor loses fail after their time, and cost nothing', async () => {
    const { client, batch, user, id } = await begin([line('a')]);
    const known = vendor.batches.get(id);
    vendor.batches.delete(id);
    // The reservation stays, because the vendor may find the batch again.
    expect((await failure(client.batches.retrieve(batch.id))).status).to.be.greaterThan(399);
    expect((await books(user)).held).to.not.equal('0.00');
    vendor.batches.set(id, { ...known, expires_at: Math.floor(Date.now() / 1000) - 7200 });
    await client.batches.retrieve(batch.id);
    vendor.batches.delete(id);
    const lost = await client.batches.retrieve(batch.id);
    expect(lost.status).to.equal('failed');
    expect(lost.errors?.data?.[0]?.message).to.match(/Batch not found at the provider/);
    expect(await books(user)).to.include({ held: '0.00', spent: '0.00' });
  });

  it('with hostile results are charged once per line, and an unreadable line by its reservation', async () => {
    const { client, batch, user, id } = await begin([line('a'), line('b'), line('c'), line('d')]);
    const held = Number((await books(user)).held) / 4;
    const silent = result('b', undefined);
    delete silent.response.body.usage;
    vendor.end(id, [result('a'), result('a'), result('missing'), silent, 'not JSON', { custom_id: 'a' }]);
    await client.batches.retrieve(batch.id);
    const { spent, held: left } = await books(user);
    expect(left).to.equal('0.00');
    // One line is charged by its usage, one without usage and one invalid line by estimate.
    expect(Number(spent)).to.be.closeTo(0.004 + 2 * held, 1e-9);
    expect(gateway.logText()).to.include('the provider returned duplicate results');
  });

  it('of Azure are OpenAI’s, at the address of the resource', async () => {
    const { client, batch, user, id } = await begin([line('a', { model: 'azure/gpt-5.5-batch' })]);
    expect(JSON.parse(vendor.files.get(vendor.batches.get(id).input_file_id) ?? '').body.model).to.equal(
      'gpt-5.5-batch',
    );
    vendor.end(id, [result('a')]);
    expect((await client.batches.retrieve(batch.id)).status).to.equal('completed');
    expect(await books(user)).to.include({ held: '0.00', spent: COST });
  });

  it('of Azure with `apiVersion` are those of its older addresses, as it writes states and times', async () => {
    const { client, batch, user, id } = await begin([line('a', { model: 'older/gpt-5.5-batch' })]);
    const known = vendor.batches.get(id);
    const { url, body } = JSON.parse(vendor.files.get(known.input_file_id) ?? '');
    expect([url, body.model, 'store' in body]).to.deep.equal(['/chat/completions', 'gpt-5.5-batch', false]);
    expect(known.endpoint).to.equal('/chat/completions');
    vendor.end(id, [result('a')], 'Completed');
    const times = {
      created_at: '2024-07-19T17:33:29.1619286+00:00',
      completed_at: '2024-07-19T18:33:29.1578141+00:00',
    };
    Object.assign(known, { ...times, error_file_id: '', request_counts: { total: null, completed: null } });
    const ended = await client.batches.retrieve(batch.id);
    expect(ended).to.include({ status: 'completed', endpoint: '/v1/chat/completions', error_file_id: null });
    expect(ended.completed_at).to.equal(Date.parse('2024-07-19T18:33:29Z') / 1000);
    expect(await books(user)).to.include({ held: '0.00', spent: COST });
    expect(await (await client.files.content(ended.output_file_id ?? '')).text()).to.include('"custom_id":"a"');
    const query = '?api-version=2024-10-21';
    for (const question of ['POST /v1/files', 'POST /v1/batches', `GET /v1/batches/${id}`])
      expect(vendor.countOf(question + query), question).to.equal(1);
    const other = { ...line('a', { input: 'Hi', model: 'older/gpt-5.5-batch' }, '/v1/responses') };
    delete other.body.messages;
    expect((await failure(upload(client, [other]))).message).to.match(/Line 1: .*does not support batches/);
  });

  it('without results at Azure have none, and cost nothing', async () => {
    const { client, batch, user, id } = await begin([line('a', { model: 'azure/gpt-5.5-batch' })]);
    vendor.end(id, [], 'Failed');
    Object.assign(vendor.batches.get(id), { output_file_id: '', error_file_id: '' });
    expect(await client.batches.retrieve(batch.id)).to.include({ status: 'failed', output_file_id: null });
    expect(await books(user)).to.include({ held: '0.00', spent: '0.00' });
  });

  it('are polled by the gateway itself, also without requests', async () => {
    const quick = await startGateway({
      billing: 'enforce',
      providers: { openai: { apiKey: 'sk-x', baseUrl: `${vendor.url}/v1`, prices: { 'gpt-5.5': PRICE } } },
      operations: { batches: { lookEvery: '20ms' } },
    });
    try {
      await quick.command('accounts', 'credit', 'local', '1');
      const file = await upload(quick.openai(), [line('a')]);
      await create(quick.openai(), file.id);
      vendor.end([...vendor.batches.keys()].at(-1) ?? '', [result('a')]);
      await eventually(async () => expect(await booksOf(quick, 'local')).to.include({ held: '0.00', spent: COST }));
    } finally {
      await quick.stop();
    }
  });

  it('are refused if a guardrail checks responses, which do not pass through it', async () => {
    const guarded = await startGateway({
      providers: { openai: { apiKey: 'sk-x', baseUrl: `${vendor.url}/v1`, prices: { 'gpt-5.5': PRICE } } },
      policies: { words: { words: ['secret plan'] } },
    });
    try {
      const client = guarded.openai();
      const bad = line('a', { messages: [{ role: 'user', content: 'the secret plan' }] });
      expect((await failure(upload(client, [line('b'), bad]))).message).to.match(/Line 2: .*"words"/);
      const file = await upload(client, [line('a')]);
      expect((await failure(create(client, file.id))).message).to.match(
        /"words" of this gateway cannot check the responses of a batch/,
      );
    } finally {
      await guarded.stop();
    }
  });

  it('G66: have every line read by guardrails of requests, also texts that only a body of the vendor’s format has', async () => {
    const anthropic = { apiKey: 'sk-ant-x', baseUrl: vendor.url, prices: { 'claude-opus-5': PRICE } };
    const guarded = await startGateway({
      providers: {
        openai: { apiKey: 'sk-x', baseUrl: `${vendor.url}/v1`, prices: { 'gpt-5.5': PRICE } },
        anthropic,
      },
      policies: { words: { words: ['secret plan'], sides: ['request'] } },
    });
    try {
      const client = guarded.openai();
      const says = (content: string) => ({ messages: [{ role: 'user', content }] });
      const refused = await failure(upload(client, [line('a'), line('b', says('the secret plan'))]));
      expect(refused.message).to.match(/Line 2: .*"words"/);
      const file = await upload(client, [line('a')]);
      expect(await create(client, file.id)).to.include({ status: 'validating' });
      const before = vendor.batches.size;
      const block = { type: 'text', text: 'Hi', note: 'the secret plan' };
      const params = { model: 'claude-opus-5', max_tokens: 9, messages: [{ role: 'user', content: [block] }] };
      const response = await guarded.post('/v1/messages/batches', { requests: [{ custom_id: 'a', params }] });
      expect([response.status, await response.text()].join(' ')).to.match(/^400 .*words/);
      expect(vendor.batches.size).to.equal(before);
    } finally {
      await guarded.stop();
    }
  });

  it('G66: are refused if a model judges each request', async () => {
    const guarded = await startGateway({
      providers: { openai: { apiKey: 'sk-x', baseUrl: `${vendor.url}/v1`, prices: { 'gpt-5.5': PRICE } } },
      policies: { topics: { model: 'openai/gpt-5.5', denied: ['law'] } },
    });
    try {
      const client = guarded.openai();
      const file = await upload(client, [line('a')]);
      expect((await failure(create(client, file.id))).message).to.match(
        /"topics" of this gateway cannot judge the requests of a batch/,
      );
    } finally {
      await guarded.stop();
    }
  });

  it('of messages are begun, read, cancelled and deleted by Anthropic’s SDK', async () => {
    const { key, user } = await newKey();
    const client = new Anthropic({ apiKey: key, baseURL: gateway.url, maxRetries: 0 });
    const params = { model: 'claude-opus-5', max_tokens: 100, messages: [{ role: 'user' as const, content: 'Hi' }] };
    const batch = await client.messages.batches.create({
      requests: [
        { custom_id: 'a', params },
        { custom_id: 'b', params },
      ],
    });
    expect(batch).to.include({ type: 'message_batch', processing_status: 'in_progress', results_url: null });
    const id = [...vendor.batches.keys()].at(-1) ?? '';
    expect((await client.messages.batches.cancel(batch.id)).processing_status).to.equal('canceling');
    vendor.end(id, [message('a'), { custom_id: 'b', result: { type: 'canceled' } }]);
    const ended = await client.messages.batches.retrieve(batch.id);
    expect(ended.results_url).to.equal(`${gateway.url}/v1/messages/batches/${batch.id}/results`);
    const types: string[] = [];
    for await (const each of await client.messages.batches.results(batch.id)) types.push(each.result.type);
    expect(types).to.deep.equal(['succeeded', 'canceled']);
    expect(await books(user)).to.include({ held: '0.00', spent: COST });
    const ids = [];
    for await (const each of client.messages.batches.list()) ids.push(each.id);
    expect(ids).to.deep.equal([batch.id]);
    expect(await client.messages.batches.delete(batch.id)).to.deep.equal({
      id: batch.id,
      type: 'message_batch_deleted',
    });
    expect((await failure(client.messages.batches.retrieve(batch.id))).status).to.equal(404);
  });

  it('of each format fill the pages of its own list, whatever the caller has in the others', async () => {
    const { key, client: openai, batch } = await begin([line('a')]);
    const anthropic = new Anthropic({ apiKey: key, baseURL: gateway.url, maxRetries: 0 });
    const params = { model: 'claude-opus-5', max_tokens: 100, messages: [{ role: 'user' as const, content: 'Hi' }] };
    const created: string[] = [];
    for (const custom_id of ['a', 'b'])
      created.unshift((await anthropic.messages.batches.create({ requests: [{ custom_id, params }] })).id);
    const listed: string[] = [];
    for await (const { id } of anthropic.messages.batches.list({ limit: 1 })) listed.push(id);
    expect(listed).to.deep.equal(created);
    const page = await openai.batches.list({ limit: 1 });
    expect(page.data.map(({ id }) => id)).to.deep.equal([batch.id]);
    expect(page.has_more).to.equal(false);
  });

  it('of messages that Anthropic loses have ended after their time, and cost nothing', async () => {
    const { key, user } = await newKey();
    const client = new Anthropic({ apiKey: key, baseURL: gateway.url, maxRetries: 0 });
    const params = { model: 'claude-opus-5', max_tokens: 100, messages: [{ role: 'user' as const, content: 'Hi' }] };
    const requests = ['a', 'b'].map((custom_id) => ({ custom_id, params }));
    const { id } = await client.messages.batches.create({ requests });
    const [name = '', known] = [...vendor.batches].at(-1) ?? [];
    vendor.batches.delete(name);
    // The reservation stays, because Anthropic may find the batch again.
    expect((await failure(client.messages.batches.retrieve(id))).status).to.be.greaterThan(399);
    expect((await books(user)).held).to.not.equal('0.00');
    vendor.batches.set(name, { ...known, expires_at: new Date(Date.now() - 7_200_000).toISOString() });
    await client.messages.batches.retrieve(id);
    vendor.batches.delete(name);
    const lost = await client.messages.batches.retrieve(id);
    expect(lost).to.deep.include({
      ...{ processing_status: 'ended', results_url: null },
      request_counts: { processing: 0, succeeded: 0, errored: 2, canceled: 0, expired: 0 },
    });
    expect(await books(user)).to.include({ held: '0.00', spent: '0.00' });
    const results = await gateway.get(`/v1/messages/batches/${id}/results`, { authorization: `Bearer ${key}` });
    expect([results.status, await results.text()].join(' ')).to.match(/^400 .*no results/);
  });

  it('of messages are refused at the first request that may not be', async () => {
    const { key } = await newKey();
    const client = new Anthropic({ apiKey: key, baseURL: gateway.url, maxRetries: 0 });
    const params = { model: 'claude-opus-5', max_tokens: 100, messages: [{ role: 'user' as const, content: 'Hi' }] };
    const tools = [{ type: 'web_search_20250305' as const, name: 'web_search' as const }];
    const error = await failure(
      client.messages.batches.create({
        requests: [
          { custom_id: 'a', params },
          { custom_id: 'b', params: { ...params, tools } },
        ],
      }),
    );
    expect(error.message).to.match(/requests\[1\]: .*web_search/);
    expect(error.status).to.equal(403);
  });

  it('cost a part of every rate and all of every fee, or the batch price of a model', () => {
    const tiers = [{ input_tokens_above: 10, input: 2, output: 4 }];
    const price = { input: 1, output: 3, cached_input: 0.1, tiers, fees: { searches: 0.01 } };
    expect(batchPrice({ ...price, service_tiers: { flex: { input: 9, output: 9 } } }, 0.5)).to.deep.equal({
      ...{ input: 0.5, output: 1.5, cached_input: 0.05, fees: { searches: 0.01 } },
      tiers: [{ input_tokens_above: 10, input: 1, output: 2 }],
    });
    expect(batchPrice({ ...price, service_tiers: { batch: { input: 0.4, output: 1 } } }, 0.5)).to.deep.equal({
      ...{ input: 0.4, output: 1, fees: { searches: 0.01 } },
    });
    expect(batchPrice(undefined, 0.5)).to.equal(undefined);
  });
});
