import type { Language, Texts } from './engine/language.ts';
import type { Rule } from './rules/index.ts';

const NUMBER: Texts = {
  en: 'your local emergency number (112 or 911 in many countries)',
  de: 'die örtliche Notrufnummer (in vielen Ländern 112 oder 911)',
  fr: 'le numéro d’urgence local (112 ou 911 dans de nombreux pays)',
  es: 'el número de emergencias local (112 o 911 en muchos países)',
  it: 'il numero di emergenza locale (112 o 911 in molti Paesi)',
};

const EMERGENCY: Texts = {
  en: 'This may be an emergency. Call {number} now, or have somebody call. Do not wait for an answer here, and do not drive yourself.',
  de: 'Das kann ein Notfall sein. Rufen Sie jetzt {number} an oder lassen Sie anrufen. Warten Sie nicht auf eine Antwort hier und fahren Sie nicht selbst.',
  fr: 'Il peut s’agir d’une urgence. Appelez {number} maintenant ou faites appeler. N’attendez pas une réponse ici et ne conduisez pas vous-même.',
  es: 'Puede tratarse de una emergencia. Llame ahora a {number} o pida que alguien llame. No espere una respuesta aquí y no conduzca.',
  it: 'Può essere un’emergenza. Chiami subito {number} o faccia chiamare. Non aspetti una risposta qui e non guidi.',
};

const POISON: Texts = {
  en: 'This may be poisoning. Call {number} or a poison centre now, even without symptoms. Keep the packaging. Do not make anyone vomit.',
  de: 'Das kann eine Vergiftung sein. Rufen Sie jetzt {number} oder den Giftnotruf an, auch ohne Beschwerden. Bewahren Sie die Packung auf. Kein Erbrechen auslösen.',
  fr: 'Il peut s’agir d’une intoxication. Appelez {number} ou un centre antipoison maintenant, même sans symptômes. Gardez l’emballage. Ne faites pas vomir.',
  es: 'Puede tratarse de una intoxicación. Llame ahora a {number} o a un centro de toxicología, aunque no haya síntomas. Guarde el envase. No provoque el vómito.',
  it: 'Può essere un avvelenamento. Chiami subito {number} o un centro antiveleni, anche senza sintomi. Conservi la confezione. Non provochi il vomito.',
};

const CRISIS: Texts = {
  en: 'I am glad you wrote this. You do not have to go through it alone. If you might act on these thoughts, call {number} now or go to the nearest emergency department, and do not stay alone.{line}',
  de: 'Gut, dass Sie das geschrieben haben. Sie müssen da nicht allein durch. Wenn Sie sich etwas antun könnten, rufen Sie jetzt {number} an oder gehen Sie in die nächste Notaufnahme, und bleiben Sie nicht allein.{line}',
  fr: 'Vous avez bien fait de l’écrire. Vous n’avez pas à traverser cela seul(e). Si vous risquez de passer à l’acte, appelez {number} maintenant ou allez aux urgences les plus proches, et ne restez pas seul(e).{line}',
  es: 'Ha hecho bien en escribirlo. No tiene que pasar por esto a solas. Si podría llegar a hacerse daño, llame ahora a {number} o vaya a las urgencias más cercanas, y no se quede a solas.{line}',
  it: 'Ha fatto bene a scriverlo. Non deve affrontarlo da solo o da sola. Se rischia di farsi del male, chiami subito {number} o vada al pronto soccorso più vicino, e non resti da solo o da sola.{line}',
};

const LINE: Texts = {
  en: ' You can talk to somebody at any hour: {line}.',
  de: ' Zu jeder Stunde können Sie mit jemandem sprechen: {line}.',
  fr: ' Vous pouvez parler à quelqu’un à toute heure : {line}.',
  es: ' Puede hablar con alguien a cualquier hora: {line}.',
  it: ' Può parlare con qualcuno a qualsiasi ora: {line}.',
};

const URGENT: Texts = {
  en: 'Have this looked at by a doctor today. If it gets worse, call {number}.',
  de: 'Lassen Sie das heute ärztlich ansehen. Wenn es schlimmer wird, rufen Sie {number} an.',
  fr: 'Faites examiner cela par un médecin aujourd’hui. Si cela s’aggrave, appelez {number}.',
  es: 'Haga que un médico lo vea hoy. Si empeora, llame a {number}.',
  it: 'Si faccia visitare oggi da un medico. Se peggiora, chiami {number}.',
};

const DISCLAIMER: Texts = {
  en: 'This is general health information, not a diagnosis and not a replacement for a doctor. If you get worse or are worried, seek medical care. In an emergency, call {number}.',
  de: 'Das sind allgemeine Gesundheitsinformationen, keine Diagnose und kein Ersatz für ärztlichen Rat. Wenn es schlimmer wird oder Sie sich sorgen, holen Sie ärztliche Hilfe. Im Notfall rufen Sie {number} an.',
  fr: 'Ces informations de santé sont générales ; elles ne sont pas un diagnostic et ne remplacent pas un médecin. Si cela s’aggrave ou vous inquiète, consultez. En cas d’urgence, appelez {number}.',
  es: 'Esta es información general de salud; no es un diagnóstico ni sustituye a un médico. Si empeora o le preocupa, busque atención médica. En caso de emergencia, llame a {number}.',
  it: 'Queste sono informazioni generali sulla salute, non una diagnosi, e non sostituiscono un medico. Se peggiora o è in pensiero, si rivolga a un medico. In caso di emergenza, chiami {number}.',
};

