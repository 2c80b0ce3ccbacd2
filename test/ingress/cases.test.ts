import http from 'node:http';
import { expect } from 'chai';
import { LOOK, postMessages, receiveMessage } from '../support/clients/post-messages.ts';
import { createResponse } from '../support/clients/responses-client.ts';
import {
  CUT,
  type IngressRig,
  MODEL_OF,
  sayScript,
  startIngressRig,
  WIRES,
  type Wire,
} from '../support/gateways/ingress-rig.ts';
import { partOf } from '../support/generated-cases.ts';
import { type SaidNatively, sayAnywhere, sendResponses } from '../support/vendors/responses-wire.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';

const FORMS = [
  ['whole', false],
  ['streamed', true],
] as const;
const FOREIGN = WIRES.filter((wire) => wire !== 'anthropic');
const ATTRIBUTION = 'x-anthropic-billing-header: cc_version=2.1.0; cch=';
const SYSTEMS: readonly (readonly [form: string, of: (hash: string) => string | { type: string; text: string }[]])[] = [
  ['in a text', (hash) => `${ATTRIBUTION}${hash};\nBe kind.`],
  [
    'in a block',
    (hash) => [
      { type: 'text', text: `${ATTRIBUTION}${hash};` },
      { type: 'text', text: 'Be kind.' },
    ],
  ],
];

