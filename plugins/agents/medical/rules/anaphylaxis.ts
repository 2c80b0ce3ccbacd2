import type { Rule } from './rule.ts';

export const ANAPHYLAXIS: Rule = {
  id: 'anaphylaxis',
  version: 2,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Signs of a severe allergic reaction (anaphylaxis)',
    de: 'Zeichen einer schweren allergischen Reaktion (Anaphylaxie)',
    fr: 'Signes de réaction allergique grave (anaphylaxie)',
    es: 'Signos de reacción alérgica grave (anafilaxia)',
    it: 'Segni di una reazione allergica grave (anafilassi)',
  },
  when: [
    'swell tongue|lips|throat ~6',
    'swell face|mouth|eye_lid allergen|sting|allergy|took|hives|short_breath|no_air|sudden|cough ~20',
    'face swell !topic !mild ~4',
    'throat_close !mild',
    'anaphylaxis',
    'epipen -help|throat_close|throat_odd|no_air|still|near_faint|-breathe|short_breath ~18',
    'sting|allergy swell !mild !arm !leg ~22',
    'sting|allergy hives|throat_close|throat_odd|wheeze|short_breath|no_air|-breathe|dizzy|near_faint|faint|vomit|pale|voice|cough_fit ~22',
    'allergen hives|throat_close|throat_odd|swell|wheeze|short_breath|no_air|-breathe|near_faint|faint|voice|cough_fit ~22',
    'hives wheeze|near_faint|faint|no_air|short_breath|swell|vomit|racing|numb ~18',
    'allergy severe ~5',
    'allergen -swallow|-breathe ~20',
    'sting mouth|throat|tongue ~10',
  ],
  source: { title: 'NHS: Anaphylaxis; WAO: Anaphylaxis guidance', url: 'https://www.nhs.uk/conditions/anaphylaxis/' },
  examples: {
    positive: [
      'My lips are swelling after a bee sting and I feel faint.',
      'Nach dem Wespenstich ist meine Zunge geschwollen',
      'Ma gorge se serre après avoir mangé des noix',
      'Se me hincha la lengua después de comer marisco',
      'Dopo i gamberi mi si chiude la gola',
    ],
    negative: ['I have a mosquito bite that itches.', 'After my anaphylaxis in 2019 I did desensitisation.'],
    boundary: [
      ['She used her EpiPen but it is not helping.', true],
      ['A mosquito bite on my arm is itchy and a bit swollen.', false],
      ['A wasp stung me and my eyes are swelling.', true],
      ['I am allergic to nuts, which snacks are safe?', false],
    ],
  },
};
