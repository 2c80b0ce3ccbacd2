import { expect } from 'chai';
import { findSigns, screen } from '../../../../plugins/agents/medical/index.ts';
import type { Patient } from '../../../../plugins/agents/medical/request.ts';
import { RULES } from '../../../../plugins/agents/medical/rules/index.ts';

const ids = (text: string, patient: Patient = {}) => screen(text, patient).flags.map(({ id }) => id);

/** Vignettes in which a rule must match. */
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
  ['chest_pain', 'not only chest pain but also dizziness'],
  ['chest_pain', 'I have chest pain, no fever'],
  ['chest_pain', 'No allergies. chest pain on exertion'],
  ['chest_pain', 'my chest hurts really bad'],
  ['chest_pain', 'tightness in chest radiating to jaw'],
  ['chest_pain', 'I feel pressure in chest'],
  ['chest_pain', 'pain in chest when walking'],
  ['chest_pain', 'I’ve been having pains in my chest'],
  ['chest_pain', 'no history of heart disease but I have chest pain'],
  ['chest_pain', 'I never had chest pain before today, but now it is terrible chest pain'],
  ['chest_pain', 'meine Brust schmerzt stark'],
  ['chest_pain', 'Mein Vater hat Druck auf der Brust und schwitzt'],
  ['chest_pain', 'ich hab so ein Engegefühl in der Brust'],
  ['chest_pain', 'j’ai très mal à la poitrine'],
  ['chest_pain', 'j’ai mal dans la poitrine et au bras gauche'],
  ['chest_pain', 'siento una opresión en el pecho'],
  ['chest_pain', 'me duele mucho el pecho'],
  ['chest_pain', 'dolor de pecho'],
  ['chest_pain', 'I think I’m having a heart attack'],
  ['breathing', 'I am struggling to breathe'],
  ['breathlessness', 'she is having trouble breathing'],
  ['breathlessness', 'shortness of breath at rest, getting worse quickly'],
  ['breathing', 'I can’t catch my breath'],
  ['breathing', 'ich kann kaum atmen'],
  ['breathlessness', 'Atemnot seit einer Stunde'],
  ['breathing', 'je ne peux plus respirer'],
  ['breathing', 'no puedo respirar bien'],
  ['breathlessness', 'me cuesta mucho respirar'],
  ['breathlessness', 'j’ai du mal à respirer'],
  ['anaphylaxis', 'my lips are swelling after a bee sting and I feel faint'],
  ['anaphylaxis', 'throat closing up after eating shrimp'],
  ['anaphylaxis', 'mein Gesicht schwillt an nach dem Stich'],
  ['anaphylaxis', 'ma langue gonfle'],
  ['stroke', 'half of his face is drooping'],
  ['stroke', 'she can’t move her right arm and talks funny'],
  ['stroke', 'my dad’s speech is slurred all of a sudden'],
  ['stroke', 'left side of my body went numb'],
  ['stroke', 'I suddenly can’t see out of one eye'],
  ['stroke', 'meine linke Seite ist plötzlich taub'],
  ['stroke', 'mein Mann kann plötzlich nicht mehr sprechen'],
  ['stroke', 'ma mère a la bouche de travers'],
  ['stroke', 'mi abuelo no puede mover el brazo izquierdo y habla raro'],
  ['stroke', 'se le cayó un lado de la cara'],
  ['thunderclap_headache', 'sudden headache like being hit by a bat, worst ever'],
  ['thunderclap_headache', 'the worst pain in my head I’ve ever had, came on suddenly'],
  ['suicidal_intent', 'I’m thinking about ending it all'],
  ['suicidal_intent', 'I can’t go on, I want it to be over, I’m going to end my life'],
  ['suicidal_intent', 'ich möchte nicht mehr leben'],
  ['suicidal_intent', 'ich will mich umbringen'],
  ['suicidal_intent', 'je veux en finir'],
  ['suicidal_intent', 'je pense au suicide'],
  ['suicidal_intent', 'no quiero vivir más'],
  ['suicidal_intent', 'pienso en suicidarme'],
  ['suicidal_intent', 'my friend says he wants to kill himself'],
  ['overdose_or_poisoning', 'I took 30 paracetamol tablets'],
  ['overdose_or_poisoning', 'my toddler ate some of my blood pressure pills'],
  ['overdose_or_poisoning', 'he drank cleaning fluid'],
  ['overdose_or_poisoning', 'Ich habe 20 Tabletten Paracetamol genommen'],
  ['overdose_or_poisoning', 'j’ai pris 20 comprimés de paracétamol'],
  ['overdose_or_poisoning', 'he tomado 30 pastillas'],
  ['infant_fever', 'my newborn has a temperature of 38.5'],
  ['infant_fever', '2 month old baby with fever 39'],
  ['infant_fever', 'mon bébé de deux mois a de la fièvre'],
  ['infant_fever', 'mi bebé de un mes tiene fiebre'],
  ['infant_fever', 'baby 6 weeks, fever 101'],
  ['unconscious_or_fit', 'my husband fainted and is not waking up'],
  ['unconscious_or_fit', 'she is having a seizure right now'],
  ['unconscious_or_fit', 'il ne se réveille pas'],
  ['severe_bleeding', 'blood is gushing from his leg'],
  ['severe_bleeding', 'I’m coughing up blood'],
  ['severe_bleeding', 'my stool is black and tarry'],
  ['severe_bleeding', 'bin gestürzt und die Wunde blutet stark'],
  ['severe_bleeding', 'ich spucke Blut'],
  ['severe_bleeding', 'vomito sangre'],
  ['severe_bleeding', 'je vomis du sang'],
  ['meningitis', 'fever and a stiff neck'],
  ['meningitis', 'raideur de la nuque et fièvre'],
  ['pregnancy_bleeding', 'pregnant, heavy bleeding'],
  ['pregnancy_bleeding', 'je suis enceinte et je saigne'],
  ['pregnancy_bleeding', 'estoy embarazada y sangro'],
  ['pre_eclampsia', 'Bin in der 32. SSW, habe starke Kopfschmerzen und Flimmern vor den Augen'],
  ['sepsis', 'fever 40, shaking chills and very confused'],
  ['head_injury', 'he fell off a ladder, hit his head, now confused'],
  ['cauda_equina', 'back pain and I lost control of my bladder'],
  ['testicular_torsion', 'sudden severe testicle pain'],
  ['diabetic_ketoacidosis', 'diabetic, vomiting, breath smells like acetone'],
];

