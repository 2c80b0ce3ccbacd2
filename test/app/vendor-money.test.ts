import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';

const PATH = '/v1/chat/completions';
const messages = [{ role: 'user', content: 'hello' }];
const responding = (usage: object) =>
  respondWith(200, {
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 4, completion_tokens: 6, total_tokens: 10, ...usage },
  });

describe('money and a vendor’s reports', () => {
  let upstream: ScriptedUpstream;
  let gateway: TestGateway;

  before(async () => {
    upstream = await startScriptedUpstream(responding({}));
    const provider = { plugin: 'openai-compatible', baseUrl: upstream.url, apiKey: 'k', models: ['*'] };
    const price = { input: 1, output: 1 };
    gateway = await startGateway({
      billing: 'track',
      providers: {
        unpriced: provider,
        priced: { ...provider, prices: { m: { ...price, service_tiers: { priority: { input: 2, output: 2 } } } } },
        openrouter: { baseUrl: upstream.url, apiKey: 'k' },
      },
    });
  });
  after(async () => {
    await gateway.stop();
    await upstream.close();
  });

  const send = (fields: object) => gateway.post(PATH, { messages, ...fields });
  const costOf = (response: Response) => response.headers.get('x-tollgate-cost-usd');
  const sent = () => JSON.parse(String(upstream.requests.at(-1)?.body ?? '{}')) as Record<string, unknown>;

  it('D11: the vendor’s figure is charged if no table has a price', async () => {
    upstream.script(responding({ cost: 0.5 }));
    const response = await send({ model: 'unpriced/m' });
    expect([response.status, costOf(response)]).to.deep.equal([200, '0.50']);
  });

  it('D11: the vendor’s figure wins over the table', async () => {
    upstream.script(responding({ cost: 0.25 }));
    expect(costOf(await send({ model: 'openrouter/openai/gpt-4.1' }))).to.equal('0.25');
  });

  it('D11: the operator’s price wins over the vendor’s figure', async () => {
    upstream.script(responding({ cost: 0.25 }));
    expect(costOf(await send({ model: 'priced/m' }))).to.equal('0.00001');
  });

  it('G17: impossible usage is charged as the estimate, also outside of chat', async () => {
    const usage = { prompt_tokens: 1e308, total_tokens: 1e308 };
    upstream.script(respondWith(200, { object: 'list', model: 'm', data: [{ index: 0, embedding: [0.5] }], usage }));
    const response = await gateway.post('/v1/embeddings', { model: 'priced/m', input: 'hello' });
    expect(response.status, await response.clone().text()).to.equal(200);
    expect(Number(costOf(response))).to.be.within(0.000001, 0.0001);
  });

  it('D8: a tier with a price is sent and charged, another is dropped and reported, and a cheaper one refused', async () => {
    upstream.script(responding({}));
    const known = await send({ model: 'priced/m', service_tier: 'priority' });
    expect([costOf(known), sent()['service_tier']]).to.deep.equal(['0.00002', 'priority']);
    const other = await send({ model: 'priced/m', service_tier: 'scale' });
    expect([costOf(other), other.headers.get('x-tollgate-dropped')]).to.deep.equal(['0.00001', 'service_tier']);
    expect(sent()).to.not.have.property('service_tier');
    expect((await send({ model: 'priced/m', service_tier: 'flex' })).status, 'at most').to.equal(400);
  });

  it('D1: a disguised variant of a known field is a 400, and nothing is sent', async () => {
    const count = upstream.requests.length;
    const response = await send({ model: 'priced/m', Model: 'dear' });
    const { error } = (await response.json()) as { readonly error: { readonly code: string; readonly param: string } };
    expect([response.status, error.code, error.param]).to.deep.equal([400, 'invalid_request', 'Model']);
    expect(upstream.requests).to.have.length(count);
  });

  it('D5: the largest limit applies, a larger one is 400', async () => {
    upstream.script(responding({}));
    expect((await send({ model: 'priced/m', max_tokens: 2_147_483_647 })).status).to.equal(200);
    expect((await send({ model: 'priced/m', max_tokens: Number.MAX_SAFE_INTEGER })).status).to.equal(400);
  });

  it('D27: known requests of clients pass over HTTP, legacy functions in both directions', async () => {
    upstream.script(responding({}));
    const loose = await send({
      model: 'priced/m',
      max_tokens: -1,
      user: null,
      logit_bias: {},
      tools: [{ function: { name: 'a.b', description: null, parameters: null } }],
      messages: [
        { role: 'user', content: 'x', name: null },
        { role: 'assistant', content: null, function_call: { name: 'f', arguments: '{}' } },
        { role: 'function', name: 'f', content: 'y' },
      ],
    });
    expect(loose.status).to.equal(200);
    expect(sent()).to.have.nested.property('tools[0].function.name', 'a_b');
    const call = { id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } };
    const message = { role: 'assistant', content: null, tool_calls: [call] };
    upstream.script(
      respondWith(200, {
        id: 'c',
        created: 1,
        model: 'm',
        choices: [{ index: 0, message, finish_reason: 'tool_calls' }],
      }),
    );
    const legacy = await send({ model: 'priced/m', functions: [{ name: 'f' }] });
    const { choices } = (await legacy.json()) as { readonly choices: readonly Record<string, object>[] };
    expect(choices[0]).to.deep.include({ finish_reason: 'function_call' });
    expect(choices[0]?.['message']).to.deep.include({ function_call: { name: 'f', arguments: '{}' } });
  });
});
