import { type AgentDefinition, definePlugin } from 'tollgate';

/** Joins the team: its router asks it when `when` fits a request. */
export const agent: AgentDefinition = {
  name: 'my-plugin',
  when: 'The user asks how long a text is.',
  async run({ message }) {
    const words = message.split(/\s+/).filter((word) => word !== '').length;
    return { summary: `The message has ${words} words.`, confidence: 1 };
  },
};

export default definePlugin({
  name: 'my-plugin',
  kind: 'agent',
  apiVersion: 1,
  configSchema: { type: 'object', additionalProperties: false, properties: {} },
  setup: (api) => api.agent(agent),
});
