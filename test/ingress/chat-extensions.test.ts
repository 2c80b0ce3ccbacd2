/**
 * Extensions of chat completions beyond OpenAI's fields, through a complete gateway: returned reasoning, files, URLs.
 */
import { expect } from 'chai';
import {
  completion,
  completionEvents,
  type ReceivedChat,
  receiveChat,
  vendorScript,
} from '../support/clients/chat-client.ts';
import { CUT, type IngressRig, startIngressRig } from '../support/gateways/ingress-rig.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';

const THOUGHT = { type: 'reasoning.text', text: 'Hm, é.', signature: 'sig', format: 'anthropic-claude-v1', index: 0 };
const SECRET = {
  type: 'reasoning.encrypted',
  data: 'gAAAA-secret',
  format: 'openai-responses-v1',
  id: 'rs_1',
  index: 1,
};
const IMAGE = 'https://images.example/cat.png';

/** Turn stored by a client whose SDK preserves unknown fields. */
function turnOf({ content, parts }: ReceivedChat): Record<string, unknown> {
  const field = (name: string) => parts.flatMap((part) => (part[name] ?? []) as readonly unknown[]);
  return {
    ...{ role: 'assistant', content },
    reasoning_details: field('reasoning_details'),
    thinking_blocks: field('thinking_blocks'),
  };
}

const METADATA = 'http://169.254.169.254/latest/meta-data';

