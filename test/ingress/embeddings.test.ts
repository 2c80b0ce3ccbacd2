/** What other gateways did wrong with embeddings (cases G65 and G66), through a whole gateway and the official SDK. */
import { expect } from 'chai';
import { type IngressRig, startIngressRig } from '../support/gateways/ingress-rig.ts';
import { answer } from '../support/vendors/scripted-upstream.ts';

const VECTOR = Array.from({ length: 768 }, (_, at) => Math.fround(Math.sin(at)));
const LIST = {
  object: 'list',
  data: [{ object: 'embedding', index: 0, embedding: VECTOR }],
  model: 'vendor-model',
  usage: { prompt_tokens: 3, total_tokens: 3 },
};
/** A model of each vendor that has embeddings. */
const MODELS = [
  ['openai', 'openai/text-embedding-3-small'],
  ['mistral', 'mistral/mistral-embed'],
] as const;

describe('POST /v1/embeddings', () => {
  let rig: IngressRig;
  before(async () => {
    rig = await startIngressRig();
  });
  after(() => rig.stop());

  for (const [wire, model] of MODELS) {
    it(`G65: numbers of ${wire} are base64 of float32 where the SDK asks for that`, async () => {
      rig.script(wire, answer(200, LIST));
      const { data } = await rig.gateway.openai().embeddings.create({ model, input: 'x' });
      expect(data[0]?.embedding).to.have.length(768);
      expect([...(data[0]?.embedding ?? [])]).to.deep.equal(VECTOR);
      const raw = await rig.gateway.post('/v1/embeddings', { model, input: 'x', encoding_format: 'base64' });
      const { data: coded } = (await raw.json()) as { data: { embedding: string }[] };
      expect(Buffer.from(coded[0]?.embedding ?? '', 'base64')).to.have.length(768 * 4);
    });

    it(`G65: numbers of ${wire} stay numbers where the client asks for those`, async () => {
      rig.script(wire, answer(200, LIST));
      const { data } = await rig.gateway.openai().embeddings.create({ model, input: 'x', encoding_format: 'float' });
      expect(data[0]?.embedding).to.deep.equal(VECTOR);
    });
  }

  it('G66: ids of tokens as input reach the vendor', async () => {
    rig.script('openai', answer(200, LIST));
    for (const input of [
      [1, 2, 3],
      [[1, 2], [3]],
    ]) {
      await rig.gateway.openai().embeddings.create({ model: 'openai/text-embedding-3-small', input });
      expect(rig.lastBody('openai')).to.deep.include({ input });
    }
  });
});
