import { crisisLine, emergencyNumber } from './emergency-numbers.ts';
import type { Language, Texts } from './language.ts';
import type { RedFlag } from './red-flags/red-flag.ts';

/** Sentences that no model writes: they are the same whatever the models say. */
export interface Notices {
  /** Put first when there are red flags: what is most pressing first. */
  readonly notice: (kinds: readonly RedFlag['kind'][]) => string;
  readonly disclaimer: string;
  /** Instead of an answer that the safety review did not release. */
  readonly withheld: string;
  /** What to do meanwhile. */
  readonly steps: (kinds: readonly RedFlag['kind'][]) => readonly string[];
  readonly safeSteps: readonly string[];
}

const NUMBER: Texts = {
  en: 'your local emergency number (112 or 911 in many countries)',
  de: 'die örtliche Notrufnummer (in vielen Ländern 112 oder 911)',
  fr: 'le numéro d’urgence local (112 ou 911 dans de nombreux pays)',
  es: 'el número de emergencias local (112 o 911 en muchos países)',
};

const EMERGENCY: Texts = {
  en: 'This may be an emergency. Call {number} now, or have somebody call. Do not wait for an answer here, and do not drive yourself.',
  de: 'Das kann ein Notfall sein. Rufen Sie jetzt {number} an oder lassen Sie anrufen. Warten Sie nicht auf eine Antwort hier und fahren Sie nicht selbst.',
  fr: 'Il peut s’agir d’une urgence. Appelez {number} maintenant ou faites appeler. N’attendez pas une réponse ici et ne conduisez pas vous-même.',
  es: 'Puede tratarse de una emergencia. Llame ahora a {number} o pida que alguien llame. No espere una respuesta aquí y no conduzca.',
};

const POISON: Texts = {
  en: 'This may be poisoning. Call {number} or a poison centre now, even without symptoms. Keep the packaging. Do not make anyone vomit.',
  de: 'Das kann eine Vergiftung sein. Rufen Sie jetzt {number} oder den Giftnotruf an, auch ohne Beschwerden. Bewahren Sie die Packung auf. Kein Erbrechen auslösen.',
  fr: 'Il peut s’agir d’une intoxication. Appelez {number} ou un centre antipoison maintenant, même sans symptômes. Gardez l’emballage. Ne faites pas vomir.',
  es: 'Puede tratarse de una intoxicación. Llame ahora a {number} o a un centro de toxicología, aunque no haya síntomas. Guarde el envase. No provoque el vómito.',
};

const CRISIS: Texts = {
  en: 'I am glad you wrote this. You do not have to go through it alone. If you might act on these thoughts, call {number} now or go to the nearest emergency department, and do not stay alone.{line}',
  de: 'Gut, dass Sie das geschrieben haben. Sie müssen da nicht allein durch. Wenn Sie sich etwas antun könnten, rufen Sie jetzt {number} an oder gehen Sie in die nächste Notaufnahme, und bleiben Sie nicht allein.{line}',
  fr: 'Vous avez bien fait de l’écrire. Vous n’avez pas à traverser cela seul(e). Si vous risquez de passer à l’acte, appelez {number} maintenant ou allez aux urgences les plus proches, et ne restez pas seul(e).{line}',
  es: 'Ha hecho bien en escribirlo. No tiene que pasar por esto a solas. Si podría llegar a hacerse daño, llame ahora a {number} o vaya a las urgencias más cercanas, y no se quede a solas.{line}',
};

const LINE: Texts = {
  en: ' You can talk to somebody at any hour: {line}.',
  de: ' Zu jeder Stunde können Sie mit jemandem sprechen: {line}.',
  fr: ' Vous pouvez parler à quelqu’un à toute heure : {line}.',
  es: ' Puede hablar con alguien a cualquier hora: {line}.',
};

const URGENT: Texts = {
  en: 'Have this looked at by a doctor today. If it gets worse, call {number}.',
  de: 'Lassen Sie das heute ärztlich ansehen. Wenn es schlimmer wird, rufen Sie {number} an.',
  fr: 'Faites examiner cela par un médecin aujourd’hui. Si cela s’aggrave, appelez {number}.',
  es: 'Haga que un médico lo vea hoy. Si empeora, llame a {number}.',
};

const DISCLAIMER: Texts = {
  en: 'This is general health information, not a diagnosis and not a replacement for a doctor. If you get worse or are worried, seek medical care.',
  de: 'Das sind allgemeine Gesundheitsinformationen, keine Diagnose und kein Ersatz für ärztlichen Rat. Wenn es schlimmer wird oder Sie sich sorgen, holen Sie ärztliche Hilfe.',
  fr: 'Ces informations de santé sont générales ; elles ne sont pas un diagnostic et ne remplacent pas un médecin. Si cela s’aggrave ou vous inquiète, consultez.',
  es: 'Esta es información general de salud; no es un diagnóstico ni sustituye a un médico. Si empeora o le preocupa, busque atención médica.',
};

