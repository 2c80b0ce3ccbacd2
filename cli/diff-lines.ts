/** Lines compared one by one; longer texts are shown as removed and added. */
const MAX_COMPARED = 400;

/** Compares two texts; each line of the result begins with `+`, `-` or a space. Empty for equal texts. */
export function diffLines(before: string, after: string): string {
  if (before === after) return '';
  const [old, next] = [linesOf(before), linesOf(after)];
  if (old.length > MAX_COMPARED || next.length > MAX_COMPARED)
    return [...old.map((line) => `-${line}`), ...next.map((line) => `+${line}`)].join('\n');
  const common = commonLengths(old, next);
  const lines: string[] = [];
  for (let i = 0, j = 0; i < old.length || j < next.length; ) {
    if (i < old.length && old[i] === next[j]) {
      lines.push(` ${old[i]}`);
      i += 1;
      j += 1;
    } else if (j >= next.length || (i < old.length && lengthAt(common, i + 1, j) >= lengthAt(common, i, j + 1))) {
      lines.push(`-${old[i]}`);
      i += 1;
    } else {
      lines.push(`+${next[j]}`);
      j += 1;
    }
  }
  return lines.join('\n');
}

function linesOf(text: string): readonly string[] {
  return text === '' ? [] : text.replace(/\n$/, '').split('\n');
}

/** Length of the longest common subsequence of the lines from each pair of positions. */
function commonLengths(old: readonly string[], next: readonly string[]): readonly (readonly number[])[] {
  const rows: number[][] = Array.from({ length: old.length + 1 }, () => new Array<number>(next.length + 1).fill(0));
  for (let i = old.length - 1; i >= 0; i -= 1)
    for (let j = next.length - 1; j >= 0; j -= 1) {
      const row = rows[i];
      if (row)
        row[j] =
          old[i] === next[j]
            ? lengthAt(rows, i + 1, j + 1) + 1
            : Math.max(lengthAt(rows, i + 1, j), lengthAt(rows, i, j + 1));
    }
  return rows;
}

function lengthAt(rows: readonly (readonly number[])[], i: number, j: number): number {
  return rows[i]?.[j] ?? 0;
}
