import { createHash } from 'node:crypto';
import {
  type ApiOfKind,
  definePlugin,
  type PluginConfig,
  parseDuration,
  type RefusedRequest,
  type RouteContext,
} from '../../../contract/index.ts';
import { type AgentMemory, createAgentMemory, personalMemories } from '../kit/agent-memory.ts';
import { memoryRoute } from '../kit/memory-route.ts';
import { createModelCalls } from '../kit/model-calls.ts';
import { readMessage } from '../kit/read-message.ts';
import { createModeMemory, type ModeMemory } from '../kit/request-structured.ts';
import { respondInTime } from '../kit/respond-in-time.ts';
import { createSchemaReader, type SchemaReader } from '../kit/response-model.ts';
import { createSessionCare } from '../kit/session-care.ts';
import { createTrace, type Emit } from '../kit/trace.ts';
import { LAST_WORD_CALLS, type MedicalCase, URGENCIES } from './case.ts';
import { type Condition, holds, isNamed, parseCondition } from './engine/condition.ts';
import { detectLanguage, LANGUAGES, type Language, languageOf, scoreLanguages } from './engine/language.ts';
import { normalise } from './engine/normalise.ts';
import type { Lexicon } from './engine/phrases.ts';
import { type Reading, readText } from './engine/reading.ts';
import { compileLexicons } from './engine/sightings.ts';
import { callsForHelp, featuresOf, WEIGHTS, weigh } from './engine/weighing.ts';
import { hasNotice, withNotice } from './failure-notice.ts';
import de from './lexicon/de.json' with { type: 'json' };
import en from './lexicon/en.json' with { type: 'json' };
import es from './lexicon/es.json' with { type: 'json' };
import fr from './lexicon/fr.json' with { type: 'json' };
import it from './lexicon/it.json' with { type: 'json' };
import { noticesFor } from './notices.ts';
import { RELEASE_RULES } from './release-rules/index.ts';
import { RELEASE_COMPILED, RELEASE_LEXICONS } from './release-rules/lexicon/index.ts';
import { MEDICAL_REQUEST, type MedicalRequestBody, type Patient } from './request.ts';
import { INFANT_YEARS, RULES, type Rule, SIGNS_TOGETHER } from './rules/index.ts';
import { runMedical } from './run-medical.ts';

/** Vocabulary of each language. Syntax of entries: `engine/phrases.ts`. */
export const LEXICONS: Readonly<Record<Language, Lexicon>> = Object.freeze({
  en: { language: 'en', ...en },
  de: { language: 'de', ...de },
  fr: { language: 'fr', ...fr },
  es: { language: 'es', ...es },
  it: { language: 'it', ...it },
});

/** Lexicons prepared for search. */
export const COMPILED = compileLexicons(LEXICONS);

/** Result of the rules for a message. */
interface Screening {
  readonly flags: readonly Rule[];
  /** Language in which most rules matched; undefined without a match. */
  readonly language: Language | undefined;
}

const CONDITIONS: ReadonlyMap<Rule, readonly Condition[]> = new Map(
  RULES.map((rule) => [rule, rule.when.map(parseCondition)]),
);

/** Risks taken from the patient's lists of illnesses and medicines, at whatever time they were written. */
const RISKS = Object.freeze(['thinner', 'diabetic', 'asthma', 'immune', 'pacemaker', 'pregnant', 'insulin']);
const CHILD_YEARS = 12;

/** Least weight that counts without a matching emergency rule: weights are rounded. */
export const LEAST_WEIGHT = 0.1;

interface Found {
  readonly rule: Rule;
  readonly reading: Reading;
}

/** Matches of the rules in a message, and the features for weighing. */
interface Findings {
  readonly found: readonly Found[];
  /**
   * Features of each relevant reading; empty if rules alone decide: for a long message, or a sign in one of the
   * patient's lists.
   */
  readonly features: readonly (readonly string[])[];
  readonly language: Language | undefined;
}

/**
 * Screens the caller's texts deterministically, without a network. Returns the rules that match, except when all
 * findings weigh against an emergency and the text asks for no advice. If no emergency rule matches but the weight
 * indicates one, returns {@link SIGNS_TOGETHER}.
 */
export function screen(message: string, patient: Patient = {}): Screening {
  const { found, features, language } = findSigns(message, patient);
  const flags = found.map(({ rule }) => rule);
  const known = mostFrequent(found.map(({ reading }) => reading.language));
  if (features.length === 0) return { flags, language: known };
  const weight = Math.max(...features.map(weigh));
  if (weight <= 0 && !features.some(callsForHelp)) return NOTHING_FOUND;
  if (weight < LEAST_WEIGHT || flags.some(({ urgency }) => urgency === 'emergency')) return { flags, language: known };
  return { flags: [...flags, SIGNS_TOGETHER], language: known ?? language };
}

