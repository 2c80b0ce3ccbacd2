import { expect } from 'chai';
import { startGateway } from '../../support/gateways/gateway.ts';
import { type IngressRig, MODEL_OF, startIngressRig } from '../../support/gateways/ingress-rig.ts';
import { startError } from '../../support/plugins/plugin-file.ts';
import { eventually } from '../../support/wait.ts';

const verdict = (word: string) => ({ pieces: [{ text: `{"verdict":"${word}"}` }] });

interface Body {
  readonly messages: readonly { readonly role: string; readonly content: string }[];
}

describe('the guardrail topics', () => {
  let rig: IngressRig;
  before(async () => {
    rig = await startIngressRig({
      models: { judge: [MODEL_OF.mistral] },
      policies: {
        topics: { model: 'judge', allowed: ['our shop'], denied: ['law'], maxSize: '2kb' },
        output: { plugin: 'topics', model: 'judge', denied: ['law'], sides: ['response'], window: 200 },
      },
    });
    rig.say('openai', { pieces: [{ text: 'Fine.' }] });
    rig.say('anthropic', { pieces: [{ text: 'Fine.' }] });
  });
  after(() => rig.stop());

  const send = (content: string, stream = false, model = MODEL_OF.openai) =>
    rig.gateway.post('/v1/chat/completions', { model, stream, messages: [{ role: 'user', content }] });

  for (const stream of [false, true])
    it(`asks the model about the texts and passes them${stream ? ', streamed' : ''}`, async () => {
      rig.say('mistral', verdict('allow'));
      const before = rig.sent('mistral').length;
      const response = await send('Is "it" in stock?', stream);
      expect(response.status).to.equal(200);
      expect(await response.text()).to.include('Fine.');
      const bodies = rig
        .sent('mistral')
        .slice(before)
        .map((request) => request.json() as Body);
      expect(bodies).to.have.length(2);
      const [system, user] = bodies[0]?.messages ?? [];
      expect(system?.content).to.include('- our shop').and.include('- law');
      expect(user?.content).to.equal(JSON.stringify(['Is "it" in stock?']));
    });

  for (const [path, body] of [
    ['/v1/chat/completions', { model: MODEL_OF.openai, messages: [{ role: 'user', content: 'Sue them?' }] }],
    ['/v1/messages', { model: MODEL_OF.anthropic, max_tokens: 9, messages: [{ role: 'user', content: 'Sue them?' }] }],
    ['/v1/responses', { model: MODEL_OF.openai, input: 'Sue them?' }],
  ] as const)
    for (const stream of [false, true])
      it(`refuses a denied request at ${path}${stream ? ', streamed' : ''}, before the vendor sees it`, async () => {
        rig.say('mistral', verdict('deny'));
        const before = rig.sent('openai').length + rig.sent('anthropic').length;
        const response = await rig.gateway.post(path, { ...body, stream });
        const text = await response.text();
        expect(response.status, text).to.equal(400);
        expect(text).to.include('a topic that is not allowed').and.not.include('Sue');
        expect(rig.sent('openai').length + rig.sent('anthropic').length).to.equal(before);
      });

  for (const stream of [false, true])
    it(`refuses a response${stream ? ' in the middle of its stream' : ''}`, async () => {
      rig.say('openai', { pieces: [{ text: 'The law says. '.repeat(30) }] });
      rig.say('mistral', [verdict('allow'), verdict('deny')]);
      const text = await (await send('Hi', stream)).text();
      expect(text).to.include('content_filtered').and.not.include('The law says');
      rig.say('openai', { pieces: [{ text: 'Fine.' }] });
    });

  it('passes nothing without a verdict, for any response of the model', async () => {
    const before = rig.sent('openai').length;
    for (const text of ['I will allow it', '{"verdict":"maybe"}', '{"verdict":"allow"} is what I have to say', '']) {
      rig.say('mistral', { pieces: [{ text }] });
      const response = await send('Hi');
      expect(response.status, text).to.equal(503);
      expect(await response.text()).to.include('returned no verdict');
    }
    rig.script('mistral', Buffer.from('HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\n\r\n{}'));
    expect((await send('Hi')).status).to.equal(503);
    expect(rig.sent('openai').length).to.equal(before);
  });

  it('books the judge’s call under the caller, whose key need not allow its model', async () => {
    rig.say('mistral', verdict('allow'));
    const { api_key: key } = await rig.gateway.command<{ api_key: string }>(
      'keys',
      'create',
      '--user',
      'ann',
      '--models',
      'openai/*',
    );
    const body = { model: MODEL_OF.openai, messages: [{ role: 'user', content: 'Hi' }] };
    const response = await rig.gateway.post('/v1/chat/completions', body, { authorization: `Bearer ${key}` });
    expect(response.status, await response.text()).to.equal(200);
    const judge = MODEL_OF.mistral.split('/')[1];
    await eventually(async () => {
      const { data } = await rig.gateway.command<{ data: readonly Readonly<Record<string, unknown>>[] }>('calls');
      const models = data.filter((call) => JSON.stringify(call).includes('"ann"')).map(({ model }) => model);
      expect(models, JSON.stringify(data[0])).to.have.members([judge, MODEL_OF.openai.split('/')[1], judge]);
    }, 10_000);
  });

  it('refuses more text than it judges', async () => {
    expect((await send('word '.repeat(500))).status).to.equal(413);
  });

  it('wants topics, and a model that there is', async () => {
    const start = (options: object) => startError(startGateway({ policies: { topics: options } }));
    expect(await start({ model: 'echo/echo' })).to.include('has no topics. Set "allowed", "denied" or both.');
    expect(await start({ model: 'missing', denied: ['law'] })).to.include('which is not an alias');
  });
});
