import { expect } from 'chai';
import hyperbolic from '../../../plugins/providers/hyperbolic.ts';
import mistral from '../../../plugins/providers/mistral.ts';
import { translate } from '../../support/translate.ts';

describe('fields that go to vendors', () => {
  for (const plugin of [hyperbolic, mistral]) {
    it(`D20: presence_penalty reaches ${plugin.name}`, () => {
      const { body, dropped } = translate(plugin, { presence_penalty: 0.5 });
      expect(body).to.include({ presence_penalty: 0.5 });
      expect(dropped).to.deep.equal([]);
    });
  }
});
