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

/** Countries where 112 reaches the ambulance: the European Union and neighbours. */
const ONE_ONE_TWO = new Set(
  'AT BE BG CY CZ DE DK EE ES FI FR GR HR HU IE IS IT LI LT LU LV MT NL PL PT RO SE SI SK TR UA'.split(' '),
);

/** Suicide prevention lines that are open day and night; elsewhere only the emergency number is told. */
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

/** The number to call, or undefined for a country that is not listed. */
export function emergencyNumber(country: string | undefined): string | undefined {
  const code = country?.toUpperCase();
  if (code === undefined) return undefined;
  return NUMBERS[code] ?? (ONE_ONE_TWO.has(code) ? '112' : undefined);
}

/** The line for people in a crisis, or undefined for a country that is not listed. */
export function crisisLine(country: string | undefined): string | undefined {
  return country === undefined ? undefined : CRISIS_LINES[country.toUpperCase()];
}
