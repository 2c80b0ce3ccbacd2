import { expect } from 'chai';
import { isGatewayError, type Voice } from '../../../core/index.ts';
import { createVoiceList } from '../../../core/speech/voice-list.ts';
import { speechVendor } from '../../support/speech-vendor.ts';

const answerOf = (status: number, text: string) => ({ status, headers: {}, readAll: async () => Buffer.from(text) });
const listVoices = {
  request: () => ({ method: 'GET', path: '/voices' }) as const,
  response: (body: unknown) => (body as { voices: Voice[] }).voices,
};
const credential = { header: 'authorization', required: true, value: 'key' } as const;

describe('the list of a vendor’s voices', () => {
  it('is asked of the vendor once, for all who ask at once and for five minutes', async () => {
    let asked = 0;
    let now = 0;
    const vendors = new Map([['v', speechVendor({ listVoices, credential })]]);
    const ask = async () => {
      asked += 1;
      return answerOf(200, '{"voices":[{"id":"new","name":"New"}]}');
    };
    const list = createVoiceList(vendors, ask, () => now);
    const both = await Promise.all([list('v'), list('v')]);
    expect(both[1]).to.deep.equal([{ id: 'new', name: 'New' }]);
    now = 299_000;
    await list('v');
    expect(asked).to.equal(1);
    now = 301_000;
    await list('v');
    expect(asked).to.equal(2);
  });

  it('is what is known here when the vendor has no key or no list', async () => {
    const nobody = () => Promise.reject(new Error('asked'));
    const unkeyed = speechVendor({ listVoices, credential: { ...credential, value: undefined } });
    const list = createVoiceList(
      new Map([
        ['a', unkeyed],
        ['b', speechVendor()],
      ]),
      nobody,
    );
    expect((await list('a')).map(({ id }) => id)).to.deep.equal(['ann', 'Bert', 'carla']);
    expect(await list('b')).to.have.length(3);
  });

  for (const [title, status, text, code] of [
    ['an error', 429, '{"error":"x"}', 'upstream_rate_limited'],
    ['nonsense', 200, '<html>', 'provider_invalid_response'],
  ] as const) {
    it(`passes ${title} on, and asks again the next time`, async () => {
      const answers = [answerOf(status, text), answerOf(200, '{"voices":[]}')];
      const vendors = new Map([['v', speechVendor({ listVoices, credential })]]);
      const list = createVoiceList(vendors, async () => answers.shift() ?? answerOf(500, ''));
      await list('v').then(
        () => expect.fail('it was taken for a list'),
        (error: unknown) => expect(isGatewayError(error) && error.code).to.equal(code),
      );
      expect(await list('v')).to.deep.equal([]);
    });
  }
});
