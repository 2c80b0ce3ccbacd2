import { definePlugin, type PluginApi, parseDuration, type RouteContext } from '../../../core/index.ts';
import { type AgentMemory, createAgentMemory } from '../kit/agent-memory.ts';
import { memoryRoute } from '../kit/memory-route.ts';
import { createModelCalls } from '../kit/model-calls.ts';
import { createModeMemory, type ModeMemory } from '../kit/request-structured.ts';
import { respondInTime } from '../kit/respond-in-time.ts';
import { createSchemaReader, type SchemaReader } from '../kit/response-model.ts';
import { createSessionCare } from '../kit/session-care.ts';
import { createTrace, type Emit } from '../kit/trace.ts';
import { LAST_WORD_CALLS } from './case.ts';
import { MEDICAL_CONFIG, type MedicalConfig } from './config.ts';
import { MEDICAL_REQUEST, type MedicalRequestBody, patientText } from './request.ts';
import { MEDICAL_RESPONSE } from './response.ts';
import { type MedicalResult, runMedical } from './run-medical.ts';
import { screenForRedFlags } from './screen.ts';

interface MedicalState {
  readonly api: PluginApi;
  readonly config: MedicalConfig;
  readonly reader: SchemaReader;
  readonly modes: ModeMemory;
  readonly memory: AgentMemory;
}

/** `POST /api/core/agent/medical`: rules and triage first, specialists by complexity, reviewers with the last word. */
export default definePlugin({
  name: 'medical',
  kind: 'agent',
  apiVersion: 1,
  configSchema: MEDICAL_CONFIG,
  setup(api, config) {
    const { turns = 10, ttl = '1d' } = config.memory ?? {};
    const memoryLimits = { turns, bytes: 32_000, sessions: 20, ttlMs: parseDuration(ttl) };
    const memory = createAgentMemory(api, memoryLimits);
    const state = { api, config, memory, reader: createSchemaReader(), modes: createModeMemory() };
    // No agent can choose it: it is here so that the wipe of the agents' memory reaches this one too.
    api.agent({ name: api.instance, when: '', forget: (principal, session) => memory.wipe(principal, session) });
    api.route({
      method: 'POST',
      path: '/api/core/agent/medical',
      summary: 'Ask the healthcare agents',
      description: 'Health information with danger signs first, reviewed for safety. It is no diagnosis.',
      auth: ['key'],
      body: MEDICAL_REQUEST,
      maxBodyBytes: 512 * 1024,
      responses: {
        200: { description: 'The reviewed answer, or with `stream` agent events.', schema: MEDICAL_RESPONSE },
      },
      handler: (ctx) => handleMedical(ctx, ctx.state.body, state),
    });
    api.route(memoryRoute('/api/core/agent/medical/memory', 'Wipe the caller’s medical sessions', memory.wipe));
  },
});

function handleMedical(ctx: RouteContext, body: MedicalRequestBody, state: MedicalState): Promise<void> {
  const target = body.response_model ? state.reader.readModel(body.response_model, 'response_model') : undefined;
  const timeoutMs = parseDuration(state.config.limits?.timeout ?? '180s');
  return respondInTime(ctx, { timeoutMs, stream: body.stream ?? false }, (signal, emit) =>
    answer(ctx, body, target && { name: 'result', ...target }, state, signal, emit),
  );
}

async function answer(
  ctx: RouteContext,
  body: MedicalRequestBody,
  target: Parameters<typeof runMedical>[0]['target'],
  { api, config, memory, modes, reader }: MedicalState,
  signal: AbortSignal,
  emit: Emit,
): Promise<MedicalResult> {
  const { principal, requestId, onOutcome } = ctx.state;
  const { maxCalls = 30, maxTokens = 100_000, agentTimeout = '60s', maxParallel = 4 } = config.limits ?? {};
  const { message } = body;
  const patient = body.patient ?? {};
  const model = body.model ?? config.model;
  const session = body.session ? await memory.open(principal, body.session) : undefined;
  const care = createSessionCare(session, { model, signal, reserve: LAST_WORD_CALLS }, api.log);
  const caller = { principal, requestId, onOutcome };
  const calls = createModelCalls(api.chat, caller, { maxCalls, maxTokens }, () => care.begin(calls));
  const flags = screenForRedFlags(patientText(message, patient), patient);
  const medicalCase = { model, message, patient, flags, target, history: session ?? { turns: [] } };
  const rag = config.knowledge === false ? undefined : api.agents().find(({ name }) => name === 'rag');
  const run = {
    calls,
    modes,
    reader,
    emit,
    signal,
    principal,
    requestId,
    trace: createTrace(emit),
    models: { triage: config.triageModel ?? model, review: config.reviewModel ?? model },
    limits: { agentTimeoutMs: parseDuration(agentTimeout), maxParallel },
  };
  const place = { country: config.country, crisisLine: config.crisisLine, rag };
  const result = await runMedical(medicalCase, place, run);
  await care.finish({ message, content: JSON.stringify(result.content) });
  return { ...result, usage: calls.usage() };
}