/** Rule matches before weighing, for the training of weights. */
export function findSigns(message: string, patient: Patient = {}): Findings {
  const languages = likelyLanguages(message);
  const facts = factsOf(patient);
  const read = ({ language, withSlips }: LikelyLanguage) => readText(message, COMPILED.of(language), { withSlips });
  const main = languages.filter(({ isMain }) => isMain).map(read);
  const others = languages.filter(({ isMain }) => !isMain).map(read);
  const lists = readHistory(patient, facts);
  const found = RULES.flatMap((rule) => {
    // A denial or past mention in the main language overrides a match in one that only looks like it.
    const isKnown = main.some((reading) => CONDITIONS.get(rule)?.some((one) => isNamed(one, reading, facts)));
    const readings = [...main, ...(isKnown ? [] : others), ...lists];
    const where = readings.find((reading) => isFound(rule, reading, facts));
    return where ? [{ rule, reading: where }] : [];
  });
  const readings = new Set([...main, ...found.map(({ reading }) => reading)]);
  const all = [...readings].map((reading) =>
    lists.includes(reading) ? undefined : featuresOf(reading, facts, found.length),
  );
  const features = all.flatMap((one) => (one ? [one] : []));
  return { found, features: features.length === all.length ? features : [], language: main[0]?.language };
}

function isFound(rule: Rule, reading: Reading, facts: ReadonlySet<string>): boolean {
  return CONDITIONS.get(rule)?.some((condition) => holds(condition, reading, facts)) ?? false;
}

/** Facts about the person in addition to the message. */
function factsOf({ age, pregnant }: Patient): Set<string> {
  const facts = new Set<string>();
  if (typeof age === 'number' && age < CHILD_YEARS) facts.add('child');
  if (typeof age === 'number' && age < INFANT_YEARS) for (const fact of ['infant', 'baby']) facts.add(fact);
  if (pregnant === true) facts.add('pregnant');
  return facts;
}

/**
 * Reads the lists of illnesses, medicines and allergies. They describe the past, so a sign in them counts only if the
 * text says that it is present. Risks that make other signs more dangerous are added to the facts.
 */
function readHistory({ history, medications, allergies }: Patient, facts: Set<string>): readonly Reading[] {
  const text = [history, medications, allergies].flatMap((list) => list ?? []).join('\n');
  if (text === '') return [];
  return likelyLanguages(text).map(({ language, withSlips }) => {
    const reading = readText(text, COMPILED.of(language), { withSlips, setting: 'past' });
    for (const risk of RISKS) if (reading.signs.get(risk)?.some(({ denied }) => !denied)) facts.add(risk);
    return reading;
  });
}

function mostFrequent(languages: readonly Language[]): Language | undefined {
  const counts = LANGUAGES.map((language) => ({ language, count: languages.filter((one) => one === language).length }));
  const best = counts.reduce((one, other) => (other.count > one.count ? other : one));
  return best.count > 0 ? best.language : undefined;
}

/** A language is read with misspellings allowed above this share of the best score, and exactly if slightly below. */
const PLAUSIBLE = 0.7;
const POSSIBLE = 0.6;

/** With fewer frequent words the language is uncertain. */
const FEW_WORDS = 3;
/** Number of words looked up in the lexicons in that case. */
const LOOKED_UP = 40;

type Scores = ReturnType<typeof scoreLanguages>;

interface LikelyLanguage {
  readonly language: Language;
  readonly withSlips: boolean;
  /** True if the text, or a sentence of it, is most likely in this language. */
  readonly isMain: boolean;
}

/**
 * Lists the possible languages of a text, the most likely first. People mix languages, so the clear language of each
 * sentence is included.
 */
function likelyLanguages(text: string): readonly LikelyLanguage[] {
  const normalised = normalise(text);
  const shares = new Map<Language, number>();
  for (const [index, part] of [normalised, ...normalised.split(/[.!?\n]+/)].entries()) {
    const frequent = scoreLanguages(part);
    const [first = 0, second = 0] = frequent.map(({ score }) => score);
    if (index > 0 && first < FEW_WORDS) continue;
    const isClear = first >= FEW_WORDS && first > second;
    const scores = isClear ? frequent : withLexicons(part, frequent);
    const best = Math.max(...scores.map(({ score }) => score));
    for (const { language, score } of scores) {
      const share = best === 0 ? 1 : score / best;
      if (index === 0 || share === 1) shares.set(language, Math.max(shares.get(language) ?? 0, share));
    }
  }
  return LANGUAGES.map((language) => ({ language, share: shares.get(language) ?? 0 }))
    .filter(({ share }) => share >= POSSIBLE)
    .sort((one, other) => other.share - one.share)
    .map(({ language, share }) => ({ language, withSlips: share >= PLAUSIBLE, isMain: share === 1 }));
}

