export const digitsOf = (text: string): readonly number[] => [...text.replace(/\D/g, '')].map(Number);

const weigh = (digits: readonly number[], weights: readonly number[]): number =>
  weights.reduce((sum, weight, at) => sum + weight * (digits[at] ?? 0), 0);

/** Luhn (ISO/IEC 7812-1): cards, Swedish personal numbers. */
export function hasLuhnDigit(digits: readonly number[]): boolean {
  let sum = 0;
  for (const [at, digit] of digits.toReversed().entries()) {
    const doubled = at % 2 === 1 ? digit * 2 : digit;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return digits.length > 1 && sum % 10 === 0;
}

/** Remainder of a long decimal number. */
function remainder(number: string, by: number): number {
  let left = 0;
  for (const digit of number) left = (left * 10 + Number(digit)) % by;
  return left;
}

/** IBAN length by country: SWIFT's IBAN registry, release 99. */
const IBAN_LENGTHS: Readonly<Record<string, number>> = Object.freeze(
  Object.fromEntries(
    (
      'AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DK18 DO28 EE20 EG29 ES24 FI18 FO18 FR27 GB22 GE22 ' +
      'GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MR27 ' +
      'MT31 MU30 NL18 NO15 PK24 PL28 PS29 PT25 QA29 RO24 RS22 SA24 SC31 SE24 SI19 SK24 SM27 ST25 SV28 TN24 TR26 UA29 VA22 VG24 XK20'
    )
      .split(' ')
      .map((row) => [row.slice(0, 2), Number(row.slice(2))]),
  ),
);

/** Length of the IBAN at the start of a text, spaces included; 0 without a valid one (ISO 13616: modulo 97 is 1). */
export function ibanLength(text: string): number {
  const length = IBAN_LENGTHS[text.slice(0, 2).toUpperCase()] ?? 0;
  let iban = '';
  let at = 0;
  for (; at < text.length && iban.length < length; at += 1) {
    const char = text.charAt(at);
    if (char !== ' ') iban += char.toUpperCase();
  }
  if (length === 0 || iban.length < length || /^[A-Za-z0-9]/.test(text.slice(at))) return 0;
  const number = [...(iban.slice(4) + iban.slice(0, 4))].map((char) => Number.parseInt(char, 36)).join('');
  return remainder(number, 97) === 1 ? at : 0;
}

/** Returns true for a valid day of a year; the century may be added to the month, as multiples of `step`. */
function isDay(month: number, day: number, step = 100): boolean {
  const ofYear = month % step;
  return ofYear >= 1 && ofYear <= 12 && day >= 1 && day <= 31;
}

/** Identifier of people in a country. */
interface NationalId {
  readonly country: string;
  readonly pattern: RegExp;
  /** Pattern that must precede it. */
  readonly name?: RegExp;
  /** Validates it by its check digits, or other published rules. */
  check(text: string): boolean;
}

const SPANISH = 'TRWAGMYFPDXBNJZSQVHLCKE';
const ITALIAN_ODD = [1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23];

/** Verhoeff's tables: the dihedral group of ten, and its permutation. */
const VERHOEFF = [
  ...['0123456789', '1234067895', '2340178956', '3401289567', '4012395678'],
  ...['5987604321', '6598710432', '7659821043', '8765932104', '9876543210'],
];
const VERHOEFF_TURNS = [
  ...['0123456789', '1576283094', '5803796142', '8916043527', '9453126870', '4286573901', '2793806415', '7046913258'],
];

/** Supported identifiers, with the source of each form. */
export const NATIONAL_IDS: readonly NationalId[] = Object.freeze<NationalId[]>([
  {
    // https://www.ssa.gov/employer/randomization.html: no check digit; some areas, groups and serials are never
    // assigned.
    country: 'US',
    pattern: /(?<![\w-])(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\w-])/g,
    check: () => true,
  },
  {
    // https://www.gov.uk/hmrc-internal-manuals/national-insurance-manual/nim39110: no check digit.
    country: 'GB',
    pattern: /(?<!\w)(?!BG|GB|NK|KN|TN|NT|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d{2} ?\d{2} ?\d{2} ?[A-D](?!\w)/g,
    check: () => true,
  },
  {
    // https://de.wikipedia.org/wiki/Steuerliche_Identifikationsnummer: ISO 7064, modulo 11, 10; one digit occurs twice
    // or three times.
    country: 'DE',
    pattern: /(?<![\w.,-])[1-9]\d(?: ?\d{3}){3}(?![\w-]|[.,]\d)/g,
    check(text) {
      const digits = digitsOf(text);
      const seen = new Set(digits.slice(0, 10)).size;
      let product = 10;
      for (const digit of digits.slice(0, 10)) {
        const sum = (digit + product) % 10 || 10;
        product = (sum * 2) % 11;
      }
      return (seen === 9 || seen === 8) && (11 - product) % 10 === digits[10];
    },
  },
  {
    // https://fr.wikipedia.org/wiki/Numéro_de_sécurité_sociale_en_France: the key is 97 minus the number modulo 97.
    country: 'FR',
    pattern: /(?<!\w)[12] ?\d{2} ?(?:0[1-9]|1[0-2]|[2-9]\d) ?(?:\d{2}|2[AB]) ?\d{3} ?\d{3} ?\d{2}(?!\w)/g,
    check(text) {
      const plain = text.replaceAll(' ', '').replace('2A', '19').replace('2B', '18');
      return 97 - remainder(plain.slice(0, 13), 97) === Number(plain.slice(13));
    },
  },
  {
    // https://www.interior.gob.es/opencms/es/servicios-al-ciudadano/tramites-y-gestiones/dni/calculo-del-digito-de-control-del-nif-nie/
    country: 'ES',
    pattern: /(?<!\w)(?:\d{8}|[XYZ]-?\d{7})-?[A-HJ-NP-TV-Z](?!\w)/g,
    check(text) {
      const plain = text.replaceAll('-', '').replace(/^[XYZ]/, (first) => String('XYZ'.indexOf(first)));
      return SPANISH.charAt(Number(plain.slice(0, 8)) % 23) === plain.at(-1);
    },
  },
  {
    // https://it.wikipedia.org/wiki/Codice_fiscale: odd and even positions have different weights.
    country: 'IT',
    pattern: /(?<!\w)[A-Z]{6}[\dLMNP-V]{2}[A-EHLMPRST][\dLMNP-V]{2}[A-Z][\dLMNP-V]{3}[A-Z](?!\w)/g,
    check(text) {
      const values = [...text].map((char) => (/\d/.test(char) ? Number(char) : char.charCodeAt(0) - 65));
      const sum = values
        .slice(0, 15)
        .reduce((all, value, at) => all + (at % 2 === 0 ? (ITALIAN_ODD[value] ?? 0) : value), 0);
      return sum % 26 === values[15];
    },
  },
  {
    // https://nl.wikipedia.org/wiki/Burgerservicenummer: every eleventh number passes the eleven test, so its name must
    // precede it.
    country: 'NL',
    name: /\b(?:bsn|burgerservicenummer|sofinummer)\W\D{0,20}(?=\d)/gi,
    pattern: /\d{4}[. ]?\d{2}[. ]?\d{3}(?!\w)/g,
    check: (text) => weigh(digitsOf(text), [9, 8, 7, 6, 5, 4, 3, 2, -1]) % 11 === 0,
  },
  {
    // https://www.gov.pl/web/gov/czym-jest-numer-pesel: begins with the day of birth.
    country: 'PL',
    pattern: /(?<![\w.,-])\d{11}(?![\w-]|[.,]\d)/g,
    check(text) {
      const digits = digitsOf(text);
      const month = Number(text.slice(2, 4));
      return isDay(month, Number(text.slice(4, 6)), 20) && weigh(digits, [1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1]) % 10 === 0;
    },
  },
  {
    // https://skatteverket.se: personnummer and samordningsnummer (the day has 60 added), Luhn over ten digits.
    country: 'SE',
    pattern: /(?<![\w-])(?:19|20)?\d{6}[-+]\d{4}(?![\w-])/g,
    check(text) {
      const digits = digitsOf(text).slice(-10);
      const [, , m1 = 0, m2 = 0, d1 = 0, d2 = 0] = digits;
      return isDay(m1 * 10 + m2, (d1 * 10 + d2) % 60) && hasLuhnDigit(digits);
    },
  },
  {
    // https://www.gov.br/receitafederal: two check digits; eleven equal digits are never assigned.
    country: 'BR',
    pattern: /(?<![\w.,-])(?:\d{3}\.\d{3}\.\d{3}-\d{2}|\d{11})(?![\w-]|[.,]\d)/g,
    check(text) {
      const digits = digitsOf(text);
      const checkOf = (count: number): number => {
        const sum = digits.slice(0, count).reduce((all, digit, at) => all + digit * (count + 1 - at), 0);
        return ((sum * 10) % 11) % 10;
      };
      return new Set(digits).size > 1 && checkOf(9) === digits[9] && checkOf(10) === digits[10];
    },
  },
  {
    // https://uidai.gov.in: Verhoeff's check digit, in groups of four.
    country: 'IN',
    pattern: /(?<![\w-]|\d )[2-9]\d{3}[ -]\d{4}[ -]\d{4}(?![\w-]| \d)/g,
    check(text) {
      let check = 0;
      for (const [at, digit] of digitsOf(text).toReversed().entries())
        check = Number(VERHOEFF[check]?.charAt(Number(VERHOEFF_TURNS[at % 8]?.charAt(digit))));
      return check === 0;
    },
  },
  {
    // GB 11643-1999: place, day of birth, serial, ISO 7064 modulo 11-2.
    country: 'CN',
    pattern: /(?<!\w)[1-9]\d{5}(?:19|20)\d{9}[\dXx](?!\w)/g,
    check(text) {
      const weights = [7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2];
      const sum = weights.reduce((all, weight, at) => all + weight * Number(text.charAt(at)), 0);
      return (
        isDay(Number(text.slice(10, 12)), Number(text.slice(12, 14))) &&
        '10X98765432'.charAt(sum % 11) === text.charAt(17).toUpperCase()
      );
    },
  },
]);
