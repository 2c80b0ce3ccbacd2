import { type AgentDefinition, OptionError } from '../../../core/index.ts';
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
 * single fields, adds, and removes with `false`. Agents with an empty `when` can only be used as tools. Throws an
 * {@link OptionError}: this runs at start, never in a request.
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

/** What can be said of configured agents before any plugin has published its own. */
export function checkAgents(configured: TeamConfig['agents']): void {
  const known = new Set(SPECIALISTS.map(({ name }) => name));
  for (const [name, agent] of Object.entries(configured ?? {})) {
    if (typeof agent !== 'object' || known.has(name)) continue;
    assertName(name);
    // Without instructions it changes an agent that a plugin published, or is none: that is known at start.
    if (agent.instructions !== undefined && !agent.when) throw needsWhen(name);
  }
}

function check(agent: AgentDefinition, tools: ReadonlyMap<string, AgentDefinition>): void {
  assertName(agent.name);
  if (!agent.when) throw needsWhen(agent.name);
  const place = placeOf(agent.name);
  if (!agent.instructions && !agent.run)
    throw new OptionError(
      place,
      'needs "instructions", or a plugin that publishes this agent',
      'Write what it is to do.',
    );
  const missing = agent.tools?.findIndex((tool) => !tools.has(tool)) ?? -1;
  if (missing < 0) return;
  const known = [...tools.keys()].join(', ') || 'none are registered';
  throw new OptionError(
    `${place}/tools/${missing}`,
    `names "${agent.tools?.[missing]}", which no plugin has registered as an agent in code`,
    `There are: ${known}.`,
  );
}

function assertName(name: string): void {
  if (!NAME.test(name))
    throw new OptionError(placeOf(name), 'is no name of an agent', 'Use a-z, 0-9, _ and -, at most 40.');
  if (RESERVED.includes(name))
    throw new OptionError(placeOf(name), 'has a name that the team uses itself', 'Choose another.');
}

function needsWhen(name: string): OptionError {
  return new OptionError(placeOf(name), 'needs "when"', 'Write one line by which the router chooses it.');
}

function placeOf(name: string): string {
  return `/agents/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}
