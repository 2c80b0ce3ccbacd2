/** A number is written as it is; a text may come from anyone. */
export type Cell = string | number;

/** What makes a spreadsheet take a text for a formula; a plain negative amount is none. */
const FORMULA = /^(?:[=+@\t\r]|-(?!\d+(?:\.\d+)?$))/;

/** What a cell has to stand in quotes for. */
const QUOTED = /[",\r\n]/;

/** A table as RFC 4180 has it. Texts that a spreadsheet would take for a formula get a `'` in front. */
export function formatCsv(head: readonly string[], rows: readonly (readonly Cell[])[]): string {
  return [head, ...rows].map((row) => `${row.map(formatCell).join(',')}\r\n`).join('');
}

function formatCell(cell: Cell): string {
  if (typeof cell === 'number') return String(cell);
  const text = FORMULA.test(cell) ? `'${cell}` : cell;
  return QUOTED.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