const WITHHELD: Texts = {
  en: 'I cannot give a reliable answer to this here. Please speak to a doctor or pharmacist about it.',
  de: 'Darauf kann ich hier keine verlässliche Antwort geben. Bitte sprechen Sie mit einer Ärztin, einem Arzt oder der Apotheke.',
  fr: 'Je ne peux pas donner ici de réponse fiable. Parlez-en à un médecin ou à un pharmacien.',
  es: 'No puedo dar aquí una respuesta fiable. Consulte a un médico o a un farmacéutico.',
};

const EMERGENCY_STEPS: Readonly<Record<Language, readonly string[]>> = {
  en: [
    'Call for help now and stay with the person.',
    'Say where you are and what happened, and follow what you are told on the phone.',
  ],
  de: [
    'Holen Sie jetzt Hilfe und bleiben Sie bei der Person.',
    'Sagen Sie, wo Sie sind und was geschehen ist, und folgen Sie den Anweisungen am Telefon.',
  ],
  fr: [
    'Appelez de l’aide maintenant et restez auprès de la personne.',
    'Dites où vous êtes et ce qui s’est passé, et suivez les consignes données au téléphone.',
  ],
  es: [
    'Pida ayuda ahora y quédese con la persona.',
    'Diga dónde está y qué ha pasado, y siga las indicaciones por teléfono.',
  ],
};

const CRISIS_STEPS: Readonly<Record<Language, readonly string[]>> = {
  en: [
    'Tell somebody you trust how you feel, and stay with them.',
    'Keep away from anything you could hurt yourself with.',
  ],
  de: [
    'Sagen Sie einem Menschen, dem Sie vertrauen, wie es Ihnen geht, und bleiben Sie bei ihm.',
    'Halten Sie sich von allem fern, womit Sie sich verletzen könnten.',
  ],
  fr: [
    'Dites à une personne de confiance ce que vous ressentez, et restez avec elle.',
    'Éloignez-vous de tout ce qui pourrait servir à vous blesser.',
  ],
  es: [
    'Dígale a alguien de confianza cómo se siente y quédese con esa persona.',
    'Aléjese de todo aquello con lo que podría hacerse daño.',
  ],
};

const SAFE_STEPS: Readonly<Record<Language, readonly string[]>> = {
  en: ['Speak to a doctor or pharmacist.', 'If you get worse or new symptoms appear, seek care at once.'],
  de: [
    'Sprechen Sie mit einer Ärztin, einem Arzt oder der Apotheke.',
    'Wenn es schlimmer wird oder Neues dazukommt, holen Sie sofort Hilfe.',
  ],
  fr: [
    'Parlez-en à un médecin ou à un pharmacien.',
    'Si cela s’aggrave ou si de nouveaux symptômes apparaissent, consultez sans attendre.',
  ],
  es: [
    'Consulte a un médico o a un farmacéutico.',
    'Si empeora o aparecen nuevos síntomas, busque atención de inmediato.',
  ],
};

const BY_KIND: Readonly<Record<RedFlag['kind'], Texts>> = {
  poison: POISON,
  emergency: EMERGENCY,
  crisis: CRISIS,
  urgent: URGENT,
};

/** The fixed sentences for a language and country; `ownLine` is the operator's own line for people in a crisis. */
export function noticesFor(language: Language, country: string | undefined, ownLine: string | undefined): Notices {
  const line = ownLine ?? crisisLine(country);
  const fill = (text: string) =>
    text
      .replace('{number}', emergencyNumber(country) ?? NUMBER[language])
      .replace('{line}', line === undefined ? '' : LINE[language].replace('{line}', line));
  return {
    notice: (kinds) => {
      // Whoever is told to call now is not also told to wait until later today.
      const told = kinds.some((kind) => kind !== 'urgent') ? kinds.filter((kind) => kind !== 'urgent') : kinds;
      const inOrder = (Object.keys(BY_KIND) as RedFlag['kind'][]).filter((kind) => told.includes(kind));
      return inOrder.map((kind) => fill(BY_KIND[kind][language])).join('\n\n');
    },
    disclaimer: DISCLAIMER[language],
    withheld: WITHHELD[language],
    steps: (kinds) => [
      ...(kinds.includes('emergency') || kinds.includes('poison') ? EMERGENCY_STEPS[language] : []),
      ...(kinds.includes('crisis') ? CRISIS_STEPS[language] : []),
    ],
    safeSteps: SAFE_STEPS[language],
  };
}
