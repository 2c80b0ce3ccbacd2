import type { Rule } from './rule.ts';

export const INFANT_FEVER: Rule = {
  id: 'infant_fever',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Fever in a baby under three months',
    de: 'Fieber bei einem Säugling unter drei Monaten',
    fr: 'Fièvre chez un nourrisson de moins de trois mois',
    es: 'Fiebre en un bebé menor de tres meses',
    it: 'Febbre in un neonato sotto i tre mesi',
  },
  when: ['infant fever|hot_body ~15', 'infant #38..42 ~10'],
  source: {
    title: 'NHS: High temperature (fever) in children; NICE NG143',
    url: 'https://www.nhs.uk/conditions/fever-in-children/',
  },
  examples: {
    positive: [
      'My 5 week old has a fever of 38.6',
      'Unser Baby ist drei Wochen alt und hat Fieber',
      'mon bébé de deux mois a de la fièvre',
      'mi bebé de un mes tiene fiebre',
      'Il mio bimbo di cinque settimane ha la febbre',
    ],
    negative: [
      'My six year old has a fever of 38.5 and a cold.',
      'The baby is three weeks old and healthy; when is the first vaccination?',
    ],
    boundary: [
      ['2 month old baby with fever 39', true],
      ['fever 38 in my 4 year old', false],
    ],
  },
};