/** Adds matches in the lexicons to the scores of a text with few frequent words. */
function withLexicons(normalised: string, scores: Scores): Scores {
  const words = normalised.split(/[^a-z]+/).slice(0, LOOKED_UP);
  return scores.map(({ language, score }) => {
    const { index } = COMPILED.of(language);
    return { language, score: score + words.filter((word) => index.knows(word)).length };
  });
}

const TEXTS = { type: 'array', items: { type: 'string' } } as const;
const URGENCY = { type: 'string', enum: URGENCIES } as const;
const FLAGS = {
  type: 'array',
  items: {
    type: 'object',
    required: ['id', 'sign', 'advice'],
    properties: {
      id: { type: 'string' },
      sign: { type: 'string' },
      advice: { type: 'string' },
      source: { type: 'object', properties: { title: { type: 'string' }, url: { type: 'string' } } },
    },
  },
} as const;

/** Response schema for OpenAPI. */
const MEDICAL_RESPONSE = {
  type: 'object',
  required: ['content', 'usage', 'model', 'trace', 'rules_version', 'matched'],
  properties: {
    content: {
      type: 'object',
      description: 'Default structure; with `response_model`, that structure.',
      properties: {
        urgency: URGENCY,
        summary: { type: 'string', description: 'Begins with the urgent-care notice if there is a danger sign.' },
        considerations: TEXTS,
        recommended_next_steps: TEXTS,
        questions: TEXTS,
        red_flags: FLAGS,
        sources: { type: 'array', items: { type: 'object' } },
        disclaimer: { type: 'string' },
      },
    },
    safety: {
      type: 'object',
      description: 'Present with `response_model`, in addition to its content.',
      properties: { urgency: URGENCY, notice: { type: 'string' }, red_flags: FLAGS, disclaimer: { type: 'string' } },
    },
    usage: {
      type: 'object',
      properties: {
        prompt_tokens: { type: 'integer' },
        completion_tokens: { type: 'integer' },
        total_tokens: { type: 'integer' },
      },
    },
    model: { type: 'string' },
    trace: { type: 'array', items: { type: 'object' } },
    rules_version: { type: 'string', description: 'Version of the rules and lexicons that checked the message.' },
    matched: { ...TEXTS, description: 'Ids of the rules that found a danger sign.' },
  },
} as const;

const MODEL = { type: 'string', minLength: 1, maxLength: 200, format: 'model' } as const;
const DURATION = { type: 'string', format: 'duration' } as const;

/** Configuration of the medical system (`agents.medical`). */
const MEDICAL_CONFIG = {
  type: 'object',
  additionalProperties: false,
  required: ['model'],
  properties: {
    model: { ...MODEL, description: 'Base model: `provider/model` or an alias of `models`.' },
    triageModel: { ...MODEL, description: 'Model for triage (urgency and complexity). Default: the base model.' },
    reviewModel: { ...MODEL, description: 'Model that reviews every response. Default: the base model.' },
    country: {
      type: 'string',
      pattern: '^[A-Z]{2}$',
      description: 'Default country for the emergency number, such as `DE`.',
    },
    crisisLine: { type: 'string', minLength: 1, maxLength: 200, description: 'Crisis line for people at risk.' },
    knowledge: { type: 'boolean', description: 'Searches `rag` for sources if it is enabled. Default: true.' },
    limits: {
      type: 'object',
      additionalProperties: false,
      description: 'Limits of one request.',
      properties: {
        maxCalls: {
          type: 'integer',
          minimum: 8,
          maximum: 100,
          description: 'Maximum number of model calls. Default: 30.',
        },
        maxTokens: {
          type: 'integer',
          minimum: 1,
          description: 'Token count after which no specialist starts. Default: 100000.',
        },
        timeout: { ...DURATION, description: 'Timeout of the request with all its calls. Default: 180s.' },
        agentTimeout: { ...DURATION, description: 'Timeout of one specialist. Default: 60s.' },
        maxParallel: {
          type: 'integer',
          minimum: 1,
          maximum: 16,
          description: 'Maximum number of concurrent specialists. Default: 4.',
        },
      },
    },
    memory: {
      type: 'object',
      additionalProperties: false,
      description: 'Memory of requests with a session. Other requests are not stored.',
      properties: {
        turns: { type: 'integer', minimum: 1, maximum: 100, description: 'Maximum number of turns. Default: 10.' },
        ttl: { ...DURATION, description: 'Storage time of a turn. Default: 1d.' },
      },
    },
  },
} as const;

