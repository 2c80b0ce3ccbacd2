import { expect } from 'chai';
import type { AgentDefinition } from '../../../../contract/index.ts';
import { assembleTeam } from '../../../../plugins/agents/team/members.ts';

const planner: AgentDefinition = { name: 'planner', when: 'routes', instructions: 'Plan.' };
const rag: AgentDefinition = { name: 'rag', when: '', run: async () => ({ summary: 'found' }) };
const names = (...args: Parameters<typeof assembleTeam>) => assembleTeam(...args).members.map(({ name }) => name);

describe('agents/team/members', () => {
  it('starts with five specialists', () => {
    expect(names(undefined, [])).to.deep.equal(['navigation', 'perception', 'planning', 'safety', 'conversation']);
  });

  it('adds agents of plugins and of the configuration, and removes with false', () => {
    const configured = { safety: false, cook: { when: 'food', instructions: 'Cook.' } } as const;
    expect(names(configured, [planner])).to.deep.equal([
      'navigation',
      'perception',
      'planning',
      'conversation',
      'planner',
      'cook',
    ]);
  });

  it('changes single fields of an agent and keeps the others', () => {
    const { members } = assembleTeam({ planner: { model: 'big/model' } }, [planner]);
    expect(members.find(({ name }) => name === 'planner')).to.deep.equal({ ...planner, model: 'big/model' });
  });

  it('keeps an agent with an empty "when" out of the router’s choice, as a tool', () => {
    const team = assembleTeam({ cook: { when: 'food', instructions: 'Cook.', tools: ['rag'] } }, [rag]);
    expect(team.members.map(({ name }) => name)).to.not.include('rag');
    expect(team.tools.has('rag')).to.equal(true);
  });

  const PROBLEMS: readonly {
    readonly title: string;
    readonly args: Parameters<typeof assembleTeam>;
    readonly says: string;
  }[] = [
    { title: 'a new agent without "when"', args: [{ cook: { instructions: 'Cook.' } }, []], says: '"when"' },
    { title: 'a new agent without instructions', args: [{ cook: { when: 'food' } }, []], says: '"instructions"' },
    { title: 'a reserved name', args: [{ writer: { when: 'x', instructions: 'y' } }, []], says: 'writer' },
    {
      title: 'a published agent with a bad name',
      args: [undefined, [{ ...planner, name: 'The Planner' }]],
      says: 'a-z',
    },
    { title: 'an unregistered tool', args: [{ planning: { tools: ['rag'] } }, []], says: '"rag"' },
  ];
  for (const { title, args, says } of PROBLEMS) {
    it(`refuses ${title} at the start`, () => {
      expect(() => assembleTeam(...args)).to.throw(TypeError, says);
    });
  }
});
