import type { Rule } from './rule.ts';

export const CAUDA_EQUINA: Rule = {
  id: 'cauda_equina',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Back pain with numbness around the saddle or loss of bladder or bowel control',
    de: 'Rückenschmerz mit Taubheit im Reithosenbereich oder Verlust der Blasen- oder Darmkontrolle',
    fr: 'Mal de dos avec engourdissement en selle ou perte du contrôle de la vessie ou des selles',
    es: 'Dolor de espalda con adormecimiento en silla de montar o pérdida del control de esfínteres',
    it: 'Mal di schiena con intorpidimento a sella o perdita del controllo della vescica o dell’intestino',
  },
  when: [
    'back pain control_lost|-pee ~30',
    'back numb groin ~25',
    'control_lost leg numb|weak ~25',
    'leg numb -pee|control_lost ~25',
  ],
  source: {
    title: 'NICE CKS: Sciatica (lumbar radiculopathy), red flags',
    url: 'https://cks.nice.org.uk/topics/sciatica-lumbar-radiculopathy/',
  },
  examples: {
    positive: [
      'back pain and I lost control of my bladder',
      'Rückenschmerzen und ich bin taub im Schritt.',
      'Mal de dos et je n’arrive plus à uriner.',
      'Dolor de espalda y no puedo orinar.',
      'Mal di schiena e non riesco a urinare.',
    ],
    negative: ['My back pain is better since I walk more.'],
    boundary: [['Lower back pain and I’m numb between my legs, I can’t pee', true]],
  },
};
