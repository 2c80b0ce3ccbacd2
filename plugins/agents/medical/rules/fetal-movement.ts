import type { Rule } from './rule.ts';

export const FETAL_MOVEMENT: Rule = {
  id: 'fetal_movement',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'The unborn baby moves less or not at all',
    de: 'Das ungeborene Kind bewegt sich weniger oder gar nicht',
    fr: 'Le bébé bouge moins ou plus du tout dans le ventre',
    es: 'El bebé se mueve menos o nada en el vientre',
    it: 'Il bambino nella pancia si muove meno o per niente',
  },
  when: [
    'pregnant -kicks|-move|-feel ~28',
    'baby|child -kicks|-move #28..42 ~20',
    'kicker',
    '-kicks belly|baby|pregnant|hours ~20',
    'pregnant quiet_baby ~20',
    'baby -move belly|hours ~12',
    '-feel baby ~5',
  ],
  source: {
    title: 'NHS: Your baby’s movements; RCOG',
    url: 'https://www.nhs.uk/pregnancy/keeping-well/your-babys-movements/',
  },
  examples: {
    positive: [
      'I’m 36 weeks and my baby hasn’t moved since yesterday.',
      'In der 37. Woche, mein Baby bewegt sich nicht mehr.',
      'Je suis enceinte et mon bébé ne bouge plus.',
      'Estoy de 37 semanas y el bebé no se mueve.',
      'Sono incinta di 38 settimane e il bambino non si muove.',
    ],
    negative: ['The baby is moving normally.'],
    boundary: [['Pregnant, no kicks all day.', true]],
  },
};
