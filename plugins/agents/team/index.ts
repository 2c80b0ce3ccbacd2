import {
  definePlugin,
  type PluginApi,
  type Principal,
  parseDuration,
  problemsOf,
  type RouteContext,
} from '../../../core/index.ts';
import { type AgentMemory, createAgentMemory } from '../kit/agent-memory.ts';
import { memoryRoute } from '../kit/memory-route.ts';
import { createModelCalls } from '../kit/model-calls.ts';
import { createModeMemory, type ModeMemory } from '../kit/request-structured.ts';
import { respondInTime } from '../kit/respond-in-time.ts';
import { createSchemaReader, type SchemaReader } from '../kit/response-model.ts';
import { createSessionCare } from '../kit/session-care.ts';
import { createTrace, type Emit } from '../kit/trace.ts';
import { TEAM_CONFIG, type TeamConfig } from './config.ts';
import { type TeamLimits, WRITER_CALLS } from './job.ts';
import { assembleTeam, checkAgents, type Team } from './members.ts';
import { readTeamRequest, TEAM_REQUEST, TEAM_RESPONSE, type TeamRequest } from './request.ts';
import { runTeam, type TeamResult } from './run-team.ts';

interface TeamState {
  readonly api: PluginApi;
  readonly config: TeamConfig;
  readonly limits: TeamLimits;
  readonly reader: SchemaReader;
  readonly modes: ModeMemory;
  readonly memory: AgentMemory | undefined;
  readonly team: () => Team;
}

/** `POST /api/core/agent`: a router, specialists and a writer give one validated result; and the wipe of its memory. */
export default definePlugin({
  name: 'team',
  kind: 'agent',
  apiVersion: 1,
  configSchema: TEAM_CONFIG,
  check: (config) => problemsOf(() => checkAgents(config.agents)),
  setup(api, config) {
    const { timeout, agentTimeout, ...limits } = config.limits;
    const { enabled, ttl, model: _summaryModel, ...memoryLimits } = config.memory;
    let team: Team | undefined;
    const state: TeamState = {
      api,
      config,
      limits: { ...limits, timeoutMs: parseDuration(timeout), agentTimeoutMs: parseDuration(agentTimeout) },
      reader: createSchemaReader(),
      modes: createModeMemory(),
      memory: enabled ? createAgentMemory(api, { ...memoryLimits, ttlMs: parseDuration(ttl) }) : undefined,
      team: () => (team ??= assembleTeam(config.agents, api.agents())),
    };
    api.onRegistered(() => void state.team());
    api.route({
      method: 'POST',
      path: '/api/core/agent',
      summary: 'Ask a team of agents',
      description: 'Specialised agents work on the message together; `content` conforms to `response_model`.',
      auth: ['key'],
      isIdempotent: true,
      body: TEAM_REQUEST,
      maxBodyBytes: 20 * 1024 * 1024,
      responses: { 200: { description: 'The result, or with `stream` agent events.', schema: TEAM_RESPONSE } },
      handler: (ctx) => handleAgent(ctx, readTeamRequest(ctx.state.body, state.reader), state),
    });
    const wipe = (principal: Principal, session: string | undefined) => wipeMemories(state, principal, session);
    api.route(memoryRoute('/api/core/agent/memory', 'Wipe the caller’s agent memory', wipe));
  },
});

function handleAgent(ctx: RouteContext, request: TeamRequest, state: TeamState): Promise<void> {
  const { timeoutMs } = state.limits;
  return respondInTime(ctx, { timeoutMs, stream: request.stream }, (signal, emit) =>
    runRequest(ctx, request, state, signal, emit),
  );
}

async function runRequest(
  ctx: RouteContext,
  request: TeamRequest,
  state: TeamState,
  signal: AbortSignal,
  emit: Emit,
): Promise<TeamResult> {
  const { principal, requestId, onOutcome } = ctx.state;
  const { api, config, limits, modes } = state;
  const model = request.model ?? config.model;
  const session = request.session === undefined ? undefined : await state.memory?.open(principal, request.session);
  const care = createSessionCare(
    session,
    { model: summaryModel(config, model), signal, reserve: WRITER_CALLS },
    api.log,
  );
  const caller = { principal, requestId, session: ctx.state.session ?? request.session, onOutcome };
  const calls = createModelCalls(api.chat, caller, limits, () => care.begin(calls));
  const job = { ...request, model, history: session ?? { turns: [] } };
  const run = {
    team: state.team(),
    router: config.router,
    writer: config.writer,
    trace: createTrace(emit),
    limits,
    calls,
    modes,
    emit,
    signal,
    principal,
    requestId,
  };
  const result = await runTeam(job, run, state.reader);
  await care.finish({ message: request.message, content: JSON.stringify(result.content) });
  return { ...result, usage: calls.usage() };
}

/** Wipes the team's own memory, and that of agents that keep one. */
async function wipeMemories(
  { api, memory }: TeamState,
  principal: Principal,
  session: string | undefined,
): Promise<number> {
  const own = (await memory?.wipe(principal, session)) ?? 0;
  const others = await Promise.all(api.agents().map(async (agent) => (await agent.forget?.(principal, session)) ?? 0));
  return others.reduce((sum, one) => sum + one, own);
}

function summaryModel(config: TeamConfig, model: string): string {
  return config.memory.model ?? config.router.model ?? model;
}
