import { expect } from 'chai';
import { loadConfig } from '../../../config/load-config.ts';
import { makeFolder, removeFolders } from '../../support/folders.ts';
import {
  CUT,
  type IngressRig,
  MODEL_OF,
  type ScriptedOutput,
  startIngressRig,
  WIRES,
  type Wire,
} from '../../support/gateways/ingress-rig.ts';
import { findIn, measure, readMarked } from './pii-set.ts';

const MAIL = 'ann.lee@acme.example';
const IBAN = 'DE89 3704 0044 0532 0130 00';
const NUMBER = '4111111111111111';

/** Response with the texts in every place of model output. */
const said = (mail: string, iban: string): ScriptedOutput => ({
  pieces: [
    { reasoning: `So it is ${mail}.` },
    { text: `Write to ${mail}, pay to ${iban}.` },
    { call: 'send', id: 'call_1', arguments: JSON.stringify({ to: mail, iban }) },
  ],
});

const TOOLS = [{ type: 'function', function: { name: 'send', parameters: { type: 'object' } } }];

/** Request in each format, with an email address in each of its text fields. */
const FORMS: Readonly<
  Record<string, { path(model: string, stream: boolean): string; body(model: string, stream: boolean): object }>
> = {
  chat: {
    path: () => '/v1/chat/completions',
    body: (model, stream) => ({
      ...{ model, stream, tools: TOOLS, user: MAIL },
      messages: [
        { role: 'system', content: `You work for ${MAIL}` },
        { role: 'user', content: [{ type: 'text', text: `My IBAN is ${IBAN}` }] },
        {
          ...{ role: 'assistant', content: null },
          tool_calls: [
            {
              id: 'c1',
              type: 'function',
              function: { name: 'send', arguments: `{"to":"ann.lee\\u0040acme.example","n":${NUMBER}}` },
            },
          ],
        },
        { role: 'tool', tool_call_id: 'c1', content: `sent to ${MAIL}` },
      ],
    }),
  },
  messages: {
    path: () => '/v1/messages',
    body: (model, stream) => ({
      ...{ model, stream, max_tokens: 500, metadata: { user_id: MAIL } },
      system: [{ type: 'text', text: `You work for ${MAIL}` }],
      tools: [{ name: 'send', description: `sends to ${MAIL}`, input_schema: { type: 'object' } }],
      messages: [
        { role: 'user', content: [{ type: 'text', text: `My IBAN is ${IBAN}` }] },
        {
          role: 'assistant',
          content: [{ type: 'tool_use', id: 'toolu_1', name: 'send', input: { to: MAIL, n: Number(NUMBER) } }],
        },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: 'toolu_1', content: [{ type: 'text', text: `sent to ${MAIL}` }] },
          ],
        },
      ],
    }),
  },
  responses: {
    path: () => '/v1/responses',
    body: (model, stream) => ({
      ...{ model, stream, store: false, instructions: `You work for ${MAIL}` },
      tools: [{ type: 'function', name: 'send', parameters: { type: 'object' } }],
      input: [
        { role: 'user', content: [{ type: 'input_text', text: `My IBAN is ${IBAN}` }] },
        {
          type: 'function_call',
          call_id: 'c1',
          name: 'send',
          arguments: JSON.stringify({ to: MAIL, n: Number(NUMBER) }),
        },
        { type: 'function_call_output', call_id: 'c1', output: `sent to ${MAIL}` },
      ],
    }),
  },
  gemini: {
    path: (model, stream) => `/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    body: () => ({
      systemInstruction: { parts: [{ text: `You work for ${MAIL}` }] },
      contents: [
        { role: 'user', parts: [{ text: `My IBAN is ${IBAN}` }] },
        { role: 'model', parts: [{ functionCall: { name: 'send', args: { to: MAIL, n: Number(NUMBER) } } }] },
        { role: 'user', parts: [{ functionResponse: { name: 'send', response: { said: `sent to ${MAIL}` } } }] },
      ],
    }),
  },
};

const LEAK = /ann\.lee|3704|4111111111111111/;

async function post(
  rig: IngressRig,
  form: string,
  model: string,
  stream: boolean,
): Promise<{ status: number; text: string }> {
  const { path, body } = FORMS[form]!;
  const response = await rig.gateway.post(path(model, stream), body(model, stream), { 'x-api-key': rig.gateway.key });
  return { status: response.status, text: await response.text() };
}

/** Members without model text. `instructions` repeats the caller's own. */
const NO_WORDS = new Set(
  'id object model type role obfuscation name item_id status instructions modelVersion responseId'.split(' '),
);

/** Combined texts of a body or of a stream's events, because chunks split words. */
function wordsOf(text: string): string {
  const values: unknown[] = text.includes('data: ')
    ? text
        .split('\n')
        .filter((line) => line.startsWith('data: {'))
        .map((line) => JSON.parse(line.slice(6)) as unknown)
    : [JSON.parse(text) as unknown];
  const words: string[] = [];
  const collect = (value: unknown): void => {
    if (typeof value === 'string') words.push(value);
    else if (typeof value === 'object' && value !== null)
      for (const [key, member] of Object.entries(value)) if (!NO_WORDS.has(key)) collect(member);
  };
  for (const value of values) collect(value);
  return words.join('');
}

describe('the forms of personal data', () => {
  it('find the marked texts of the set, and few others', () => {
    const rows = Object.entries(measure());
    for (const [kind, { expected, right, wrong }] of rows) {
      expect(right / expected, `recall of ${kind}`).to.be.at.least(0.9);
      expect(right / (right + wrong), `precision of ${kind}`).to.be.at.least(0.9);
    }
  });

  it('find nothing in texts that have nothing', () => {
    const wrong = readMarked().filter(({ text, spans }) => spans.length === 0 && findIn(text).length > 0);
    expect(wrong.map(({ text }) => [text, findIn(text)])).to.have.length.at.most(1);
  });

  it('want the check digits of numbers that have some', () => {
    const right = [
      'DE89370400440532013000',
      '5555555555554444',
      '86095742719',
      '255081416802538',
      '12345678Z',
      'RSSMRA85T10A562S',
    ];
    const others = [
      '44051401359',
      '811218-9876',
      '529.982.247-25',
      '2341 2341 2346',
      '11010519491231002X',
      'bsn 111222333',
    ];
    for (const text of [...right, ...others]) {
      expect(findIn(text), text).to.have.length(1);
      const at = text.search(/\d(?=\D*$)/);
      const changed = `${text.slice(0, at)}${(Number(text.charAt(at)) + 3) % 10}${text.slice(at + 1)}`;
      expect(findIn(changed), changed).to.deep.equal([]);
    }
  });

  it('take time in proportion to the text, whatever it is', () => {
    const texts = [
      '1 '.repeat(50_000),
      'a.'.repeat(50_000),
      'a@'.repeat(50_000),
      '+1 '.repeat(33_000),
      `${'x@a.'.repeat(25_000)}`,
    ];
    for (const text of [
      ...texts,
      'DE00 '.repeat(20_000),
      'a:'.repeat(50_000),
      'eyJaaaaaaaaaaa.'.repeat(7_000),
      '://a:'.repeat(20_000),
    ]) {
      const start = process.cpuUsage();
      findIn(text);
      const { user } = process.cpuUsage(start);
      expect(user / 1000, text.slice(0, 12)).to.be.below(3000);
    }
  });
});

for (const action of ['mask', 'token'] as const)
  describe(`the guardrail pii, action: ${action}`, () => {
    let rig: IngressRig;
    before(async () => {
      rig = await startIngressRig({ policies: { pii: { action } } });
    });
    after(() => rig.stop());

    for (const form of Object.keys(FORMS))
      for (const wire of WIRES)
        for (const stream of [false, true])
          it(`E62: ${form} to ${wire}${stream ? ', streamed' : ''}: the vendor gets none, the caller ${action === 'mask' ? 'neither' : 'all'}`, async () => {
            rig.say(wire, action === 'mask' ? said(MAIL, IBAN) : said('[EMAIL_1]', '[IBAN_1]'), CUT);
            const { status, text } = await post(rig, form, MODEL_OF[wire as Wire], stream);
            expect(status, text).to.equal(200);
            const sent =
              rig
                .sent(wire as Wire)
                .at(-1)
                ?.body.toString() ?? '';
            expect(sent).to.not.match(LEAK);
            expect(sent).to.include(action === 'mask' ? '[EMAIL]' : '[EMAIL_1]');
            const words = wordsOf(text);
            if (action === 'mask') expect(words).to.not.match(LEAK);
            expect(words).to.include(
              action === 'mask' ? 'Write to [EMAIL], pay to [IBAN].' : `Write to ${MAIL}, pay to ${IBAN}.`,
            );
            if (action === 'token') expect(words.replaceAll('\\', '')).to.not.match(/\[(?:EMAIL|IBAN)_/);
          });

    it('reveals nothing to a vendor in a token count', async () => {
      const { body } = FORMS['messages']!;
      const {
        max_tokens: _max,
        stream: _stream,
        metadata: _metadata,
        ...rest
      } = body(MODEL_OF.anthropic, false) as Record<string, unknown>;
      const before = rig.sent('anthropic').length;
      const response = await rig.gateway.post('/v1/messages/count_tokens', rest);
      expect(await response.json())
        .to.have.property('input_tokens')
        .above(20);
      for (const { body: sent } of rig.sent('anthropic').slice(before)) expect(sent.toString()).to.not.match(LEAK);
    });

    it('reveals nothing to a vendor in an embedding', async () => {
      await rig.gateway.post('/v1/embeddings', { model: 'openai/text-embedding-3-small', input: ['a', `to ${MAIL}`] });
      expect(rig.sent('openai').at(-1)?.body.toString()).to.include('to [EMAIL').and.not.match(LEAK);
    });
  });

describe('G69: a request that has texts in the form of tokens', () => {
  let rig: IngressRig;
  before(async () => {
    rig = await startIngressRig({ policies: { pii: { action: 'token' } } });
  });
  after(() => rig.stop());

  for (const stream of [false, true])
    it(`gets them back as they are, in text and tool arguments${stream ? ', streamed' : ''}`, async () => {
      rig.say('openai', said('[EMAIL_1]', '[EMAIL_3]'), CUT);
      const content = `The page says [EMAIL_1] and [EMAIL_2]. Mine is ${MAIL}.`;
      const response = await rig.gateway.post('/v1/chat/completions', {
        ...{ model: MODEL_OF.openai, stream, tools: TOOLS },
        messages: [{ role: 'user', content }],
      });
      expect(rig.sent('openai').at(-1)?.body.toString()).to.include('[EMAIL_1] and [EMAIL_2]. Mine is [EMAIL_3].');
      const words = wordsOf(await response.text());
      expect(words).to.include(`Write to [EMAIL_1], pay to ${MAIL}.`);
      expect(words.replaceAll('\\', '')).to.include(`"to":"[EMAIL_1]","iban":"${MAIL}"`);
    });
});

describe('the guardrail pii, action: block', () => {
  let rig: IngressRig;
  before(async () => {
    rig = await startIngressRig({ policies: { pii: { action: 'block', allow: ['@help.example'] } } });
  });
  after(() => rig.stop());

  for (const form of Object.keys(FORMS))
    it(`refuses a request of ${form}, calls no provider and repeats nothing`, async () => {
      const before = rig.sent('openai').length;
      const { status, text } = await post(rig, form, MODEL_OF.openai, true);
      expect(status).to.equal(400);
      expect(text).to.include('an e-mail address').and.not.match(LEAK);
      expect(rig.sent('openai')).to.have.length(before);
      expect(rig.gateway.logText()).to.not.match(LEAK);
    });

  const send = (stream: boolean, content: string) =>
    rig.gateway.post('/v1/chat/completions', { model: MODEL_OF.openai, stream, messages: [{ role: 'user', content }] });

  it('names the field, and who refused', async () => {
    const response = await send(false, `to ${MAIL}`);
    const { error } = (await response.json()) as { readonly error: Record<string, unknown> };
    expect(error).to.include({ code: 'content_filtered', param: 'messages[0].content' });
    expect(rig.gateway.logs.find((line) => line['refused_by'] === 'pii: an e-mail address')).to.not.equal(undefined);
  });

  it('refuses a response, with and without a stream, before any of it is sent', async () => {
    for (const stream of [false, true]) {
      rig.say('openai', said(MAIL, IBAN), CUT);
      const text = await (await send(stream, 'Whom?')).text();
      expect(text).to.include('content_filtered').and.not.match(LEAK);
      if (stream) expect(wordsOf(text.replace(/data: \{"error.*/s, ''))).to.not.include('ann');
    }
  });

  it('ignores allowed texts', async () => {
    rig.say('openai', { pieces: [{ text: 'Fine.' }] });
    expect((await send(false, 'to us@help.example')).status).to.equal(200);
  });
});

describe('the options of pii', () => {
  afterEach(removeFolders);
  const problemsOf = (options: string): Promise<string> => {
    const cwd = makeFolder({ 'tollgate.config.yaml': `policies: { pii: ${options} }\nproviders: { echo: {} }\n` });
    return loadConfig({ cwd, env: {} }).then(
      () => '',
      (error: Error) => error.message,
    );
  };

  it('are required: without them it is disabled, and reports the missing option', async () => {
    expect(await problemsOf('{ action: mask, kinds: [email] }')).to.equal('');
    expect(await problemsOf('{}')).to.include('action');
    expect(await problemsOf('{ action: mask, kinds: [face] }')).to.include('kinds');
    expect(await problemsOf('{ action: token, sides: [response] }')).to.include('needs "request" for `action: token`');
  });
});
