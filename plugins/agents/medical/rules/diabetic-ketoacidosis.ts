import type { Rule } from './rule.ts';

export const DIABETIC_KETOACIDOSIS: Rule = {
  id: 'diabetic_ketoacidosis',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Diabetes with vomiting, fruity breath or confusion',
    de: 'Diabetes mit Erbrechen, Azetongeruch oder Verwirrtheit',
    fr: 'Diabète avec vomissements, haleine fruitée ou confusion',
    es: 'Diabetes con vómitos, aliento afrutado o confusión',
    it: 'Diabete con vomito, alito fruttato o confusione',
  },
  when: [
    'diabetic|glucose|hyper vomit|ketone|fast_breath|confuse|-respond|thirst|nausea ~28',
    'hyper vomit|nausea|ketone|fast_breath|sleepy|confuse|weak ~22',
    'ketone confuse|vomit|sleepy|nonsense|fast_breath ~25',
    'glucose #20.1..60 confuse|vomit|thirst|nausea|fast_breath ~15',
    'glucose #400..2000 ~8',
    'glucose #5.5..12 vomit -respond|confuse|sleepy ~25',
  ],
  source: { title: 'NHS: Diabetic ketoacidosis', url: 'https://www.nhs.uk/conditions/diabetic-ketoacidosis/' },
  examples: {
    positive: [
      'Type 1 diabetes, vomiting since last night, my breath smells fruity',
      'Ich bin Diabetiker und erbreche ständig.',
      'Je suis diabétique et je vomis.',
      'Soy diabético y no paro de vomitar.',
      'Sono diabetico e vomito da stanotte.',
    ],
    negative: [
      'I have diabetes, what fruit can I eat?',
      'My diabetes is well controlled, but I get confused about carb counting',
    ],
    boundary: [
      ['My blood sugar is 600.', true],
      ['My blood sugar is 105.', false],
    ],
  },
};
