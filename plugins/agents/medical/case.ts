import type { ChatMessage } from '../../../contract/index.ts';
import type { AgentRun } from '../kit/agent-run.ts';
import { type Quoted, quoteData } from '../kit/quote-data.ts';
import type { ResultTarget } from '../kit/request-structured.ts';
import type { SchemaReader } from '../kit/response-model.ts';
import type { Turn } from '../kit/session-store.ts';
import type { Language } from './engine/language.ts';
import { describePatient, type Patient } from './request.ts';
import type { Rule } from './rules/index.ts';

/** From least to most urgent. */
export const URGENCIES = Object.freeze(['unknown', 'self_care', 'routine', 'soon', 'urgent', 'emergency'] as const);
export type Urgency = (typeof URGENCIES)[number];

/** Passage of the knowledge base. */
export interface KnownSource {
  readonly id: string;
  readonly title: string;
  readonly text: string;
  readonly source: string | undefined;
  readonly location: unknown;
}

/** Request after reading and screening. */
export interface MedicalCase {
  readonly model: string;
  readonly message: string;
  readonly patient: Patient;
  /** Rules that apply. */
  readonly flags: readonly Rule[];
  /** Language in which the rules matched. */
  readonly flagLanguage: Language | undefined;
  /** The caller's own `response_model`, if any. */
  readonly target: ResultTarget | undefined;
  readonly history: { readonly summary?: string | undefined; readonly turns: readonly Turn[] };
}

export interface MedicalRun extends AgentRun {
  readonly reader: SchemaReader;
  readonly models: { readonly triage: string; readonly review: string };
  readonly limits: { readonly agentTimeoutMs: number; readonly maxParallel: number };
}

/** Calls kept for writing, reviewing, rewriting and reviewing again. */
export const LAST_WORD_CALLS = 8;

/** Instructions for one agent, in addition to the case. */
export interface Prompt {
  /** Our own text: nothing written by a person, a document or a model. */
  readonly order: readonly (string | undefined)[];
  /** Texts of documents and models, each with its description. */
  readonly data?: readonly Quoted[];
  readonly sources?: readonly KnownSource[];
}

/**
 * Builds the messages for one agent: its order as system message, the session so far, and the person's message followed
 * by all other texts.
 */
export function caseMessages(
  medicalCase: MedicalCase,
  { order, data = [], sources = [] }: Prompt,
): readonly ChatMessage[] {
  const { message, patient, history } = medicalCase;
  const signs = medicalCase.flags.map(({ sign }) => sign.en).join('; ');
  const system = [
    ...order,
    signs && `Danger signs found by rules: ${signs}. The patient gets them with an urgent-care notice.`,
  ];
  const facts = describePatient(patient);
  const cited = sources.map(({ title, text }, index) => `[${index + 1}] ${title}: ${text}`).join('\n');
  const known: readonly (Quoted | undefined)[] = [
    history.summary ? ['Notes on the conversation so far, which may be wrong', history.summary] : undefined,
    facts === undefined ? undefined : ['The patient', facts],
    cited === '' ? undefined : ['Sources', cited],
  ];
  const quoted = [...known.filter((one) => one !== undefined), ...data];
  return [
    { role: 'system', content: system.filter(Boolean).join('\n\n') },
    ...history.turns.flatMap((turn): ChatMessage[] => [
      { role: 'user', content: turn.message },
      { role: 'assistant', content: turn.content },
    ]),
    { role: 'user', content: `${message}${quoteData(quoted)}` },
  ];
}

/** Most urgent of several. */
export function mostUrgent(...urgencies: readonly Urgency[]): Urgency {
  return URGENCIES[Math.max(...urgencies.map((one) => URGENCIES.indexOf(one)))] ?? 'unknown';
}
