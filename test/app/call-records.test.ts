import path from 'node:path';
import { expect } from 'chai';
import type { CallRow, Store } from '../../core/index.ts';
import { openSqlite } from '../../plugins/stores/sqlite/index.ts';
import { type FaultRig, startFaultRig, USAGE_COST } from '../support/gateways/fault-rig.ts';
import { completion, delta, events } from '../support/vendors/openai-vendor.ts';
import { answer } from '../support/vendors/scripted-upstream.ts';
import { eventually } from '../support/wait.ts';

const USAGE = {
  ...{ prompt_tokens: 50, completion_tokens: 10, total_tokens: 60 },
  prompt_tokens_details: { cached_tokens: 20 },
  completion_tokens_details: { reasoning_tokens: 4 },
};
const CHAT = '/v1/chat/completions';

describe('the record of a call', function () {
  this.timeout(30_000);
  let rig: FaultRig;
  let store: Store;
  before(async () => {
    rig = await startFaultRig({ responseCache: {}, models: { fast: 'one/m' } });
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
  const ask = (content: string, rest: object = {}) => ({
    model: 'fast',
    messages: [{ role: 'user', content }],
    ...rest,
  });
  /** The record of the request with this id, once it is written. */
  const recordOf = (response: Response): Promise<CallRow> =>
    eventually(async () => {
      const { calls } = await store.ledger.calls({ limit: 100 });
      const found = calls.filter(({ requestId }) => requestId === response.headers.get('x-request-id'));
      expect(found).to.have.length(1);
      return found[0] as CallRow;
    });

  it('says who called what, how it went, what was used and what it cost', async () => {
    rig.vendor.script(answer(200, completion('fine', { usage: USAGE })));
    const record = await recordOf(await send(ask('one'), { 'x-session-id': 'morning' }));
    expect(record).to.include({
      ...{ account: 'local', userId: 'local', session: 'morning', operation: 'chat', provider: 'one', model: 'm' },
      ...{ requested: 'fast', stream: false, outcome: 'ok', attempts: 1, lane: 'native', cost: USAGE_COST },
      ...{ estimated: false, priced: true },
    });
    expect(record.key).to.match(/^tg_|^\w{12}$/);
    expect(record.units).to.deep.equal({
      ...{ prompt_tokens: 50, completion_tokens: 10, cached_tokens: 20, reasoning_tokens: 4 },
    });
    expect(record.durationMs).to.be.at.least(0);
    expect(Math.abs(Date.now() - record.at)).to.be.below(30_000);
  });

  it('is written for a stream when it has ended', async () => {
    rig.vendor.script(events([delta('in '), delta('pieces', 'stop', { usage: USAGE }), '[DONE]']));
    const record = await recordOf(await send(ask('two', { stream: true })));
    expect(record).to.include({ stream: true, outcome: 'ok', cost: USAGE_COST });
    expect(record.firstByteMs).to.be.a('number');
  });

  it('of a call that failed says why, and costs nothing', async () => {
    rig.vendor.script(answer(400, { error: { message: 'no' } }));
    const response = await send(ask('three'));
    expect(response.status).to.equal(400);
    const record = await recordOf(response);
    expect(record).to.include({ outcome: 'error', errorCode: 'invalid_request', cost: 0 });
    expect(record.units).to.deep.equal({});
  });

  it('of a kept response says what it saved', async () => {
    rig.vendor.script(answer(200, completion('kept')));
    await send(ask('four'));
    const hit = await send(ask('four'));
    expect(hit.headers.get('x-tollgate-cache')).to.equal('hit');
    expect(await recordOf(hit)).to.include({ outcome: 'ok', cost: 0, saved: USAGE_COST, attempts: 0 });
  });

  it('is not written for a request that was refused before it was sent', async () => {
    const words = ['keys', 'create', '--user', 'poor', '--budget', '0.00001'];
    const { api_key } = await rig.gateway.command<{ api_key: string }>(...words);
    const { calls } = await store.ledger.calls({ limit: 100 });
    expect((await send({ model: 'fast' })).status).to.equal(400);
    expect((await send(ask('five'), { authorization: `Bearer ${api_key}` })).status).to.equal(402);
    expect((await store.ledger.calls({ limit: 100 })).calls).to.deep.equal(calls);
  });

  it('adds up, with all others, to what the account has spent', async () => {
    const { spent } = await store.ledger.balance('local');
    const rows = await store.ledger.report({ edges: [0, Date.now() + 1000], by: ['user', 'model'] });
    expect(rows.reduce((sum, { cost }) => sum + cost, 0)).to.equal(spent);
    expect(spent).to.be.above(0);
  });
});
