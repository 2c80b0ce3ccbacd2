import { isGatewayError } from '../../../contract/index.ts';
import { runInTime, structuredDeps } from '../kit/agent-run.ts';
import { BudgetSpent } from '../kit/model-calls.ts';
import { requestStructured } from '../kit/request-structured.ts';
import { runBounded } from '../kit/run-bounded.ts';
import { StepLate } from '../kit/trace.ts';
import { caseMessages, type KnownSource, LAST_WORD_CALLS, type MedicalCase, type MedicalRun } from './case.ts';
import { hasMedicines } from './request.ts';
import { instructionsFor, MEDICATION_SAFETY } from './specialties.ts';
import type { Triage } from './triage.ts';

/** Findings of one specialist. */
export interface Opinion {
  readonly agent: string;
  readonly summary: string;
  readonly considerations: readonly string[];
  readonly must_not_miss: readonly string[];
  readonly questions: readonly string[];
  readonly avoid: readonly string[];
}

export const MEDICATION_AGENT = 'medication_safety';

const SECOND_ROUND =
  'This is the second round. Challenge what is weak in what the others think, and revise your own view where they are right.';

const PANEL_SIZE = Object.freeze({ simple: 1, moderate: 3, complex: 4 });

const list = { type: 'array', maxItems: 6, items: { type: 'string' } } as const;
const SCHEMA = Object.freeze({
  type: 'object',
  properties: {
    summary: { type: 'string' },
    considerations: { ...list, description: 'Possible explanations, most likely first, each with why and why not.' },
    must_not_miss: { ...list, description: 'Dangerous possibilities and how they would show.' },
    questions: { ...list, description: 'What would change the advice.' },
    avoid: { ...list, description: 'What must not be recommended to this person, and why.' },
  },
  required: ['summary', 'considerations', 'must_not_miss', 'questions', 'avoid'],
  additionalProperties: false,
});

/**
 * Chooses the specialists for the case: one, a panel, or in an emergency only those who know the steps until help
 * arrives.
 */
export function choosePanel(
  { complexity, specialties, medicines_involved }: Triage,
  isEmergency: boolean,
  medicalCase: MedicalCase,
): readonly string[] {
  if (isEmergency) return ['emergency_medicine'];
  const wanted = [...new Set([...specialties, 'general_practice'])].slice(0, PANEL_SIZE[complexity]);
  return medicines_involved || hasMedicines(medicalCase.patient) ? [...wanted, MEDICATION_AGENT] : wanted;
}

/**
 * Consults the panel, in a complex case twice: in the second round each specialist sees the others' opinions. Failed
 * specialists are skipped; if all fail, the first error is thrown.
 */
export async function consultPanel(
  panel: readonly string[],
  rounds: number,
  medicalCase: MedicalCase,
  sources: readonly KnownSource[],
  run: MedicalRun,
): Promise<readonly Opinion[]> {
  const opinions = new Map<string, Opinion>();
  let firstError: unknown;
  for (let round = 1; round <= rounds && !run.signal.aborted; round += 1) {
    const known = [...opinions.values()];
    const tasks = panel.map((agent) => () => consultSpecialist(agent, round, known, medicalCase, sources, run));
    for (const outcome of await runBounded(tasks, run.limits.maxParallel)) {
      if (outcome.status === 'fulfilled') opinions.set(outcome.value.agent, outcome.value);
      else if (!(outcome.reason instanceof BudgetSpent)) firstError ??= outcome.reason;
    }
  }
  if (opinions.size > 0 || firstError === undefined) return [...opinions.values()];
  const cause = firstError instanceof StepLate ? firstError.cause : firstError;
  if (isGatewayError(cause) && cause.code === 'provider_invalid_response') return [];
  throw cause;
}

function consultSpecialist(
  agent: string,
  round: number,
  known: readonly Opinion[],
  medicalCase: MedicalCase,
  sources: readonly KnownSource[],
  run: MedicalRun,
): Promise<Opinion> {
  const others = known.filter((opinion) => opinion.agent !== agent);
  const instructions = agent === MEDICATION_AGENT ? MEDICATION_SAFETY : instructionsFor(agent);
  const order = [instructions, others.length > 0 ? SECOND_ROUND : undefined];
  const data = others.length > 0 ? [['What the others think', JSON.stringify(others)] as const] : [];
  const question = { model: medicalCase.model, messages: caseMessages(medicalCase, { order, data, sources }) };
  const { schema, check } = run.reader.readSchema(SCHEMA, 'opinion');
  return run.trace.step(
    agent,
    async () => {
      const { value } = await runInTime(agent, run, run.limits.agentTimeoutMs, (signal) =>
        requestStructured(question, { name: 'opinion', schema, check }, structuredDeps(run, signal, LAST_WORD_CALLS)),
      );
      return { ...(value as Omit<Opinion, 'agent'>), agent };
    },
    round,
  );
}