/** Notice in an error: no model could answer, or the request failed in another way. */
const UNANSWERED: Texts = {
  en: 'No answer can be given here now. If this may be an emergency or it gets worse, call {number}.',
  de: 'Hier kann jetzt keine Antwort gegeben werden. Wenn es ein Notfall sein kann oder schlimmer wird, rufen Sie {number} an.',
  fr: 'Aucune réponse ne peut être donnée ici pour le moment. S’il peut s’agir d’une urgence ou si cela s’aggrave, appelez {number}.',
  es: 'Ahora no se puede dar aquí una respuesta. Si puede ser una emergencia o empeora, llame a {number}.',
  it: 'Qui al momento non si può dare una risposta. Se può essere un’emergenza o se peggiora, chiami {number}.',
};

const WITHHELD: Texts = {
  en: 'I cannot give a reliable answer to this here. Please speak to a doctor or pharmacist about it.',
  de: 'Darauf kann ich hier keine verlässliche Antwort geben. Bitte sprechen Sie mit einer Ärztin, einem Arzt oder der Apotheke.',
  fr: 'Je ne peux pas donner ici de réponse fiable. Parlez-en à un médecin ou à un pharmacien.',
  es: 'No puedo dar aquí una respuesta fiable. Consulte a un médico o a un farmacéutico.',
  it: 'Qui non posso dare una risposta affidabile. Ne parli con un medico o un farmacista.',
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
  it: [
    'Chieda aiuto subito e resti accanto alla persona.',
    'Dica dove si trova e che cosa è successo, e segua le indicazioni al telefono.',
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
  it: [
    'Dica a una persona di fiducia come si sente e resti con lei.',
    'Stia lontano da tutto ciò con cui potrebbe farsi del male.',
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
  it: ['Ne parli con un medico o un farmacista.', 'Se peggiora o compaiono nuovi sintomi, cerchi subito aiuto medico.'],
};

/** Fixed sentences, independent of the models. */
export interface Notices {
  /** Shown first if there are danger signs, the most urgent first. */
  readonly notice: (kinds: readonly Rule['kind'][]) => string;
  /** Ends every answer; contains the emergency number too. */
  readonly disclaimer: string;
  /** Notice in an error. */
  readonly unanswered: string;
  /** Replaces an answer that the safety review did not release. */
  readonly withheld: string;
  /** Immediate steps. */
  readonly steps: (kinds: readonly Rule['kind'][]) => readonly string[];
  readonly safeSteps: readonly string[];
}

const BY_KIND: Readonly<Record<Rule['kind'], Texts>> = {
  poison: POISON,
  emergency: EMERGENCY,
  crisis: CRISIS,
  urgent: URGENT,
};

/** Fixed sentences for a language and country; `ownLine` is the operator's own crisis line. */
export function noticesFor(language: Language, country: string | undefined, ownLine: string | undefined): Notices {
  const line = ownLine ?? crisisLine(country);
  const fill = (text: string) =>
    text
      .replace('{number}', emergencyNumber(country) ?? NUMBER[language])
      .replace('{line}', line === undefined ? '' : LINE[language].replace('{line}', line));
  return {
    notice: (kinds) => {
      // A notice to call now overrides the one to wait until later today.
      const shown = kinds.some((kind) => kind !== 'urgent') ? kinds.filter((kind) => kind !== 'urgent') : kinds;
      const inOrder = (Object.keys(BY_KIND) as Rule['kind'][]).filter((kind) => shown.includes(kind));
      return inOrder.map((kind) => fill(BY_KIND[kind][language])).join('\n\n');
    },
    disclaimer: fill(DISCLAIMER[language]),
    unanswered: fill(UNANSWERED[language]),
    withheld: WITHHELD[language],
    steps: (kinds) => [
      ...(kinds.includes('emergency') || kinds.includes('poison') ? EMERGENCY_STEPS[language] : []),
      ...(kinds.includes('crisis') ? CRISIS_STEPS[language] : []),
    ],
    safeSteps: SAFE_STEPS[language],
  };
}

/** Emergency numbers by ISO 3166 country. Source: https://en.wikipedia.org/wiki/List_of_emergency_telephone_numbers */
const NUMBERS: Readonly<Record<string, string>> = Object.freeze({
  AR: '107',
  AU: '000',
  BR: '192',
  CA: '911',
  CH: '144',
  CL: '131',
  CN: '120',
  CO: '123',
  GB: '999',
  IN: '112',
  JP: '119',
  KR: '119',
  MX: '911',
  NO: '113',
  NZ: '111',
  US: '911',
  ZA: '112',
});

/** Countries in which 112 reaches an ambulance: the European Union and neighbours. */
const ONE_ONE_TWO = new Set(
  'AT BE BG CY CZ DE DK EE ES FI FR GR HR HU IE IS IT LI LT LU LV MT NL PL PT RO SE SI SK TR UA'.split(' '),
);

/** Suicide prevention lines open day and night; elsewhere only the emergency number is given. */
const CRISIS_LINES: Readonly<Record<string, string>> = Object.freeze({
  AT: '142 (Telefonseelsorge)',
  AU: '13 11 14 (Lifeline)',
  CA: '988',
  CH: '143 (Die Dargebotene Hand)',
  DE: '0800 111 0 111 (Telefonseelsorge)',
  ES: '024',
  FR: '3114',
  GB: '116 123 (Samaritans)',
  IE: '116 123 (Samaritans)',
  NZ: '1737',
  US: '988',
});

/** Returns the emergency number, or undefined for a country that is not listed. */
function emergencyNumber(country: string | undefined): string | undefined {
  const code = country?.toUpperCase();
  if (code === undefined) return undefined;
  return NUMBERS[code] ?? (ONE_ONE_TWO.has(code) ? '112' : undefined);
}

/** Returns the crisis line, or undefined for a country that is not listed. */
function crisisLine(country: string | undefined): string | undefined {
  return country === undefined ? undefined : CRISIS_LINES[country.toUpperCase()];
}
