import {
  definePlugin,
  type PluginApi,
  parseDuration,
  type RefusedRequest,
  type RouteContext,
} from '../../../core/index.ts';
import { type AgentMemory, createAgentMemory } from '../kit/agent-memory.ts';
import { memoryRoute } from '../kit/memory-route.ts';
import { createModelCalls } from '../kit/model-calls.ts';
import { readMessage } from '../kit/read-message.ts';
import { createModeMemory, type ModeMemory } from '../kit/request-structured.ts';
import { respondInTime } from '../kit/respond-in-time.ts';
import { createSchemaReader, type SchemaReader } from '../kit/response-model.ts';
import { createSessionCare } from '../kit/session-care.ts';
import { createTrace, type Emit } from '../kit/trace.ts';
import { LAST_WORD_CALLS, type MedicalCase } from './case.ts';
import { MEDICAL_CONFIG, type MedicalConfig } from './config.ts';
import { detectLanguage, languageOf } from './engine/language.ts';
import { hasNotice, withNotice } from './failure-notice.ts';
import { COMPILED } from './lexicon/index.ts';
import { noticesFor } from './notices.ts';
import { RELEASE_COMPILED } from './release-rules/lexicon/index.ts';
import { MEDICAL_REQUEST, type MedicalRequestBody } from './request.ts';
import { MEDICAL_RESPONSE } from './response.ts';
import { RULES_VERSION } from './rules-version.ts';
import { runMedical } from './run-medical.ts';
import { type Screening, screen } from './screen.ts';

interface MedicalState {
  readonly api: PluginApi;
  readonly config: MedicalConfig;
  readonly reader: SchemaReader;
  readonly modes: ModeMemory;
  readonly memory: AgentMemory;
}

const NOTHING_FOUND: Screening = Object.freeze({ flags: [], language: undefined });

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
    // The first person who needs it must not wait for the rules, nor anybody else for that.
    api.onReady(async () => {
      await COMPILED.prepare();
      await RELEASE_COMPILED.prepare();
    });
    // No router chooses it: it is registered so that the wipe of the agents' memory reaches this one too.
    api.agent({ name: api.instance, when: '', forget: (principal, session) => memory.wipe(principal, session) });
    api.route({
      method: 'POST',
      path: '/api/core/agent/medical',
      summary: 'Ask the healthcare agents',
      description: 'Health information with danger signs first, reviewed for safety. It is no diagnosis.',
      auth: ['key'],
      isIdempotent: true,
      body: MEDICAL_REQUEST,
      maxBodyBytes: 512 * 1024,
      responses: {
        200: { description: 'The reviewed answer, or with `stream` agent events.', schema: MEDICAL_RESPONSE },
      },
      errorNote: (error, request) => (hasNotice(error) ? undefined : noteFor(request, config)),
      handler: (ctx) => {
        readMessage(ctx.state.body.message, 'write what the person describes or asks.');
        return handleMedical(ctx, ctx.state.body, state);
      },
    });
    api.route(memoryRoute('/api/core/agent/medical/memory', 'Wipe the caller’s medical sessions', memory.wipe));
  },
});

/** That no answer can be given now, with the emergency number: for what is refused before the rules have seen the message. */
function noteFor({ body, headers }: RefusedRequest, { country, crisisLine }: MedicalConfig): string {
  const { message, patient } = (body ?? {}) as Partial<MedicalRequestBody>;
  const written = message === undefined ? undefined : detectLanguage(message);
  const language = written ?? languageOf(headers['accept-language']) ?? 'en';
  return noticesFor(language, patient?.country ?? country, crisisLine).unanswered;
}

/** From here on nothing fails without the notice: the request is valid, so somebody may need it. */
async function handleMedical(ctx: RouteContext, body: MedicalRequestBody, state: MedicalState): Promise<void> {
  const patient = body.patient ?? {};
  let screening: Screening = NOTHING_FOUND;
  const tell = (error: unknown) => {
    const { flags, language } = screening;
    const { country, crisisLine } = state.config;
    const words = language ?? detectLanguage(body.message) ?? 'en';
    const notices = noticesFor(words, patient.country ?? country, crisisLine);
    return withNotice(error, notices, [...new Set(flags.map(({ kind }) => kind))]);
  };
  try {
    screening = screen(body.message, patient);
    const model = body.response_model ? state.reader.readModel(body.response_model, 'response_model') : undefined;
    const target = model && { name: 'result', ...model };
    const timeoutMs = parseDuration(state.config.limits?.timeout ?? '180s');
    await respondInTime(ctx, { timeoutMs, stream: body.stream ?? false, tell }, (signal, emit) =>
      respond(ctx, body, { target, screening }, state, signal, emit),
    );
  } catch (error) {
    throw tell(error);
  }
}

async function respond(
  ctx: RouteContext,
  body: MedicalRequestBody,
  { target, screening }: { readonly target: MedicalCase['target']; readonly screening: Screening },
  { api, config, memory, modes, reader }: MedicalState,
  signal: AbortSignal,
  emit: Emit,
): Promise<object> {
  const { principal, requestId, onOutcome } = ctx.state;
  const { maxCalls = 30, maxTokens = 100_000, agentTimeout = '60s', maxParallel = 4 } = config.limits ?? {};
  const { message } = body;
  const patient = body.patient ?? {};
  const model = body.model ?? config.model;
  const session = body.session ? await memory.open(principal, body.session) : undefined;
  const care = createSessionCare(session, { model, signal, reserve: LAST_WORD_CALLS }, api.log);
  const caller = { principal, requestId, session: ctx.state.session ?? body.session ?? undefined, onOutcome };
  const calls = createModelCalls(api.chat, caller, { maxCalls, maxTokens }, () => care.begin(calls));
  const { flags, language: flagLanguage } = screening;
  const history = session ?? { turns: [] };
  const medicalCase = { model, message, patient, flags, flagLanguage, target, history };
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
  return { ...result, usage: calls.usage(), rules_version: RULES_VERSION, matched: flags.map(({ id }) => id) };
}
