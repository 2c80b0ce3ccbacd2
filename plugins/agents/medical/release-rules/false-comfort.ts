import type { ReleaseRule } from './release-rule.ts';

export const FALSE_COMFORT: ReleaseRule = {
  id: 'false_comfort',
  version: 1,
  objection: 'It plays a danger sign down.',
  when: ['comfort'],
  besideDanger: true,
  source: { title: 'NICE NG94: Emergency and acute medical care', url: 'https://www.nice.org.uk/guidance/ng94' },
  examples: {
    positive: [
      'It is nothing to worry about.',
      'Das ist harmlos.',
      'Rien de grave.',
      'No es grave.',
      'Niente di grave.',
    ],
    negative: ['See a doctor today.'],
    boundary: [['This is an emergency.', false]],
  },
};
