/** Series a label may have before new values are counted as `_other`: a caller must not be able to fill the memory. */
const MAX_VALUES = 200;

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
