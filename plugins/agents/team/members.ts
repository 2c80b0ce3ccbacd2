import type { AgentDefinition } from '../../../core/index.ts';
import type { TeamConfig } from './config.ts';
import { SPECIALISTS } from './specialists.ts';

/** Who may work on a request. */
export interface Team {
  /** Whom the router may choose, in a fixed order. */
  readonly members: readonly AgentDefinition[];
  /** Agents written in code by name: what `tools` may name. */
  readonly tools: ReadonlyMap<string, AgentDefinition>;
}

const NAME = /^[a-z0-9_-]{1,40}$/;
const RESERVED = Object.freeze(['router', 'writer', 'memory']);

/**
 * The team from the built-in specialists, agents that plugins published, and the configuration, which wins: it changes
 * single fields, adds, and removes with `false`. Agents with an empty `when` can only be used as tools. Throws a
 * TypeError that names what is wrong: this runs at start, never in a request.
 */
export function assembleTeam(configured: TeamConfig['agents'], published: readonly AgentDefinition[]): Team {
  const agents = new Map<string, AgentDefinition>();
  for (const agent of [...SPECIALISTS, ...published]) agents.set(agent.name, agent);
  const tools = new Map(published.filter(({ run }) => run !== undefined).map((agent) => [agent.name, agent]));
  for (const [name, change] of Object.entries(configured ?? {})) {
    if (change === false) agents.delete(name);
    else if (typeof change === 'object')
      agents.set(name, { ...agents.get(name), ...(change as object), name } as AgentDefinition);
  }
  const members = [...agents.values()].filter(({ when }) => when !== '');
  for (const agent of members) check(agent, tools);
  return Object.freeze({ members, tools });
}

function check(agent: AgentDefinition, tools: ReadonlyMap<string, AgentDefinition>): void {
  const at = `agents: "${agent.name}"`;
  if (!NAME.test(agent.name)) throw new TypeError(`${at} is no agent name: use a-z, 0-9, _ and -, at most 40`);
  if (RESERVED.includes(agent.name)) throw new TypeError(`${at} is a name the team uses itself: choose another`);
  if (!agent.when) throw new TypeError(`${at} needs "when": one line by which the router chooses it`);
  if (!agent.instructions && !agent.run) throw new TypeError(`${at} needs "instructions": what it is to do`);
  const missing = agent.tools?.find((tool) => !tools.has(tool));
  if (missing !== undefined) {
    const known = [...tools.keys()].join(', ') || 'none are registered';
    throw new TypeError(
      `${at} uses the tool "${missing}", which no plugin has registered as an agent in code (${known})`,
    );
  }
}
