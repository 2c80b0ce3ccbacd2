import { expect } from 'chai';
import { loadConfig } from '../../../config/load-config.ts';
import { makeFolder, removeFolders } from '../../support/folders.ts';
import { type IngressRig, MODEL_OF, startIngressRig } from '../../support/gateways/ingress-rig.ts';

const WORDS = ['project orion', 'acquisit*', 'C++', 'naïve', 'ärger'];

describe('the guardrail words', () => {
  let rig: IngressRig;
  before(async () => {
    rig = await startIngressRig({
      policies: {
        words: { words: WORDS, action: 'mask', sides: ['response'] },
        // This guardrail holds back text that the other one releases, and finds nothing in it.
        others: { plugin: 'words', words: ['project x', 'c-', 'pro\u00e4'], action: 'mask', sides: ['response'] },
        'no-orion': { plugin: 'words', words: ['project orion'], sides: ['request'] },
      },
    });
  });
  after(() => rig.stop());

  const send = (content: string, stream: boolean) =>
    rig.gateway.post('/v1/chat/completions', { model: MODEL_OF.openai, stream, messages: [{ role: 'user', content }] });
  const textOf = (body: string): string =>
    [...body.matchAll(/"content":"((?:[^"\\]|\\.)*)"/g)]
      .map(([, text = '']) => JSON.parse(`"${text}"`) as string)
      .join('');

  const CASES: readonly (readonly [said: string, heard: string])[] = [
    ['It is Project Orion.', 'It is ***.'],
    ['PROJECT \n\t ORION, project orion', '***, ***'],
    ['pro\u200bject or\u00adion', '***'],
    ['Ｐｒｏｊｅｃｔ 𝐨𝐫𝐢𝐨𝐧!', '***!'],
    ['acquisition, Acquisitive; reacquisition', '***, ***; reacquisition'],
    ['projects Orion, project Orionids, subproject orion', 'projects Orion, project Orionids, subproject orion'],
    ['C and C++ and C+', 'C and *** and C+'],
    ['naïve, na\u00efve; Ärger', '***, ***; ***'],
    ['an end with project', 'an end with project'],
  ];
  for (const stream of [false, true])
    for (const [said, heard] of CASES)
      it(`returns ${JSON.stringify(heard)} for ${JSON.stringify(said)}${stream ? ' in pieces' : ''}`, async () => {
        rig.say('openai', { pieces: [{ text: said }] });
        expect(textOf(await (await send('Say it', stream)).text())).to.equal(heard);
      });

  it('E62: masks them in reasoning and in arguments of tools, of a stream too', async () => {
    for (const stream of [false, true]) {
      rig.say('deepseek', {
        pieces: [{ reasoning: 'project orion!' }, { call: 'f', id: 'c', arguments: '{"a":"proj\\u0065ct orion"}' }],
      });
      const request = { model: MODEL_OF.deepseek, stream, messages: [{ role: 'user', content: 'Hm' }] };
      const body = await (await rig.gateway.post('/v1/chat/completions', request)).text();
      expect(body).to.include('***!');
      expect(body.replaceAll('\\', ''))
        .to.match(/\*\*\*(?!!)/)
        .and.not.match(/orion/i);
    }
  });

  it('refuses a request, by its instance’s name, and does not repeat the word', async () => {
    const response = await send('Tell me of Project  Orion', true);
    expect(response.status).to.equal(400);
    const text = await response.text();
    expect(text)
      .to.include('content_filtered')
      .and.include('no-orion')
      .and.not.match(/project/i);
  });

  it('holds back only a possible word', async () => {
    let release = (): void => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const event = (content: string): string =>
      `data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta: { content }, finish_reason: null }] })}\n\n`;
    rig.script('openai', async (wire) => {
      await wire.send('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n');
      await wire.send(event('Hello the proj'));
      await held;
      await wire.send(`${event('ector')}data: [DONE]\n\n`);
      wire.end();
    });
    const response = await send('Say it', true);
    let text = '';
    const decoder = new TextDecoder();
    for await (const bytes of response.body as unknown as AsyncIterable<Uint8Array>) {
      text += decoder.decode(bytes, { stream: true });
      if (textOf(text) === 'Hello the ') release();
    }
    expect(textOf(text)).to.equal('Hello the projector');
  });
});

describe('the options of words', () => {
  afterEach(removeFolders);

  it('are distinguished: a word, words, a prefix; anything else is refused', async () => {
    const load = (words: string): Promise<unknown> =>
      loadConfig({
        cwd: makeFolder({
          'tollgate.config.yaml': `policies: { words: { words: ${words} } }\nproviders: { echo: {} }\n`,
        }),
        env: {},
      }).catch((error: Error) => error.message);
    expect(await load('["a b", "c*"]')).to.be.an('object');
    for (const wrong of ['["*"]', '["a*b"]', '["  "]'])
      expect(await load(wrong), wrong).to.include('is not a word or phrase');
    expect(await load('[]')).to.include('words');
  });
});
