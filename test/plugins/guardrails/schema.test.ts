import { expect } from 'chai';
import { loadConfig } from '../../../config/load-config.ts';
import { makeFolder, removeFolders } from '../../support/folders.ts';
import { type IngressRig, MODEL_OF, startIngressRig } from '../../support/gateways/ingress-rig.ts';

const SCHEMA = {
  type: 'object',
  required: ['total'],
  additionalProperties: false,
  properties: { total: { type: 'number' }, at: { type: 'string', format: 'date-time' } },
};

describe('the guardrail schema', () => {
  let rig: IngressRig;
  before(async () => {
    rig = await startIngressRig({ policies: { schema: { schema: SCHEMA, maxSize: 500 } } });
  });
  after(() => rig.stop());

  const send = (stream: boolean) =>
    rig.gateway.post('/v1/chat/completions', {
      model: MODEL_OF.openai,
      stream,
      messages: [{ role: 'user', content: 'How much?' }],
    });
  const textOf = (body: string): string =>
    [...body.matchAll(/"content":"((?:[^"\\]|\\.)*)"/g)]
      .map(([, text = '']) => JSON.parse(`"${text}"`) as string)
      .join('');

  for (const stream of [false, true]) {
    it(`passes valid responses${stream ? ', streamed' : ''}`, async () => {
      rig.say('openai', { pieces: [{ text: '{"total": 12.5}' }] });
      const response = await send(stream);
      expect(response.status).to.equal(200);
      expect(textOf(await response.text())).to.equal('{"total": 12.5}');
    });

    it(`sends no invalid response, and repeats none of it${stream ? ', streamed' : ''}`, async () => {
      const cases = [
        ['{"total":"quite much"}', '#/properties/total/type'],
        ['{"total":1,"quite":"much"}', '#/additionalProperties'],
        ['{"total":1,"at":"quite late"}', '#/properties/at/format'],
        ['It is quite much.', 'it is not JSON'],
        ['{"total":1', 'it is not JSON'],
        [`{"total":1${' '.repeat(500)}}`, 'longer than 500'],
      ];
      for (const [said = '', why = ''] of cases) {
        rig.say('openai', { pieces: [{ text: said }] });
        const response = await send(stream);
        if (!stream) expect(response.status).to.equal(503);
        const text = await response.text();
        expect(text, said).to.include('provider_invalid_response').and.include(why).and.not.include('quite');
        expect(textOf(text)).to.equal('');
      }
    });

    it(`passes tool calls, and the text before them${stream ? ', streamed' : ''}`, async () => {
      rig.say('openai', { pieces: [{ text: 'I look it up.' }, { call: 'look', id: 'c1', arguments: '{"a":1}' }] });
      const text = await (await send(stream)).text();
      expect(textOf(text)).to.equal('I look it up.');
      expect(text).to.include('look').and.not.include('error');
    });
  }
});

describe('the options of schema', () => {
  afterEach(removeFolders);

  it('are a JSON schema, or the check reports its problem', async () => {
    const cwd = makeFolder({
      'tollgate.config.yaml': 'policies: { schema: { schema: { type: nothing } } }\nproviders: { echo: {} }\n',
    });
    const message = await loadConfig({ cwd, env: {} }).then(
      () => '',
      (error: Error) => error.message,
    );
    expect(message).to.include('policies.schema.schema').and.include('is not a valid JSON Schema');
  });
});
