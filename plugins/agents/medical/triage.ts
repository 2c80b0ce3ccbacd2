import { structuredDeps } from '../kit/agent-run.ts';
import { requestStructured } from '../kit/request-structured.ts';
import { caseMessages, LAST_WORD_CALLS, type MedicalCase, type MedicalRun, URGENCIES, type Urgency } from './case.ts';
import { CLINICAL_RULES, SPECIALTIES } from './specialties.ts';

/** Urgency and complexity of a case, assessed by a model. */
export interface Triage {
  readonly urgency: Urgency;
  readonly complexity: 'simple' | 'moderate' | 'complex';
  readonly specialties: readonly string[];
  readonly red_flags: readonly string[];
  readonly self_harm: boolean;
  readonly medicines_involved: boolean;
  /** BCP 47 tag of the person's language. */
  readonly language: string;
}

/** Assumptions if the triage is unreadable: more care rather than less. */
const CAUTIOUS: Triage = Object.freeze({
  urgency: 'unknown',
  complexity: 'moderate',
  specialties: ['general_practice'],
  red_flags: [],
  self_harm: false,
  medicines_involved: true,
  language: '',
});

const ORDER = `You do the triage. Decide how fast this person needs care, and how difficult the case is.
urgency: emergency (now, by ambulance), urgent (today), soon (days), routine (an appointment), self_care, unknown.
When in doubt choose the more urgent one. red_flags: danger signs the person states, in their language; none that they deny.
complexity: simple (one clear question), moderate (several possible causes or one illness that matters), complex (several
illnesses, many medicines, unclear or dangerous course). specialties: who should look at it, the most important first.
self_harm: whether the person may want to harm themselves or die. language: BCP 47 tag of the message.
${CLINICAL_RULES}`;

const SCHEMA = Object.freeze({
  type: 'object',
  properties: {
    urgency: { type: 'string', enum: ['routine', ...URGENCIES.filter((one) => one !== 'routine')] },
    complexity: { type: 'string', enum: ['simple', 'moderate', 'complex'] },
    specialties: { type: 'array', maxItems: 4, items: { type: 'string', enum: Object.keys(SPECIALTIES) } },
    red_flags: { type: 'array', maxItems: 6, items: { type: 'string' } },
    self_harm: { type: 'boolean' },
    medicines_involved: { type: 'boolean' },
    language: { type: 'string' },
  },
  required: ['urgency', 'complexity', 'specialties', 'red_flags', 'self_harm', 'medicines_involved', 'language'],
  additionalProperties: false,
});

/** Runs the triage. An unreadable response is replaced by a cautious one; other failures are thrown. */
export async function triage(medicalCase: MedicalCase, run: MedicalRun): Promise<Triage> {
  const { schema, check } = run.reader.readSchema(SCHEMA, 'triage');
  const question = { model: run.models.triage, messages: caseMessages(medicalCase, { order: [ORDER] }) };
  const requestTriage = () =>
    requestStructured(question, { name: 'triage', schema, check }, structuredDeps(run, run.signal, LAST_WORD_CALLS));
  try {
    return (await run.trace.step('triage', requestTriage)).value as Triage;
  } catch (error) {
    if (isUnreadable(error)) return CAUTIOUS;
    throw error;
  }
}

function isUnreadable(error: unknown): boolean {
  return typeof error === 'object' && error !== null && 'code' in error && error.code === 'provider_invalid_response';
}
