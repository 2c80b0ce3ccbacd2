import { expect } from 'chai';
import type { Principal } from '../../../../contract/index.ts';
import type { StoreMode } from '../../../../plugins/dialects/kit/keep.ts';
import { createResponseStore } from '../../../../plugins/dialects/responses/store.ts';
import { openMemory } from '../../../../plugins/stores/memory/index.ts';
import { contextOf } from '../../../support/formats/responses-dialect.ts';

const ANN: Principal = { credential: 'key', userId: 'ann', account: 'shop' };
/** Placeholder: the request is read only after its references were resolved. */
const REQUEST = { model: 'm', messages: [] };
const BEN: Principal = { ...ANN, userId: 'ben' };

type ResponseStoreApi = Parameters<typeof createResponseStore>[0];

async function openStore(mode: StoreMode, maxBytes?: number) {
  const memory = await openMemory(undefined, maxBytes);
  const warnings: unknown[] = [];
  const note = (...args: unknown[]) => void warnings.push(args);
  const stores = { stored: memory.stored('responses') };
  const api = { stores, log: { warn: note, info: note } } as unknown as ResponseStoreApi;
  const store = createResponseStore(api, mode, '1h');
  const expand = async (body: object, caller = ANN) =>
    (await store.expand(contextOf(body, REQUEST).input, caller)).body.input;
  const remember = (id: string, body: object, text: string, caller = ANN) =>
    store.remember({ id, status: 'completed', output: [message(`msg_${id}`, text)] }, contextOf(body), caller);
  return { ...store, expand, remember, warnings };
}

const message = (id: string, text: string) => ({
  id,
  type: 'message',
  role: 'assistant',
  content: [{ type: 'output_text', text }],
});
const user = (text: string) => ({ type: 'message', role: 'user', content: text });

async function errorOf(promise: Promise<unknown>) {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  return error as { code: string; param: string; message: string };
}

describe('the store of responses', () => {
  it('inserts the history of a response, and the response, before its continuation', async () => {
    const { expand, remember } = await openStore('short');
    await remember('resp_1', { input: 'One' }, 'first');
    const second = await expand({ previous_response_id: 'resp_1', input: [user('Two')] });
    expect(second).to.deep.equal([user('One'), message('msg_resp_1', 'first'), user('Two')]);
    await remember('resp_2', { input: second }, 'second');
    expect(await expand({ previous_response_id: 'resp_2', input: 'Three' })).to.deep.equal([
      ...(second as object[]),
      message('msg_resp_2', 'second'),
      user('Three'),
    ]);
  });

  it('puts items in the place of references to them, with a type and without', async () => {
    const { expand, remember } = await openStore('short');
    await remember('resp_1', { input: 'One' }, 'first');
    const input = [user('One'), { type: 'item_reference', id: 'msg_resp_1' }, { id: 'msg_resp_1' }, user('Two')];
    const item = message('msg_resp_1', 'first');
    expect(await expand({ input })).to.deep.equal([user('One'), item, item, user('Two')]);
  });

  it('reports another user’s response like an unknown one', async () => {
    const { expand, remember } = await openStore('short');
    await remember('resp_1', { input: 'One' }, 'first');
    for (const body of [
      { previous_response_id: 'resp_1' },
      { input: [{ type: 'item_reference', id: 'msg_resp_1' }] },
    ]) {
      const foreign = await errorOf(expand(body, BEN));
      const { expand: empty } = await openStore('short');
      const unknown = await errorOf(empty(body, ANN));
      expect(foreign).to.include({ code: 'previous_response_not_found' });
      expect([foreign.message, foreign.param]).to.deep.equal([unknown.message, unknown.param]);
    }
  });

  it('stores nothing if the caller disables it, nor failures', async () => {
    const { expand, remember, remember: _, ...store } = await openStore('short');
    await remember('resp_1', { input: 'One', store: false }, 'first');
    await store.get(ANN, 'resp_1').then((kept) => expect(kept).to.equal(undefined));
    expect((await errorOf(expand({ previous_response_id: 'resp_1' }))).code).to.equal('previous_response_not_found');
  });

  it('refuses references if it is disabled, with the setting', async () => {
    const { expand, remember } = await openStore('off');
    await remember('resp_1', { input: 'One' }, 'first');
    const error = await errorOf(expand({ previous_response_id: 'resp_1' }));
    expect(error).to.include({ code: 'invalid_request', param: 'previous_response_id' });
    expect(error.message).to.include('Send the whole conversation').and.to.include('responses: { store: short }');
    expect((await errorOf(expand({ input: [{ id: 'x' }] }))).param).to.equal('input');
    expect(await expand({ input: 'Hi' })).to.equal('Hi');
  });

  it('evicts the oldest of an account over its limit, without affecting others', async () => {
    const { expand, remember } = await openStore('short', 10_000);
    const other: Principal = { ...ANN, account: 'office' };
    await remember('resp_other', { input: 'x' }, 'x', other);
    for (let at = 0; at < 8; at += 1)
      await remember(`resp_${at}`, { input: 'x'.repeat(700) }, 'y'.repeat(200), at % 2 ? ANN : BEN);
    expect((await errorOf(expand({ previous_response_id: 'resp_0' }, BEN))).code).to.equal(
      'previous_response_not_found',
    );
    expect((await errorOf(expand({ input: [{ id: 'msg_resp_0' }] }, BEN))).code).to.equal(
      'previous_response_not_found',
    );
    expect(await expand({ previous_response_id: 'resp_7' })).to.have.length(3);
    expect(await expand({ previous_response_id: 'resp_other' }, other)).to.have.length(3);
  });

  it('does not store an oversized response', async () => {
    const { expand, remember, warnings } = await openStore('short', 4000);
    await remember('resp_1', { input: 'x'.repeat(2000) }, 'y');
    expect(warnings).to.have.length(1);
    expect((await errorOf(expand({ previous_response_id: 'resp_1' }))).code).to.equal('previous_response_not_found');
  });

  it('reads and deletes stored responses only for their owner', async () => {
    const { remember, get, remove, expand } = await openStore('on');
    await remember('resp_1', { input: 'One' }, 'first');
    expect((await get(ANN, 'resp_1'))?.response).to.include({ id: 'resp_1' });
    expect(await get(BEN, 'resp_1')).to.equal(undefined);
    expect(await remove(BEN, 'resp_1')).to.equal(false);
    expect(await remove(ANN, 'resp_1')).to.equal(true);
    expect(await get(ANN, 'resp_1')).to.equal(undefined);
    expect((await errorOf(expand({ input: [{ id: 'msg_resp_1' }] }))).code).to.equal('previous_response_not_found');
  });

  it('returns a response that cannot be stored, with a log line', async () => {
    const memory = await openMemory();
    const warnings: unknown[] = [];
    const log = { warn: (...args: unknown[]) => void warnings.push(args) };
    const api = { stores: { stored: memory.stored('responses') }, log } as unknown as ResponseStoreApi;
    const store = createResponseStore(api, 'short', '1h');
    await memory.close();
    await store.remember({ id: 'resp_1', output: [] }, contextOf({}), ANN);
    expect(warnings).to.have.length(1);
  });
});
