import type { Rule } from './rule.ts';

export const SEVERE_BLEEDING: Rule = {
  id: 'severe_bleeding',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Severe bleeding, or blood in vomit or black stools',
    de: 'Starke Blutung, Bluterbrechen oder schwarzer Stuhl',
    fr: 'Saignement grave, vomissement de sang ou selles noires',
    es: 'Hemorragia grave, vómito con sangre o heces negras',
    it: 'Emorragia grave, vomito con sangue o feci nere',
  },
  when: [
    'bleed|blood severe|-stop !mild !stopped_bleeding ~10',
    'vomit_blood',
    'black_stool',
    'blood bottom severe|pale|dizzy|faint|sudden ~14',
    'blood mouth operation|sudden|severe ~15',
    'thinner bleed|blood|nose -stop|severe|hit|wound ~22',
    'bleed #2..20 towels ~14',
    'towels severe ~8',
    'nose blood|bleed -stop|thinner|severe ~15',
    'bleed operation -stop|severe|sudden|now ~14',
    'spurt',
    'bleed faint|near_faint|pale ~15',
    'wound -stop|severe !mild ~8',
    'towels wound ~15',
  ],
  source: {
    title: 'NHS: Vomiting blood; NHS: First aid, heavy bleeding',
    url: 'https://www.nhs.uk/conditions/vomiting-blood/',
  },
  examples: {
    positive: [
      'The cut is bleeding heavily and won’t stop',
      'Er erbricht Blut',
      'je vomis du sang',
      'vomito sangre',
      'La ferita sanguina molto e non si ferma.',
    ],
    negative: [
      'My nose bled for a minute this morning and stopped.',
      'There is no blood in my stool, it’s just a little soft.',
      'My gums bleed a little when I floss.',
    ],
    boundary: [
      ['The bleeding has stopped and the doctor says everything is fine.', false],
      ['my stool is black and tarry', true],
    ],
  },
};
