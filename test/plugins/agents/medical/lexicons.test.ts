import { expect } from 'chai';
import { LANGUAGES } from '../../../../plugins/agents/medical/engine/language.ts';
import { compileLexicons } from '../../../../plugins/agents/medical/engine/sightings.ts';
import medical, { COMPILED, LEXICONS } from '../../../../plugins/agents/medical/index.ts';
import { openAgentGateway } from '../../../support/agents/agent-gateway.ts';
import { scriptModel } from '../../../support/agents/scripted-model.ts';

describe('the lexicons of the medical agent', () => {
  it('E31: are prepared in slices, none of them twice @slow', async () => {
    let read = 0;
    const counting = { ...LEXICONS };
    for (const language of LANGUAGES) {
      const { concepts, ...rest } = LEXICONS[language];
      counting[language] = {
        ...rest,
        get concepts() {
          read += 1;
          return concepts;
        },
      };
    }
    const lexicons = compileLexicons(counting);
    let turns = 0;
    const count = (): void => {
      turns += 1;
      next = setImmediate(count);
    };
    let next = setImmediate(count);
    await lexicons.prepare();
    clearImmediate(next);
    expect(turns, 'turns of the event loop meanwhile').to.be.at.least(10);
    const before = read;
    for (const language of LANGUAGES) lexicons.of(language);
    expect(read, 'read again by the first call').to.equal(before);
  });

  it('E31: are ready when the agent is, before its first call', async () => {
    const plugins = [{ plugin: medical, config: { model: 'base/model' } }];
    const gateway = await openAgentGateway({ plugins, model: scriptModel([]) });
    await gateway.close();
    expect(LANGUAGES.filter((language) => !COMPILED.isReady(language))).to.deep.equal([]);
  });
});
