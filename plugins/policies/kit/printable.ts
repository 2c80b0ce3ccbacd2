/** Text of users on a terminal: without what moves its cursor, and not so long that nothing else fits. */
export function printable(text: string, most = 40): string {
  const clean = text.replace(/[\p{Cc}\p{Cf}]/gu, '?');
  return clean.length > most ? `${clean.slice(0, most - 1)}…` : clean;
}
