/**
 * Known defects of other gateways in chat completions that need two turns or random names. The other cases are in
 * test/exchanges.
 */
import { expect } from 'chai';
import { completionEvents, receiveChat, vendorScript } from '../support/clients/chat-client.ts';
import { CUT, type IngressRig, MODEL_OF, startIngressRig, WIRES, type Wire } from '../support/gateways/ingress-rig.ts';
import { respondWith } from '../support/vendors/scripted-upstream.ts';

/** Vendors with OpenAI's format. */
const COMPATIBLE = ['openai', 'mistral', 'deepseek'] as const satisfies readonly Wire[];
const SIGNATURE = Buffer.from('signed by the vendor '.repeat(20)).toString('base64');
const TOOLS = ['search', 'look'].map((name) => ({
  type: 'function',
  function: { name, parameters: { type: 'object', properties: {} } },
}));
const FORMS = [
  ['whole', false],
  ['streamed', true],
] as const;

describe('POST /v1/chat/completions', () => {
  let rig: IngressRig;
  before(async () => {
    rig = await startIngressRig();
  });
  after(() => rig.stop());

  const send = (wire: Wire, stream: boolean, fields: object = {}) =>
    receiveChat(rig, { model: MODEL_OF[wire], stream, tools: TOOLS, ...fields });

  /** Second turn of a client that stores only id, name and arguments. */
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

  for (const [form, stream] of FORMS)
    it(`G52: Gemini’s signature survives a client that keeps id, name and arguments (${form})`, async () => {
      const parts = [{ functionCall: { name: 'look', args: { at: 'é' } }, thoughtSignature: SIGNATURE }];
      const body = {
        candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP', index: 0 }],
        usageMetadata: { promptTokenCount: 20, candidatesTokenCount: 5, totalTokenCount: 25 },
      };
      rig.script('gemini', vendorScript(body, [body], CUT));
      const { calls } = await send('gemini', stream);
      expect(calls).to.have.length(1);
      await send('gemini', stream, { messages: secondTurn(calls) });
      const { contents } = rig.lastBody<{ contents: { parts: object[] }[] }>('gemini');
      expect(contents[1]?.parts[0]).to.deep.include({ thoughtSignature: SIGNATURE });
      for (const wire of COMPATIBLE) {
        rig.say(wire, { pieces: [{ text: 'x' }] });
        await send(wire, stream, { messages: secondTurn(calls) });
        const sent = JSON.stringify(rig.lastBody(wire));
        expect(sent).not.to.include(SIGNATURE.slice(0, 40));
        const [id, result] = [...sent.matchAll(/"(?:id|tool_call_id)":"([^"]+)"/g)].map((match) => match[1]);
        expect(id)
          .to.match(/^[A-Za-z0-9_-]{1,64}$/)
          .and.to.equal(result);
      }
    });

  for (const wire of COMPATIBLE)
    it(`G54: three calls that all have index 0 and no id are three calls (${wire})`, async () => {
      const deltas = ['a', 'b', 'c'].map((at) => ({
        tool_calls: [{ index: 0, type: 'function', function: { name: 'look', arguments: `{"at":"${at}"}` } }],
      }));
      rig.script(wire, vendorScript({}, completionEvents(deltas, 'tool_calls'), CUT));
      const { calls } = await send(wire, true);
      expect(calls.map(({ arguments: text }) => text)).to.deep.equal(['{"at":"a"}', '{"at":"b"}', '{"at":"c"}']);
      expect(new Set(calls.map(({ id }) => id)).size).to.equal(3);
      expect(calls.every(({ id, name }) => id !== '' && name === 'look')).to.equal(true);
    });

  for (const wire of COMPATIBLE)
    for (const [form, stream] of FORMS)
      it(`G62: an error inside a 200 is an error, without a finish (${wire}, ${form})`, async () => {
        const error = { error: { message: 'the model went away', type: 'server_error', code: 500 } };
        const events = [...completionEvents([{ content: 'Half of ' }], 'stop').slice(0, 2), error];
        let begun = (): void => undefined;
        const hasBegun = new Promise<void>((resolve) => {
          begun = resolve;
        });
        rig.script(wire, vendorScript(error, events, CUT, hasBegun));
        const request = { model: MODEL_OF[wire], messages: [{ role: 'user', content: 'Hi' }], stream: stream };
        const response = await rig.gateway.post('/v1/chat/completions', request);
        if (!stream) {
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

  for (const wire of WIRES)
    it(`is passed through natively if ${wire} has the client’s format, and reports it`, async () => {
      rig.say(wire, { pieces: [{ text: 'x' }] });
      const isOwn = wire !== 'anthropic' && wire !== 'gemini';
      for (const stream of [false, true])
        expect((await send(wire, stream)).headers.get('x-tollgate-lane')).to.equal(isOwn ? 'native' : 'translated');
    });

  it('is not passed through natively if the operator disabled it', async () => {
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

  it('does not accept fields that only another format’s codecs read', async () => {
    rig.script('anthropic', respondWith(200, { type: 'message', content: [], usage: {} }));
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
