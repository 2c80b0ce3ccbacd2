import { type KnownSource, type MedicalCase, mostUrgent, type Urgency } from './case.ts';
import type { Draft } from './draft.ts';
import type { Language } from './engine/language.ts';
import type { Notices } from './notices.ts';
import type { Rule } from './rules/index.ts';
import type { Triage } from './triage.ts';

export interface ReportedFlag {
  readonly id: string;
  readonly sign: string;
  readonly advice: string;
  /** Source of the rule; absent for findings of the triage model. */
  readonly source?: Rule['source'];
}

export interface MedicalContent {
  readonly urgency: Urgency;
  readonly summary: string;
  readonly considerations: readonly string[];
  readonly recommended_next_steps: readonly string[];
  readonly questions: readonly string[];
  readonly red_flags: readonly ReportedFlag[];
  readonly sources: readonly object[];
  readonly disclaimer: string;
}

/** Part of an answer that rules decide. */
export interface SafetyPart {
  readonly urgency: Urgency;
  /** Kinds of danger that the notice covers. */
  readonly kinds: readonly Rule['kind'][];
  /** Shown first if there is a danger sign. */
  readonly notice: string | undefined;
  /** Immediate steps, in addition to the notice. */
  readonly steps: readonly string[];
  readonly red_flags: readonly ReportedFlag[];
  readonly disclaimer: string;
}

/** Creates the part that models cannot change: urgency that only rises, notice, danger signs, disclaimer. */
export function safetyPart(
  { flags }: MedicalCase,
  triage: Pick<Triage, 'urgency' | 'red_flags' | 'self_harm'> | undefined,
  language: Language,
  notices: Notices,
): SafetyPart {
  const sorted = triage?.urgency ?? 'unknown';
  const urgency = mostUrgent(...flags.map((flag) => flag.urgency), sorted, triage?.self_harm ? 'emergency' : 'unknown');
  const kinds = kindsOf(flags, urgency, triage?.self_harm === true);
  const byRule = flags.map(({ id, sign, kind, source }) => ({
    id,
    sign: sign[language],
    advice: notices.notice([kind]),
    source,
  }));
  const advice = notices.notice([sorted === 'emergency' ? 'emergency' : 'urgent']);
  const byModel = (sorted === 'emergency' || sorted === 'urgent' ? (triage?.red_flags ?? []) : []).map((sign) => ({
    id: 'triage',
    sign: sign.slice(0, 200),
    advice,
  }));
  return {
    urgency,
    kinds,
    notice: kinds.length > 0 ? notices.notice(kinds) : undefined,
    steps: notices.steps(kinds),
    red_flags: [...byRule, ...byModel],
    disclaimer: notices.disclaimer,
  };
}

function kindsOf(flags: readonly Rule[], urgency: Urgency, selfHarm: boolean): readonly Rule['kind'][] {
  const kinds = new Set(flags.map(({ kind }) => kind));
  if (selfHarm) kinds.add('crisis');
  if (kinds.size === 0 && urgency === 'emergency') kinds.add('emergency');
  return [...kinds];
}

/** Completes the draft with the results of the rules. */
export function completeContent(
  draft: Draft,
  safety: SafetyPart,
  sources: readonly KnownSource[],
  notices: Notices,
): MedicalContent {
  const urgency = mostUrgent(draft.urgency, safety.urgency);
  const notice = safety.notice ?? (urgency === 'emergency' ? notices.notice(['emergency']) : undefined);
  const cited = new Set(draft.source_numbers ?? []);
  const steps = safety.notice === undefined && notice !== undefined ? notices.steps(['emergency']) : safety.steps;
  return {
    urgency,
    summary: notice === undefined ? draft.summary : `${notice}\n\n${draft.summary}`,
    considerations: draft.considerations,
    recommended_next_steps: [...steps, ...draft.recommended_next_steps],
    questions: draft.questions,
    red_flags: safety.red_flags,
    sources: sources.filter((_, index) => cited.has(index + 1)).map(({ text: _text, ...source }) => source),
    disclaimer: safety.disclaimer,
  };
}

/**
 * Answer without a model: the notice for a danger sign, otherwise that no answer is available. The urgency was then not
 * assessed: anything less than urgent is unknown.
 */
export function fixedContent(safety: SafetyPart, notices: Notices): MedicalContent {
  const { notice, urgency } = safety;
  return {
    urgency: urgency === 'emergency' || urgency === 'urgent' ? urgency : 'unknown',
    summary: notice ?? notices.withheld,
    considerations: [],
    recommended_next_steps: notice === undefined ? notices.safeSteps : safety.steps,
    questions: [],
    red_flags: safety.red_flags,
    sources: [],
    disclaimer: safety.disclaimer,
  };
}
