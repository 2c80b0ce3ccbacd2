import path from 'node:path';
import { expect } from 'chai';
import type { CallRow, Store } from '../../contract/index.ts';
import { openSqlite } from '../../plugins/stores/sqlite/index.ts';
import { type FailureRig, startFailureRig, USAGE_COST } from '../support/gateways/failure-rig.ts';
import { completion, delta, events } from '../support/vendors/openai-vendor.ts';
import { respondWith } from '../support/vendors/scripted-upstream.ts';
import { eventually } from '../support/wait.ts';

const USAGE = {
  ...{ prompt_tokens: 50, completion_tokens: 10, total_tokens: 60 },
  prompt_tokens_details: { cached_tokens: 20 },
  completion_tokens_details: { reasoning_tokens: 4 },
};
const CHAT = '/v1/chat/completions';

describe('the record of a call', () => {
  let rig: FailureRig;
  let store: Store;
  before(async () => {
    rig = await startFailureRig({ store: 'sqlite:./data', responseCache: {}, models: { fast: 'one/m' } });
    store = await openSqlite({ folder: path.join(rig.gateway.folder, 'data') });
  });
  after(async () => {
    await store?.close();
    await rig?.stop();
  });

  const send = async (body: object, headers: Record<string, string> = {}): Promise<Response> => {
    const response = await rig.gateway.post(CHAT, body, headers);
    await response.clone().text();
    return response;
  };
  const requestOf = (content: string, rest: object = {}) => ({
    model: 'fast',
    messages: [{ role: 'user', content }],
    ...rest,
  });
  /** Waits for the record of the request with this id. */
  const recordOf = (response: Response): Promise<CallRow> =>
    eventually(async () => {
      const { calls } = await store.ledger.calls({ limit: 100 });
      const found = calls.filter(({ requestId }) => requestId === response.headers.get('x-request-id'));
      expect(found).to.have.length(1);
      return found[0] as CallRow;
    });

  it('contains caller, model, outcome, usage and cost', async () => {
    rig.vendor.script(respondWith(200, completion('fine', { usage: USAGE })));
    const record = await recordOf(await send(requestOf('one'), { 'x-session-id': 'morning' }));
    expect(record).to.include({
      ...{ account: 'local', userId: 'local', session: 'morning', operation: 'chat', provider: 'one', model: 'm' },
      ...{ requested: 'fast', stream: false, outcome: 'ok', lane: 'native', cost: USAGE_COST * 1000 },
      ...{ estimated: false, priced: true },
    });
    expect(record.attempts.map(({ ms, ...attempt }) => attempt)).to.deep.equal([{ target: 'one/m', status: 200 }]);
    expect(record.key).to.match(/^tg_|^\w{12}$/);
    expect(record.units).to.deep.equal({
      ...{ prompt_tokens: 50, completion_tokens: 10, cached_tokens: 20, reasoning_tokens: 4 },
    });
    expect(record.durationMs).to.be.at.least(0);
    expect(Math.abs(Date.now() - record.at)).to.be.below(30_000);
  });

  it('is shown on the command line by the id of its request, too', async () => {
    rig.vendor.script(respondWith(200, completion('fine', { usage: USAGE })));
    const record = await recordOf(await send(requestOf('by its request')));
    const show = (id: string) => rig.gateway.command<{ readonly id: string }>('calls', 'show', id);
    expect((await show(String(record.requestId))).id).to.equal(record.id);
    expect((await show(record.id)).id).to.equal(record.id);
    const refused = await show('req_missing').catch((error: unknown) => error);
    expect(refused).to.include({ code: 'not_found' });
  });

  it('E44: contains its cost by unit, as in the lists of calls', async () => {
    rig.vendor.script(respondWith(200, completion('parts', { usage: USAGE })));
    const response = await send(requestOf('parts of a cost'));
    const record = await recordOf(response);
    const list = (await (await rig.gateway.get('/api/core/calls?limit=100')).json()) as {
      readonly data: readonly {
        readonly id: string;
        readonly cost_parts: readonly { unit: string; quantity: number; usd: string }[];
      }[];
    };
    const { cost_parts: parts = [] } = list.data.find(({ id }) => id === record.id) ?? {};
    expect(parts.map(({ unit, quantity }) => [unit, quantity])).to.deep.equal([
      ['input_tokens', 30],
      ['cached_tokens', 20],
      ['output_tokens', 10],
    ]);
    for (const { usd } of parts) expect(usd).to.match(/^\d+\.\d{2,12}$/);
    const sum = parts.reduce((total, { usd }) => total + Number(usd), 0);
    expect(Math.ceil(Number((sum * 1e9).toFixed(3)))).to.equal(record.cost);
  });

  it('is written for a stream after its end', async () => {
    rig.vendor.script(events([delta('in '), delta('pieces', 'stop', { usage: USAGE }), '[DONE]']));
    const record = await recordOf(await send(requestOf('two', { stream: true })));
    expect(record).to.include({ stream: true, outcome: 'ok', cost: USAGE_COST * 1000 });
    expect(record.firstByteMs).to.be.a('number');
  });

  it('of a failed call contains the reason, and costs nothing', async () => {
    rig.vendor.script(respondWith(400, { error: { message: 'no' } }));
    const response = await send(requestOf('three'));
    expect(response.status).to.equal(400);
    const record = await recordOf(response);
    expect(record).to.include({ outcome: 'error', errorCode: 'invalid_request', cost: 0 });
    expect(record.units).to.deep.equal({});
  });

  it('of a cached response contains the saved amount', async () => {
    rig.vendor.script(respondWith(200, completion('kept')));
    await send(requestOf('four'));
    const hit = await send(requestOf('four'));
    expect(hit.headers.get('x-tollgate-cache')).to.equal('hit');
    const record = await recordOf(hit);
    expect(record).to.include({ outcome: 'ok', cost: 0, saved: USAGE_COST * 1000 });
    expect(record.attempts).to.deep.equal([]);
  });

  it('E44: of a call with a fallback has each attempt with its status, class, reason and time', async () => {
    rig.vendor.script(respondWith(500, { error: { message: 'the disk is full' } }));
    rig.second.script(respondWith(200, completion('fine')));
    const record = await recordOf(await send(requestOf('failover', { model: 'both' })));
    expect(record).to.include({ outcome: 'ok', provider: 'two' });
    const [first, second] = record.attempts;
    expect(first).to.include({ target: 'fresh/m', status: 500, class: 'upstream_error' });
    expect(first?.reason).to.include('the disk is full');
    expect(second).to.include({ target: 'two/m', status: 200 });
    expect(record.attempts.every(({ ms }) => ms >= 0)).to.equal(true);
    const shown = await rig.gateway.command<{ attempts: readonly object[] }>('calls', 'show', record.id);
    expect(shown.attempts).to.deep.equal(record.attempts);
  });

  const lineOf = (response: Response): Promise<Readonly<Record<string, unknown>>> =>
    eventually(async () => {
      const id = response.headers.get('x-request-id');
      const line = rig.gateway.logs.find((each) => each['request_id'] === id && each['msg'] === 'request');
      expect(line).to.not.equal(undefined);
      return line ?? {};
    });

  const createKey = async (...words: readonly string[]): Promise<Record<string, string>> => {
    const { api_key } = await rig.gateway.command<{ api_key: string }>('keys', 'create', '--user', 'poor', ...words);
    return { authorization: `Bearer ${api_key}` };
  };

  it('is not written for a body that is not a call', async () => {
    const { calls } = await store.ledger.calls({ limit: 100 });
    expect((await send({ model: 'fast' })).status).to.equal(400);
    expect((await store.ledger.calls({ limit: 100 })).calls).to.deep.equal(calls);
  });

  it('E43: of a call refused by the budget of its key contains the reason, costs nothing, and is in the log with the same message', async () => {
    const response = await send(requestOf('five'), await createKey('--budget', '0.00001'));
    expect(response.status).to.equal(402);
    const record = await recordOf(response);
    expect(record).to.include({
      ...{ outcome: 'refused', errorCode: 'insufficient_balance', refusedBy: 'budget of the API key' },
      ...{ userId: 'poor', provider: 'one', model: 'm', cost: 0 },
    });
    expect(record.errorMessage).to.include('The budget of this API key does not cover the call');
    expect(record.attempts).to.deep.equal([]);
    expect(await lineOf(response)).to.include({
      ...{ outcome: 'refused', error: 'insufficient_balance', refused_by: 'budget of the API key' },
      error_message: record.errorMessage,
    });
  });

  it('E43: of a call over the limit of its key contains the limit', async () => {
    const key = await createKey('--rpm', '1');
    rig.vendor.script(respondWith(200, completion('fine')));
    expect((await send(requestOf('six'), key)).status).to.equal(200);
    const response = await send(requestOf('seven'), key);
    expect(response.status).to.equal(429);
    const record = await recordOf(response);
    expect(record).to.include({ outcome: 'refused', errorCode: 'rate_limited' });
    expect(record.refusedBy).to.equal('limit of 1 requests a minute of this API key');
  });

  it('E43: of a call to a forbidden or unknown model contains its name', async () => {
    const forbidden = await send(requestOf('eight'), await createKey('--models', 'two/*'));
    expect(forbidden.status).to.equal(403);
    expect(await recordOf(forbidden)).to.include({ outcome: 'refused', errorCode: 'model_not_allowed', model: 'm' });
    const unknown = await send(requestOf('nine', { model: 'no-such-model' }));
    expect(unknown.status).to.equal(404);
    const record = await recordOf(unknown);
    expect(record).to.include({ outcome: 'refused', errorCode: 'unsupported_model', model: 'no-such-model' });
    expect(record.provider).to.equal('-');
  });

  it('adds up, with all others, to the spend of the account', async () => {
    const { spent } = await store.ledger.balance('local');
    const rows = await store.ledger.report({ edges: [0, Date.now() + 1000], by: ['user', 'model'] });
    const own = rows.filter(({ user }) => user === 'local');
    expect(own.reduce((sum, { cost }) => sum + cost, 0n)).to.equal(BigInt(spent));
    expect(spent).to.be.above(0);
  });
});
