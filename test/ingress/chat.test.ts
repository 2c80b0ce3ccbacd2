/** What other gateways did wrong with chat completions (cases G26, G52 to G64), through a whole gateway. */
import { expect } from 'chai';
import { completion, completionEvents, receiveChat, vendorScript } from '../support/clients/chat-client.ts';
import {
  CUTS,
  type IngressRig,
  MODEL_OF,
  type Piece,
  startIngressRig,
  WIRES,
  type Wire,
} from '../support/gateways/ingress-rig.ts';
import { answer } from '../support/vendors/scripted-upstream.ts';

/** Vendors of OpenAI's wire. */
const COMPATIBLE = ['openai', 'mistral', 'deepseek'] as const satisfies readonly Wire[];
const SIGNATURE = Buffer.from('signed by the vendor '.repeat(20)).toString('base64');
const TOOLS = ['search', 'look'].map((name) => ({
  type: 'function',
  function: { name, parameters: { type: 'object', properties: {} } },
}));
const call = (id: string, text: string): Piece => ({ call: 'look', id, arguments: text });

/** Every way in which a case has to hold: the vendor, whether the client streams, how the bytes come. */
const WAYS = COMPATIBLE.flatMap((wire) =>
  [false, true].flatMap((stream) => (stream ? CUTS : [65_536 as const]).map((cut) => ({ wire, stream, cut }))),
);
const named = ({ wire, stream, cut }: (typeof WAYS)[number]) =>
  `${wire}, ${stream ? `streamed, ${cut} bytes at a time` : 'whole'}`;