type MedicalConfig = PluginConfig<typeof MEDICAL_CONFIG>;

/** Increment it when the interpretation of the rules changes. */
const EDITION = 5;

/** Version of rules and lexicons: the edition and a fingerprint of their text, so that two answers can be compared. */
const RULES_VERSION = `${EDITION}.${createHash('sha256')
  .update(JSON.stringify([RULES, SIGNS_TOGETHER, LEXICONS, WEIGHTS, RELEASE_RULES, RELEASE_LEXICONS]))
  .digest('hex')
  .slice(0, 10)}`;

interface MedicalState {
  readonly api: ApiOfKind['agent'];
  readonly config: MedicalConfig;
  readonly reader: SchemaReader;
  readonly modes: ModeMemory;
  readonly memory: AgentMemory;
}

const NOTHING_FOUND: Screening = Object.freeze({ flags: [], language: undefined });

/** `POST /api/core/agent/medical`: rules and triage first, then specialists by complexity, and reviewers last. */
export default definePlugin({
  name: 'medical',
  kind: 'agent',
  apiVersion: 1,
  configSchema: MEDICAL_CONFIG,
  setup(api, config) {
    const { turns = 10, ttl = '1d' } = config.memory ?? {};
    const memoryLimits = { turns, bytes: 32_000, sessions: 20, ttlMs: parseDuration(ttl) };
    const memory = createAgentMemory(api, memoryLimits);
    api.stores.personalData(personalMemories(memory));
    const state = { api, config, memory, reader: createSchemaReader(), modes: createModeMemory() };
    // Prepare the rules in advance, so that neither the first patient nor other requests wait for them.
    api.onReady(async () => {
      await COMPILED.prepare();
      await RELEASE_COMPILED.prepare();
    });
    // The router never chooses this agent: it is registered so that wiping the agents' memory includes it.
    api.agent({ name: api.instance, when: '', forget: (principal, session) => memory.wipe(principal, session) });
    api.route({
      method: 'POST',
      path: '/api/core/agent/medical',
      summary: 'Ask the healthcare agents',
      description: 'Returns health information, reviewed for safety, with danger signs first. It is not a diagnosis.',
      auth: ['key'],
      isIdempotent: true,
      body: MEDICAL_REQUEST,
      maxBodyBytes: 512 * 1024,
      responses: {
        200: { description: 'Reviewed response; with `stream`, agent events.', schema: MEDICAL_RESPONSE },
      },
      errorNote: (error, request) => (hasNotice(error) ? undefined : noticeFor(request, config)),
      handler: (ctx) => {
        readMessage(ctx.state.body.message, 'send what the person describes or asks.');
        return handleMedical(ctx, ctx.state.body, state);
      },
    });
    api.route(memoryRoute('/api/core/agent/medical/memory', 'Delete the caller’s medical sessions', memory.wipe));
  },
});

/** Notice for requests rejected before screening: no answer is available, with the emergency number. */
function noticeFor({ body, headers }: RefusedRequest, { country, crisisLine }: MedicalConfig): string {
  const { message, patient } = (body ?? {}) as Partial<MedicalRequestBody>;
  const written = message === undefined ? undefined : detectLanguage(message);
  const language = written ?? languageOf(headers['accept-language']) ?? 'en';
  return noticesFor(language, patient?.country ?? country, crisisLine).unanswered;
}

/** From here on every failure carries the notice: the request is valid, so the person may need it. */
async function handleMedical(ctx: RouteContext, body: MedicalRequestBody, state: MedicalState): Promise<void> {
  const patient = body.patient ?? {};
  let screening: Screening = NOTHING_FOUND;
  const publicError = (error: unknown) => {
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
    await respondInTime(ctx, { timeoutMs, stream: body.stream ?? false, publicError }, (signal, emit) =>
      respond(ctx, body, { target, screening }, state, signal, emit),
    );
  } catch (error) {
    throw publicError(error);
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
  const caller = {
    principal,
    requestId,
    session: ctx.state.session ?? body.session ?? undefined,
    trace: ctx.state.trace,
    onOutcome,
  };
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
