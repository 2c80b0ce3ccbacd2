/** Series a label may have before new values are counted as `_other`: a caller must not be able to fill the memory. */
const MAX_VALUES = 200;

/** The buckets of what takes time, in seconds. */
export const SECONDS: readonly number[] = Object.freeze([
  0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900,
]);

/** Keeps the first {@link MAX_VALUES} values of a label and calls the rest `_other`. */
export function boundedLabel(): (value: string) => string {
  const known = new Set<string>();
  return (value) => {
    if (known.has(value)) return value;
    if (known.size >= MAX_VALUES) return '_other';
    known.add(value);
    return value;
  };
}
