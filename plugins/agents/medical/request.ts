import type { PluginConfig } from '../../../contract/index.ts';

const TEXTS = {
  anyOf: [
    { type: 'string', maxLength: 10_000 },
    { type: 'array', maxItems: 100, items: { type: 'string', maxLength: 300 } },
    { type: 'null' },
  ],
} as const;

/** Body of `POST /api/core/agent/medical`. */
export const MEDICAL_REQUEST = {
  type: 'object',
  additionalProperties: false,
  required: ['message'],
  properties: {
    model: {
      type: ['string', 'null'],
      minLength: 1,
      maxLength: 200,
      description: 'Base model for this request: `provider/model` or an alias.',
    },
    message: { type: 'string', minLength: 1, maxLength: 20_000, description: 'Description or question of the person.' },
    patient: {
      type: ['object', 'null'],
      additionalProperties: false,
      description: 'Known facts about the person. They are not stored or logged.',
      properties: {
        age: { type: ['number', 'null'], minimum: 0, maximum: 130, description: 'Age in years; 0.1 is five weeks.' },
        sex: { type: ['string', 'null'], maxLength: 40 },
        pregnant: { type: ['boolean', 'null'] },
        history: { ...TEXTS, description: 'Illnesses and operations, as text or a list.' },
        medications: { ...TEXTS, description: 'Medicines, as text or a list.' },
        allergies: { ...TEXTS, description: 'As text or a list.' },
        country: {
          type: ['string', 'null'],
          pattern: '^[A-Za-z]{2}$',
          description: 'ISO 3166 country code for the emergency number.',
        },
      },
    },
    response_model: {
      type: ['object', 'null'],
      description: 'Structure of `content`. Urgency, red flags and disclaimer are then in `safety`.',
    },
    session: {
      type: ['string', 'null'],
      minLength: 1,
      maxLength: 128,
      description: 'Stores this conversation. Without it, nothing is stored.',
    },
    stream: { type: ['boolean', 'null'], description: 'Responds with server-sent events.' },
  },
} as const;

export type MedicalRequestBody = PluginConfig<typeof MEDICAL_REQUEST>;
type PatientBody = NonNullable<MedicalRequestBody['patient']>;

/** Facts about a patient. */
export type Patient = Partial<PatientBody>;

/** Patient facts as JSON for models; undefined without facts. */
export function describePatient(patient: Patient): string | undefined {
  const facts = Object.entries(patient).filter(([, value]) => value !== null && value !== '');
  return facts.length === 0 ? undefined : JSON.stringify(Object.fromEntries(facts));
}

/** True if medicines or allergies are given, so that their safety is reviewed. */
export function hasMedicines({ medications, allergies }: Patient): boolean {
  return [medications, allergies].some((list) => (list?.length ?? 0) > 0);
}

/** All texts of the caller together, for the rules. */
export function patientText(message: string, patient: Patient): string {
  const { history, medications, allergies } = patient;
  return [message, ...[history, medications, allergies].flatMap((list) => list ?? [])].join('\n');
}
