import { type AgentDefinition, GatewayError, isGatewayError, type Usage } from '../../../core/index.ts';
import type { TraceEntry } from '../kit/trace.ts';
import { completeContent, fixedContent, type MedicalContent, type SafetyPart, safetyPart } from './answer.ts';
import type { KnownSource, MedicalCase, MedicalRun } from './case.ts';
import { findObjections, textsIn } from './content-rules.ts';
import { type Draft, writeDraft } from './draft.ts';
import { findSources } from './knowledge.ts';
import { detectLanguage, type Language, languageOf } from './language.ts';
import { type Notices, noticesFor } from './notices.ts';
import { choosePanel, consultPanel, MEDICATION_AGENT, type Opinion } from './panel.ts';
import { patientText } from './request.ts';
import { ReviewFailed, review } from './review.ts';
import { type Triage, triage } from './triage.ts';

export interface MedicalResult {
  readonly content: MedicalContent | Readonly<Record<string, unknown>>;
  /** Beside a caller's own `response_model`. */
  readonly safety?: SafetyPart;
  readonly usage: Usage;
  readonly model: string;
  readonly trace: readonly TraceEntry[];
}

export interface MedicalPlace {
  readonly country: string | undefined;
  readonly crisisLine: string | undefined;
  readonly rag: AgentDefinition | undefined;
}

/** Faults of the request itself; a danger sign does not hide them. */
const CALLERS_FAULT = new Set(['invalid_request', 'unsupported_model', 'unsupported_provider', 'model_not_allowed']);

/**
 * Rules, triage, panel, writer, reviewers. Danger signs are told first and whatever happens: when the models fail, the
 * notice alone is the answer. Somebody in a crisis gets fixed words, not generated ones. What the reviewers or the rules
 * veto twice is not sent.
 */
export async function runMedical(
  medicalCase: MedicalCase,
  place: MedicalPlace,
  run: MedicalRun,
): Promise<MedicalResult> {
  const words = wordsFor(medicalCase, place, undefined);
  const early = safetyPart(medicalCase, undefined, words.language, words.notices);
  if (early.notice !== undefined) run.emit('notice', early);
  const isCrisis = medicalCase.flags.some(({ kind }) => kind === 'crisis');
  if (isCrisis && !medicalCase.target) return fixed(medicalCase, early, words.notices, run);
  try {
    return await consult(medicalCase, place, run);
  } catch (error) {
    const isTheirs = isGatewayError(error) && CALLERS_FAULT.has(error.code);
    if (early.notice === undefined || isTheirs || medicalCase.target) throw error;
    return fixed(medicalCase, early, words.notices, run);
  }
}

async function consult(medicalCase: MedicalCase, place: MedicalPlace, run: MedicalRun): Promise<MedicalResult> {
  const [sorted, sources] = await Promise.all([triage(medicalCase, run), findSources(place.rag, medicalCase, run)]);
  const { language, notices } = wordsFor(medicalCase, place, sorted);
  const safety = safetyPart(medicalCase, sorted, language, notices);
  if (sorted.self_harm && !medicalCase.target) return fixed(medicalCase, safety, notices, run);
  const isEmergency = safety.urgency === 'emergency';
  const panel = choosePanel(sorted, isEmergency, medicalCase);
  const rounds = sorted.complexity === 'complex' && !isEmergency ? 2 : 1;
  const opinions = await consultPanel(panel, rounds, medicalCase, sources, run);
  run.signal.throwIfAborted();
  return release({ medicalCase, opinions, sources, safety, notices, medicines: panel.includes(MEDICATION_AGENT) }, run);
}

interface Release {
  readonly medicalCase: MedicalCase;
  readonly opinions: readonly Opinion[];
  readonly sources: readonly KnownSource[];
  readonly safety: SafetyPart;
  readonly notices: Notices;
  readonly medicines: boolean;
}

/** Writes, has it reviewed, writes once more when there are objections; what is still objected to is not sent. */
async function release(all: Release, run: MedicalRun): Promise<MedicalResult> {
  const { medicalCase, opinions, sources, safety, notices } = all;
  let objections: readonly string[] = [];
  for (let attempt = 1; attempt <= 2; attempt += 1) {
    const written = await writeDraft(medicalCase, opinions, sources, objections, run);
    const result = medicalCase.target
      ? { content: asContent(written.value), safety }
      : { content: completeContent(written.value as Draft, safety, sources, notices) };
    const found = await objectionsTo(result, written.value, all, run);
    if (found === undefined) break;
    if (found.length === 0) {
      return { ...result, usage: run.calls.usage(), model: written.model, trace: run.trace.entries };
    }
    objections = found;
  }
  if (!medicalCase.target) return fixed(medicalCase, safety, notices, run);
  const message = [safety.notice, 'The safety review did not release an answer to this request.']
    .filter(Boolean)
    .join(' ');
  throw new GatewayError('content_filtered', message);
}

/** Undefined when a reviewer gave no verdict: then there is nothing to mend, and nothing to send. */
async function objectionsTo(
  result: object,
  value: unknown,
  { medicalCase, sources, safety, medicines }: Release,
  run: MedicalRun,
): Promise<readonly string[] | undefined> {
  const given = [patientText(medicalCase.message, medicalCase.patient), ...sources.map(({ text }) => text)].join('\n');
  const summary = medicalCase.target ? undefined : (value as Draft).summary;
  const broken = findObjections(textsIn(value), summary, given, safety.notice !== undefined);
  try {
    return [...broken, ...(await review(result, medicines, medicalCase, run))];
  } catch (error) {
    if (error instanceof ReviewFailed && !run.signal.aborted) return undefined;
    throw error;
  }
}

function fixed(medicalCase: MedicalCase, safety: SafetyPart, notices: Notices, run: MedicalRun): MedicalResult {
  return {
    content: fixedContent(safety, notices),
    usage: run.calls.usage(),
    model: medicalCase.model,
    trace: run.trace.entries,
  };
}

/** The triage model knows the language best; an unlisted one gets English notices. */
function wordsFor(
  { message, patient }: MedicalCase,
  { country, crisisLine }: MedicalPlace,
  sorted: Triage | undefined,
): { readonly language: Language; readonly notices: Notices } {
  const tag = /^[a-z]{2,3}(?:-[a-z0-9]{2,8})*$/i.test(sorted?.language ?? '') ? sorted?.language : undefined;
  const language = (tag === undefined ? detectLanguage(message) : languageOf(tag)) ?? 'en';
  return { language, notices: noticesFor(language, patient.country ?? country, crisisLine) };
}

function asContent(value: unknown): Readonly<Record<string, unknown>> {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isObject ? (value as Readonly<Record<string, unknown>>) : { value };
}
