import path from 'node:path';
import { expect } from 'chai';
import type { CallRow, Store } from '../../contract/index.ts';
import { openSqlite } from '../../plugins/stores/sqlite/index.ts';
import { type FailureRig, startFailureRig } from '../support/gateways/failure-rig.ts';
import { partOf } from '../support/generated-cases.ts';
import { completion, delta, events } from '../support/vendors/openai-vendor.ts';
import { respondWith, type Script } from '../support/vendors/scripted-upstream.ts';
import { eventually } from '../support/wait.ts';

const DEPTH = 20_000;
const nested = (inner = '') => `${'['.repeat(DEPTH)}${inner}${']'.repeat(DEPTH)}`;
/** Completion with this extra member. */
const having = (extra: string) => Buffer.from(`${JSON.stringify(completion()).slice(0, -1)},"extra":${extra}}`);
const JSON_TYPE = { 'content-type': 'application/json' };

const OBJECTS = `[${'{},'.repeat(31_000_000 / 3)}{}]`;
const BAD: readonly (readonly [what: string, body: Buffer])[] = [
  ['31 MB of objects', Buffer.from(OBJECTS)],
  ['a completion with 31 MB of objects', having(OBJECTS)],
  ['a completion that is nested deeply', having(nested())],
  ['levels without end', Buffer.from('{"a":'.repeat(1_000_000))],
];

describe('an excessive response of a vendor', function () {
  this.timeout(120_000);
  let rig: FailureRig;
  let store: Store;
  before(async () => {
    rig = await startFailureRig({ store: 'sqlite:./data' });
    store = await openSqlite({ folder: path.join(rig.gateway.folder, 'data') });
  });
  after(async () => {
    await store?.close();
    await rig?.stop();
  });
  beforeEach(() => rig.second.script(respondWith(200, completion('rescued'))));

  const send = (model: string, rest: object = {}): Promise<Response> =>
    rig.gateway.post('/v1/chat/completions', { model, messages: [{ role: 'user', content: 'hi' }], ...rest });
  const codeOf = async (response: Response): Promise<string> =>
    ((await response.json()) as { error: { code: string } }).error.code;
  const recordOf = (response: Response): Promise<CallRow> =>
    eventually(async () => {
      const { calls } = await store.ledger.calls({ limit: 100 });
      const found = calls.filter(({ requestId }) => requestId === response.headers.get('x-request-id'));
      expect(found).to.have.length(1);
      return found[0] as CallRow;
    });

  for (const [at, [what, body]] of BAD.entries())
    for (const stream of partOf([false, true], at)) {
      const mode = stream ? 'for a stream' : 'for a response';
      it(`E28: ${what}, asked ${mode}, is provider_invalid_response and has a record`, async () => {
        rig.vendor.script(respondWith(200, body, JSON_TYPE));
        const response = await send('one/m', { stream });
        expect(response.status).to.equal(503);
        expect(await codeOf(response)).to.equal('provider_invalid_response');
        expect(await recordOf(response)).to.include({ outcome: 'error', errorCode: 'provider_invalid_response' });
      });
    }

  it('E28: the next target of an alias responds instead of a vendor with an excessive response', async () => {
    rig.vendor.script(respondWith(200, OBJECTS, JSON_TYPE));
    const response = await send('both');
    expect(response.status).to.equal(200);
    expect(response.headers.get('x-tollgate-provider')).to.equal('two');
    expect(await response.text()).to.include('rescued');
    const record = await recordOf(response);
    expect(record).to.include({ outcome: 'ok', provider: 'two' });
    expect(record.attempts).to.have.length(2);
  });

  it('E28: responds also instead of one whose first stream event is deeply nested', async () => {
    rig.vendor.script(events([having(nested()).toString(), '[DONE]']));
    rig.second.script(events([delta('rescued', 'stop'), '[DONE]']));
    const response = await send('both', { stream: true });
    expect(response.headers.get('x-tollgate-provider')).to.equal('two');
    expect(await response.text()).to.include('rescued');
  });

  for (const [what, extra] of [
    ['nested deeply', nested()],
    ['full of objects', `[${'{},'.repeat(1_000_000)}{}]`],
  ] as const)
    it(`E28: an event of a stream that is ${what} ends it with an error frame`, async () => {
      const bad: Script = events([delta('so far'), having(extra).toString(), '[DONE]']);
      rig.vendor.script(bad);
      const response = await send('one/m', { stream: true });
      const text = await response.text();
      expect(text).to.include('so far').and.include('"code":"provider_invalid_response"');
      expect(text).not.to.include('[DONE]');
      expect(await recordOf(response)).to.include({ outcome: 'error', errorCode: 'provider_invalid_response' });
    });

  it('E28: deeply nested arguments of a tool, as text inside a response, pass', async () => {
    const call = { id: 'c1', type: 'function', function: { name: 'f', arguments: nested('1') } };
    const choice = { index: 0, finish_reason: 'tool_calls', message: { role: 'assistant', tool_calls: [call] } };
    rig.vendor.script(respondWith(200, completion('', { choices: [choice] })));
    for (const [door, body] of [
      ['/v1/chat/completions', { messages: [{ role: 'user', content: 'hi' }] }],
      ['/v1/messages', { max_tokens: 10, messages: [{ role: 'user', content: 'hi' }] }],
      ['/v1/responses', { input: 'hi' }],
    ] as const) {
      const response = await rig.gateway.post(door, { model: 'one/m', ...body });
      expect(response.status, `${door} ${await response.clone().text()}`).to.equal(200);
      await response.text();
    }
  });

  for (const status of [400, 500])
    it(`E28: the body of an error ${status} that is deeply nested is an error of the provider like any other`, async () => {
      rig.vendor.script(respondWith(status, `{"error":{"message":"no","param":${nested()}}}`, JSON_TYPE));
      const response = await send('one/m');
      expect(response.status).to.equal(status === 400 ? 400 : 503);
      expect(await codeOf(response)).to.be.oneOf(['invalid_request', 'provider_unavailable']);
      await recordOf(response);
    });
});
