import type { Rule } from './rule.ts';

export const EYE_INJURY: Rule = {
  id: 'eye_injury',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Dangerous injury of an eye, or something stuck in the body',
    de: 'Gefährliche Verletzung eines Auges oder Fremdkörper',
    fr: 'Blessure dangereuse d’un œil, ou corps étranger',
    es: 'Lesión peligrosa de un ojo, o cuerpo extraño',
    it: 'Lesione pericolosa a un occhio, o corpo estraneo',
  },
  when: [
    'chemical eye_injury|eye ~12',
    'eye_injury pain|-see|vision_lost|blood|burn|stuck|sharp ~18',
    'sharp eye_injury|eye ~10',
    'sharp stuck face|throat|chest|belly|head|neck ~10',
    'eye -see|vision_lost chemical|burn|hit|sharp ~18',
  ],
  source: { title: 'NHS: Eye injuries', url: 'https://www.nhs.uk/conditions/eye-injuries/' },
  examples: {
    positive: [
      'Bleach splashed into my eye.',
      'Mir ist Kalk in die Augen gespritzt.',
      'De la javel dans l’œil.',
      'Me ha salpicado lejía en el ojo.',
      'Mi è schizzata la candeggina nell’occhio.',
    ],
    negative: ['My eyes are dry from the screen.'],
    boundary: [['A nail went into his eye.', true]],
  },
};