describe('chat beyond OpenAI’s fields', () => {
  let vendor: ScriptedUpstream;
  let rig: IngressRig;
  before(async () => {
    vendor = await startScriptedUpstream();
    const relay = { plugin: 'openrouter', apiKey: 'k', baseUrl: `${vendor.url}/v1`, models: ['*'] };
    const own = { plugin: 'openai-compatible', baseUrl: `${vendor.url}/v1` };
    rig = await startIngressRig({
      providers: {
        ...{ openrouter: { ...relay, affinity: 'shared' }, sister: { ...relay, affinity: 'shared' }, stranger: relay },
        ...{ vllm: own, trusted: { ...own, remoteMedia: 'allow', native: { references: 'allow' } } },
      },
    });
  });
  after(async () => {
    await rig.stop();
    await vendor.close();
  });

  const lastMessages = () =>
    ((vendor.requests.at(-1)?.json() ?? {}) as { messages: Record<string, unknown>[] }).messages;
  const post = (model: string, content: readonly object[]) =>
    rig.gateway.post('/v1/chat/completions', { model, messages: [{ role: 'user', content }] });

  for (const stream of [false, true]) {
    const how = stream ? 'streamed' : 'whole';
    const think = (model: string) => {
      const deltas = [
        { reasoning: 'Hm, ', reasoning_details: [{ ...THOUGHT, text: 'Hm, ', signature: null }] },
        { reasoning: 'é.', reasoning_details: [{ ...THOUGHT, text: 'é.', signature: null }] },
        { reasoning_details: [{ ...THOUGHT, text: null }] },
        { reasoning_details: [SECRET] },
        { content: 'So.' },
      ];
      const message = { content: 'So.', reasoning: 'Hm, é.', reasoning_details: [THOUGHT, SECRET] };
      vendor.script(vendorScript(completion(message, 'stop'), completionEvents(deltas, 'stop'), CUT));
      return receiveChat(rig, { model, stream });
    };
    const goOn = async (model: string, turn: object) => {
      vendor.script(
        vendorScript(completion({ content: 'x' }, 'stop'), completionEvents([{ content: 'x' }], 'stop'), CUT),
      );
      const messages = [{ role: 'user', content: 'Hi' }, turn, { role: 'user', content: 'And?' }];
      const { headers } = await receiveChat(rig, { model, stream, messages });
      return { details: lastMessages()[1]?.['reasoning_details'], dropped: headers.get('x-tollgate-dropped') };
    };

    it(`G52: reasoning that a relay’s vendor encrypted is returned to the account that created it, and to no other (${how})`, async () => {
      const turn = turnOf(await think('openrouter/openai/gpt-5'));
      expect(JSON.stringify(turn)).to.include('tg1.shared.');
      const there = { details: [{ ...SECRET, index: 1 }], dropped: 'reasoning' };
      expect(await goOn('openrouter/openai/gpt-5', turn)).to.deep.equal(there);
      expect(await goOn('sister/openai/gpt-5', turn)).to.deep.equal(there);
      const elsewhere = await goOn('stranger/openai/gpt-5', turn);
      expect(elsewhere.details).to.equal(undefined);
      expect(elsewhere.dropped).to.equal('reasoning');
    });

    it(`G27, E38: a signed thought is in thinking_blocks with its signature sealed, and is sent back unchanged (${how})`, async () => {
      const { thinking_blocks } = turnOf(await think('openrouter/anthropic/claude-sonnet-5'));
      const [block] = thinking_blocks as readonly { readonly signature: string }[];
      expect(block).to.include({ type: 'thinking', thinking: 'Hm, é.' });
      expect(block?.signature).to.match(/^tg1\.shared\.[\w-]+\.sig$/);
      const turn = { role: 'assistant', content: 'So.', thinking_blocks };
      expect((await goOn('openrouter/anthropic/claude-sonnet-5', turn)).details).to.deep.equal([THOUGHT]);
      expect((await goOn('openrouter/openai/gpt-5', turn)).details).to.equal(undefined);
      expect((await goOn('stranger/anthropic/claude-sonnet-5', turn)).details).to.equal(undefined);
    });
  }

  it('refuses a file of the operator’s account unless it is allowed', async () => {
    const part = { type: 'file', file: { file_id: 'file-1' } };
    const refused = await post('vllm/m', [part]);
    expect(refused.status).to.equal(400);
    expect(await refused.json()).to.have.nested.include({ 'error.param': 'messages[0].content[0].file.file_id' });
    vendor.script(respondWith(200, completion({ content: 'x' }, 'stop')));
    expect((await post('trusted/m', [part])).status).to.equal(200);
    expect(lastMessages()[0]?.['content']).to.deep.equal([part]);
  });

  it('E35: passes no URL of a private network, in any form of part', async () => {
    for (const [part, param] of [
      [{ type: 'image', image: METADATA }, 'image'],
      [{ type: 'image', source: { type: 'url', url: METADATA } }, 'source.url'],
      [{ type: 'input_audio', input_audio: { data: METADATA, format: 'wav' } }, 'input_audio.data'],
    ] as const) {
      const refused = await post('trusted/m', [part]);
      expect(refused.status).to.equal(400);
      expect(await refused.json()).to.have.nested.include({ 'error.param': `messages[0].content[0].${param}` });
    }
  });

  it('E30: refuses more parts of a message than vendors take, with its name', async () => {
    const refused = await post(
      'trusted/m',
      Array.from({ length: 2049 }, () => ({ type: 'text', text: 'x' })),
    );
    expect(refused.status).to.equal(400);
    expect(await refused.json()).to.have.nested.include({ 'error.param': 'messages[0].content' });
  });

  it('sends no image URLs to a server in the private network unless the operator allows it', async () => {
    const part = { type: 'image_url', image_url: { url: IMAGE } };
    const refused = await post('vllm/m', [part]);
    expect(refused.status).to.equal(400);
    expect(await refused.json()).to.have.nested.include({ 'error.param': 'messages[0].content[0].image_url.url' });
    vendor.script(respondWith(200, completion({ content: 'x' }, 'stop')));
    expect((await post('trusted/m', [part])).status).to.equal(200);
    expect(lastMessages()[0]?.['content']).to.deep.equal([part]);
  });

  it('names the place of a document that the vendor does not accept', async () => {
    const refused = await post('deepseek/deepseek-chat', [
      { type: 'text', text: 'Read' },
      { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0=' } },
    ]);
    expect(refused.status).to.equal(400);
    expect(await refused.json()).to.have.nested.include({ 'error.param': 'messages[0].content[1].file' });
  });

  it('answers 400, not 5xx, to extension fields of a wrong shape', async () => {
    for (const turn of [
      { reasoning_details: [null] },
      { reasoning_details: 'x' },
      { reasoning_details: [{ kind: 'encrypted', data: 7, format: 'x' }] },
      { thinking_blocks: [1] },
      { order: [1] },
    ]) {
      const messages = [{ role: 'assistant', content: 'x', ...turn }];
      const response = await rig.gateway.post('/v1/chat/completions', { model: 'echo/echo', messages });
      expect(response.status, JSON.stringify(turn)).to.equal(400);
    }
  });
});