/** Near misses: words of a danger sign without a danger. */
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
  'no, I don’t have chest pain',
  'chest pain is absent',
  'Keine Atemnot, keine Brustschmerzen',
  'I have no trouble breathing',
  'breathing is fine, no blood in stool',
  'never thought about suicide',
  'suicide prevention resources',
  'I’m dying to know the results',
  'this cough is killing me',
  'my kid swallowed a grape seed',
  'pain in my big toe',
  'I’m so tired I could die',
  'How to store bleach safely',
  'no difficulty breathing or swallowing',
  'negative for neck stiffness, fever, or headache',
  'has not had any seizures',
  'no loss of consciousness',
  'Ich habe weder Fieber noch Nackensteife',
  'sans perte de connaissance ni convulsions',
  'sin fiebre ni dificultad para respirar',
  'he is confused about his insurance bill after an ear infection',
  'My diabetes is well controlled, but I get confused about carb counting',
  'vomiting since eating bad fish',
  'I took two ibuprofen tablets for my back pain',
  'ich nehme zwei Tabletten am Tag',
  'I take all my pills every morning',
  'fever 38 in my 4 year old',
];

/** Texts with a word of a rule whose context speaks against an emergency. */
const OUTWEIGHED = Object.freeze([
  'The kids are poisoning me with their cooking experiments, ha. Seriously though, how long does cooked rice keep in the fridge?',
  'They want to do a CT of my aorta in the autumn, just a routine check every 2 years. Is the dye safe with metformin?',
  'Sie hat nichts von dem Putzmittel getrunken, die Flasche war zu. Welche Schranksicherung taugt was?',
  'On étouffe dans ce bureau sans clim, quelle température maximale dit la loi ?',
  'Mi abuela superó la sepsis y lleva un mes en casa, ¿qué le cocino para que engorde un poquito?',
  'Volo Roma-Tokyo, a 60 anni le calze elastiche servono?',
]);

/** No single rule matches; the combined weights of the signs do. */
const TOGETHER = Object.freeze([
  'Mein Mann hat gespritzt und nichts gegessen, er schlägt um sich, ist klatschnass und das Gerät zeigt 31 an',
  'Papi s’est trompé et a pris la semaine entière de son pilulier, il a le pouls à 36 et il s’endort',
  'Devo stare seduta sul letto perché sdraiata annego, sento gorgogliare e mi viene su schiuma rosa. Sono cardiopatica, 82 anni.',
]);

/** First found by weights alone, and missed in later variants; now a rule covers them. */
const RULED = Object.freeze([
  'Baby 5 weeks, grunting when she breathes and stops for some seconds then starts again, I am scared',
  'pantorrilla hinchada dsd el viaje, ahora pinchazo al respirar y tosí sangre',
]);

describe('agents/medical/screen', () => {
  for (const text of RULED)
    it(`finds by a rule "${text}"`, () => {
      expect(findSigns(text).found.map(({ rule }) => rule.id)).to.include('breathing');
      expect(ids(text)).to.include('breathing');
    });

  for (const text of OUTWEIGHED)
    it(`reports no finding of a rule in "${text}"`, () => {
      expect(findSigns(text).found).to.not.deep.equal([]);
      expect(ids(text)).to.deep.equal([]);
    });

  for (const text of TOGETHER)
    it(`reports several signs without a rule in "${text}"`, () => {
      expect(findSigns(text).found).to.deep.equal([]);
      expect(ids(text)).to.deep.equal(['signs_together']);
      expect(screen(text).language).to.be.a('string');
    });

  it('tells what rules find, whatever it weighs, of somebody who asks what to do, in a long text and in lists of the patient', () => {
    const [text = ''] = OUTWEIGHED;
    const lamp = 'We bought a lamp and put it in the hall next to the door. ';
    expect(ids(`${text} What do I do?`)).to.include('overdose_or_poisoning');
    expect(ids(text + lamp.repeat(6))).to.include('overdose_or_poisoning');
    expect(ids('Is this normal?', { history: ['chest pain right now'] })).to.include('chest_pain');
  });

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
    const known = new Set(RULES.map(({ id }) => id));
    expect(FLAGGED.map(([flag]) => flag).filter((flag) => !known.has(flag))).to.deep.equal([]);
    for (const { sign, source, examples } of RULES) {
      expect(examples.positive).to.not.deep.equal([]);
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
  });
});
