import type { AgentDefinition } from '../../contract/index.ts';
import { SPECIALISTS } from '../../plugins/agents/team/members.ts';
import { testAgent } from './agent.ts';

/** Agent in code with a model call, as a third party would publish it. */
const counter: AgentDefinition = {
  name: 'counter',
  when: 'counting things',
  async run({ message, actions = [] }, { chat, emit }) {
    emit({ counting: message.length });
    const response = await chat([{ role: 'user', content: message || '(nothing)' }]);
    const stop = actions.find(({ name }) => name === 'stop');
    return {
      summary: `${message.length} letters; ${response.choices[0]?.message.content ?? ''}`,
      confidence: 1,
      ...(stop && { actions: [{ name: 'stop', arguments: {} }] }),
    };
  },
};

/** Agent that only implements `forget`, as the medical agents do. */
const keeper: AgentDefinition = { name: 'keeper', when: '', forget: async () => 0 };

for (const agent of [...SPECIALISTS, counter, keeper]) testAgent({ agent });
