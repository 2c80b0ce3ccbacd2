import { expect } from 'chai';
import type { ChatRequest } from '../../contract/chat.ts';
import { factsOf, takeBody } from '../../contract/facts.ts';
import { deepFreeze, freezing } from '../../contract/json.ts';
import { attribution, enableForThirdParties } from '../../core/plugins/attribution.ts';

type Loaded = Parameters<typeof enableForThirdParties>[0];

const loadedWith = (plugin: string): Loaded => {
  const store = { kind: 'store', plugin: 'memory', name: 'store' };
  const builtins = [{ kind: 'store', name: 'memory' }];
  return { config: { store, instances: [{ kind: 'policy', plugin, name: 'own' }] }, builtins } as unknown as Loaded;
};

describe('arguments of hooks', () => {
  const before = { isOn: attribution.isOn };

  afterEach(() => {
    freezing.isOn = true;
    attribution.isOn = before.isOn;
  });

  it('are frozen in a gateway that a program embeds, and in tests', () => {
    expect(freezing.isOn).to.equal(true);
    expect(Object.isFrozen(deepFreeze({ a: 1 }))).to.equal(true);
  });

  it('are not frozen if the program runs only plugins of the package, and are with any other plugin', () => {
    freezing.isOn = false;
    const body = { model: 'm', messages: [{ role: 'user', content: 'x'.repeat(400) }] };
    takeBody(body, false, { isChat: true });
    expect([body, body.messages, body.messages[0]].some(Object.isFrozen)).to.equal(false);
    const facts = factsOf(body as ChatRequest);
    expect(facts.inputTokens).to.be.above(50);
    expect(factsOf(body as ChatRequest), 'the walk is not repeated').to.equal(facts);
    enableForThirdParties(loadedWith('somebody/policy'));
    expect(freezing.isOn).to.equal(true);
    expect(Object.isFrozen(deepFreeze({ a: 1 }))).to.equal(true);
  });
});
