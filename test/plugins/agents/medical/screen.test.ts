import { expect } from 'chai';
import { RED_FLAGS } from '../../../../plugins/agents/medical/red-flags/index.ts';
import type { Patient } from '../../../../plugins/agents/medical/request.ts';
import { screenForRedFlags } from '../../../../plugins/agents/medical/screen.ts';

const ids = (text: string, patient: Patient = {}) => screenForRedFlags(text, patient).map(({ id }) => id);

/** Vignettes in which a rule must hold. */
const FLAGGED: readonly (readonly [flag: string, text: string, patient?: Patient])[] = [
  ['chest_pain', 'I have had chest pain since this morning and my left arm aches.'],
  [
    'chest_pain',
    'There is a crushing pressure in the middle of my chest, it feels like an elephant sitting on it. Pressure on my chest.',
  ],
  ['chest_pain', 'No fever, chest pain since this morning or maybe last night.'],
  ['chest_pain', 'I am not sure whether this chest pain is serious.'],
  ['chest_pain', 'I can get no relief from this chest pain'],
  ['chest_pain', 'Seit heute früh starke Schmerzen in der Brust und mir ist übel'],
  ['chest_pain', 'Ich habe Brustschmerzen, die in den Arm ziehen.'],
  ['chest_pain', 'J’ai une douleur dans la poitrine depuis une heure'],
  ['chest_pain', 'Tengo un dolor fuerte en el pecho y sudor frío'],
  ['chest_pain', 'me duele el pecho al respirar'],
  ['breathing', 'My husband can’t breathe and his lips are turning blue'],
  ['breathing', 'Mein Kind bekommt keine Luft mehr'],
  ['breathing', 'Elle n’arrive pas à respirer'],
  ['breathing', 'Mi madre no puede respirar'],
  ['anaphylaxis', 'I ate peanuts and now my tongue is swelling and I have hives'],
  ['anaphylaxis', 'Nach dem Wespenstich ist meine Zunge geschwollen'],
  ['anaphylaxis', 'Ma gorge se serre après avoir mangé des noix'],
  ['anaphylaxis', 'se me hincha la lengua después de comer marisco'],
  ['stroke', 'My mother’s face is drooping on one side and her speech is slurred'],
  ['stroke', 'sudden weakness on the left side of the body, can’t lift her left arm'],
  ['stroke', 'Sein Mundwinkel hängt herunter und er spricht verwaschen'],
  ['stroke', 'Faiblesse soudaine d’un côté : la bouche est tombée'],
  ['stroke', 'A mi padre se le tuerce la boca y tiene debilidad en un lado'],
  ['thunderclap_headache', 'This is the worst headache of my life, it came within seconds'],
  ['thunderclap_headache', 'Plötzlich heftigste, schlimmste Kopfschmerzen meines Lebens'],
  ['thunderclap_headache', 'le pire mal de tête de ma vie'],
  ['thunderclap_headache', 'es el peor dolor de cabeza de mi vida'],
  ['meningitis', 'High fever, stiff neck and light hurts my eyes'],
  ['meningitis', 'Fieber und mein Nacken ist ganz steif'],
  ['unconscious_or_fit', 'He collapsed and is unresponsive'],
  ['unconscious_or_fit', 'Meine Tochter hatte gerade einen Krampfanfall'],
  ['head_injury', 'She fell and hit her head and has been vomiting since'],
  ['cauda_equina', 'Lower back pain and I’m numb between my legs, I can’t pee'],
  ['severe_bleeding', 'The cut is bleeding heavily and won’t stop'],
  ['severe_bleeding', 'I’m vomiting blood'],
  ['severe_bleeding', 'Er erbricht Blut'],
  ['sepsis', 'He has a fever from an infection and is confused, his skin is mottled'],
  ['diabetic_ketoacidosis', 'Type 1 diabetes, vomiting since last night, my breath smells fruity'],
  ['testicular_torsion', 'My son has sudden severe pain in one testicle'],
  ['suicidal_intent', 'I want to kill myself'],
  ['suicidal_intent', 'I don’t want to live anymore.'],
  ['suicidal_intent', 'Ich will nicht mehr leben und denke an Selbstmord'],
  ['suicidal_intent', 'J’ai envie de mourir'],
  ['suicidal_intent', 'quiero quitarme la vida'],
  ['overdose_or_poisoning', 'My daughter swallowed a button battery'],
  ['overdose_or_poisoning', 'I took too many pills an hour ago'],
  ['overdose_or_poisoning', 'Mein Sohn hat Reiniger getrunken'],
  ['overdose_or_poisoning', 'mi hijo bebió lejía'],
  ['infant_fever', 'My 5 week old has a fever of 38.6'],
  ['infant_fever', 'Unser Baby ist drei Wochen alt und hat Fieber'],
  ['infant_fever', 'She has a temperature of 38.4 degrees', { age: 0.1 }],
  ['pregnancy_bleeding', 'I’m 20 weeks pregnant and bleeding'],
  ['pregnancy_bleeding', 'Ich bin schwanger und habe eine Blutung'],
  ['pregnancy_bleeding', 'I am bleeding', { pregnant: true }],
  ['pre_eclampsia', '34 weeks pregnant with a severe headache and blurred vision'],
];

