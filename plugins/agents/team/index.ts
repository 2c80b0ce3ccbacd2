import { definePlugin, type PluginApi, parseDuration, type RouteContext } from '../../../core/index.ts';
import { type AgentMemory, createAgentMemory } from '../kit/agent-memory.ts';
import { answerInTime } from '../kit/answer-in-time.ts';
import { createModelCalls } from '../kit/model-calls.ts';
import { createSchemaReader, type SchemaReader } from '../kit/response-model.ts';
import { careFor } from '../kit/session-care.ts';
import { createModeMemory, type ModeMemory } from '../kit/structured.ts';
import { createTrace, type Emit } from '../kit/trace.ts';
import { TEAM_CONFIG, type TeamConfig } from './config.ts';
import { type TeamLimits, WRITER_CALLS } from './job.ts';
import { assembleTeam, type Team } from './members.ts';
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
  setup(api, config) {
    let team: Team | undefined;
    const state: TeamState = {
      api,
      config,
      limits: readLimits(config),
      reader: createSchemaReader(),
      modes: createModeMemory(),
      memory: config.memory?.enabled === false ? undefined : createAgentMemory(api, readMemoryLimits(config)),
      team: () => (team ??= assembleTeam(config.agents, api.agents())),
    };
    api.onReady(() => {
      state.team();
    });
    api.route({
      method: 'POST',
      path: '/api/core/agent',
      summary: 'Ask a team of agents',
      description: 'Specialised agents work on the message together; `content` conforms to `response_model`.',
      auth: ['key'],
      body: TEAM_REQUEST,
      maxBodyBytes: 20 * 1024 * 1024,
      responses: { 200: { description: 'The result, or with `stream` agent events.', schema: TEAM_RESPONSE } },
      handler: (ctx) => handleAgent(ctx, readTeamRequest(ctx.state.body, state.reader), state),
    });
    api.route({
      method: 'DELETE',
      path: '/api/core/agent/memory',
      summary: 'Wipe the caller’s agent memory',
      auth: ['key'],
      query: {
        type: 'object',
        additionalProperties: false,
        properties: { session: { type: 'string', minLength: 1, maxLength: 128, description: 'Only this session.' } },
      },
      responses: {
        200: {
          description: 'How many sessions were wiped.',
          schema: {
            type: 'object',
            required: ['message', 'deleted'],
            properties: { message: { type: 'string' }, deleted: { type: 'integer' } },
          },
        },
      },
      handler: (ctx) => handleWipe(ctx, state),
    });
  },
});

function handleAgent(ctx: RouteContext, request: TeamRequest, state: TeamState): Promise<void> {
  const { timeoutMs } = state.limits;
  return answerInTime(ctx, { timeoutMs, stream: request.stream }, (signal, emit) =>
    answer(ctx, request, state, signal, emit),
  );
}

async function answer(
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
  const care = careFor(session, { model: summaryModel(config, model), signal, reserve: WRITER_CALLS }, api.log);
  const calls = createModelCalls(api.chat, { principal, requestId, onOutcome }, limits, () => care.begin(calls));
  const job = { ...request, model, history: session ?? { turns: [] } };
  const run = {
    team: state.team(),
    router: config.router ?? {},
    writer: config.writer ?? {},
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

async function handleWipe(ctx: RouteContext, { api, memory }: TeamState): Promise<void> {
  const { session } = ctx.query;
  const name = typeof session === 'string' ? session : undefined;
  const own = (await memory?.wipe(ctx.state.principal, name)) ?? 0;
  const others = await Promise.all(
    api.agents().map(async (agent) => (await agent.forget?.(ctx.state.principal, name)) ?? 0),
  );
  const deleted = others.reduce((sum, one) => sum + one, own);
  ctx.body = { message: deleted === 1 ? 'One session was wiped.' : `${deleted} sessions were wiped.`, deleted };
}

function summaryModel(config: TeamConfig, model: string): string {
  return config.memory?.model ?? config.router?.model ?? model;
}

function readLimits({ limits = {} }: TeamConfig): TeamLimits {
  return Object.freeze({
    maxCalls: limits.maxCalls ?? 12,
    maxTokens: limits.maxTokens ?? 60_000,
    timeoutMs: parseDuration(limits.timeout ?? '120s'),
    agentTimeoutMs: parseDuration(limits.agentTimeout ?? '60s'),
    maxRounds: limits.maxRounds ?? 2,
    maxParallel: limits.maxParallel ?? 4,
  });
}

function readMemoryLimits({ memory = {} }: TeamConfig): Parameters<typeof createAgentMemory>[1] {
  return Object.freeze({
    turns: memory.turns ?? 20,
    bytes: memory.bytes ?? 32_000,
    sessions: memory.sessions ?? 20,
    ttlMs: parseDuration(memory.ttl ?? '30d'),
  });
}
