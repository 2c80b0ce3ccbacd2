import type { Rule } from './rule.ts';

export const THUNDERCLAP_HEADACHE: Rule = {
  id: 'thunderclap_headache',
  version: 1,
  urgency: 'emergency',
  kind: 'emergency',
  sign: {
    en: 'Sudden, worst-ever headache',
    de: 'Plötzlicher, nie gekannter Kopfschmerz',
    fr: 'Mal de tête soudain, le pire jamais ressenti',
    es: 'Dolor de cabeza repentino, el peor de la vida',
    it: 'Mal di testa improvviso, il peggiore della vita',
  },
  when: [
    'headache worst|tear ~10',
    'headache sudden severe !mild ~10',
    'head tear ~8',
    'head pain worst ~8',
    'headache severe vomit|stiff|confuse|vision_lost|faint ~18',
  ],
  source: { title: 'NHS: Subarachnoid haemorrhage', url: 'https://www.nhs.uk/conditions/subarachnoid-haemorrhage/' },
  examples: {
    positive: [
      'This is the worst headache of my life, it came within seconds',
      'Plötzlich heftigste, schlimmste Kopfschmerzen meines Lebens',
      'le pire mal de tête de ma vie',
      'es el peor dolor de cabeza de mi vida',
      'È il peggior mal di testa della mia vita',
    ],
    negative: [
      'Headache after a long day at the screen.',
      'My headache isn’t sudden and isn’t severe, just the usual tension.',
    ],
    boundary: [['My boss gives me a headache.', false]],
  },
};