/** Near misses: words of a danger sign where there is none. */
const CLEAR: readonly string[] = [
  'I have a runny nose and a mild cough.',
  'No chest pain, no shortness of breath, just a cough.',
  'I don’t have any chest pain.',
  'She denies chest pain.',
  'No fever, chest pain or cough.',
  'Fever for two days without a stiff neck.',
  'What are the symptoms of a stroke?',
  'My father had a stroke ten years ago; should I change my diet?',
  'My grandfather had a heart attack in 1998.',
  'How do I lower my risk of a heart attack?',
  'I have a chesty cough with clear phlegm.',
  'Chest pain: no. Cough: yes.',
  'My chest muscles are sore after push-ups yesterday.',
  'Ich habe keine Brustschmerzen, nur Husten.',
  'Kein Fieber, keine Atemnot, nur Schnupfen.',
  'Brustschmerzen habe ich nicht, aber Husten.',
  'Je n’ai pas de douleur dans la poitrine.',
  'Pas de fièvre, j’ai juste le nez bouché.',
  'No tengo dolor en el pecho, solo tos.',
  'Sin dolor en el pecho ni fiebre.',
  'I am not suicidal, I just feel a bit down in winter.',
  'I don’t want to kill myself, I just can’t sleep.',
  'Can I touch poison ivy with gloves?',
  'How much water should I drink a day?',
  'My back pain is better since I walk more.',
  'I bumped my head lightly on a shelf, no vomiting, no confusion.',
  'My six year old has a fever of 38.5 and a cold.',
  'I have diabetes, what fruit can I eat?',
  'I’m 12 weeks pregnant; which vitamins are useful?',
  'Headache after a long day at the screen.',
  'My shoulder is stiff in the morning.',
  'The baby is three weeks old and healthy; when is the first vaccination?',
  'J’ai mal à la gorge depuis hier.',
  'Mir tut der Hals weh und ich habe Schnupfen.',
  'Me duele la garganta y tengo tos.',
  'My nose bled for a minute this morning and stopped.',
];

describe('agents/medical/screen', () => {
  for (const [flag, text, patient] of FLAGGED) {
    it(`finds ${flag} in "${text}"`, () => {
      expect(ids(text, patient)).to.include(flag);
    });
  }

  for (const text of CLEAR) {
    it(`finds nothing in "${text}"`, () => {
      expect(ids(text)).to.deep.equal([]);
    });
  }

  it('has an example for every rule, a sign in every language, and a source', () => {
    expect(new Set(FLAGGED.map(([flag]) => flag))).to.deep.equal(new Set(RED_FLAGS.map(({ id }) => id)));
    for (const { sign, source } of RED_FLAGS) {
      expect(Object.values(sign).every((text) => text.length > 5)).to.equal(true);
      expect(source.url).to.match(/^https:\/\//);
    }
  });

  it('reads capitals, typographic quotes and missing accents alike', () => {
    expect(ids('I CAN’T BREATHE')).to.include('breathing');
    expect(ids('PLÖTZLICH HALBSEITIG GELÄHMT')).to.include('stroke');
    expect(ids('ploetzlich halbseitig gelaehmt')).to.include('stroke');
  });

  it('is quick on hostile text', () => {
    const hostile = [
      'no a, '.repeat(3000),
      'chest '.repeat(3000),
      'pain in my '.repeat(1800),
      'a'.repeat(20_000),
      ' '.repeat(20_000),
    ];
    for (const text of hostile) expect(ids(text.slice(0, 20_000)), text.slice(0, 20)).to.deep.equal([]);
  }).timeout(5000);
});
