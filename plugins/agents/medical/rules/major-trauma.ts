import type { Rule } from './rule.ts';

export const MAJOR_TRAUMA: Rule = {
  id: 'major_trauma',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Serious injury',
    de: 'Schwere Verletzung',
    fr: 'Blessure grave',
    es: 'Lesión grave',
    it: 'Lesione grave',
  },
  when: [
    'crash -feel|neck|back|numb|unconscious|-respond|-move|leg|bleed|chest|belly|severe|paralysed|head_danger ~25',
    'hit_by',
    'fall height back|neck|numb|leg|unconscious|-speak|-move|head|severe|-respond|blood ~28',
    'stab',
    'crushed',
    'bone_out',
    '-feel leg|arm ~6',
    'leg paralysed|-move fall|crash|neck|back|dive ~25',
    'neck broken|pain|tear|dive -move|numb|paralysed ~20',
    'fall -move|-stand severe|pain|pale|bone_out ~20',
    'bitten',
    'fall height #3..100 ~12',
    'numb leg|arm fall|crash|back|neck|height ~25',
    'road_user lie_still|-respond|unconscious ~20',
    'explosion pain|burn|face|eye|arm ~20',
  ],
  source: { title: 'NICE NG39: Major trauma; NHS: First aid', url: 'https://www.nhs.uk/conditions/first-aid/' },
  examples: {
    positive: [
      'I was in a car crash and can’t feel my legs.',
      'Nach dem Autounfall spüre ich meine Beine nicht.',
      'Après l’accident de voiture je ne sens plus mes jambes.',
      'Choqué con el coche y no siento las piernas.',
      'Dopo l’incidente non sento le gambe.',
    ],
    negative: ['Do you have any tips for preventing falls at home for older people?'],
    boundary: [
      ['He fell off the third floor and does not speak.', true],
      ['I have a small bruise on my shin from bumping into the table.', false],
    ],
  },
};
