import { plainText } from './language.ts';

/** Certainty where there can be none. */
const DIAGNOSES: readonly RegExp[] = Object.freeze([
  /\b(?:you|he|she|they) (?:definitely|certainly|clearly|undoubtedly) (?:have|has|suffer)\b/,
  /\b(?:the|my|your) diagnosis is\b|\bi diagnose\b|\byou (?:are|have been) diagnosed with\b|\byou(?:'re| are) suffering from\b/,
  /\b(?:sie haben|du hast|er hat|sie hat) (?:eindeutig|sicher|definitiv|zweifellos)\b|\b(?:die|ihre|deine|meine) diagnose (?:lautet|ist)\b|\bsie leiden an\b/,
  /\b(?:vous avez|tu as) (?:certainement|sans aucun doute|clairement)\b|\b(?:le|votre|mon) diagnostic est\b|\bvous souffrez (?:de|d')/,
  /\b(?:usted tiene|tiene|tienes) (?:definitivamente|sin duda|claramente)\b|\b(?:el|su|tu|mi) diagnostico es\b|\busted sufre de\b/,
]);

/** A summary that is nothing but a diagnosis. */
const BARE =
  /^\s*(?:you have|it is|this is|sie haben|du hast|das ist|es ist|vous avez|c'est|usted tiene|tiene|es) [\w' -]{3,60}[.!]?\s*$/;

/** An amount of a medicine. */
const DOSE =
  /\b\d+(?:[.,]\d+)? ?(?:mg|mcg|µg|μg|ug|i\.?u\.?|i\.?e\.?|units?|einheiten|unites|unidades|tablets?|pills?|capsules?|tabletten?|kapseln?|tropfen|comprimes?|gelules?|gouttes|comprimidos?|capsulas?|gotas|puffs?)\b/g;

/** Comfort that has no place beside a danger sign. */
const FALSE_COMFORT =
  /\b(?:nothing to worry about|no need to (?:see|call|worry)|harmless|don't need (?:a|to see a) doctor|kein grund zur sorge|harmlos|nicht zum arzt|rien de grave|pas besoin de (?:consulter|medecin)|nada grave|no hace falta (?:ir|ver)|no se preocupe)\b/;

/**
 * What an answer must not hold, whatever the reviewers say: a certain or bare diagnosis, an amount of a medicine that
 * neither the person nor a source named, false comfort beside a danger sign. Answers objections in words for the writer.
 */
export function findObjections(
  texts: readonly string[],
  summary: string | undefined,
  given: string,
  isUrgent: boolean,
): readonly string[] {
  const plain = plainText(texts.join('\n'));
  const known = new Set(plainText(given).match(DOSE) ?? []);
  const doses = (plain.match(DOSE) ?? []).filter((dose) => !known.has(dose));
  const diagnosed = DIAGNOSES.some((pattern) => pattern.test(plain)) || BARE.test(plainText(summary ?? ''));
  return [
    ...(diagnosed ? ['It states a diagnosis as certain; say what it may be, why, and what speaks against it.'] : []),
    ...(doses.length > 0
      ? ['It names an amount of a medicine; leave amounts to a doctor, a pharmacist and the leaflet.']
      : []),
    ...(isUrgent && FALSE_COMFORT.test(plain) ? ['It plays a danger sign down.'] : []),
  ];
}

/** All texts inside a value. */
export function textsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(textsIn);
}