/** Overload errors in each vendor's format. */
const OVERLOADED: Readonly<Record<Wire, readonly [status: number, body: object]>> = {
  openai: [503, { error: { message: 'The engine is overloaded.', type: 'server_error', code: null, param: null } }],
  anthropic: [529, { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }],
  gemini: [503, { error: { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' } }],
  mistral: [503, { object: 'error', message: 'Service overloaded', type: 'service_unavailable', code: '3505' }],
  deepseek: [503, { error: { message: 'Server overloaded', type: 'server_error', code: 'overloaded' } }],
};

describe('known bugs of other gateways, at each of five vendors', () => {
  let rig: IngressRig;
  before(async () => {
    const models = Object.fromEntries(
      WIRES.map((wire) => [`first-${wire}`, [MODEL_OF[wire], MODEL_OF[wire === 'openai' ? 'anthropic' : 'openai']]]),
    );
    rig = await startIngressRig({ models });
  });
  after(() => rig.stop());

  for (const [at, wire] of WIRES.entries())
    for (const [form, stream] of partOf(FORMS, at)) {
      it(`G20: an overloaded ${wire} without another target is 529 overloaded_error with its wait (${form})`, async () => {
        const [status, body] = OVERLOADED[wire];
        rig.script(wire, respondWith(status, body, { 'retry-after': '7' }));
        const response = await postMessages(rig, MODEL_OF[wire], { stream });
        expect([response.status, response.headers.get('retry-after')]).to.deep.equal([529, '7']);
        expect(await response.json()).to.have.nested.property('error.type', 'overloaded_error');
      });

      it(`G20: an overloaded ${wire} is replaced by the next target (${form})`, async () => {
        const other: Wire = wire === 'openai' ? 'anthropic' : 'openai';
        const [status, body] = OVERLOADED[wire];
        rig.script(wire, respondWith(status, body, { 'retry-after': '7' }));
        rig.say(other, { pieces: [{ text: 'from the other' }] }, CUT);
        const { content } = await receiveMessage(rig, `first-${wire}`, { stream });
        expect(content).to.deep.equal([{ type: 'text', text: 'from the other' }]);
      });
    }

  for (const [at, wire] of FOREIGN.entries())
    for (const [form, systemOf] of partOf(SYSTEMS, at)) {
      it(`G23: Claude Code’s attribution ${form} does not change the prompt for ${wire} between calls`, async () => {
        const sent: string[] = [];
        for (const [hash, stream] of [
          ['00001', false],
          ['00002', false],
          ['00003', true],
        ] as const) {
          rig.say(wire, { pieces: [{ text: 'a' }] });
          await receiveMessage(rig, MODEL_OF[wire], { system: systemOf(hash), stream });
          const { stream: _stream, stream_options: _options, ...rest } = rig.lastBody(wire);
          sent.push(JSON.stringify(rest));
        }
        expect(new Set(sent).size).to.equal(1);
        expect(sent[0])
          .to.include('Be kind.')
          .and.not.to.match(/billing|cch=/);
      });

      it(`G23: Claude Code’s attribution ${form} is not counted for ${wire}`, async () => {
        const count = async (system: unknown) => {
          const body = { model: MODEL_OF[wire], system, messages: [{ role: 'user', content: 'Hi' }] };
          return (await rig.gateway.post('/v1/messages/count_tokens', body)).json();
        };
        expect(await count(systemOf('00001'))).to.deep.equal(
          await count(typeof systemOf('') === 'string' ? 'Be kind.' : [{ type: 'text', text: 'Be kind.' }]),
        );
      });
    }

  it('G23: Claude Code’s attribution goes to Anthropic unchanged', async () => {
    for (const [, systemOf] of SYSTEMS) {
      rig.say('anthropic', { pieces: [{ text: 'a' }] });
      await receiveMessage(rig, MODEL_OF.anthropic, { system: systemOf('00001') });
      expect(rig.lastBody('anthropic')['system']).to.deep.equal(systemOf('00001'));
    }
  });

  for (const wire of FOREIGN)
    it(`G21, G22: a count for ${wire} is estimated here, including system, tools and images`, async () => {
      const before = rig.sent(wire).length;
      const messages = [{ role: 'user', content: 'Hi' }];
      const source = { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' };
      const count = async (more: object): Promise<number> => {
        const response = await rig.gateway.post('/v1/messages/count_tokens', {
          model: MODEL_OF[wire],
          messages,
          ...more,
        });
        return ((await response.json()) as { input_tokens: number }).input_tokens;
      };
      const [least, system, tools, image] = [
        await count({}),
        await count({ system: 'Be kind. '.repeat(200) }),
        await count({ tools: [{ ...LOOK, description: 'Looks at what is there. '.repeat(100) }] }),
        await count({
          messages: [
            {
              role: 'user',
              content: [
                { type: 'text', text: 'Hi' },
                { type: 'image', source },
              ],
            },
          ],
        }),
      ];
      for (const more of [system, tools]) expect(more - least).to.be.above(300);
      expect(image - least).to.be.above(50);
      expect(rig.sent(wire)).to.have.length(before);
    });
});

describe('known bugs of other gateways, in limits and lists', () => {
  let rig: IngressRig;
  before(async () => {
    rig = await startIngressRig({
      ...{ plans: { tight: { rpm: 2 } }, defaultPlan: 'tight', models: { 'claude-fast': MODEL_OF.openai } },
    });
  });
  after(() => rig.stop());

  it('G21: fifty counts in a second use up no request a minute', async () => {
    const body = { model: MODEL_OF.mistral, messages: [{ role: 'user', content: 'Hi' }] };
    const counts = await Promise.all(
      Array.from({ length: 50 }, () => rig.gateway.post('/v1/messages/count_tokens', body)),
    );
    expect(new Set(counts.map(({ status }) => status))).to.deep.equal(new Set([200]));
    for (const status of [200, 200, 429]) {
      rig.say('mistral', { pieces: [{ text: 'a' }] });
      expect((await postMessages(rig, MODEL_OF.mistral)).status).to.equal(status);
    }
  });

  it('G34: models are listed directly, without a redirect, with display names and ids that Claude Code accepts', async () => {
    const headers = { 'anthropic-version': '2023-06-01', 'x-api-key': rig.gateway.key };
    const response = await fetch(`${rig.gateway.url}/v1/models?limit=1000`, { headers, redirect: 'error' });
    const { data } = (await response.json()) as { data: { id: string; display_name: string }[] };
    const picked = data.filter(({ id }) => /claude|anthropic/i.test(id));
    expect(picked.map(({ id }) => id)).to.include('claude-fast');
    for (const { display_name: name } of picked) expect(name).to.be.a('string').and.not.equal('');
  });

  it('G46: an upgrade at /v1/responses is served or gets an immediate 426, with a wrong key a 401', async () => {
    const upgrade = (key: string): Promise<http.IncomingMessage> =>
      new Promise((resolve, reject) => {
        const request = http.get(`${rig.gateway.url}/v1/responses`, {
          headers: {
            ...{ connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' },
            ...{ 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==', authorization: `Bearer ${key}` },
            'openai-beta': 'responses_websockets=2026-02-06',
          },
        });
        request.on('upgrade', (response, socket) => {
          socket.destroy();
          resolve(response);
        });
        request.on('response', (response) => resolve(response.resume()));
        request.on('error', reject);
      });
    const { statusCode, headers } = await upgrade(rig.gateway.key);
    expect(statusCode).to.be.oneOf([101, 426]);
    expect(headers.upgrade).to.equal('websocket');
    expect((await upgrade('tg_wrong')).statusCode).to.equal(statusCode === 101 ? 401 : 426);
  });
});

describe('G33: a silent vendor', () => {
  let rig: IngressRig;
  before(async () => {
    rig = await startIngressRig({ server: { port: 0, sseKeepAlive: '30ms', drainTimeout: '2s' } });
  });
  after(() => rig.stop());

  for (const wire of WIRES)
    it(`G33: ${wire} is bridged by ping events before its first byte, in the format’s own events`, async () => {
      let speak = (): void => {};
      const spoken = new Promise<void>((resolve) => {
        speak = resolve;
      });
      rig.script(wire, async (connection) => {
        await spoken;
        await sayScript(wire, { pieces: [{ text: 'a' }] }, 7)(connection);
      });
      const response = await postMessages(rig, MODEL_OF[wire], { stream: true });
      let text = '';
      for await (const part of response.body ?? []) {
        text += Buffer.from(part as Uint8Array).toString();
        if ((text.match(/event: ping\n/g) ?? []).length >= 2) speak();
      }
      expect(text).to.match(/^(event: ping\ndata: \{"type":"ping"\}\n\n){2,}/);
      expect(text.match(/event: message_start\n/g)).to.have.length(1);
      expect(text).to.match(/event: message_stop\ndata: [^\n]+\n\n$/);
    });
});

describe('G47: reasoning of one of several deployments', () => {
  let rig: IngressRig;
  let east: ScriptedUpstream;
  let west: ScriptedUpstream;
  before(async () => {
    [east, west] = [await startScriptedUpstream(), await startScriptedUpstream()];
    const at = ({ url }: ScriptedUpstream) => ({ plugin: 'openai', apiKey: 'k', baseUrl: `${url}/v1`, models: ['*'] });
    rig = await startIngressRig({
      providers: { east: at(east), west: at(west) },
      models: { both: ['east/gpt-5', 'west/gpt-5'] },
    });
  });
  after(async () => {
    await rig.stop();
    await east.close();
    await west.close();
  });

  const said: SaidNatively = { pieces: [{ reasoning: 'Hm' }, { text: 'Hello' }], encrypted: 'gAAA-blob' };
  const include = ['reasoning.encrypted_content'];
  for (const [form, stream] of FORMS)
    it(`G47: goes back to the deployment that created it, by its blob and by its response’s id (${form})`, async () => {
      for (const [home, name, other] of [
        [east, 'east', west],
        [west, 'west', east],
      ] as const) {
        home.script(sendResponses(said, CUT));
        const { response } = await createResponse(rig, { model: `${name}/gpt-5`, include, stream });
        const others = other.requests.length;
        const input = [{ role: 'user', content: 'Hi' }, ...response.output, { role: 'user', content: 'More' }];
        for (const body of [{ input }, { previous_response_id: response.id, input: 'More' }]) {
          const { status } = await createResponse(rig, { model: 'both', include, stream, ...body });
          expect(status).to.equal(200);
          expect(JSON.stringify(home.requests.at(-1)?.json()))
            .to.include('"gAAA-blob"')
            .and.not.to.include('tg1.');
        }
        expect(other.requests.length, 'the other one is not asked').to.equal(others);
      }
    });

  it('G47: causes no failure if its deployment is gone: it is dropped and reported', async () => {
    west.script(sendResponses(said));
    const { response } = await createResponse(rig, { model: 'west/gpt-5', include });
    sayAnywhere(rig, 'mistral', { pieces: [{ text: 'Hello' }] });
    const input = [...response.output, { role: 'user', content: 'More' }];
    const { status, headers } = await createResponse(rig, { model: MODEL_OF.mistral, input });
    expect([status, headers.get('x-tollgate-dropped')]).to.deep.equal([200, 'reasoning']);
    expect(JSON.stringify(rig.lastBody('mistral'))).not.to.include('blob');
  });
});