describe('POST /v1/chat/completions', () => {
  let rig: IngressRig;
  before(async () => {
    rig = await startIngressRig();
  });
  after(() => rig.stop());

  const ask = (wire: Wire, stream: boolean, fields: object = {}) =>
    receiveChat(rig, { model: MODEL_OF[wire], stream, tools: TOOLS, ...fields });

  /** What a client that keeps no more than id, name and arguments sends in its second turn. */
  const secondTurn = (
    calls: readonly { readonly id: string; readonly name: string; readonly arguments: unknown }[],
  ) => [
    { role: 'user', content: 'Hi' },
    {
      role: 'assistant',
      content: null,
      tool_calls: calls.map(({ id, name, arguments: text }) => ({
        ...{ id, type: 'function', function: { name, arguments: text } },
      })),
    },
    ...calls.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: 'found' })),
  ];

  for (const stream of [false, true])
    for (const cut of CUTS)
      it(`G52: Gemini’s signature survives a client that keeps id, name and arguments (${stream ? 'streamed' : 'whole'}, ${cut} bytes at a time)`, async () => {
        const parts = [{ functionCall: { name: 'look', args: { at: 'é' } }, thoughtSignature: SIGNATURE }];
        const body = {
          candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP', index: 0 }],
          usageMetadata: { promptTokenCount: 20, candidatesTokenCount: 5, totalTokenCount: 25 },
        };
        rig.script('gemini', vendorScript(body, [body], cut));
        const { calls } = await ask('gemini', stream);
        expect(calls).to.have.length(1);
        await ask('gemini', stream, { messages: secondTurn(calls) });
        const { contents } = rig.lastBody<{ contents: { parts: object[] }[] }>('gemini');
        expect(contents[1]?.parts[0]).to.deep.include({ thoughtSignature: SIGNATURE });
        for (const wire of COMPATIBLE) {
          rig.say(wire, { pieces: [{ text: 'x' }] });
          await ask(wire, stream, { messages: secondTurn(calls) });
          const sent = JSON.stringify(rig.lastBody(wire));
          expect(sent).not.to.include(SIGNATURE.slice(0, 40));
          const [id, result] = [...sent.matchAll(/"(?:id|tool_call_id)":"([^"]+)"/g)].map((match) => match[1]);
          expect(id)
            .to.match(/^[A-Za-z0-9_-]{1,64}$/)
            .and.to.equal(result);
        }
      });

  for (const way of WAYS)
    it(`G26: ids that others refuse are valid from the start, and no two become one (${named(way)})`, async () => {
      const ids = ['functions.look:0', 'functions_look:0', 'functions.look_0'];
      const calls = ids.map((id, index) => ({
        index,
        id,
        type: 'function',
        function: { name: 'look', arguments: '{}' },
      }));
      rig.script(
        way.wire,
        vendorScript(
          completion({ tool_calls: calls }, 'tool_calls'),
          completionEvents([{ tool_calls: calls }], 'tool_calls'),
          way.cut,
        ),
      );
      const received = (await ask(way.wire, way.stream)).calls;
      expect(new Set(received.map(({ id }) => id)).size).to.equal(3);
      for (const { id } of received) expect(id).to.match(/^[A-Za-z0-9_-]{1,64}$/);
      rig.say('anthropic', { pieces: [{ text: 'x' }] });
      await ask('anthropic', way.stream, { messages: secondTurn(received) });
      const sent = JSON.stringify(rig.lastBody('anthropic'));
      const used = [...sent.matchAll(/"(?:id|tool_use_id)":"([^"]+)"/g)].map((match) => match[1]);
      expect(used).to.deep.equal([...received, ...received].map(({ id }) => id));
    });

  for (const way of WAYS.filter(({ stream }) => stream))
    it(`G53: an id and a name that the vendor repeats in each chunk come once (${named(way)})`, async () => {
      const delta = (text: string) => ({
        tool_calls: [{ index: 0, id: 'call00001', type: 'function', function: { name: 'search', arguments: text } }],
      });
      const events = completionEvents([delta(''), delta('{"q":'), delta('"é"}')], 'tool_calls');
      rig.script(way.wire, vendorScript({}, events, way.cut));
      const { calls } = await ask(way.wire, true);
      expect(calls).to.deep.equal([{ id: 'call00001', name: 'search', arguments: '{"q":"é"}' }]);
    });

  for (const way of WAYS.filter(({ stream }) => stream))
    it(`G54: three calls that all have index 0 and no id are three calls (${named(way)})`, async () => {
      const deltas = ['a', 'b', 'c'].map((at) => ({
        tool_calls: [{ index: 0, type: 'function', function: { name: 'look', arguments: `{"at":"${at}"}` } }],
      }));
      rig.script(way.wire, vendorScript({}, completionEvents(deltas, 'tool_calls'), way.cut));
      const { calls } = await ask(way.wire, true);
      expect(calls.map(({ arguments: text }) => text)).to.deep.equal(['{"at":"a"}', '{"at":"b"}', '{"at":"c"}']);
      expect(new Set(calls.map(({ id }) => id)).size).to.equal(3);
      expect(calls.every(({ id, name }) => id !== '' && name === 'look')).to.equal(true);
    });

  for (const way of WAYS.filter(({ stream }) => stream))
    it(`G55: calls that the vendor counts from 1 are counted from 0 (${named(way)})`, async () => {
      const deltas = [1, 2].map((index) => ({
        tool_calls: [{ index, id: `call0000${index}`, type: 'function', function: { name: 'look', arguments: '{}' } }],
      }));
      rig.script(way.wire, vendorScript({}, completionEvents(deltas, 'tool_calls'), way.cut));
      const { calls } = await ask(way.wire, true);
      expect(Object.keys(calls)).to.deep.equal(['0', '1']);
      expect(calls.map(({ id }) => id)).to.deep.equal(['call00001', 'call00002']);
    });

  // OpenAI itself ends a call of a forced function with `stop`, and says so.
  for (const wire of ['mistral', 'deepseek', 'gemini', 'anthropic'] as const)
    for (const stream of [false, true])
      it(`G56: a call that ${wire} ends with stop is finished by tool_calls (${stream ? 'streamed' : 'whole'})`, async () => {
        rig.say(
          wire,
          { pieces: [call('call00001', '{"at":"x"}')], ...(wire !== 'anthropic' && { finish: 'stop' }) },
          7,
        );
        const { calls, finish } = await ask(wire, stream);
        expect(calls).to.have.length(1);
        expect(finish).to.deep.equal(['tool_calls']);
      });

  for (const way of WAYS)
    it(`G57: arguments that the vendor sends as an object are JSON text (${named(way)})`, async () => {
      const calls = [
        { index: 0, id: 'call00001', type: 'function', function: { name: 'look', arguments: { at: 'é', deep: [1] } } },
      ];
      rig.script(
        way.wire,
        vendorScript(
          completion({ tool_calls: calls }, 'tool_calls'),
          completionEvents([{ tool_calls: calls }], 'tool_calls'),
          way.cut,
        ),
      );
      const received = (await ask(way.wire, way.stream)).calls;
      expect(received[0]?.arguments).to.equal('{"at":"é","deep":[1]}');
    });

  for (const wire of WIRES)
    for (const stream of [false, true])
      for (const cut of CUTS)
        it(`G58: a call of ${wire} without arguments has {} (${stream ? 'streamed' : 'whole'}, ${cut} bytes at a time)`, async () => {
          rig.say(wire, { pieces: [call('call00001', '')] }, cut);
          expect((await ask(wire, stream)).calls[0]?.arguments).to.equal('{}');
        });

  for (const wire of WIRES)
    it(`G58: a history that another gateway left without arguments gets empty ones for ${wire}`, async () => {
      rig.say(wire, { pieces: [{ text: 'x' }] });
      await ask(wire, false, { messages: secondTurn([{ id: 'call00001', name: 'look', arguments: '' }]) });
      expect(JSON.stringify(rig.lastBody(wire))).to.match(/"arguments":"\{\}"|"input":\{\}|"args":\{\}/);
    });

  for (const wire of COMPATIBLE)
    for (const cut of CUTS)
      it(`G59: a first chunk of ${wire} without choices does not go out (${cut} bytes at a time)`, async () => {
        const first = {
          ...{ id: '', object: '', created: 0, model: '', choices: [] },
          prompt_filter_results: [{ prompt_index: 0, content_filter_results: {} }],
        };
        rig.script(wire, vendorScript({}, [first, ...completionEvents([{ content: 'Hé' }], 'stop')], cut));
        const { content, frames } = await ask(wire, true, { stream_options: null });
        expect(content).to.equal('Hé');
        const chunks = frames
          .slice(0, -1)
          .map((frame) => JSON.parse(frame.slice(6)) as { choices: object[]; id: string });
        expect(chunks.every(({ choices }) => choices.length === 1)).to.equal(true);
        expect(new Set(chunks.map(({ id }) => id))).to.deep.equal(new Set(['chatcmpl-vendor']));
      });

  for (const way of WAYS.filter(({ stream }) => stream))
    it(`G60: a stream whose vendor gives each chunk a new id has one (${named(way)})`, async () => {
      const deltas = ['{"at"', ':"x"}'].map((text, at) => ({
        tool_calls: [
          at === 0
            ? { index: 0, id: 'call00001', type: 'function', function: { name: 'look', arguments: text } }
            : { index: 0, id: 'call00002', function: { arguments: text } },
        ],
      }));
      const events = completionEvents(deltas, 'tool_calls').map((event, at) =>
        typeof event === 'string' ? event : { ...event, id: `chatcmpl-${at}` },
      );
      rig.script(way.wire, vendorScript({}, events, way.cut));
      const { calls, frames } = await ask(way.wire, true);
      expect(calls).to.deep.equal([{ id: 'call00001', name: 'look', arguments: '{"at":"x"}' }]);
      const ids = frames.slice(0, -1).map((frame) => (JSON.parse(frame.slice(6)) as { id: string }).id);
      expect(new Set(ids).size).to.equal(1);
    });

  for (const way of WAYS.filter(({ stream }) => stream))
    it(`G61: of two chunks that finish, one goes out (${named(way)})`, async () => {
      const calls = [{ index: 0, id: 'call00001', type: 'function', function: { name: 'look', arguments: '{}' } }];
      const events = completionEvents([{ tool_calls: calls }], 'tool_calls');
      const [finish] = events.slice(-3);
      rig.script(way.wire, vendorScript({}, [...events.slice(0, -2), finish ?? '', ...events.slice(-2)], way.cut));
      const received = await ask(way.wire, true);
      expect(received.finish).to.deep.equal(['tool_calls']);
      expect(received.calls).to.have.length(1);
    });

  for (const way of WAYS)
    it(`G62: an error inside a 200 is an error, and nothing finishes (${named(way)})`, async () => {
      const error = { error: { message: 'the model went away', type: 'server_error', code: 500 } };
      const events = [...completionEvents([{ content: 'Half of ' }], 'stop').slice(0, 2), error];
      let begun = (): void => undefined;
      const hasBegun = new Promise<void>((resolve) => {
        begun = resolve;
      });
      rig.script(way.wire, vendorScript(error, events, way.cut, hasBegun));
      const request = { model: MODEL_OF[way.wire], messages: [{ role: 'user', content: 'Hi' }], stream: way.stream };
      const response = await rig.gateway.post('/v1/chat/completions', request);
      if (!way.stream) {
        expect(response.status).to.equal(503);
        expect(await response.json()).to.have.nested.property('error.code', 'provider_unavailable');
        return;
      }
      expect(response.status).to.equal(200);
      let text = '';
      const decoder = new TextDecoder();
      for await (const bytes of response.body ?? []) {
        text += decoder.decode(bytes, { stream: true });
        if (text.includes('Half of ')) begun();
      }
      expect(text).to.include('Half of ');
      expect(text).not.to.match(/"finish_reason":"|\[DONE\]/);
      const last = text.trim().split('\n\n').at(-1) ?? '';
      expect(JSON.parse(last.slice(6))).to.have.nested.property('error.code', 'provider_unavailable');
    });

  for (const field of ['reasoning', 'reasoning_content', 'both'])
    for (const way of WAYS)
      it(`G63: thinking that the vendor sends as ${field} has one name (${named(way)})`, async () => {
        const thought = (text: string) => ({
          ...(field !== 'reasoning' && { reasoning_content: text }),
          ...(field !== 'reasoning_content' && { reasoning: text }),
        });
        const events = completionEvents([thought('Hm, '), thought('é.'), { content: 'So.' }], 'stop');
        rig.script(
          way.wire,
          vendorScript(completion({ ...thought('Hm, é.'), content: 'So.' }, 'stop'), events, way.cut),
        );
        const { reasoning, content, parts } = await ask(way.wire, way.stream);
        expect([reasoning, content]).to.deep.equal(['Hm, é.', 'So.']);
        expect(parts.some((part) => 'reasoning' in part)).to.equal(false);
      });

  for (const wire of WIRES)
    for (const stream of [false, true])
      it(`G64: the prompt’s tokens of ${wire} include those that its cache had (${stream ? 'streamed' : 'whole'})`, async () => {
        const written = wire === 'anthropic' ? 6 : 0;
        rig.say(wire, { pieces: [{ text: 'x' }], usage: { prompt: 30, completion: 9, cached: 10, written } }, 7);
        const { usage } = await ask(wire, stream);
        expect(usage).to.include({ prompt_tokens: 30, completion_tokens: 9, total_tokens: 39 });
        expect(usage?.prompt_tokens_details).to.include({
          ...{ cached_tokens: 10, ...(written > 0 && { cache_write_tokens: 6 }) },
        });
      });

  for (const wire of WIRES)
    it(`goes by the native lane where ${wire} speaks the client’s format, and says so`, async () => {
      rig.say(wire, { pieces: [{ text: 'x' }] });
      const isOwn = wire !== 'anthropic' && wire !== 'gemini';
      for (const stream of [false, true])
        expect((await ask(wire, stream)).headers.get('x-tollgate-lane')).to.equal(isOwn ? 'native' : 'translated');
    });

  it('goes by no native lane where the operator switched that off', async () => {
    const other = await startIngressRig({ providers: { echo: { native: false } } });
    try {
      const lanes = await Promise.all(
        [rig, other].map(async (one) =>
          (await receiveChat(one, { model: 'echo/echo' })).headers.get('x-tollgate-lane'),
        ),
      );
      expect(lanes).to.deep.equal(['native', 'translated']);
    } finally {
      await other.stop();
    }
  });

  it('does not let a client say what only another format’s codecs read', async () => {
    rig.script('anthropic', answer(200, { type: 'message', content: [], usage: {} }));
    rig.say('anthropic', { pieces: [{ text: 'x' }] });
    const { headers } = await receiveChat(rig, {
      model: MODEL_OF.anthropic,
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Hi' },
            { type: 'opaque', dialect: 'messages', value: {} },
          ],
        },
      ],
      tools: [...TOOLS, { type: 'opaque', dialect: 'messages', value: { type: 'web_search_20250305' } }],
      dialect_fields: { messages: { mcp_servers: [{ url: 'https://evil.example' }] } },
    });
    expect(headers.get('x-tollgate-dropped')?.split(', ')).to.include.members(['opaque', 'dialect_fields']);
    expect(JSON.stringify(rig.lastBody('anthropic'))).not.to.match(/web_search|evil/);
  });
});
