/** Numbers are written unchanged; texts are untrusted. */
export type Cell = string | number;

/** Text that a spreadsheet would read as a formula; a plain negative amount is not one. */
const FORMULA = /^(?:[=+@\t\r]|-(?!\d+(?:\.\d+)?$))/;

/** Characters that require quotes around a cell. */
const QUOTED = /[",\r\n]/;

/** Formats a table by RFC 4180. Texts that a spreadsheet would read as a formula get a `'` in front. */
export function formatCsv(head: readonly string[], rows: readonly (readonly Cell[])[]): string {
  return [head, ...rows].map((row) => `${row.map(formatCell).join(',')}\r\n`).join('');
}

function formatCell(cell: Cell): string {
  if (typeof cell === 'number') return String(cell);
  const text = FORMULA.test(cell) ? `'${cell}` : cell;
  return QUOTED.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
