import { expect } from 'chai';
import deepseek from '../../../plugins/providers/deepseek.ts';
import { messagesOf, translate } from '../../support/formats/translate.ts';

describe('deepseek', () => {
  for (const [given, body] of [
    ['minimal', { reasoning_effort: 'low' }],
    ['low', { reasoning_effort: 'low' }],
    ['medium', { reasoning_effort: 'high' }],
    ['xhigh', { reasoning_effort: 'max' }],
    ['none', { thinking: { type: 'disabled' } }],
  ] as const) {
    it(`maps the effort ${given} for ${JSON.stringify(body)}`, () => {
      const sent = translate(deepseek, { reasoning_effort: given }).body;
      expect(sent).to.deep.include(body);
      expect(Object.keys(sent).filter((key) => key === 'thinking' || key === 'reasoning_effort')).to.have.length(1);
    });
  }

  it('sends thinking back with every assistant turn, none if the caller dropped it', () => {
    const turns = [
      { role: 'assistant', content: 'a', reasoning_content: 'hm' },
      { role: 'assistant', content: 'b' },
    ];
    expect(messagesOf(deepseek, turns).map((turn) => turn['reasoning_content'])).to.deep.equal(['hm', '']);
  });

  it('describes a schema in the prompt, because it has no JSON schema mode', () => {
    const schema = { type: 'object', properties: { city: { type: 'string' } } };
    const { body } = translate(deepseek, {
      response_format: { type: 'json_schema', json_schema: { name: 'city', schema } },
    });
    const [system] = body['messages'] as readonly { readonly role: string; readonly content: string }[];
    expect(body['response_format']).to.deep.equal({ type: 'json_object' });
    expect(system?.role).to.equal('system');
    expect(system?.content).to.include('JSON').and.include(JSON.stringify(schema));
  });

  it('keeps json_object unchanged', () => {
    const { body } = translate(deepseek, { response_format: { type: 'json_object' } });
    expect(body).to.deep.include({ response_format: { type: 'json_object' } });
    expect(body['messages']).to.have.length(1);
  });

  it('cleans the user id', () => {
    expect(translate(deepseek, { user: 'a b@c' }).body).to.include({ user_id: 'a_b_c' });
  });
});
