import { type AgentDefinition, GatewayError, isGatewayError, type Usage } from '../../../core/index.ts';
import type { TraceEntry } from '../kit/trace.ts';
import type { KnownSource, MedicalCase, MedicalRun } from './case.ts';
import { completeContent, fixedContent, type MedicalContent, type SafetyPart, safetyPart } from './content.ts';
import { type Draft, writeDraft } from './draft.ts';
import { detectLanguage, type Language, languageOf } from './engine/language.ts';
import { withNotice } from './failure-notice.ts';
import { findSources } from './knowledge.ts';
import { type Notices, noticesFor } from './notices.ts';
import { findObjections, textsIn } from './objections.ts';
import { choosePanel, consultPanel, MEDICATION_AGENT, type Opinion } from './panel.ts';
import { patientText } from './request.ts';
import { ReviewFailed, review } from './review.ts';
import { type Triage, triage } from './triage.ts';

export interface MedicalResult {
  readonly content: MedicalContent | Readonly<Record<string, unknown>>;
  /** Beside a caller's own `response_model`. */
  readonly safety?: Omit<SafetyPart, 'kinds'>;
  readonly usage: Usage;
  readonly model: string;
  readonly trace: readonly TraceEntry[];
}

export interface MedicalPlace {
  readonly country: string | undefined;
  readonly crisisLine: string | undefined;
  readonly rag: AgentDefinition | undefined;
}

/** Errors of the request itself; a danger sign does not hide them. */
const CALLERS_ERROR = new Set(['invalid_request', 'unsupported_model', 'unsupported_provider', 'model_not_allowed']);

/**
 * Rules, triage, panel, writer, reviewers. Danger signs are told first and whatever happens: when the models fail, the
 * notice alone is the answer, or stands in the error. Somebody in a crisis gets fixed words, not generated ones. What the
 * reviewers or the rules veto twice is not sent.
 */
export async function runMedical(
  medicalCase: MedicalCase,
  place: MedicalPlace,
  run: MedicalRun,
): Promise<MedicalResult> {
  const words = wordsFor(medicalCase, place, undefined);
  let known: Known = { safety: safetyPart(medicalCase, undefined, words.language, words.notices), ...words };
  if (known.safety.notice !== undefined) run.emit('notice', tellSafety(known.safety));
  try {
    if (known.safety.kinds.includes('crisis')) return respondToCrisis(medicalCase, known, run);
    return await consult(medicalCase, place, run, (more) => {
      known = more;
    });
  } catch (error) {
    const isTheirs = isGatewayError(error) && CALLERS_ERROR.has(error.code);
    const { safety, notices } = known;
    if (safety.notice === undefined || isTheirs || medicalCase.target) throw withNotice(error, notices, safety.kinds);
    return fixed(medicalCase, safety, notices, run);
  }
}

/** What is known of a case before anything is written. */
interface Known {
  readonly safety: SafetyPart;
  readonly notices: Notices;
}

async function consult(
  medicalCase: MedicalCase,
  place: MedicalPlace,
  run: MedicalRun,
  learn: (known: Known) => void,
): Promise<MedicalResult> {
  const [sorted, sources] = await Promise.all([triage(medicalCase, run), findSources(place.rag, medicalCase, run)]);
  const { language, notices } = wordsFor(medicalCase, place, sorted);
  const safety = safetyPart(medicalCase, sorted, language, notices);
  learn({ safety, notices });
  if (safety.kinds.includes('crisis')) return respondToCrisis(medicalCase, { safety, notices }, run);
  const isEmergency = safety.urgency === 'emergency';
  const panel = choosePanel(sorted, isEmergency, medicalCase);
  const rounds = sorted.complexity === 'complex' && !isEmergency ? 2 : 1;
  const opinions = await consultPanel(panel, rounds, medicalCase, sources, run);
  run.signal.throwIfAborted();
  return release({ medicalCase, opinions, sources, safety, notices, medicines: panel.includes(MEDICATION_AGENT) }, run);
}

/** Fixed words for somebody in a crisis. They do not fit into a caller's own shape: then they stand in an error. */
function respondToCrisis(medicalCase: MedicalCase, { safety, notices }: Known, run: MedicalRun): MedicalResult {
  if (!medicalCase.target) return fixed(medicalCase, safety, notices, run);
  throw new GatewayError('content_filtered', 'Somebody in a crisis gets no generated answer.');
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
      ? { content: asContent(written.value), safety: tellSafety(safety) }
      : { content: completeContent(written.value as Draft, safety, sources, notices) };
    const found = await objectionsTo(result, written.value, all, run);
    if (found === undefined) break;
    if (found.length === 0) {
      return { ...result, usage: run.calls.usage(), model: written.model, trace: run.trace.entries };
    }
    objections = found;
  }
  if (!medicalCase.target) return fixed(medicalCase, safety, notices, run);
  throw new GatewayError('content_filtered', 'The safety review did not release an answer to this request.');
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

/** What a caller sees of the safety part. */
function tellSafety({ kinds: _kinds, ...safety }: SafetyPart): Omit<SafetyPart, 'kinds'> {
  return safety;
}

/** The language of what the rules found, else of the message, else what the triage says; an unlisted one gets English. */
function wordsFor(
  { message, patient, flagLanguage }: MedicalCase,
  { country, crisisLine }: MedicalPlace,
  sorted: Triage | undefined,
): { readonly language: Language; readonly notices: Notices } {
  const tag = /^[a-z]{2,3}(?:-[a-z0-9]{2,8})*$/i.test(sorted?.language ?? '') ? sorted?.language : undefined;
  const language = flagLanguage ?? detectLanguage(message) ?? languageOf(tag) ?? 'en';
  return { language, notices: noticesFor(language, patient.country ?? country, crisisLine) };
}

function asContent(value: unknown): Readonly<Record<string, unknown>> {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isObject ? (value as Readonly<Record<string, unknown>>) : { value };
}
