import { expect } from 'chai';
import { createVoiceList } from '../../../../plugins/operations/speech/index.ts';
import { speechVendor } from '../../../support/speech/speech-vendor.ts';

const credential = { header: 'authorization', required: true, value: 'key' } as const;

describe('the list of a vendor’s voices', () => {
  it('is requested from the vendor once for concurrent requests and for five minutes', async () => {
    let requestCount = 0;
    let now = 0;
    const listVoices = async () => {
      requestCount += 1;
      return [{ id: 'new', name: 'New' }];
    };
    const vendors = new Map([['v', speechVendor({ listVoices, credential })]]);
    const list = createVoiceList(
      () => vendors,
      () => now,
    );
    const both = await Promise.all([list('v'), list('v')]);
    expect(both[1]).to.deep.equal([{ id: 'new', name: 'New' }]);
    now = 299_000;
    await list('v');
    expect(requestCount).to.equal(1);
    now = 301_000;
    await list('v');
    expect(requestCount).to.equal(2);
  });

  it('is the built-in list when the vendor has no key or no list', async () => {
    const listVoices = () => Promise.reject(new Error('asked'));
    const found = async () => [{ id: 'here', name: 'Here' }];
    const vendors = new Map([
      ['unkeyed', speechVendor({ listVoices, credential: { ...credential, value: undefined } })],
      ['unlisted', speechVendor()],
      ['local', speechVendor({ voices: found })],
    ]);
    const list = createVoiceList(() => vendors);
    expect((await list('unkeyed')).map(({ id }) => id)).to.deep.equal(['ann', 'Bert', 'carla']);
    expect(await list('unlisted')).to.have.length(3);
    expect(await list('local')).to.deep.equal([{ id: 'here', name: 'Here' }]);
  });

  it('passes an error on, and requests it again the next time', async () => {
    const lists = [() => Promise.reject(new Error('no')), () => Promise.resolve([])];
    const listVoices = () => lists.shift()?.() ?? Promise.reject(new Error('asked again'));
    const vendors = new Map([['v', speechVendor({ listVoices, credential })]]);
    const list = createVoiceList(() => vendors);
    await list('v').then(
      () => expect.fail('it was taken for a list'),
      (error: Error) => expect(error.message).to.equal('no'),
    );
    expect(await list('v')).to.deep.equal([]);
  });

  it('lists the vendors for an unknown one', async () => {
    const list = createVoiceList(() => new Map([['v', speechVendor()]]));
    await list('w').then(
      () => expect.fail('it has voices'),
      (error: { code: string; message: string }) => {
        expect(error.code).to.equal('unsupported_provider');
        expect(error.message).to.include('Configured: v.');
      },
    );
  });
});
