import { type AgentDefinition, OptionError } from '../../../contract/index.ts';
import type { TeamConfig } from './config.ts';

/** Agents available for a request. */
export interface Team {
  /** Agents that the router may choose, in a fixed order. */
  readonly members: readonly AgentDefinition[];
  /** Agents written in code by name, which `tools` may refer to. */
  readonly tools: ReadonlyMap<string, AgentDefinition>;
}

const NAME = /^[a-z0-9_-]{1,40}$/;
const RESERVED = Object.freeze(['router', 'writer', 'memory']);

/**
 * Assembles the team from built-in specialists, agents published by plugins, and the configuration, which takes
 * precedence. The configuration changes single fields, adds agents, and removes them with `false`. Agents with an empty
 * `when` can only be used as tools. Throws an {@link OptionError} at start, never in a request.
 */
export function assembleTeam(
  configured: TeamConfig['agents'],
  published: readonly AgentDefinition[],
  hasServer: (name: string) => boolean = () => false,
): Team {
  const agents = new Map<string, AgentDefinition>();
  for (const agent of [...SPECIALISTS, ...published]) agents.set(agent.name, agent);
  const tools = new Map(published.filter(({ run }) => run !== undefined).map((agent) => [agent.name, agent]));
  for (const [name, change] of Object.entries(configured ?? {})) {
    if (change === false) agents.delete(name);
    else if (typeof change === 'object')
      agents.set(name, { ...agents.get(name), ...(change as object), name } as AgentDefinition);
  }
  const members = [...agents.values()].filter(({ when }) => when !== '');
  for (const agent of members) {
    check(agent, tools);
    checkServers(agent, hasServer);
  }
  return Object.freeze({ members, tools });
}

/** Checks configured agents before any plugin has published its own. */
export function checkAgents(configured: TeamConfig['agents']): void {
  const known = new Set(SPECIALISTS.map(({ name }) => name));
  for (const [name, agent] of Object.entries(configured ?? {})) {
    if (typeof agent !== 'object' || known.has(name)) continue;
    assertName(name);
    // Without instructions it changes an agent published by a plugin, or is invalid, which the start reports.
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
      'Describe its task there.',
    );
  const missing = agent.tools?.findIndex((tool) => typeof tool === 'string' && !tools.has(tool)) ?? -1;
  if (missing < 0) return;
  const known = [...tools.keys()].join(', ') || 'none are registered';
  throw new OptionError(
    `${place}/tools/${missing}`,
    `refers to "${agent.tools?.[missing]}", which no plugin registers as an agent`,
    `Available: ${known}.`,
  );
}

/** Only models call tools of MCP servers. */
function checkServers({ name, tools = [], run }: AgentDefinition, hasServer: (name: string) => boolean): void {
  for (const [index, tool] of tools.entries()) {
    if (typeof tool === 'string') continue;
    const place = `${placeOf(name)}/tools/${index}`;
    if (run) throw new OptionError(place, 'is for agents with "instructions", and this agent is code', 'Remove it.');
    if (!hasServer(tool.server))
      throw new OptionError(
        `${place}/server`,
        `refers to "${tool.server}", which is not under "mcp.servers"`,
        'Add the server, or correct the name.',
      );
  }
}

function assertName(name: string): void {
  if (!NAME.test(name))
    throw new OptionError(placeOf(name), 'is not a valid agent name', 'Use at most 40 of a-z, 0-9, _ and -.');
  if (RESERVED.includes(name)) throw new OptionError(placeOf(name), 'has a reserved name', 'Use another name.');
}

function needsWhen(name: string): OptionError {
  return new OptionError(placeOf(name), 'needs "when"', 'Describe its purpose in one line, for the router.');
}

function placeOf(name: string): string {
  return `/agents/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

/** Default team; the configuration replaces, adds and removes agents. */
export const SPECIALISTS: readonly AgentDefinition[] = Object.freeze([
  {
    name: 'navigation',
    when: 'where to move and how to get there: paths, directions, positions, avoiding obstacles',
    instructions: `You plan movement in a physical or simulated space.
Work from the positions, headings, maps, distances and obstacles in the context and inputs; say which of them you used.
State the current position, the goal, the next move and why this move is better than the others you considered.
Prefer the shortest path that is free; never plan through something known to be blocked, and say when the way is unknown.
Give the direction in the frame of reference of the inputs (north or left, metres or cells); do not invent coordinates.
If the goal is reached already, or no move is safe, say so: staying put is a valid answer.`,
  },
  {
    name: 'perception',
    when: 'what the images, sensor readings or scene description show: objects, distances, hazards, changes',
    instructions: `You report what can be known about the surroundings from the inputs, images included.
List the objects that matter for the request with their place, distance and state, as precisely as the inputs allow.
Separate what is observed from what you infer, and give each a confidence. Name what cannot be seen or is ambiguous.
Point out hazards and anything that changed or contradicts another reading.
Do not decide what to do: others act on your report. Never describe something that is not in the inputs.`,
  },
  {
    name: 'planning',
    when: 'goals that take several steps: order, prerequisites, resources, alternatives, schedules',
    instructions: `You turn a goal into an ordered plan.
State the goal and when it is reached. Break it into the fewest steps that can be carried out and checked one by one.
For each step name what it needs, what it produces and what to do when it fails. Keep constraints of the context.
Where actions are available, build steps from these actions only. Say which step comes first now.
Say what information is missing and whether the plan depends on it.`,
  },
  {
    name: 'safety',
    when: 'risk to people, animals, property or data; dangerous, irreversible or forbidden actions',
    instructions: `You look for harm before it happens.
Check the request, the inputs and every available action against the rules in the context and against common sense.
Name each risk with its cause, how likely and how bad it is, and what avoids it. An action that cannot be undone needs a reason.
If something must not be done, say plainly which action and why; prefer a safe alternative over a refusal.
When there is no noticeable risk, say so in one sentence; do not invent dangers.`,
  },
  {
    name: 'conversation',
    when: 'talking with people: explanations, advice, tone, empathy, summaries, translation, questions to ask back',
    instructions: `You find the words for the person who wrote the message.
Answer what was asked first, then what they need to know. Use their language and match their tone and knowledge.
Be brief and concrete. Say honestly what is unknown, and ask at most one question back, only when the answer depends on it.
Never claim to have done something that was only planned.`,
  },
]);
