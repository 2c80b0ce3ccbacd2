import { expect } from 'chai';
import { fine, fineStream, type RoutingRig, startRoutingRig } from '../support/gateways/routing-rig.ts';

describe('the models of a plan', () => {
  let rig: RoutingRig;
  const keys: Record<string, Record<string, string>> = {};
  before(async () => {
    rig = await startRoutingRig(
      { smart: ['a/large', 'b/large'], quick: 'a/small' },
      { a: { models: ['large', 'small'] }, b: { models: ['large', 'small'] } },
      { plans: { free: { models: ['quick', 'b/small'] }, pro: {} } },
    );
    for (const [user, ...more] of [
      ['ann', '--plan', 'free'],
      ['bob', '--plan', 'pro'],
      ['cy', '--plan', 'free', '--models', 'quick,smart'],
    ]) {
      const made = await rig.gateway.command<{ api_key: string }>('keys', 'create', '--user', user ?? '', ...more);
      keys[user ?? ''] = { authorization: `Bearer ${made.api_key}` };
    }
  });
  after(() => rig?.stop());

  for (const stream of [false, true])
    it(`are the only ones that its accounts may call (E71, ${stream ? 'stream' : 'whole'})`, async () => {
      for (const vendor of Object.values(rig.vendors)) vendor.script(stream ? fineStream : fine);
      const statusOf = async (model: string, user: string) => (await rig.send(model, { stream }, keys[user])).status;
      expect(await statusOf('quick', 'ann'), 'an alias').to.equal(200);
      expect(await statusOf('b/small', 'ann'), 'a model of a provider').to.equal(200);
      expect(await statusOf('a/small', 'ann'), 'what an alias stands for').to.equal(403);
      expect(await statusOf('smart', 'ann')).to.equal(403);
      expect(await statusOf('smart', 'bob'), 'a plan without a list').to.equal(200);
      expect(await statusOf('quick', 'cy'), 'of both lists').to.equal(200);
      expect(await statusOf('smart', 'cy'), 'of the key, and not of the plan').to.equal(403);
      expect(await statusOf('b/small', 'cy'), 'of the plan, and not of the key').to.equal(403);
    });

  it('are named in the refusal by the plan', async () => {
    const before = rig.countOf('a');
    const { text } = await rig.send('a/large', {}, keys['ann']);
    expect(text).to.include('model_not_allowed').and.include('The plan \\"free\\" does not include \\"a/large\\"');
    expect(rig.countOf('a')).to.equal(before);
  });

  it('are the ones in lists', async () => {
    const idsOf = async (path: string, user: string) => {
      const list = (await (await rig.gateway.get(path, keys[user])).json()) as { data: { id: string }[] };
      return list.data.map(({ id }) => id);
    };
    expect(await idsOf('/v1/models', 'ann')).to.deep.equal(['quick', 'b/small']);
    expect(await idsOf('/api/core/b/models', 'ann')).to.deep.equal(['small']);
    expect(await idsOf('/v1/models', 'cy')).to.deep.equal(['quick']);
    expect(await idsOf('/v1/models', 'bob')).to.include.members(['smart', 'quick', 'a/large', 'b/small']);
    expect((await rig.gateway.get('/v1/models/smart', keys['ann'])).status).to.equal(404);
    expect((await rig.gateway.get('/v1/models/quick', keys['ann'])).status).to.equal(200);
  });
});
