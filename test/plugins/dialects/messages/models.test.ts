import { expect } from 'chai';
import { GatewayError } from '../../../../contract/index.ts';
import { MESSAGES_MODELS } from '../../../../plugins/dialects/messages.ts';

const MODELS = ['a', 'b', 'c', 'd', 'e'].map((id) => ({ id, ownedBy: 'x', created: 1_790_000_000 }));

function list(query: Record<string, string>) {
  const { data, ...rest } = MESSAGES_MODELS.list(MODELS, query) as { data: { id: string }[] };
  return { ids: data.map(({ id }) => id).join(''), ...rest };
}

describe('the list of models of the Messages dialect', () => {
  it('has the format’s fields', () => {
    const model = { ...MODELS[0]!, contextWindow: 200_000, maxOutput: 64_000 };
    expect(MESSAGES_MODELS.one(model)).to.deep.equal({
      ...{ type: 'model', id: 'a', display_name: 'a', created_at: '2026-09-21T14:13:20Z' },
      ...{ max_input_tokens: 200_000, max_tokens: 64_000 },
    });
  });

  for (const [query, ids, has_more] of [
    [{}, 'abcde', false],
    [{ limit: '1000' }, 'abcde', false],
    [{ limit: '2' }, 'ab', true],
    [{ limit: '2', after_id: 'b' }, 'cd', true],
    [{ limit: '2', after_id: 'd' }, 'e', false],
    [{ limit: '2', before_id: 'd' }, 'bc', true],
    [{ limit: '2', before_id: 'b' }, 'a', false],
    [{ after_id: 'e' }, '', false],
  ] as const) {
    it(`is ${ids || 'empty'} for ${JSON.stringify(query)}`, () => {
      const { first_id, last_id, ...page } = list(query) as ReturnType<typeof list> & Record<string, unknown>;
      expect(page).to.deep.equal({ ids, has_more });
      expect([first_id, last_id]).to.deep.equal([ids[0] ?? null, ids.at(-1) ?? null]);
    });
  }

  for (const limit of ['0', '1001', 'x', '-1'])
    it(`refuses ${limit} models a page`, () => {
      expect(() => list({ limit }))
        .to.throw(GatewayError)
        .with.property('param', 'limit');
    });
});
