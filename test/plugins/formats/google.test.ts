import { expect } from 'chai';
import { readSse } from '../../support/formats/codec.ts';
import { type IngressRig, startIngressRig } from '../../support/gateways/ingress-rig.ts';
import { pluginFile } from '../../support/plugins/plugin-file.ts';
import { chunk, LAST_CHUNK, respondWith, SSE_HEAD } from '../../support/vendors/scripted-upstream.ts';

/** Sets the request fields in the caller's message. */
const HOOK = `api.hook('prepare', (call, request) => ({ ...request, ...JSON.parse(request.messages.at(-1).content) }));`;

interface Sent {
  readonly generationConfig?: Readonly<Record<string, unknown>> & {
    readonly thinkingConfig?: { readonly thinkingBudget?: number; readonly thinkingLevel?: string };
  };
}

describe('Google’s format, from its own clients and from others', () => {
  let rig: IngressRig;
  before(async () => {
    rig = await startIngressRig(
      { policies: { probe: { plugin: './probe.mjs' } } },
      { files: { 'probe.mjs': pluginFile({ setup: HOOK }) } },
    );
  });
  after(() => rig.stop());

  /**
   * Request to Google after a hook set fields: from a caller with Google's format (native), and with OpenAI's
   * (translated).
   */
  async function sentFor(model: string, fields: object): Promise<Readonly<Record<'native' | 'translated', Sent>>> {
    rig.say('gemini', { pieces: [{ text: 'ok' }] });
    const text = JSON.stringify(fields);
    const requests = {
      native: [`/v1beta/models/gemini/${model}:generateContent`, { contents: [{ role: 'user', parts: [{ text }] }] }],
      translated: ['/v1/chat/completions', { model: `gemini/${model}`, messages: [{ role: 'user', content: text }] }],
    } as const;
    const send = async (lane: keyof typeof requests): Promise<Sent> => {
      const response = await rig.gateway.post(requests[lane][0], requests[lane][1]);
      expect([response.status, response.headers.get('x-tollgate-lane')]).to.deep.equal([200, lane]);
      return rig.lastBody<Sent>('gemini');
    };
    return { native: await send('native'), translated: await send('translated') };
  }

  const FLASH = [0, 1024, 1024, 8192, 24_576, 24_576, 24_576];
  const PRO = [128, 1024, 1024, 8192, 24_576, 32_768, 32_768];
  const LOW_TO_HIGH = ['low', 'low', 'low', 'medium', 'high', 'high', 'high'];
  for (const [model, wanted] of [
    ['gemini-2.5-flash', FLASH],
    ['gemini-2.5-pro', PRO],
    ['gemini-3-flash-preview', ['minimal', 'minimal', ...LOW_TO_HIGH.slice(2)]],
    ['gemini-3.8-flash', LOW_TO_HIGH],
    ['gemini-4-hydrogen', [...LOW_TO_HIGH.slice(0, 5), 'xhigh', 'xhigh']],
    ['gemini-4-argon', LOW_TO_HIGH],
  ] as const)
    it(`E15: every effort that a hook sets sets the same thinking of ${model} natively and translated, "max" for the most`, async () => {
      const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'];
      for (const [at, effort] of efforts.entries())
        for (const [lane, sent] of Object.entries(await sentFor(model, { reasoning_effort: effort }))) {
          const { thinkingBudget, thinkingLevel } = sent.generationConfig?.thinkingConfig ?? {};
          expect(thinkingBudget ?? thinkingLevel, `${effort}, ${lane}`).to.equal(wanted[at]);
        }
    });

  it('E15: refuses an invalid effort on either path', async () => {
    const text = JSON.stringify({ reasoning_effort: 'heroic' });
    const native = { contents: [{ role: 'user', parts: [{ text }] }] };
    const chat = { model: 'gemini/gemini-2.5-pro', messages: [{ role: 'user', content: text }] };
    const responses = [
      await rig.gateway.post('/v1beta/models/gemini/gemini-2.5-pro:generateContent', native),
      await rig.gateway.post('/v1/chat/completions', chat),
    ];
    for (const response of responses) {
      expect(response.status).to.equal(400);
      expect(await response.text()).to.include('must be one of none, minimal, low, medium, high, xhigh, max');
    }
  });

  it('E19: the end of a failed model is an error after its text, never an apparently complete response', async () => {
    const candidate = { content: { role: 'model', parts: [{ text: 'Half a' }] }, finishReason: 'MALFORMED_RESPONSE' };
    const body = { candidates: [candidate], usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 2 } };
    const send = (stream: boolean) =>
      rig.gateway.post('/v1/chat/completions', {
        model: 'gemini/gemini-3.8-flash',
        messages: [{ role: 'user', content: '{}' }],
        stream,
      });
    rig.script('gemini', respondWith(200, body));
    expect((await send(false)).status).to.equal(503);
    rig.script('gemini', async (wire) => {
      await wire.send(SSE_HEAD);
      await wire.send(chunk(`data: ${JSON.stringify(body)}\n\n`));
      await wire.send(LAST_CHUNK);
    });
    const events = readSse(Buffer.from(await (await send(true)).arrayBuffer())).map(({ data }) => data);
    expect(events.join('\n')).to.include('Half a').and.to.include('"error"').and.not.include('"finish_reason":"stop"');
    expect(events.findIndex((data) => data.includes('Half a'))).to.be.lessThan(
      events.findIndex((data) => data.includes('"error"')),
    );
  });
});
