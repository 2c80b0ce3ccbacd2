import type { Rule } from './rule.ts';

export const HEAD_INJURY: Rule = {
  id: 'head_injury',
  version: 2,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Head injury with danger signs',
    de: 'Kopfverletzung mit Warnzeichen',
    fr: 'Traumatisme crânien avec signes de danger',
    es: 'Golpe en la cabeza con señales de peligro',
    it: 'Trauma cranico con segni di pericolo',
  },
  when: [
    'head_injury head_danger|vomit|sleepy|unconscious|confuse|thinner|faint|dizzy|slur|double_vision ~*',
    'head wound head_danger|confuse|severe ~25',
    'fall thinner head|headache|severe ~30',
    'head hit|fall head_danger|vomit|sleepy|unconscious|confuse|thinner|faint ~30',
    'head_injury severe|bleed|blood ~12',
    'fall sleepy vomit ~15',
  ],
  source: {
    title: 'NHS: Head injury and concussion; NICE NG232',
    url: 'https://www.nhs.uk/conditions/head-injury-and-concussion/',
  },
  examples: {
    positive: [
      'She fell and hit her head and has been vomiting since',
      'Sturz auf den Kopf, jetzt erbricht er.',
      'Il s’est cogné la tête et il vomit.',
      'Se ha golpeado la cabeza y vomita.',
      'Ha battuto la testa e vomita.',
    ],
    negative: [
      'I bumped my head lightly on a shelf, no vomiting, no confusion.',
      'He bumped his knee, not his head, and is running around again.',
    ],
    boundary: [
      ['Gran bumped her head and is on warfarin.', true],
      ['Since the fall she only sleeps and throws up.', true],
    ],
  },
};
