import { expect } from 'chai';
import { type FailureRig, startFailureRig, USAGE_COST } from '../support/gateways/failure-rig.ts';
import { pluginFile, readText } from '../support/plugins/plugin-file.ts';
import { completion, delta, events } from '../support/vendors/openai-vendor.ts';
import { respondWith } from '../support/vendors/scripted-upstream.ts';

const USAGE = { prompt_tokens: 50, completion_tokens: 10, total_tokens: 60 };
const STREAM = [delta('in '), delta('pieces'), delta('', 'stop', { usage: USAGE }), '[DONE]'];
const CHAT = '/v1/chat/completions';

describe('the response cache', () => {
  let rig: FailureRig;
  let words = 0;

  const start = async (
    responseCache: object | undefined,
    more: Record<string, unknown> = {},
    files: Record<string, string> = {},
  ) => {
    rig = await startFailureRig({ ...(responseCache && { responseCache }), ...more }, { files });
  };
  /** A request that was never sent before. */
  const fresh = (rest: object = {}) => {
    words += 1;
    return { model: 'one/m', messages: [{ role: 'user', content: `question ${words}` }], ...rest };
  };
  const send = async (body: object, headers: Record<string, string> = {}) => {
    const response = await rig.gateway.post(CHAT, body, headers);
    return {
      status: response.status,
      cache: response.headers.get('x-tollgate-cache'),
      cost: response.headers.get('x-tollgate-cost-usd'),
      saved: response.headers.get('x-tollgate-saved-usd'),
      age: response.headers.get('age'),
      text: await readText(response.clone()),
      raw: await response.text(),
    };
  };
  const keyOf = async (user: string) =>
    (await rig.gateway.command<{ api_key: string }>('keys', 'create', '--user', user, '--account', 'both')).api_key;

  describe('with room for four responses of one account', () => {
    before(() => start({ maxSize: '20kb', sharedBy: 'account' }));
    after(() => rig.stop());

    it('drops that account’s own when it has half of all, oldest first, and keeps those of others', async () => {
      const makeKey = async (account: string) =>
        (await rig.gateway.command<{ api_key: string }>('keys', 'create', '--user', account)).api_key;
      const [greedy, other] = await Promise.all(
        ['greedy', 'other'].map(async (account) => ({ authorization: `Bearer ${await makeKey(account)}` })),
      );
      rig.vendor.script(respondWith(200, completion('x'.repeat(2000))));
      const hit = async (body: object, key = greedy) => (await send(body, key)).cache === 'hit';
      const own = fresh();
      await send(own, other);
      const bodies = Array.from({ length: 12 }, () => fresh());
      for (const body of bodies) expect(await hit(body)).to.equal(false);
      expect(await hit(bodies.at(-1) ?? {})).to.equal(true);
      expect(await hit(own, other), 'the response of another account').to.equal(true);
      expect(await hit(bodies[0] ?? {})).to.equal(false);
    });
  });

  describe('with its defaults', () => {
    before(() => start({}));
    after(() => rig.stop());

    it('replays the response to the same request, free of charge, and reports the saved amount', async () => {
      const mark = await rig.mark();
      rig.vendor.script(respondWith(200, completion('the answer')));
      const body = fresh();
      expect(await send(body)).to.include({ status: 200, cache: null, text: 'the answer' });
      const seen = rig.vendor.requests.length;
      const { messages, model } = body;
      const hit = await send({ messages, temperature: null, model });
      expect(hit).to.include({
        status: 200,
        cache: 'hit',
        text: 'the answer',
        cost: '0.00',
        saved: '0.00007',
        age: '0',
      });
      expect(rig.vendor.requests).to.have.lengthOf(seen);
      const metrics = await (await rig.gateway.get('/metrics')).text();
      expect(metrics).to.match(/tollgate_cache_hits_total\{provider="one",model="m"\} 1/);
      expect(metrics).to.match(/tollgate_cache_saved_usd_total\{provider="one",model="m"\} 0\.00007/);
      await rig.expectOrder(mark, 2, USAGE_COST);
    });

    it('G92: never replays another user’s response, nor one to a merely similar text', async () => {
      const [first, second] = [await keyOf('first'), await keyOf('second')];
      rig.vendor.script(respondWith(200, completion('for the first')));
      const body = fresh();
      await send(body, { authorization: `Bearer ${first}` });
      rig.vendor.script(respondWith(200, completion('for the second')));
      const theirs = await send(body, { authorization: `Bearer ${second}` });
      expect(theirs).to.include({ cache: null, text: 'for the second' });
      expect(await send(body, { authorization: `Bearer ${first}` })).to.include({
        cache: 'hit',
        text: 'for the first',
      });
      const alike = { ...body, messages: [{ role: 'user', content: `${body.messages[0]?.content}?` }] };
      expect(await send(alike, { authorization: `Bearer ${first}` })).to.include({ cache: null });
    });

    it('G93: replays a JSON response as a stream, and a stream as JSON', async () => {
      rig.vendor.script(respondWith(200, completion('kept whole')));
      const whole = fresh();
      const first = await send(whole);
      const streamed = await send({ ...whole, stream: true, stream_options: { include_usage: true } });
      expect(streamed).to.include({ status: 200, cache: 'hit', text: first.text });
      expect(streamed.raw).to.match(
        /"role":"assistant"[\s\S]*"finish_reason":"stop"[\s\S]*"total_tokens":60[\s\S]*data: \[DONE\]\n\n$/,
      );

      rig.vendor.script(events(STREAM));
      const piecewise = fresh({ stream: true });
      expect(await send(piecewise)).to.include({ cache: null, text: 'in pieces' });
      const again = await send({ ...piecewise, stream: false });
      expect(again).to.include({ cache: 'hit', text: 'in pieces' });
      expect(JSON.parse(again.raw)).to.have.nested.property('usage.total_tokens', 60);
      expect(await send(piecewise)).to.include({ cache: 'hit', text: 'in pieces' });
    });

    it('stores complete tool calls, also those that were streamed', async () => {
      const call = (part: object) =>
        delta('', null, { choices: [{ index: 0, delta: { tool_calls: [part] }, finish_reason: null }] });
      rig.vendor.script(
        events([
          call({ index: 0, id: 'call_1', type: 'function', function: { name: 'look', arguments: '' } }),
          call({ index: 0, function: { arguments: '{"at":' } }),
          call({ index: 0, function: { arguments: '"door"}' } }),
          delta('', 'tool_calls', { usage: USAGE }),
          '[DONE]',
        ]),
      );
      const body = fresh({ tools: [{ type: 'function', function: { name: 'look', parameters: { type: 'object' } } }] });
      await send({ ...body, stream: true });
      const { cache, raw } = await send(body);
      expect(cache).to.equal('hit');
      const { choices } = JSON.parse(raw) as {
        choices: { message: { tool_calls: object[] }; finish_reason: string }[];
      };
      expect(choices[0]?.finish_reason).to.equal('tool_calls');
      expect(choices[0]?.message.tool_calls).to.deep.equal([
        { id: 'call_1', type: 'function', function: { name: 'look', arguments: '{"at":"door"}' } },
      ]);
    });

    for (const [title, rest] of [
      ['another temperature', { temperature: 0.3 }],
      ['another seed', { seed: 4 }],
      ['a field that only the vendor knows', { unknown_field: 1 }],
      ['another limit of output', { max_completion_tokens: 7 }],
    ] as const)
      it(`treats a request with ${title} as another one`, async () => {
        rig.vendor.script(respondWith(200, completion()));
        const body = fresh();
        await send(body);
        expect((await send({ ...body, ...rest })).cache).to.equal(null);
        expect((await send({ ...body, ...rest })).cache).to.equal('hit');
      });

    it('neither replays nor stores for cache-control: no-store, and gets a new response for no-cache', async () => {
      const noStore = { 'cache-control': 'no-store' };
      rig.vendor.script(respondWith(200, completion('one')));
      const body = fresh();
      await send(body, noStore);
      rig.vendor.script(respondWith(200, completion('two')));
      expect(await send(body)).to.include({ cache: null, text: 'two' });
      rig.vendor.script(respondWith(200, completion('three')));
      expect(await send(body, noStore)).to.include({ cache: null, text: 'three' });
      expect(await send(body)).to.include({ cache: 'hit', text: 'two' });
      expect(await send(body, { 'cache-control': 'no-cache' })).to.include({ cache: null, text: 'three' });
      expect(await send(body)).to.include({ cache: 'hit', text: 'three' });
    });

    const finish = (finish_reason: string) =>
      respondWith(
        200,
        completion('cut', { choices: [{ index: 0, message: { role: 'assistant', content: 'cut' }, finish_reason }] }),
      );
    for (const [title, script, stream] of [
      ['was cut at its limit', finish('length'), false],
      ['was filtered', finish('content_filter'), false],
      ['has no text', respondWith(200, completion('')), false],
      ['is an error', respondWith(500, { error: { message: 'no' } }), false],
      ['broke off as a stream', events([delta('so far')], (wire) => wire.reset()), true],
    ] as const)
      it(`does not store a response that ${title}`, async () => {
        rig.vendor.script(script);
        const body = fresh({ stream });
        await send(body);
        rig.vendor.script(stream ? events(STREAM) : respondWith(200, completion('fine')));
        expect(await send(body)).to.include({ status: 200, cache: null });
      });
  });

  describe('with options', () => {
    afterEach(() => rig.stop());

    it('is disabled without its section', async () => {
      await start(undefined);
      rig.vendor.script(respondWith(200, completion()));
      const body = fresh();
      await send(body);
      expect((await send(body)).cache).to.equal(null);
    });

    it('replays for everyone who may use the model if so configured', async () => {
      await start({ sharedBy: 'everyone' });
      rig.vendor.script(respondWith(200, completion('shared')));
      const body = fresh();
      await send(body);
      const other = await keyOf('somebody-else');
      expect(await send(body, { authorization: `Bearer ${other}` })).to.include({ cache: 'hit', text: 'shared' });
    });

    it('stores only responses to repeatable requests with requests: deterministic', async () => {
      await start({ requests: 'deterministic' });
      rig.vendor.script(respondWith(200, completion()));
      for (const [rest, cache] of [
        [{}, null],
        [{ temperature: 0.7 }, null],
        [{ temperature: 0 }, 'hit'],
        [{ seed: 1 }, 'hit'],
      ] as const) {
        const body = fresh(rest);
        await send(body);
        expect((await send(body)).cache, JSON.stringify(rest)).to.equal(cache);
      }
    });

    it('does not store a response larger than maxResponse, and evicts the oldest beyond maxSize', async () => {
      await start({ maxResponse: '2kb', maxSize: '3kb' });
      rig.vendor.script(respondWith(200, completion('x'.repeat(3000))));
      const large = fresh();
      await send(large);
      expect((await send(large)).cache).to.equal(null);
      rig.vendor.script(respondWith(200, completion('y'.repeat(1000))));
      const all = [fresh(), fresh(), fresh()];
      for (const body of all) await send(body);
      expect((await send(all[2] ?? {})).cache).to.equal('hit');
      expect((await send(all[0] ?? {})).cache).to.equal(null);
    });

    it('stores the provider’s response: other policies change a replayed response again', async () => {
      const masks = pluginFile({
        name: 'masks',
        setup: `
          let n = 0;
          api.hook('receive', (call, response) => { n += 1; return { ...response, choices: response.choices.map((choice) => ({ ...choice, message: { ...choice.message, content: choice.message.content + ' masked ' + n } })) }; });`,
      });
      await start({}, { policies: { masks: { plugin: './masks.mjs' } } }, { 'masks.mjs': masks });
      rig.vendor.script(respondWith(200, completion('said')));
      const body = fresh();
      expect((await send(body)).text).to.equal('said masked 1');
      expect(await send(body)).to.include({ cache: 'hit', text: 'said masked 2' });
    });
  });
});
