/** A span of time: `from` (inclusive) to `to` (exclusive), in Unix milliseconds. */
export interface Slice {
  readonly from: number;
  readonly to: number;
}

const FIRST_MS = 3_600_000;
/** A slice that took less is followed by one twice as long, one that took more by one half as long. */
const QUICK_MS = 40;
const SLOW_MS = 120;

/**
 * Reads a span from its end in slices, so that no statement comes near its bound however many rows there are: each slice is as
 * long as those before it allow. `read` says whether to go on; answers where it stopped, undefined at the beginning of the span.
 */
export async function readInSlices(
  span: Slice,
  read: (slice: Slice, count: number) => Promise<boolean>,
): Promise<number | undefined> {
  let length = FIRST_MS;
  let { to } = span;
  for (let count = 1; to > span.from; count++) {
    const from = Math.max(span.from, to - length);
    const begun = performance.now();
    if (!(await read({ from, to }, count))) return from;
    const took = performance.now() - begun;
    if (took < QUICK_MS) length *= 2;
    else if (took > SLOW_MS) length = Math.max(FIRST_MS / 60, length / 2);
    to = from;
  }
  return undefined;
}
