/** Makes users' text safe for a terminal: removes control characters, and limits the length. */
export function printable(text: string, most = 40): string {
  const clean = text.replace(/[\p{Cc}\p{Cf}]/gu, '?');
  return clean.length > most ? `${clean.slice(0, most - 1)}…` : clean;
}
