import { expect } from 'chai';
import { createResponse } from '../support/clients/responses-client.ts';
import { type IngressRig, MODEL_OF, startIngressRig } from '../support/gateways/ingress-rig.ts';
import { type SaidNatively, sayAnywhere, sendResponses } from '../support/vendors/responses-wire.ts';
import { respondWith } from '../support/vendors/scripted-upstream.ts';

const HELLO: SaidNatively = { pieces: [{ text: 'Hello' }] };
const THOUGHT: SaidNatively = { pieces: [{ reasoning: 'Hm' }, { text: 'Hello' }], encrypted: 'gAAA-canary-blob' };
const include = ['reasoning.encrypted_content'];
const MORE = { role: 'user', content: 'More' };

describe('one user’s data is useless to another', () => {
  let rig: IngressRig;
  let ann: Record<string, string>;
  let bob: Record<string, string>;

  async function keyOf(user: string): Promise<Record<string, string>> {
    const made = await rig.gateway.command<{ api_key: string }>('keys', 'create', '--user', user, '--name', 'test');
    return { authorization: `Bearer ${made.api_key}` };
  }

  before(async () => {
    rig = await startIngressRig({ dialects: { responses: { store: 'on', retention: '1h' } } });
    [ann, bob] = [await keyOf('ann'), await keyOf('bob')];
  });
  after(() => rig.stop());

  /** Error without its request id and the requested id, which differ between requests. */
  const wordsOf = (text: string, id: string): string => text.replaceAll(id, 'ID').replace(/req_[\w-]+/g, 'REQ');

  for (const stream of [false, true]) {
    const form = stream ? 'streamed' : 'whole';

    it(`a response id is not found, with the message for an unknown one (${form})`, async () => {
      sayAnywhere(rig, 'openai', HELLO);
      const { response } = await createResponse(rig, { model: MODEL_OF.openai, input: 'Secret of Ann', stream }, ann);
      const before = rig.sent('openai').length;
      for (const made of [
        (id: string) => ({ previous_response_id: id, input: [MORE] }),
        (id: string) => ({ input: [{ type: 'item_reference', id }, MORE] }),
      ])
        for (const id of [response.id, String(response.output[0]?.['id'])]) {
          const other = `${id.slice(0, -4)}AAAA`;
          const theirs = await createResponse(rig, { model: MODEL_OF.openai, stream, ...made(id) }, bob);
          const never = await createResponse(rig, { model: MODEL_OF.openai, stream, ...made(other) }, bob);
          expect([theirs.status, never.status]).to.deep.equal([400, 400]);
          expect(wordsOf(theirs.text, id)).to.equal(wordsOf(never.text, other));
          expect(theirs.text).not.to.include('Secret');
        }
      expect(rig.sent('openai').length, 'nothing was sent').to.equal(before);
      for (const send of [get, remove]) {
        const [theirs, never] = [await send(response.id, bob), await send('resp_never', bob)];
        expect([theirs.status, wordsOf(await theirs.text(), response.id)]).to.deep.equal([
          never.status,
          wordsOf(await never.text(), 'resp_never'),
        ]);
      }
      expect((await get(response.id, ann)).status, 'it is still there').to.equal(200);
    });

    it(`a sealed blob is dropped and reported, whether it is sent back unchanged or changed (${form})`, async () => {
      rig.script('openai', sendResponses(THOUGHT));
      const { response } = await createResponse(rig, { model: MODEL_OF.openai, include, stream, store: false }, ann);
      const [thought] = response.output;
      const sealed = String(thought?.['encrypted_content']);
      expect(sealed)
        .to.match(/^tg1\.openai\./)
        .and.to.include('canary-blob');
      const [prefix, deployment, tag, data] = sealed.split('.');
      const sendBlob = async (blob: string, headers: Record<string, string>) => {
        const input = [
          { role: 'user', content: 'Hi' },
          { ...thought, encrypted_content: blob },
          ...response.output.slice(1),
          MORE,
        ];
        const reply = await createResponse(
          rig,
          { model: MODEL_OF.openai, input, include, stream, store: false },
          headers,
        );
        expect(reply.status).to.equal(200);
        const sent = JSON.stringify(rig.lastBody('openai'));
        return { isSent: sent.includes('canary-blob'), dropped: reply.headers.get('x-tollgate-dropped') };
      };
      const own = await sendBlob(sealed, ann);
      expect(own).to.include({ isSent: true });
      for (const [blob, headers] of [
        [sealed, bob],
        [[prefix, 'gemini', tag, data].join('.'), ann],
        [[prefix, deployment, tag, `${data}x`].join('.'), ann],
        [[prefix, deployment, 'A'.repeat(tag?.length ?? 0), data].join('.'), bob],
      ] as const) {
        const theirs = await sendBlob(blob, headers);
        expect(theirs.isSent).to.equal(false);
        expect(theirs.dropped).to.include('reasoning');
      }
    });

    it(`a sealed signature in a block of thinking is dropped and reported as well (${form})`, async () => {
      const parts = [{ text: 'Hm', thought: true, thoughtSignature: 'Z2VtaW5pLWNhbmFyeQ==' }, { text: 'Hello' }];
      const body = JSON.stringify({
        candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP', index: 0 }],
      });
      const send = async (messages: readonly object[], headers: Record<string, string>) => {
        const type = stream ? 'text/event-stream' : 'application/json';
        rig.script('gemini', respondWith(200, stream ? `data: ${body}\n\n` : body, { 'content-type': type }));
        const response = await rig.gateway.post(
          '/v1/messages',
          { model: MODEL_OF.gemini, max_tokens: 99, messages, stream },
          headers,
        );
        expect(response.status).to.equal(200);
        return { text: await response.text(), dropped: response.headers.get('x-tollgate-dropped') ?? '' };
      };
      const { text } = await send([MORE], ann);
      const signature = /"signature":"(tgr\.gemini\.[^"]+)"/.exec(text)?.[1];
      expect(signature).to.include('Z2VtaW5pLWNhbmFyeQ==');
      const thinking = { type: 'thinking', thinking: 'Hm', signature };
      const messages = [MORE, { role: 'assistant', content: [thinking, { type: 'text', text: 'Hello' }] }, MORE];
      for (const [headers, isTheirs] of [
        [ann, true],
        [bob, false],
      ] as const) {
        const { dropped } = await send(messages, headers);
        expect(JSON.stringify(rig.lastBody('gemini')).includes('Z2VtaW5pLWNhbmFyeQ==')).to.equal(isTheirs);
        expect(dropped.includes('reasoning')).to.equal(!isTheirs);
      }
    });

    it(`E38: a signature of Anthropic's is dropped for another account in its native format (${form})`, async () => {
      rig.say('anthropic', { pieces: [{ reasoning: 'Hm', signature: 'Eq-canary' }, { text: 'Hello' }] });
      const send = (messages: readonly object[], headers: Record<string, string>) =>
        rig.gateway.post(
          '/v1/messages',
          { model: MODEL_OF.anthropic, max_tokens: 99, messages, stream: stream && messages.length === 1 },
          headers,
        );
      const text = await (await send([MORE], ann)).text();
      const signature = /"signature":"(tg1\.anthropic\.[^"]+)"/.exec(text)?.[1];
      const thinking = { type: 'thinking', thinking: 'Hm', signature };
      const messages = [MORE, { role: 'assistant', content: [thinking, { type: 'text', text: 'Hello' }] }, MORE];
      for (const [headers, isTheirs] of [
        [ann, true],
        [bob, false],
      ] as const) {
        const response = await send(messages, headers);
        expect(response.status).to.equal(200);
        expect(JSON.stringify(rig.lastBody('anthropic')).includes('"signature":"Eq-canary"')).to.equal(isTheirs);
        expect((response.headers.get('x-tollgate-dropped') ?? '').includes('reasoning')).to.equal(!isTheirs);
      }
    });

    it(`E38: it is sealed in the same way for clients of chat and of Gemini (${form})`, async () => {
      rig.say('anthropic', { pieces: [{ reasoning: 'Hm', signature: 'RXEtY2FuYXJ5' }, { text: 'Hello' }] });
      const parts = (text: string) => [{ role: 'user', parts: [{ text }] }];
      const ways = {
        chat: {
          send: (turns: readonly object[], headers: Record<string, string>) =>
            rig.gateway.post(
              '/v1/chat/completions',
              { model: MODEL_OF.anthropic, messages: [MORE, ...turns], stream: stream && turns.length === 0 },
              headers,
            ),
          again: (text: string) => {
            const [, signature] = /"signature":"([^"]+)"/.exec(text) ?? [];
            const reasoning_details = [{ kind: 'text', text: 'Hm', signature, format: 'anthropic' }];
            return [{ role: 'assistant', content: 'Hello', reasoning_details }, MORE];
          },
        },
        gemini: {
          send: (turns: readonly object[], headers: Record<string, string>) => {
            const how = stream && turns.length === 0 ? 'streamGenerateContent?alt=sse' : 'generateContent';
            const body = {
              contents: [...parts('Hi'), ...turns],
              generationConfig: { thinkingConfig: { includeThoughts: true } },
            };
            return rig.gateway.post(`/v1beta/models/${MODEL_OF.anthropic}:${how}`, body, headers);
          },
          again: (text: string) => {
            const [, thoughtSignature] = /"thoughtSignature":"([^"]+)"/.exec(text) ?? [];
            return [
              { role: 'model', parts: [{ text: 'Hm', thought: true, thoughtSignature }, { text: 'Hello' }] },
              ...parts('More'),
            ];
          },
        },
      };
      for (const [way, { send, again }] of Object.entries(ways)) {
        const response = await send([], ann);
        const text = await response.text();
        expect(response.status, text).to.equal(200);
        expect(text, way).to.not.include('"RXEtY2FuYXJ5"');
        for (const [headers, isTheirs] of [
          [ann, true],
          [bob, false],
        ] as const) {
          const { status } = await send(again(text), headers);
          expect(status).to.equal(200);
          const sent = JSON.stringify(rig.lastBody('anthropic'));
          expect(sent.includes('"signature":"RXEtY2FuYXJ5"'), `${way} ${sent}`).to.equal(isTheirs);
        }
      }
    });

    it(`E38: Google’s signature is sealed in its native format, and sent back to Google only for its account (${form})`, async () => {
      const signed = {
        thought: { text: 'Hm', thought: true, thoughtSignature: 'dGhvdWdodD8/Pg==' },
        text: { text: 'Hello', thoughtSignature: 'dGV4dD8/Pg==' },
        call: { functionCall: { id: 'f1', name: 'look', args: {} }, thoughtSignature: 'Y2FsbD8/Pg==' },
      };
      const body = JSON.stringify({
        candidates: [{ content: { role: 'model', parts: Object.values(signed) }, finishReason: 'STOP', index: 0 }],
      });
      const question = { role: 'user', parts: [{ text: 'Hi' }] };
      const send = async (contents: readonly object[], headers: Record<string, string>) => {
        const type = stream ? 'text/event-stream' : 'application/json';
        rig.script('gemini', respondWith(200, stream ? `data: ${body}\n\n` : body, { 'content-type': type }));
        const how = stream ? 'streamGenerateContent?alt=sse' : 'generateContent';
        const response = await rig.gateway.post(`/v1beta/models/${MODEL_OF.gemini}:${how}`, { contents }, headers);
        expect(response.status).to.equal(200);
        expect(response.headers.get('x-tollgate-lane')).to.equal('native');
        return { text: await response.text(), dropped: response.headers.get('x-tollgate-dropped') ?? '' };
      };
      const sent = () => rig.lastBody<{ contents: { parts: object[] }[] }>('gemini').contents[1]?.parts;
      const { text } = await send([question], ann);
      const { candidates } = JSON.parse(text.replace(/^data: /, '')) as {
        candidates: { content: { role: string; parts: { thoughtSignature: string }[] } }[];
      };
      const content = candidates[0]?.content ?? { role: 'model', parts: [] };
      expect(content.parts.map(({ thoughtSignature: _, ...rest }) => rest)).to.deep.equal(
        Object.values(signed).map(({ thoughtSignature: _, ...rest }) => rest),
      );
      for (const { thoughtSignature } of Object.values(signed)) expect(text).to.not.include(thoughtSignature);
      // Google's clients decode the signature, and encode it again in base64url.
      const parts = content.parts.map((part) => ({
        ...part,
        thoughtSignature: Buffer.from(part.thoughtSignature, 'base64').toString('base64url'),
      }));
      const turns = [
        question,
        { ...content, parts },
        { role: 'user', parts: [{ functionResponse: { id: 'f1', name: 'look', response: {} } }] },
      ];
      const own = await send(turns, ann);
      expect(sent()).to.deep.equal(Object.values(signed));
      expect(own.dropped).to.equal('');
      const theirs = await send(turns, bob);
      expect(sent()).to.deep.equal([
        { text: 'Hello' },
        { functionCall: signed.call.functionCall, thoughtSignature: 'skip_thought_signature_validator' },
      ]);
      expect(theirs.dropped).to.equal('reasoning');
    });

    it(`a cache key is different for each account at the vendor, never the original one (${form})`, async () => {
      rig.script('openai', sendResponses(HELLO));
      const keyFor = async (name: string, headers: Record<string, string>): Promise<string> => {
        const { status, response } = await createResponse(
          rig,
          { model: MODEL_OF.openai, prompt_cache_key: name, stream, store: false },
          headers,
        );
        expect([status, response['prompt_cache_key']]).to.deep.equal([200, name]);
        return String(rig.lastBody('openai')['prompt_cache_key']);
      };
      const [anns, again, bobs] = [await keyFor('k-1', ann), await keyFor('k-1', ann), await keyFor('k-1', bob)];
      expect(anns).to.equal(again);
      expect(new Set([anns, bobs, 'k-1'])).to.have.property('size', 3);
      expect(await keyFor(anns, bob), 'who knows the other key does not reach it').not.to.equal(anns);
    });
  }

  function get(id: string, headers: Record<string, string>): Promise<Response> {
    return rig.gateway.get(`/v1/responses/${id}`, headers);
  }

  function remove(id: string, headers: Record<string, string>): Promise<Response> {
    return fetch(`${rig.gateway.url}/v1/responses/${id}`, { method: 'DELETE', headers });
  }
});
